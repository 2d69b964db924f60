//! The buffer of one stream, by blocks of its file.
//!
//! ```text
//!   file    ... | 6 | 7 | 8 | 9 | ...     a block is in the slot of its number modulo the slots
//!   slots   | 8 | 9 | 6 | 7 |             and each slot knows its block, if it has one
//! ```
//!
//! A buffer has what the volume has or will have. Every write of any client updates the buffer, or removes its
//! blocks from it.

use std::io;
use std::mem::replace;

use block::{Extent, Lba, Sectors};
use stream::LocationMap;

use crate::arena::{Memory, Region};

/// Blocks of a file that are contiguous on the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileRun {
    /// The first block of the file.
    pub(crate) first: u64,
    /// The blocks on the drive.
    pub(crate) extent: Extent,
}

/// The buffer of a stream.
pub(crate) struct StreamBuffer {
    region: Region,
    /// Bytes in a block.
    block: usize,
    /// The number of the block in each slot, plus one. 0 is an empty slot.
    held: Vec<u64>,
    /// The blocks of the file, in the order of the drive.
    runs: Vec<FileRun>,
}

impl StreamBuffer {
    /// An empty buffer of `memory` bytes for a file.
    ///
    /// # Errors
    /// If the kernel has no such memory.
    pub(crate) fn new(map: &LocationMap, memory: u64) -> io::Result<Self> {
        let block = usize::try_from(map.block()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let memory = usize::try_from(memory).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let slots = (memory / block).max(1);
        Ok(StreamBuffer {
            region: Region::map(slots * block)?,
            block,
            held: vec![0; slots],
            runs: runs(map),
        })
    }

    /// Bytes in a block.
    pub(crate) fn block(&self) -> usize {
        self.block
    }

    /// The extents on the drive of some blocks of the file.
    pub(crate) fn extents_of(&self, first: u64, end: u64) -> Vec<Extent> {
        let each = self.runs.iter().filter_map(|run| {
            let from = first.max(run.first);
            let to = end.min(run.first + run.extent.length().0);
            let start = Lba(run.extent.start().0 + from.checked_sub(run.first)?);
            extent_of(start, to.checked_sub(from)?)
        });
        each.collect()
    }

    /// The bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        (self.held.len() * self.block) as u64
    }

    /// Replaces the location map of the file. Blocks from byte `kept` of the file on are removed.
    pub(crate) fn moved(&mut self, map: &LocationMap, kept: u64) {
        self.runs = runs(map);
        let first = kept / self.block as u64;
        for held in &mut self.held {
            if *held > first {
                *held = 0;
            }
        }
    }

    /// The first block of the file in an extent, if all of the extent is one run of the file.
    pub(crate) fn whole(&self, extent: Extent) -> Option<u64> {
        let after = self
            .runs
            .partition_point(|run| run.extent.start() <= extent.start());
        let run = self.runs.get(after.checked_sub(1)?)?;
        let is_inside = extent.end() <= run.extent.end();
        is_inside.then(|| run.first + (extent.start().0 - run.extent.start().0))
    }

    /// The parts of an extent that belong to the file.
    pub(crate) fn parts(&self, extent: Extent) -> impl Iterator<Item = FileRun> + '_ {
        let first = self
            .runs
            .partition_point(|run| run.extent.end() <= extent.start());
        let runs = self.runs[first..].iter();
        runs.map_while(move |run| {
            let part = run.extent.intersection(extent)?;
            Some(FileRun {
                first: run.first + (part.start().0 - run.extent.start().0),
                extent: part,
            })
        })
    }

    /// Whether the buffer has all of these blocks of the file.
    pub(crate) fn has(&self, first: u64, count: u64) -> bool {
        count <= self.held.len() as u64 && (first..first + count).all(|block| self.holds(block))
    }

    /// Whether the buffer has this block of the file.
    pub(crate) fn holds(&self, block: u64) -> bool {
        self.held[self.slot(block)] == block + 1
    }

    /// Stores a block of the file in its slot.
    pub(crate) fn put(&mut self, block: u64, bytes: &[u8]) {
        let slot = self.slot(block);
        self.held[slot] = block + 1;
        let at = slot * self.block;
        self.region.bytes_mut()[at..at + self.block].copy_from_slice(bytes);
    }

    /// Changes a block of the file if the buffer has it. The answer is whether it has.
    pub(crate) fn update(&mut self, block: u64, bytes: &[u8]) -> bool {
        let is_here = self.holds(block);
        if is_here {
            self.put(block, bytes);
        }
        is_here
    }

    /// Changes a block of the file to zeroes if the buffer has it. The answer is whether it has.
    pub(crate) fn clear(&mut self, block: u64) -> bool {
        let is_here = self.holds(block);
        if is_here {
            let at = self.slot(block) * self.block;
            self.region.bytes_mut()[at..at + self.block].fill(0);
        }
        is_here
    }

    /// Removes a block of the file. The answer is whether the buffer had it.
    pub(crate) fn forget(&mut self, block: u64) -> bool {
        let slot = self.slot(block);
        let is_here = self.holds(block);
        if is_here {
            self.held[slot] = 0;
        }
        is_here
    }

    /// Removes all blocks.
    pub(crate) fn forget_all(&mut self) {
        self.held.fill(0);
    }

    /// The bytes of a block of the file, if the buffer has it.
    pub(crate) fn get(&self, block: u64) -> Option<&[u8]> {
        let at = self.slot(block) * self.block;
        self.holds(block)
            .then(|| &self.region.bytes()[at..at + self.block])
    }

    /// Copies blocks of the file, all of which are in the buffer.
    pub(crate) fn copy_out(&self, first: u64, into: &mut [u8]) {
        for (block, bytes) in (first..).zip(into.chunks_mut(self.block)) {
            if let Some(here) = self.get(block) {
                bytes.copy_from_slice(&here[..bytes.len()]);
            }
        }
    }

    /// The memory of some blocks' slots: one piece, or two where the slots wrap around. There are at most as
    /// many blocks as slots.
    pub(crate) fn memory_of(&self, first: u64, count: u64) -> [Option<Memory>; 2] {
        let slots = self.held.len();
        let slot = self.slot(first);
        let count = (count as usize).min(slots);
        let here = count.min(slots - slot);
        let memory = self.region.memory();
        let part = |slot: usize, count: usize| {
            (count > 0).then(|| memory.part(slot * self.block, count * self.block))
        };
        [part(slot, here), part(0, count - here)]
    }

    fn slot(&self, block: u64) -> usize {
        (block % self.held.len() as u64) as usize
    }
}

