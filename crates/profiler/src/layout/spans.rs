//! Stretches of tracks between the places at which the map shows that something ends: another
//! density or another skew comes.

use block::Lba;

use super::strip::{Strip, StripOrigin, is_cut};

/// Tracks between two cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrackSpan {
    /// The first block.
    pub first: Lba,
    pub tracks: u64,
    /// Whether there is a cut at both ends, and not the end of what is known.
    pub whole: bool,
}

/// The spans of a map's strips.
pub(super) fn spans(strips: &[Strip]) -> Vec<TrackSpan> {
    let mut spans: Vec<TrackSpan> = Vec::new();
    let mut before: Option<&Strip> = None;
    for strip in strips {
        let tracks = u64::from(strip.tracks);
        let after_gap = strip.origin != StripOrigin::Map;
        let cut = before.is_none_or(|before| is_cut(before, strip));
        if let Some(last) = spans.last_mut() {
            if !after_gap && !cut {
                last.tracks += tracks;
                before = Some(strip);
                continue;
            }
            last.whole &= !after_gap;
        }
        spans.push(TrackSpan {
            first: strip.first,
            tracks,
            whole: before.is_some() && !after_gap,
        });
        before = Some(strip);
    }
    if let Some(last) = spans.last_mut() {
        last.whole = false;
    }
    spans
}

/// Lengths that come at least so often are looked at. A choice.
const OFTEN: usize = 6;

/// How many lengths are looked at. A choice.
const LENGTHS: usize = 3;

/// The commonest lengths of whole spans, and with which block the first two neighbours of that
/// length begin.
pub(super) fn commonest(spans: &[TrackSpan]) -> Vec<(u64, Lba)> {
    let mut lengths: Vec<u64> = spans
        .iter()
        .filter(|span| span.whole)
        .map(|span| span.tracks)
        .collect();
    lengths.sort_unstable();
    let mut counted: Vec<(usize, u64)> = lengths
        .chunk_by(|a, b| a == b)
        .filter(|equal| equal.len() >= OFTEN)
        .map(|equal| (equal.len(), equal[0]))
        .collect();
    counted.sort_unstable_by(|a, b| b.cmp(a));
    let first = |length: u64| {
        let of = |span: &TrackSpan| span.whole && span.tracks == length;
        let mut pairs = spans.windows(2);
        let pair = pairs.find(|pair| of(&pair[0]) && of(&pair[1]))?;
        Some((length, pair[0].first))
    };
    counted
        .iter()
        .take(LENGTHS)
        .filter_map(|counted| first(counted.1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commonest_lengths_that_come_twice_in_a_row() {
        let span = |tracks: u64| TrackSpan {
            first: Lba(tracks),
            tracks,
            whole: true,
        };
        let row = [32, 32, 64, 31, 1].map(span);
        let rows: Vec<TrackSpan> = (0..10).flat_map(|_| row).collect();
        assert_eq!(commonest(&rows), [(32, Lba(32))]);
        assert_eq!(commonest(&rows[..10]), []);
    }
}
