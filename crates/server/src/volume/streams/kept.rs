//! The bytes of one stream that are in memory, by blocks of its file.
//!
//! ```text
//!   file    ... | 6 | 7 | 8 | 9 | ...     a block is in the place of its number modulo the places
//!   places  | 8 | 9 | 6 | 7 |             and each place knows which block it has, if any
//! ```
//!
//! What is here is what the volume has, or will have: every write through any door is put in here,
//! or takes its blocks out.

use std::io;
use std::mem::replace;

use block::{Extent, Lba, Sectors};
use stream::LocationMap;

use crate::arena::{Memory, Region};

/// A run of a file's blocks that lie one after the other on the drive, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The first block of the file.
    pub(crate) first: u64,
    /// The blocks on the drive.
    pub(crate) extent: Extent,
}

/// The buffer of a stream.
pub(crate) struct Kept {
    region: Region,
    /// Bytes in a block.
    block: usize,
    /// The number of the block in each place, and one.
    held: Vec<u64>,
    /// Where the file's blocks are, in the order of the drive.
    runs: Vec<Run>,
}

impl Kept {
    /// Room for so many bytes, of a file that is there.
    ///
    /// # Errors
    /// If the kernel has no such memory.
    pub(crate) fn new(map: &LocationMap, memory: u64) -> io::Result<Self> {
        let block = usize::try_from(map.block()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let memory = usize::try_from(memory).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let places = (memory / block).max(1);
        Ok(Kept {
            region: Region::map(places * block)?,
            block,
            held: vec![0; places],
            runs: runs(map),
        })
    }

    /// Bytes in a block.
    pub(crate) fn block(&self) -> usize {
        self.block
    }

    /// Where blocks of the file are on the drive.
    pub(crate) fn places_of(&self, first: u64, end: u64) -> Vec<Extent> {
        let each = self.runs.iter().filter_map(|run| {
            let from = first.max(run.first);
            let to = end.min(run.first + run.extent.length().0);
            let start = Lba(run.extent.start().0 + from.checked_sub(run.first)?);
            blocks(start, to.checked_sub(from)?)
        });
        each.collect()
    }

    /// How many bytes of memory it has.
    pub(crate) fn bytes(&self) -> u64 {
        (self.held.len() * self.block) as u64
    }

    /// The file is there from now on: blocks from `kept` bytes of the file on are forgotten.
    pub(crate) fn moved(&mut self, map: &LocationMap, kept: u64) {
        self.runs = runs(map);
        let first = kept / self.block as u64;
        for held in &mut self.held {
            if *held > first {
                *held = 0;
            }
        }
    }

    /// Which blocks of the file some blocks of the drive are, if they are all of it and in its order.
    pub(crate) fn whole(&self, extent: Extent) -> Option<u64> {
        let after = self
            .runs
            .partition_point(|run| run.extent.start() <= extent.start());
        let run = self.runs.get(after.checked_sub(1)?)?;
        let is_inside = extent.end() <= run.extent.end();
        is_inside.then(|| run.first + (extent.start().0 - run.extent.start().0))
    }

    /// The parts of some blocks of the drive that are the file's.
    pub(crate) fn parts(&self, extent: Extent) -> impl Iterator<Item = Run> + '_ {
        let first = self
            .runs
            .partition_point(|run| run.extent.end() <= extent.start());
        let runs = self.runs[first..].iter();
        runs.map_while(move |run| {
            let part = run.extent.intersection(extent)?;
            Some(Run {
                first: run.first + (part.start().0 - run.extent.start().0),
                extent: part,
            })
        })
    }

    /// Whether all of these blocks of the file are here.
    pub(crate) fn has(&self, first: u64, count: u64) -> bool {
        count <= self.held.len() as u64 && (first..first + count).all(|block| self.holds(block))
    }

    /// Whether this block of the file is here.
    pub(crate) fn holds(&self, block: u64) -> bool {
        self.held[self.place(block)] == block + 1
    }

    /// Keeps a block of the file, in place of what was there.
    pub(crate) fn put(&mut self, block: u64, bytes: &[u8]) {
        let place = self.place(block);
        self.held[place] = block + 1;
        let at = place * self.block;
        self.region.bytes_mut()[at..at + self.block].copy_from_slice(bytes);
    }

    /// Changes a block of the file if it is here; whether it was.
    pub(crate) fn update(&mut self, block: u64, bytes: &[u8]) -> bool {
        let is_here = self.holds(block);
        if is_here {
            self.put(block, bytes);
        }
        is_here
    }

    /// Forgets a block of the file; whether it was here.
    pub(crate) fn forget(&mut self, block: u64) -> bool {
        let place = self.place(block);
        let is_here = self.holds(block);
        if is_here {
            self.held[place] = 0;
        }
        is_here
    }

    /// Forgets everything.
    pub(crate) fn forget_all(&mut self) {
        self.held.fill(0);
    }

    /// A block of the file that is here.
    pub(crate) fn get(&self, block: u64) -> Option<&[u8]> {
        let at = self.place(block) * self.block;
        self.holds(block)
            .then(|| &self.region.bytes()[at..at + self.block])
    }

    /// Copies blocks of the file that are all here.
    pub(crate) fn copy_out(&self, first: u64, into: &mut [u8]) {
        for (block, bytes) in (first..).zip(into.chunks_mut(self.block)) {
            if let Some(here) = self.get(block) {
                bytes.copy_from_slice(&here[..bytes.len()]);
            }
        }
    }

