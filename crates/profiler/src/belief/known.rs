//! The blocks whose tracks are exactly known.

use block::{Extent, Lba, Sectors};

use crate::findings::Findings;

/// The extents of known blocks, ascending and disjoint, without remapped blocks. With a layout,
/// they are its known blocks, since the map may have grown later. Without one, they are the map's
/// pieces except for tracks with slipped sectors, whose positions are unknown.
pub fn extents(findings: &Findings, blocks: u64) -> Vec<Extent> {
    let map = &findings.map;
    let mut holes: Vec<(u64, u64)> = map
        .elsewhere
        .iter()
        .map(|moved| (moved.first.0, moved.first.0 + u64::from(moved.blocks)))
        .collect();
    if findings.layout.is_none() {
        let tracks = map
            .slips
            .iter()
            .filter_map(|slip| map.track_of(slip.before));
        holes.extend(tracks.map(|track| (track.first.0, track.first.0 + u64::from(track.blocks))));
    }
    holes.sort_unstable();
    let mut whole: Vec<(u64, u64)> = Vec::new();
    for (first, end) in stretches(findings) {
        let end = end.min(blocks);
        match whole.last_mut() {
            Some(last) if last.1 == first => last.1 = end,
            _ => whole.push((first, end)),
        }
    }
    let mut known = Vec::new();
    let mut hole = holes.into_iter().peekable();
    for (mut first, end) in whole {
        while let Some((from, to)) = hole.next_if(|&(from, _)| from < end) {
            push(&mut known, first, from);
            first = first.max(to);
        }
        push(&mut known, first, end);
    }
    known
}

/// The ranges of blocks with known tracks, ascending: first block and end.
fn stretches(findings: &Findings) -> Vec<(u64, u64)> {
    let ends = |extent: &Extent| (extent.start().0, extent.end().0);
    match &findings.layout {
        Some(layout) => layout.known.iter().map(ends).collect(),
        None => {
            let pieces = findings.map.pieces.iter();
            pieces.map(|piece| (piece.first.0, piece.end().0)).collect()
        }
    }
}

/// Adds the blocks from `first` to before `end`, if there are any.
fn push(known: &mut Vec<Extent>, first: u64, end: u64) {
    if first < end
        && let Ok(extent) = Extent::new(Lba(first), Sectors(end - first))
    {
        known.push(extent);
    }
}
