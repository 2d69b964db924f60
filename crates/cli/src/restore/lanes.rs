//! The order in which an image is written: a piece of each of many ranges in turn.
//!
//! A gap takes what lies on its way. Ranges all over the image are more often on the way than one place.
//!
//! ```text
//!   image   |==>        |==>        |====>      |==>        |
//!             range 0     range 1     range 2     range 3
//! ```

use std::collections::BTreeSet;
use std::ops::Range;

/// Ranges that are written at a time. A choice: a reader of a disk reads ahead in as many files.
const LANES: usize = 64;

/// Bytes of a piece. A choice: most gaps of a drive of 2020 hold as many.
pub const PIECE: u64 = 64 << 10;

/// The ranges of an image that are not written.
#[derive(Debug)]
pub struct Lanes {
    lanes: Vec<Lane>,
    /// The range whose turn it is.
    turn: usize,
    left: u64,
}

#[derive(Debug)]
struct Lane {
    /// The first byte of which no write has begun.
    next: u64,
    end: u64,
    /// The first bytes of the writes in flight.
    in_flight: BTreeSet<u64>,
}

impl Lanes {
    /// The ranges, divided until there are enough.
    pub fn of(left: &[Range<u64>]) -> Self {
        let mut ranges: Vec<Range<u64>> = left.to_vec();
        ranges.retain(|range| range.start < range.end);
        while ranges.len() < LANES
            && let Some(place) = (0..ranges.len()).max_by_key(|&place| pieces(&ranges[place]))
            && pieces(&ranges[place]) > 1
        {
            let Range { start, end } = ranges[place].clone();
            let middle = start + pieces(&ranges[place]) / 2 * PIECE;
            ranges[place] = start..middle;
            ranges.insert(place + 1, middle..end);
        }
        Lanes {
            left: ranges.iter().map(|range| range.end - range.start).sum(),
            lanes: ranges
                .into_iter()
                .map(|range| Lane {
                    next: range.start,
                    end: range.end,
                    in_flight: BTreeSet::new(),
                })
                .collect(),
            turn: 0,
        }
    }

    /// The next piece, whose write begins.
    pub fn next(&mut self) -> Option<Range<u64>> {
        let count = self.lanes.len();
        let place = (0..count)
            .map(|offset| (self.turn + offset) % count)
            .find(|&place| self.lanes[place].next < self.lanes[place].end)?;
        self.turn = place + 1;
        let lane = &mut self.lanes[place];
        let piece = lane.next..(lane.next + PIECE).min(lane.end);
        lane.next = piece.end;
        lane.in_flight.insert(piece.start);
        Some(piece)
    }

    /// A piece is written.
    pub fn done(&mut self, piece: Range<u64>) {
        let mut lanes = self.lanes.iter_mut();
        if lanes.any(|lane| lane.in_flight.remove(&piece.start)) {
            self.left -= piece.end - piece.start;
        }
    }

    /// Bytes that are not written.
    pub fn left_bytes(&self) -> u64 {
        self.left
    }

    /// The ranges that are not known to be written: of each lane all from its first write in flight on.
    pub fn left(&self) -> Vec<Range<u64>> {
        let each = self.lanes.iter().map(|lane| {
            let first = lane.in_flight.first().copied().unwrap_or(lane.next);
            first..lane.end
        });
        each.filter(|range| range.start < range.end).collect()
    }
}

/// The pieces of a range.
fn pieces(range: &Range<u64>) -> u64 {
    (range.end - range.start).div_ceil(PIECE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The bytes of ranges, by piece of 4 KiB.
    fn pages(ranges: &[Range<u64>]) -> BTreeSet<u64> {
        let each = ranges.iter().cloned();
        each.flat_map(|range| range.step_by(4096)).collect()
    }

    proptest! {
        /// Whatever ends when: each byte is written, and what is saved has all that is not written.
        #[test]
        fn what_is_left_has_everything_that_is_not_written(
            lengths in prop::collection::vec(1..200u64, 1..5),
            ends in prop::collection::vec(any::<prop::sample::Index>(), 0..400),
        ) {
            let mut at = 0;
            let mut ranges = Vec::new();
            for length in lengths {
                ranges.push(at..at + length * 4096);
                at += (length + 3) * 4096;
            }
            let mut missing = pages(&ranges);
            let mut lanes = Lanes::of(&ranges);
            prop_assert_eq!(pages(&lanes.left()), missing.clone());
            let mut in_flight: Vec<Range<u64>> = Vec::new();
            for end in ends {
                while in_flight.len() < 8 && let Some(piece) = lanes.next() {
                    in_flight.push(piece);
                }
                if in_flight.is_empty() {
                    break;
                }
                let piece = in_flight.swap_remove(end.index(in_flight.len()));
                for page in piece.clone().step_by(4096) {
                    prop_assert!(missing.remove(&page), "{} twice", page);
                }
                lanes.done(piece);
                prop_assert_eq!(lanes.left_bytes(), missing.len() as u64 * 4096);
                prop_assert!(pages(&lanes.left()).is_superset(&missing));
            }
            // The next run writes the rest.
            let mut rest = Lanes::of(&lanes.left());
            while let Some(piece) = rest.next() {
                for page in piece.clone().step_by(4096) {
                    missing.remove(&page);
                }
                rest.done(piece);
            }
            prop_assert!(missing.is_empty());
            prop_assert_eq!(rest.left_bytes(), 0);
        }
    }

    /// Pieces in a row are far from each other.
    #[test]
    fn pieces_in_a_row_are_of_different_ranges() {
        let all = 0..PIECE * 640;
        let mut lanes = Lanes::of(std::slice::from_ref(&all));
        let mut last = lanes.next().expect("a piece").start;
        for _ in 1..LANES {
            let next = lanes.next().expect("a piece").start;
            assert!(next >= last + 9 * PIECE, "{last}, {next}");
            last = next;
        }
        assert_eq!(lanes.next(), Some(PIECE..2 * PIECE));
    }
}