/// The runs of a map, in the order of the drive. Of two pieces with common blocks, which no file system makes,
/// the later one is left out.
fn runs(map: &LocationMap) -> Vec<FileRun> {
    let pieces = map.pieces().iter().map(|piece| FileRun {
        first: piece.offset / map.block(),
        extent: piece.extent,
    });
    let mut runs: Vec<FileRun> = pieces.collect();
    runs.sort_by_key(|run| run.extent.start());
    let mut end = Lba(0);
    runs.retain(|run| {
        let later = end.max(run.extent.end());
        run.extent.start() >= replace(&mut end, later)
    });
    runs
}

/// An extent of `count` blocks, or `None` for no block.
pub(crate) fn extent_of(start: Lba, count: u64) -> Option<Extent> {
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
            extent: extent_of(Lba(start), count).expect("blocks"),
        });
        LocationMap::new(pieces.collect(), BLOCK, 1 << 20).expect("a map")
    }

    #[test]
    fn blocks_of_the_drive_are_found_in_the_file_only_where_they_are_its_own() {
        let buffer = StreamBuffer::new(&map(&[(0, 100, 8), (8, 40, 4)]), 1 << 13).expect("memory");
        let whole = |start, count| buffer.whole(extent_of(Lba(start), count).expect("blocks"));
        assert_eq!(whole(102, 6), Some(2));
        assert_eq!(whole(102, 7), None, "past the end of the piece");
        assert_eq!(whole(40, 4), Some(8));
        assert_eq!(whole(39, 2), None);
        assert_eq!(whole(99, 1), None);
        let parts: Vec<FileRun> = buffer
            .parts(extent_of(Lba(42), 60).expect("blocks"))
            .collect();
        let expected = [(10, 42, 2), (0, 100, 2)].map(|(first, start, count)| FileRun {
            first,
            extent: extent_of(Lba(start), count).expect("blocks"),
        });
        assert_eq!(parts, expected);
    }

    #[test]
    fn what_lies_elsewhere_is_forgotten() {
        let mut buffer = StreamBuffer::new(&map(&[(0, 100, 8)]), 4096).expect("memory");
        for block in 0..8 {
            buffer.put(block, &[1; BLOCK as usize]);
        }
        buffer.moved(&map(&[(0, 100, 4), (4, 300, 4)]), 4 * BLOCK);
        assert!(buffer.has(0, 4) && !buffer.holds(4) && !buffer.holds(7));
        assert_eq!(buffer.whole(Extent::block(Lba(301))), Some(5));
        assert_eq!(buffer.whole(Extent::block(Lba(105))), None);
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
        /// Compares with a list of the last block in each slot.
        #[test]
        fn only_the_last_bytes_of_a_block_are_ever_answered(
            steps in prop::collection::vec(step(), 0..120),
            places in 1u64..9,
        ) {
            let mut buffer = StreamBuffer::new(&map(&[(0, 100, 40)]), places * BLOCK).expect("memory");
            let mut model: BTreeMap<u64, (u64, u8)> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Put(block, byte) => {
                        buffer.put(block, &[byte; BLOCK as usize]);
                        model.insert(block % places, (block, byte));
                    }
                    Step::Update(block, byte) => {
                        let was = buffer.update(block, &[byte; BLOCK as usize]);
                        let there = model.get_mut(&(block % places)).filter(|it| it.0 == block);
                        prop_assert_eq!(was, there.is_some());
                        if let Some(there) = there {
                            there.1 = byte;
                        }
                    }
                    Step::Forget(block) => {
                        buffer.forget(block);
                        if model.get(&(block % places)).is_some_and(|it| it.0 == block) {
                            model.remove(&(block % places));
                        }
                    }
                }
                for block in 0..40 {
                    let there = model.get(&(block % places)).filter(|it| it.0 == block);
                    let expected = there.map(|&(_, byte)| vec![byte; BLOCK as usize]);
                    prop_assert_eq!(buffer.get(block).map(<[u8]>::to_vec), expected);
                }
            }
        }
    }
}