    /// Where some blocks of the file are in memory, whatever is there now: in one piece, or in two
    /// where the places begin anew. No more than there are places.
    pub(crate) fn memory_of(&self, first: u64, count: u64) -> [Option<Memory>; 2] {
        let places = self.held.len();
        let place = self.place(first);
        let count = (count as usize).min(places);
        let here = count.min(places - place);
        let memory = self.region.memory();
        let part = |place: usize, count: usize| {
            (count > 0).then(|| memory.part(place * self.block, count * self.block))
        };
        [part(place, here), part(0, count - here)]
    }

    fn place(&self, block: u64) -> usize {
        (block % self.held.len() as u64) as usize
    }
}

/// The runs of a map, in the order of the drive. Where two pieces of a file are the same blocks, which
/// no file system does, the later ones are left out: nothing is kept of them.
fn runs(map: &LocationMap) -> Vec<Run> {
    let pieces = map.pieces().iter().map(|piece| Run {
        first: piece.offset / map.block(),
        extent: piece.extent,
    });
    let mut runs: Vec<Run> = pieces.collect();
    runs.sort_by_key(|run| run.extent.start());
    let mut end = Lba(0);
    runs.retain(|run| {
        let later = end.max(run.extent.end());
        run.extent.start() >= replace(&mut end, later)
    });
    runs
}

/// Blocks as an extent; none of no block.
pub(crate) fn blocks(start: Lba, count: u64) -> Option<Extent> {
    Extent::new(start, Sectors(count)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use stream::Piece;

    const BLOCK: u64 = 512;

    fn map(pieces: &[(u64, u64, u64)]) -> LocationMap {
        let pieces = pieces.iter().map(|&(first, start, count)| Piece {
            offset: first * BLOCK,
            extent: blocks(Lba(start), count).expect("blocks"),
        });
        LocationMap::new(pieces.collect(), BLOCK, 1 << 20).expect("a map")
    }

    #[test]
    fn blocks_of_the_drive_are_found_in_the_file_only_where_they_are_its_own() {
        let kept = Kept::new(&map(&[(0, 100, 8), (8, 40, 4)]), 1 << 13).expect("memory");
        let whole = |start, count| kept.whole(blocks(Lba(start), count).expect("blocks"));
        assert_eq!(whole(102, 6), Some(2));
        assert_eq!(whole(102, 7), None, "past the end of the piece");
        assert_eq!(whole(40, 4), Some(8));
        assert_eq!(whole(39, 2), None);
        assert_eq!(whole(99, 1), None);
        let parts: Vec<Run> = kept.parts(blocks(Lba(42), 60).expect("blocks")).collect();
        let expected = [(10, 42, 2), (0, 100, 2)].map(|(first, start, count)| Run {
            first,
            extent: blocks(Lba(start), count).expect("blocks"),
        });
        assert_eq!(parts, expected);
    }

    #[test]
    fn what_lies_elsewhere_is_forgotten() {
        let mut kept = Kept::new(&map(&[(0, 100, 8)]), 4096).expect("memory");
        for block in 0..8 {
            kept.put(block, &[1; BLOCK as usize]);
        }
        kept.moved(&map(&[(0, 100, 4), (4, 300, 4)]), 4 * BLOCK);
        assert!(kept.has(0, 4) && !kept.holds(4) && !kept.holds(7));
        assert_eq!(kept.whole(Extent::block(Lba(301))), Some(5));
        assert_eq!(kept.whole(Extent::block(Lba(105))), None);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Put(u64, u8),
        Update(u64, u8),
        Forget(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0u64..40, any::<u8>()).prop_map(|(block, byte)| Step::Put(block, byte)),
            (0u64..40, any::<u8>()).prop_map(|(block, byte)| Step::Update(block, byte)),
            (0u64..40).prop_map(Step::Forget),
        ]
    }

    proptest! {
        /// Against a list of what was kept last in each place.
        #[test]
        fn only_the_last_bytes_of_a_block_are_ever_answered(
            steps in prop::collection::vec(step(), 0..120),
            places in 1u64..9,
        ) {
            let mut kept = Kept::new(&map(&[(0, 100, 40)]), places * BLOCK).expect("memory");
            let mut model: BTreeMap<u64, (u64, u8)> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Put(block, byte) => {
                        kept.put(block, &[byte; BLOCK as usize]);
                        model.insert(block % places, (block, byte));
                    }
                    Step::Update(block, byte) => {
                        let was = kept.update(block, &[byte; BLOCK as usize]);
                        let there = model.get_mut(&(block % places)).filter(|it| it.0 == block);
                        prop_assert_eq!(was, there.is_some());
                        if let Some(there) = there {
                            there.1 = byte;
                        }
                    }
                    Step::Forget(block) => {
                        kept.forget(block);
                        if model.get(&(block % places)).is_some_and(|it| it.0 == block) {
                            model.remove(&(block % places));
                        }
                    }
                }
                for block in 0..40 {
                    let there = model.get(&(block % places)).filter(|it| it.0 == block);
                    let expected = there.map(|&(_, byte)| vec![byte; BLOCK as usize]);
                    prop_assert_eq!(kept.get(block).map(<[u8]>::to_vec), expected);
                }
            }
        }
    }
}
