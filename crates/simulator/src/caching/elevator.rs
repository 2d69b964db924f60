//! Waiting disk reads, ordered by first block, then by age.
//!
//! ```text
//!   chunks:   | 3 7 9 . |  | 12 15 . . |  | 20 . . . |      none is empty, but the only one; a full one is
//!   spare:    | . . . . |                                   cut in half, and emptied ones are used again
//! ```
//!
//! The list stops allocating once it has reached its maximum length.

use super::merging::MergedTransfer;

/// The list of waiting reads.
#[derive(Debug)]
pub(super) struct Elevator {
    /// The list, divided into chunks; at least one.
    chunks: Vec<Vec<QueuedRead>>,
    spare: Vec<Vec<QueuedRead>>,
}

#[derive(Clone, Copy, Debug)]
struct QueuedRead {
    entry: MergedTransfer,
    /// Increases with each entry.
    age: u64,
}

/// The position of an entry; valid until the next change of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkSlot {
    chunk: usize,
    at: usize,
}

/// Entries per chunk: about a KiB, which is cheap to move. A choice.
const CHUNK: usize = 32;

impl Elevator {
    /// An empty list.
    pub(super) fn new() -> Self {
        Elevator {
            chunks: vec![Vec::with_capacity(CHUNK)],
            spare: Vec::new(),
        }
    }

    /// Whether the list is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.chunks[0].is_empty()
    }

    /// The first entry that starts at `block` or above; the oldest one of equal blocks.
    pub(super) fn from(&self, block: u64) -> Option<ChunkSlot> {
        let is_below = |waiting: &QueuedRead| waiting.entry.blocks.first < block;
        let chunk = self.chunk_of(is_below);
        let at = self.chunks[chunk].partition_point(is_below);
        (at < self.chunks[chunk].len()).then_some(ChunkSlot { chunk, at })
    }

    /// The last entry that starts at `block` or below; the youngest one of equal blocks.
    pub(super) fn up_to(&self, block: u64) -> Option<ChunkSlot> {
        let is_there = |waiting: &QueuedRead| waiting.entry.blocks.first <= block;
        let chunk = self.chunk_of(is_there);
        let above = self.chunks[chunk].partition_point(is_there);
        match above.checked_sub(1) {
            Some(at) => Some(ChunkSlot { chunk, at }),
            None => {
                let chunk = chunk.checked_sub(1)?;
                let at = self.chunks[chunk].len() - 1;
                Some(ChunkSlot { chunk, at })
            }
        }
    }

    /// The first entry.
    pub(super) fn lowest(&self) -> Option<ChunkSlot> {
        let lowest = ChunkSlot { chunk: 0, at: 0 };
        (!self.is_empty()).then_some(lowest)
    }

    /// The entry at a position.
    pub(super) fn get(&self, place: ChunkSlot) -> &MergedTransfer {
        &self.chunks[place.chunk][place.at].entry
    }

    /// Removes the entry at a position.
    pub(super) fn take(&mut self, place: ChunkSlot) -> MergedTransfer {
        let chunk = &mut self.chunks[place.chunk];
        let taken = chunk.remove(place.at);
        if chunk.is_empty() && self.chunks.len() > 1 {
            self.spare.push(self.chunks.remove(place.chunk));
        }
        taken.entry
    }

    /// Adds an entry; entries of equal blocks are ordered by age.
    pub(super) fn add(&mut self, entry: MergedTransfer, age: u64) {
        let key = (entry.blocks.first, age);
        let is_before = |waiting: &QueuedRead| (waiting.entry.blocks.first, waiting.age) < key;
        let mut chunk = self.chunk_of(is_before);
        if self.chunks[chunk].len() == CHUNK {
            let spare = self.spare.pop();
            let mut upper = spare.unwrap_or_else(|| Vec::with_capacity(CHUNK));
            upper.extend(self.chunks[chunk].drain(CHUNK / 2..));
            let is_upper = is_before(&upper[0]);
            self.chunks.insert(chunk + 1, upper);
            chunk += usize::from(is_upper);
        }
        let chunk = &mut self.chunks[chunk];
        let at = chunk.partition_point(is_before);
        chunk.insert(at, QueuedRead { entry, age });
    }

    /// The first chunk whose last entry does not satisfy `is_like`, or the last chunk.
    fn chunk_of(&self, is_like: impl Fn(&QueuedRead) -> bool) -> usize {
        let others = &self.chunks[..self.chunks.len() - 1];
        others.partition_point(|chunk| chunk.last().is_some_and(&is_like))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use block::{Direction, Interval};
    use proptest::prelude::*;

    use super::{ChunkSlot, Elevator, MergedTransfer};

    /// Adds an entry at a block, or takes one that is found from a block.
    #[derive(Clone, Copy, Debug)]
    enum Operation {
        Add(u64),
        TakeFrom(u64),
        TakeUpTo(u64),
        TakeLowest,
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            6 => (0..90_u64).prop_map(Operation::Add),
            1 => (0..90_u64).prop_map(Operation::TakeFrom),
            1 => (0..90_u64).prop_map(Operation::TakeUpTo),
            1 => Just(Operation::TakeLowest),
        ]
    }

    /// The entry's job: each has another one.
    fn job(elevator: &Elevator, place: Option<ChunkSlot>) -> Option<u32> {
        place.map(|place| elevator.get(place).first)
    }

    proptest! {
        /// Several chunks, and several entries that begin at one block.
        #[test]
        fn it_finds_what_a_map_finds(steps in prop::collection::vec(operation(), 1..600)) {
            let mut elevator = Elevator::new();
            let mut map = BTreeMap::new();
            for (age, step) in steps.into_iter().enumerate() {
                let age = age as u64;
                let (key, place) = match step {
                    Operation::Add(block) => {
                        elevator.add(MergedTransfer::of(Interval::of(block, 1), Direction::Read, age as u32), age);
                        map.insert((block, age), age as u32);
                        continue;
                    }
                    Operation::TakeFrom(block) => {
                        (map.range((block, 0)..).next(), elevator.from(block))
                    }
                    Operation::TakeUpTo(block) => {
                        (map.range(..=(block, u64::MAX)).next_back(), elevator.up_to(block))
                    }
                    Operation::TakeLowest => (map.iter().next(), elevator.lowest()),
                };
                let key = key.map(|(&key, &job)| (key, job));
                prop_assert_eq!(job(&elevator, place), key.map(|(_, job)| job));
                if let (Some(place), Some((key, job))) = (place, key) {
                    prop_assert_eq!(elevator.take(place).first, job);
                    map.remove(&key);
                }
                prop_assert_eq!(elevator.is_empty(), map.is_empty());
            }
            while let Some(place) = elevator.lowest() {
                let job = elevator.take(place).first;
                prop_assert_eq!(map.pop_first().map(|(_, job)| job), Some(job));
            }
            prop_assert!(map.is_empty());
        }
    }

    #[test]
    fn chunks_are_used_again() {
        let mut elevator = Elevator::new();
        let mut most = 0;
        for round in 0..20 {
            for block in 0..200 {
                elevator.add(
                    MergedTransfer::of(Interval::of(block * 7 % 200, 1), Direction::Read, 0),
                    round * 200 + block,
                );
            }
            let chunks = elevator.chunks.len() + elevator.spare.len();
            assert!(
                round == 0 || chunks == most,
                "{chunks} chunks, {most} before"
            );
            most = chunks;
            while let Some(place) = elevator.lowest() {
                elevator.take(place);
            }
        }
    }
}
