//! Copies that wait to be written, in the order of their bytes. Those that touch are one run, which is written at once.
//!
//! ```text
//!   bytes  |--5--|--9--|          |--7--|     |--2--|--8--|--3--|
//!   runs   <----------->          <----->     <-----------------> at most a piece long
//! ```

use std::collections::BTreeMap;
use std::ops::{Bound, Range};

use super::{PIECE, overlap};

/// Bytes that were read and wait to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldCopy {
    /// Its number.
    pub key: u64,
    /// The bytes of the data.
    pub bytes: Range<u64>,
}

/// The copies that wait.
#[derive(Debug, Default)]
pub(super) struct HeldCopies {
    /// By their first bytes. No two have a byte in common.
    by_start: BTreeMap<u64, HeldCopy>,
    /// Copies that are spoiled: nobody needs their bytes any more.
    dropped: Vec<u64>,
}

impl HeldCopies {
    pub(super) fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// The copies, the lowest bytes first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &HeldCopy> {
        self.by_start.values()
    }

    /// A copy waits. If others have some of its bytes, it is dropped.
    pub(super) fn hold(&mut self, key: u64, bytes: Range<u64>) {
        if self.last_in(&bytes).is_some() {
            self.dropped.push(key);
        } else {
            self.by_start.insert(bytes.start, HeldCopy { key, bytes });
        }
    }

    /// The last copy that has some of these bytes.
    fn last_in(&self, bytes: &Range<u64>) -> Option<&HeldCopy> {
        let (_, last) = self.by_start.range(..bytes.end).next_back()?;
        overlap(&last.bytes, bytes).then_some(last)
    }

    /// Drops all copies that have some of these bytes.
    pub(super) fn drop_all(&mut self, bytes: &Range<u64>) {
        while let Some(HeldCopy { key, bytes }) = self.last_in(bytes).cloned() {
            self.by_start.remove(&bytes.start);
            self.dropped.push(key);
        }
    }

    /// A copy that was dropped since the last call.
    pub(super) fn poll_dropped(&mut self) -> Option<u64> {
        self.dropped.pop()
    }

    /// The runs that begin next to a byte: at most so many from it on, upwards, and so many below it, downwards.
    pub(super) fn runs(&self, near: u64, most: usize) -> Vec<Range<u64>> {
        let is_begin = |&start: &u64| {
            let before = self.by_start.range(..start).next_back();
            before.is_none_or(|(_, before)| before.bytes.end < start)
        };
        let starts = |range| self.by_start.range(range).map(|(&start, _)| start);
        let above = starts((Bound::Included(near), Bound::Unbounded)).filter(is_begin);
        let below = starts((Bound::Unbounded, Bound::Excluded(near))).rev();
        let all = above.take(most).chain(below.filter(is_begin).take(most));
        let of = |start: u64| {
            let end = self.run(start).last().map_or(start, |last| last.bytes.end);
            start..end
        };
        all.map(of).collect()
    }

    /// The copies from this byte on that touch, together at most [`PIECE`] long. The first one alone may be longer.
    fn run(&self, start: u64) -> impl Iterator<Item = &HeldCopy> {
        let mut end = start;
        let held = self.by_start.range(start..).map(|(_, held)| held);
        held.take_while(move |held| {
            let is_next = held.bytes.start == end;
            let fits = end == start || held.bytes.end <= start + PIECE;
            end = held.bytes.end;
            is_next && fits
        })
    }

    /// Takes the copies of the run that begins at this byte.
    pub(super) fn take_run(&mut self, start: u64) -> Vec<HeldCopy> {
        let run: Vec<HeldCopy> = self.run(start).cloned().collect();
        for held in &run {
            self.by_start.remove(&held.bytes.start);
        }
        run
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BLOCK: u64 = PIECE / 8;
    const BLOCKS: u64 = 40;

    fn bytes(blocks: &Range<u64>) -> Range<u64> {
        blocks.start * BLOCK..blocks.end * BLOCK
    }

    /// Naively: the key of each block.
    type Blocks = [Option<u64>; BLOCKS as usize];

    fn of(copies: &HeldCopies) -> Blocks {
        let mut all = [None; BLOCKS as usize];
        for held in copies.iter() {
            all[(held.bytes.start / BLOCK) as usize..(held.bytes.end / BLOCK) as usize]
                .fill(Some(held.key));
        }
        all
    }

    /// The ends of the run that begins at a block, if one does: whole copies, as many as make a piece.
    fn run_from(all: &Blocks, start: usize) -> Option<usize> {
        let copy_end = |at: usize| {
            (at..all.len())
                .find(|&to| all[to] != all[at])
                .unwrap_or(all.len())
        };
        if all[start].is_none() || (start > 0 && all[start - 1].is_some()) {
            return None;
        }
        let mut end = copy_end(start);
        while end < all.len() && all[end].is_some() && copy_end(end) - start <= 8 {
            end = copy_end(end);
        }
        Some(end)
    }

    #[derive(Clone, Debug)]
    enum Step {
        Hold(u64, u64),
        Drop(u64, u64),
        /// The runs near a block are looked at, and one of them is taken.
        Take(u64, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let some = (0..BLOCKS, 1_u64..12);
        prop_oneof![
            6 => some.clone().prop_map(|(start, length)| Step::Hold(start, length)),
            1 => some.prop_map(|(start, length)| Step::Drop(start, length)),
            2 => (0..BLOCKS, any::<usize>()).prop_map(|(near, which)| Step::Take(near, which)),
        ]
    }

    proptest! {
        #[test]
        fn copies_that_touch_are_runs_and_each_copy_is_taken_or_dropped_once(
            steps in prop::collection::vec(step(), 1..60),
        ) {
            let (mut copies, mut naive) = (HeldCopies::default(), [None; BLOCKS as usize]);
            let mut gone = Vec::new();
            for (key, step) in (0..).zip(&steps) {
                match *step {
                    Step::Hold(start, length) => {
                        let blocks = start..(start + length).min(BLOCKS);
                        copies.hold(key, bytes(&blocks));
                        let place = &mut naive[blocks.start as usize..blocks.end as usize];
                        match place.iter().all(Option::is_none) {
                            true => place.fill(Some(key)),
                            false => gone.push(key),
                        }
                    }
                    Step::Drop(start, length) => {
                        let blocks = start..(start + length).min(BLOCKS);
                        copies.drop_all(&bytes(&blocks));
                        for block in blocks {
                            if let Some(key) = naive[block as usize] {
                                gone.push(key);
                                naive.iter_mut().filter(|of| **of == Some(key)).for_each(|of| *of = None);
                            }
                        }
                    }
                    Step::Take(near, which) => {
                        let runs = |places: &mut dyn Iterator<Item = u64>| -> Vec<Range<u64>> {
                            let run = |from: u64| Some(from..run_from(&naive, from as usize)? as u64);
                            places.filter_map(run).take(2).map(|run| bytes(&run)).collect()
                        };
                        let expected = [runs(&mut (near..BLOCKS)), runs(&mut (0..near).rev())].concat();
                        let found = copies.runs(near * BLOCK, 2);
                        prop_assert_eq!(&found, &expected);
                        if let Some(run) = found.get(which % found.len().max(1)) {
                            let taken = copies.take_run(run.start);
                            let mut at = run.start;
                            for held in &taken {
                                prop_assert_eq!(held.bytes.start, at);
                                at = held.bytes.end;
                                for block in held.bytes.start / BLOCK..at / BLOCK {
                                    prop_assert_eq!(naive[block as usize].take(), Some(held.key));
                                }
                            }
                            prop_assert_eq!(at, run.end);
                        }
                    }
                }
                prop_assert_eq!(of(&copies), naive);
                prop_assert_eq!(copies.is_empty(), naive.iter().all(Option::is_none));
                let mut dropped: Vec<u64> = std::iter::from_fn(|| copies.poll_dropped()).collect();
                dropped.sort_unstable();
                gone.sort_unstable();
                prop_assert_eq!(dropped, std::mem::take(&mut gone));
            }
        }
    }
}
