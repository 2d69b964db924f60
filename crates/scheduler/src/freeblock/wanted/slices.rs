//! The slices of one track, counted and searched a word at a time.

use std::ops::Range;

use super::Grain;

/// The slices of one track.
#[derive(Clone, Copy, Debug)]
pub(in crate::freeblock) struct Slices<'a> {
    /// The track's bits, and those after it up to a whole word; `None` if all are wanted.
    bytes: Option<&'a [u8]>,
    /// The number of blocks of the track.
    blocks: u32,
    /// The number of blocks of a slice.
    slice: u32,
}

impl<'a> Slices<'a> {
    /// The slices of a track of `blocks` blocks, in slices of `slice` blocks.
    #[inline]
    pub fn new(bytes: Option<&'a [u8]>, blocks: u32, slice: u32) -> Self {
        Slices {
            bytes,
            blocks,
            slice,
        }
    }

    /// The number of blocks of the track.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// The number of slices of the track.
    #[inline]
    pub fn count(&self) -> u32 {
        if self.slice == 1 {
            self.blocks
        } else {
            self.blocks.div_ceil(self.slice)
        }
    }

    /// The slices that are wholly in a range of blocks (counted from the track's first).
    #[inline]
    pub fn inside(&self, blocks: Range<u32>) -> Range<u32> {
        if self.slice == 1 {
            return blocks.start..blocks.end.min(self.blocks);
        }
        let end = if blocks.end >= self.blocks {
            self.count()
        } else {
            blocks.end / self.slice
        };
        blocks.start.div_ceil(self.slice)..end
    }

    /// The slices that overlap a range of blocks, which is not empty.
    #[inline]
    pub fn touched(&self, blocks: Range<u32>) -> Range<u32> {
        if self.slice == 1 {
            return blocks;
        }
        blocks.start / self.slice..blocks.end.div_ceil(self.slice)
    }

    /// The blocks of a range of slices.
    #[inline]
    pub fn blocks_of(&self, slices: Range<u32>) -> Range<u32> {
        slices.start * self.slice..(slices.end * self.slice).min(self.blocks)
    }

    /// Whether a slice is wanted.
    pub fn is_wanted(&self, slice: u32) -> bool {
        self.word(slice / 64) >> (slice % 64) & 1 == 1
    }

    /// The number of wanted blocks in a range of slices.
    #[inline]
    pub fn wanted(&self, slices: Range<u32>) -> u32 {
        match self.bytes {
            _ if slices.is_empty() => 0,
            None => {
                let blocks = self.blocks_of(slices);
                blocks.end - blocks.start
            }
            Some(bytes) if self.slice == 1 => set_bits(bytes, slices),
            Some(bytes) => {
                let set = set_bits(bytes, slices.clone()) * self.slice;
                set - self.missing(slices)
            }
        }
    }

    /// The blocks by which the last slice is shorter, if it is wanted and in a range.
    fn missing(&self, slices: Range<u32>) -> u32 {
        let last = self.count() - 1;
        let short = (last + 1) * self.slice - self.blocks;
        match short > 0 && slices.contains(&last) && self.is_wanted(last) {
            true => short,
            false => 0,
        }
    }

    /// Whether any slice among those with the first `bytes` bytes of bits is wanted.
    pub fn has_any(&self, bytes: usize) -> bool {
        self.bytes
            .is_none_or(|bits| bits[..bytes].iter().any(|&byte| byte != 0))
    }

    /// The first wanted slice of a range.
    #[inline]
    pub fn first(&self, slices: Range<u32>) -> Option<u32> {
        if slices.is_empty() {
            return None;
        }
        let mut words = slices.start / 64..slices.end.div_ceil(64);
        words.find_map(|word| {
            let set = self.word(word) & mask(word, &slices);
            (set != 0).then(|| word * 64 + set.trailing_zeros())
        })
    }

    /// The last wanted slice of a range.
    #[inline]
    pub fn last(&self, slices: Range<u32>) -> Option<u32> {
        if slices.is_empty() {
            return None;
        }
        let mut words = (slices.start / 64..slices.end.div_ceil(64)).rev();
        words.find_map(|word| {
            let set = self.word(word) & mask(word, &slices);
            (set != 0).then(|| word * 64 + 63 - set.leading_zeros())
        })
    }

    /// The first slice of a range that is not wanted.
    pub fn first_unwanted(&self, slices: Range<u32>) -> Option<u32> {
        if slices.is_empty() {
            return None;
        }
        let mut words = slices.start / 64..slices.end.div_ceil(64);
        words.find_map(|word| {
            let clear = !self.word(word) & mask(word, &slices);
            (clear != 0).then(|| word * 64 + clear.trailing_zeros())
        })
    }

    /// Sixty-four slices; those of the next track may follow.
    #[inline]
    fn word(&self, word: u32) -> u64 {
        match self.bytes {
            None => u64::MAX,
            Some(bytes) => word_at(bytes, word),
        }
    }
}

