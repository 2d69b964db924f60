//! Runs of blocks cut into groups of neighbours: what stands in one place of the queue.

use crate::interval::Interval;
use crate::residency::MAX_BLOCK;

/// Some of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Of the group's number.
    pub(super) hash: u64,
    pub(super) marks: u64,
}

impl Part {
    /// How many blocks.
    pub(super) fn count(self) -> usize {
        counted(self.marks)
    }
}

/// How many marks there are: looked up, because not every processor has an instruction for it.
pub(super) fn counted(marks: u64) -> usize {
    const COUNTS: [u8; 1 << GROUP] = {
        let mut counts = [0; 1 << GROUP];
        let mut marks = 1;
        while marks < counts.len() {
            counts[marks] = counts[marks >> 1] + (marks as u8 & 1);
            marks += 1;
        }
        counts
    };
    usize::from(COUNTS[(marks & MARKS) as usize])
}

/// The blocks that exist, group by group.
pub(super) fn parts(blocks: Interval) -> impl Iterator<Item = Part> {
    let last = blocks.last.min(MAX_BLOCK);
    let mut first = blocks.first;
    std::iter::from_fn(move || {
        if first > last {
            return None;
        }
        let group = first >> GROUP_BITS;
        let end = last.min(first | (GROUP - 1));
        let (from, to) = (first % GROUP, end % GROUP);
        first = end + 1;
        let marks = (MARKS >> (GROUP - 1 - to)) & (MARKS << from);
        let hash = group.wrapping_mul(GOLDEN) & ((1 << HASH_BITS) - 1);
        Some(Part { hash, marks })
    })
}

/// Neighbours of a group, as a power of two.
pub(super) const GROUP_BITS: u32 = 3;
pub(super) const GROUP: u64 = 1 << GROUP_BITS;

/// A mark for each of a group.
pub(super) const MARKS: u64 = (1 << GROUP) - 1;

/// Bits of a group's number and of its hash.
pub(super) const HASH_BITS: u32 = 52 - GROUP_BITS;
const _: () = assert!(MAX_BLOCK >> GROUP_BITS == (1 << HASH_BITS) - 1);

/// 2^49 divided by the golden ratio, made odd: neighbours are spread evenly (Knuth, The Art of Computer
/// Programming 3, 6.4).
pub(super) const GOLDEN: u64 = 0x1_3C6E_F372_FE95;
