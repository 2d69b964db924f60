//! Groups of neighbouring blocks: the content of one place of the queue.

use crate::residency::MAX_BLOCK;
use block::Interval;

/// The layout of a place's word.
#[derive(Clone, Copy, Debug)]
pub(super) struct WordLayout {
    /// Bits of a link to an older place.
    link: u32,
    /// The number of buckets.
    buckets: u32,
    /// The bits of the link.
    links: u64,
    /// The bits of the group's hash that a place keeps.
    pub(super) kept: u64,
}

/// Blocks of a group, in two words that fit registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupPart {
    /// The bucket of the group.
    pub(super) bucket: usize,
    /// The word of its place, without the link.
    pub(super) word: u64,
}

/// The upper bits of a hash, which choose the bucket.
const UPPER_BITS: u32 = 32;

impl WordLayout {
    /// The layout for so many buckets, and steps of so many bits.
    pub(super) fn new(buckets: usize, link: u32) -> Self {
        // The bits that distinguish the hashes of the widest bucket.
        let rest = HASH_BITS - buckets.ilog2();
        assert!(link + rest <= MARKS_SHIFT);
        WordLayout {
            link,
            buckets: buckets as u32,
            links: (1 << link) - 1,
            kept: ((1 << rest) - 1) << link,
        }
    }

    /// The link of a place.
    #[inline]
    pub(super) fn link(self, word: u64) -> u32 {
        (word & self.links) as u32
    }

    /// The place's word with another link.
    #[inline]
    pub(super) fn linked(self, word: u64, link: u32) -> u64 {
        word & !self.links | u64::from(link)
    }

    /// Whether two words are of the same group, if they are of the same bucket.
    #[inline]
    pub(super) fn is_same_group(self, word: u64, other: u64) -> bool {
        (word ^ other) & self.kept == 0
    }

    /// Blocks of a group by the group's number and their marks.
    #[inline]
    pub(super) fn part(self, group: u64, marks: u64) -> GroupPart {
        let hash = group.wrapping_mul(GOLDEN) & ((1 << HASH_BITS) - 1);
        let upper = hash >> (HASH_BITS - UPPER_BITS);
        GroupPart {
            bucket: ((upper * u64::from(self.buckets)) >> UPPER_BITS) as usize,
            word: marks << MARKS_SHIFT | hash << self.link & self.kept,
        }
    }

    /// The blocks up to [`MAX_BLOCK`], group by group.
    #[inline]
    pub(super) fn parts(self, blocks: Interval) -> impl Iterator<Item = GroupPart> + Clone {
        let last = blocks.last.min(MAX_BLOCK);
        let mut first = blocks.first;
        std::iter::from_fn(move || {
            if first > last {
                return None;
            }
            let group = first >> GROUP_BITS;
            let end = last.min(first | (GROUP - 1));
            let (from, to) = ((first % GROUP) as usize, (end % GROUP) as usize);
            first = end + 1;
            let marks = u64::from(FROM[from] & UP_TO[to]);
            Some(self.part(group, marks))
        })
    }
}

impl GroupPart {
    /// The part with these marks only.
    #[inline]
    pub(super) fn only(self, marks: u64) -> GroupPart {
        GroupPart {
            word: self.word & !(MARKS << MARKS_SHIFT) | marks << MARKS_SHIFT,
            ..self
        }
    }
}

/// The marks of a place.
#[inline]
pub(super) fn marks(word: u64) -> u64 {
    word >> MARKS_SHIFT
}

/// The marks of a block of a group and of all after it, by its place in the group.
const FROM: [u8; GROUP as usize] = [0xFF, 0xFE, 0xFC, 0xF8, 0xF0, 0xE0, 0xC0, 0x80];

/// The marks of a block of a group and of all before it.
const UP_TO: [u8; GROUP as usize] = [0x01, 0x03, 0x07, 0x0F, 0x1F, 0x3F, 0x7F, 0xFF];

/// The number of marks, by a table, because not every processor has an instruction for it.
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

/// A place's word without its `count` lowest marks, which are the oldest: fewer than it has. By a table, because the
/// number is hard to predict.
#[inline]
pub(super) fn without_lowest(word: u64, count: usize) -> u64 {
    const KEPT: [[u8; GROUP as usize]; 1 << GROUP] = {
        let mut kept = [[0; GROUP as usize]; 1 << GROUP];
        let mut marks = 0;
        while marks < kept.len() {
            let (mut rest, mut count) = (marks, 0);
            while count < kept[marks].len() {
                kept[marks][count] = rest as u8;
                rest &= rest.saturating_sub(1);
                count += 1;
            }
            marks += 1;
        }
        kept
    };
    let kept = KEPT[marks(word) as usize][count % GROUP as usize];
    word & !(MARKS << MARKS_SHIFT) | u64::from(kept) << MARKS_SHIFT
}

/// Blocks of a group, as a power of two.
pub(super) const GROUP_BITS: u32 = 3;
pub(super) const GROUP: u64 = 1 << GROUP_BITS;

/// The marks of all blocks of a group.
pub(super) const MARKS: u64 = (1 << GROUP) - 1;

/// The place of the marks in a word.
pub(super) const MARKS_SHIFT: u32 = u64::BITS - GROUP as u32;

/// Bits of a group's number and of its hash.
pub(super) const HASH_BITS: u32 = 52 - GROUP_BITS;
const _: () = assert!(MAX_BLOCK >> GROUP_BITS == (1 << HASH_BITS) - 1);

/// 2^49 divided by the golden ratio, made odd: neighbours are spread evenly (Knuth, The Art of Computer
/// Programming 3, 6.4).
pub(super) const GOLDEN: u64 = 0x1_3C6E_F372_FE95;