/// The bits of a cylinder's tracks.
#[derive(Clone, Copy, Debug)]
pub(in crate::freeblock) struct Cylinder<'a> {
    /// The bits of the first track, and all that follow; `None` if all blocks are wanted.
    bytes: Option<&'a [u8]>,
    /// The counts of the first track, and all that follow, if they are kept.
    counts: Option<&'a [u16]>,
    grain: Grain,
    /// The most blocks of a track, and the blocks of a slice.
    blocks: (u32, u32),
}

impl<'a> Cylinder<'a> {
    /// The bits of tracks with at most `track_blocks` blocks.
    #[inline]
    pub fn new(
        bytes: Option<&'a [u8]>,
        counts: Option<&'a [u16]>,
        grain: Grain,
        track_blocks: u32,
    ) -> Self {
        Cylinder {
            bytes,
            counts,
            grain,
            blocks: (track_blocks, grain.slice(track_blocks)),
        }
    }

    /// Whether [`Cylinder::most`] is the number of a track's wanted blocks, if no more than all of
    /// its blocks.
    #[inline]
    pub fn is_exact(&self) -> bool {
        self.bytes.is_none() || self.counts.is_some() || self.blocks.1 == 1
    }

    /// The slices of a track, which has `blocks` blocks.
    #[inline]
    pub fn slices(&self, head: u32, blocks: u32) -> Slices<'a> {
        let bytes = self.bytes.map(|bytes| &bytes[self.offset(head)..]);
        Slices::new(bytes, blocks, self.grain.slice(blocks))
    }

    /// An upper bound of a track's wanted blocks.
    #[inline]
    pub fn most(&self, head: u32) -> u32 {
        match (self.bytes, self.counts) {
            (None, _) => self.blocks.0,
            (Some(_), Some(counts)) => u32::from(counts[head as usize]),
            (Some(bytes), None) => self.set_slices(&bytes[self.offset(head)..]) * self.blocks.1,
        }
    }

    /// The tracks of some heads that may have more than `than` wanted blocks: a bit for each head. Without a branch for
    /// each, because which they are is hard to predict.
    #[inline]
    pub fn above(&self, heads: Range<u32>, than: u32) -> u64 {
        let first = heads.start;
        let set = match (self.bytes, self.counts) {
            (Some(_), Some(counts)) => {
                let counts = counts[first as usize..heads.end as usize].iter();
                counts.rev().fold(0, |set, &count| {
                    set << 1 | u64::from(u32::from(count) > than)
                })
            }
            _ => heads
                .rev()
                .fold(0, |set, head| set << 1 | u64::from(self.most(head) > than)),
        };
        set << first
    }

    /// The number of wanted slices of a track: a call, which keeps the search small where counts are
    /// kept.
    #[inline(never)]
    fn set_slices(&self, track: &[u8]) -> u32 {
        let slices = self.grain.stride as u32 * 8;
        if slices <= 64 {
            let set = word_at(track, 0) & (u64::MAX >> (64 - slices));
            return set.count_ones();
        }
        let words = 0..slices.div_ceil(64);
        words
            .map(|word| (word_at(track, word) & mask(word, &(0..slices))).count_ones())
            .sum()
    }

    /// The offset of a track's bits.
    #[inline]
    fn offset(&self, head: u32) -> usize {
        head as usize * self.grain.stride
    }
}

/// The number of set bits in a range, which is not empty. The last word counts nothing if it is the first, too, without
/// a branch for it, which is hard to predict.
#[inline(never)]
fn set_bits(bytes: &[u8], range: Range<u32>) -> u32 {
    let (first, last) = (range.start / 64, (range.end - 1) / 64);
    let from = u64::MAX << (range.start % 64);
    let until = u64::MAX >> (63 - (range.end - 1) % 64);
    let (until_first, until_last) = match first == last {
        true => (until, 0),
        false => (u64::MAX, until),
    };
    let one = (word_at(bytes, first) & from & until_first).count_ones();
    let other = (word_at(bytes, last) & until_last).count_ones();
    let between = (first + 1..last).map(|word| word_at(bytes, word).count_ones());
    between.fold(one + other, |set, ones| set + ones)
}

/// The `word`-th eight bytes.
#[inline]
pub(super) fn word_at(bytes: &[u8], word: u32) -> u64 {
    let from = word as usize * 8;
    let eight = bytes[from..from + 8].try_into();
    u64::from_le_bytes(eight.expect("a slice of eight bytes"))
}

/// The bits of a range of slices, which is not empty, in one of its words.
#[inline]
pub(super) fn mask(word: u32, slices: &Range<u32>) -> u64 {
    let from = slices.start.saturating_sub(word * 64);
    let until = (slices.end - word * 64).min(64);
    (u64::MAX << from) & (u64::MAX >> (64 - until))
}
