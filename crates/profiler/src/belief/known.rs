//! The blocks of which the track is exactly known.

use block::{Extent, Lba, Sectors};

use crate::findings::Findings;

/// Those extents, ascending and apart: the map's pieces without what was remapped, and without
/// tracks with slipped sectors if nothing says how these lie.
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
    for piece in &map.pieces {
        let (first, end) = (piece.first.0, piece.end().0.min(blocks));
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

/// Adds the blocks from `first` to before `end`, if there are some.
fn push(known: &mut Vec<Extent>, first: u64, end: u64) {
    if first < end
        && let Ok(extent) = Extent::new(Lba(first), Sectors(end - first))
    {
        known.push(extent);
    }
}
