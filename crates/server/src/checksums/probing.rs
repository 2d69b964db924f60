//! The search for the blocks that cannot be read, within reads that failed as a whole.
//!
//! ```text
//!   failed      [                x       x        ]
//!   halves      [                ][x       x      ]      each by itself
//!   halves                        [x    ][ x      ]      ... down to single blocks
//! ```
//!
//! A drive in idle time reads over the blocks between two wanted ones of a track. So places that are read together
//! lie far apart.

use std::collections::VecDeque;
use std::ops::Range;

/// A search for blocks that cannot be read.
pub struct Probing {
    /// Bytes of a block.
    unit: u64,
    left: VecDeque<Range<u64>>,
    under_way: Vec<Range<u64>>,
    reads: usize,
}

/// Bytes between places that are read together. A choice: more than any track has.
const APART: u64 = 16 << 20;
/// The largest number of reads of a search. A choice: a drive with more is to be replaced.
const MOST_READS: usize = 20_000;

impl Probing {
    /// A search in these bytes, whose read has failed.
    pub fn new(unit: u64, places: &[Range<u64>]) -> Self {
        let mut probing = Probing::over(unit, Vec::new());
        places.iter().for_each(|place| probing.divide(place));
        probing
    }

    /// Reads of these places, each by itself.
    pub fn over(unit: u64, places: Vec<Range<u64>>) -> Self {
        Probing {
            unit,
            left: places.into(),
            under_way: Vec::new(),
            reads: 0,
        }
    }

    fn divide(&mut self, place: &Range<u64>) {
        let units = (place.end - place.start).div_ceil(self.unit);
        let middle = place.start + units / 2 * self.unit;
        let halves = [place.start..middle, middle..place.end];
        self.left
            .extend(halves.into_iter().filter(|half| !half.is_empty()));
    }

    /// The next places to read. None at the end.
    pub fn next_places(&mut self) -> Vec<Range<u64>> {
        let mut places: Vec<Range<u64>> = Vec::new();
        self.left.retain(|place| {
            let is_apart = places
                .iter()
                .all(|other| place.start >= other.end + APART || place.end + APART <= other.start);
            let is_chosen = is_apart && self.reads < MOST_READS;
            if is_chosen {
                self.reads += 1;
                places.push(place.clone());
            }
            !is_chosen
        });
        places.sort_by_key(|place| place.start);
        self.under_way.clone_from(&places);
        places
    }

    /// The places were read. These bytes could not be.
    pub fn ended(&mut self, unreadable: &[Range<u64>]) {
        for place in std::mem::take(&mut self.under_way) {
            let is_failed = unreadable
                .iter()
                .any(|other| place.start < other.end && other.start < place.end);
            if is_failed && place.end - place.start > self.unit {
                self.divide(&place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a drive whose reads fail as a whole: exactly the bad blocks are left.
        #[test]
        fn exactly_the_bad_blocks_are_left(
            bad in prop::collection::btree_set(0..4096_u64, 0..20),
            unit in prop_oneof![Just(512_u64), Just(4096)],
        ) {
            let is_bad = |range: &Range<u64>| bad.range(range.start / unit..range.end / unit).next().is_some();
            // A first pass read a megabyte at a time.
            let mut failed: BTreeSet<u64> = BTreeSet::new();
            let all = 4096 * unit;
            for first in (0..all).step_by(1 << 20) {
                let read = first..(first + (1 << 20)).min(all);
                if is_bad(&read) {
                    failed.extend(read.start / unit..read.end / unit);
                }
            }
            let places = |failed: &BTreeSet<u64>| failed.iter().map(|&block| block * unit..(block + 1) * unit).collect::<Vec<_>>();
            let merged = |failed: &BTreeSet<u64>| {
                places(failed).into_iter().fold(Vec::<Range<u64>>::new(), |mut all, place| {
                    match all.last_mut() {
                        Some(last) if last.end == place.start => last.end = place.end,
                        _ => all.push(place),
                    }
                    all
                })
            };
            let mut probing = Probing::new(unit, &merged(&failed));
            loop {
                let reads = probing.next_places();
                if reads.is_empty() {
                    break;
                }
                for pair in reads.windows(2) {
                    prop_assert!(pair[0].end + APART <= pair[1].start);
                }
                for read in &reads {
                    if !is_bad(read) {
                        failed.retain(|block| !(read.start / unit..read.end / unit).contains(block));
                    }
                }
                probing.ended(&merged(&failed));
            }
            prop_assert_eq!(failed, bad);
        }
    }
}
