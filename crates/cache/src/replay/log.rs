//! An order of blocks as a log of insertions, oldest first.
//!
//! ```text
//!   entries:   A  B  C  A  D  B  .  .      a block that moves is written once more
//!   bits:      0  0  1  1  1  1  0  0      set where the entry is the last one of its block
//! ```
//!
//! The state of a block is the number of its last entry, and its log. The bits of a log are small, so that a block
//! leaves without a look at its former neighbours, and the oldest one is found without a look at others' entries.

/// Bits of an entry's number in the state of its block.
const NUMBER_BITS: u32 = 29;

/// The state of a block that no log has.
pub(super) const ABSENT: u32 = 0;

/// Entries for each block that the log has at most. A choice: with more of them the log is compacted more
/// seldom, and takes more memory.
const SPREAD: usize = 4;

/// The least number of entries. A choice: 16 KiB.
const LEAST: usize = 1 << 12;

/// Bits of a word.
const WORD: usize = u64::BITS as usize;

/// The log. The caller counts the blocks that it has, and keeps the states of all blocks.
#[derive(Debug)]
pub(super) struct Log {
    entries: Box<[u32]>,
    bits: Box<[u64]>,
    /// The word of `bits` before which none is set.
    oldest: usize,
    /// The end of the entries.
    end: usize,
    tag: u32,
}

impl Log {
    /// A log of at most `most` blocks. Logs that share the states of blocks differ in their numbers, 1 to 7.
    pub(super) fn numbered(number: u32, most: usize) -> Self {
        let count = (most * SPREAD).clamp(LEAST, 1 << NUMBER_BITS);
        assert!(count >= 2 * most, "MAX_NUMBERED bounds this");
        let words = count.div_ceil(WORD);
        Self {
            entries: vec![0; words * WORD].into_boxed_slice(),
            bits: vec![0; words].into_boxed_slice(),
            oldest: 0,
            end: 0,
            tag: number << NUMBER_BITS,
        }
    }

    /// The number of the log that has a block of this state.
    #[inline]
    pub(super) fn of(state: u32) -> u32 {
        state >> NUMBER_BITS
    }

    /// Adds a block that is in no log at the newest end.
    #[inline]
    pub(super) fn push(&mut self, states: &mut [u32], block: u32) {
        if self.end == self.entries.len() {
            self.compact(states);
        }
        self.entries[self.end] = block;
        self.bits[self.end / WORD] |= 1 << (self.end % WORD);
        states[block as usize] = self.tag | self.end as u32;
        self.end += 1;
    }

    /// Removes a block of this state. The caller changes its state.
    #[inline]
    pub(super) fn remove(&mut self, state: u32) {
        let at = (state & !(u32::MAX << NUMBER_BITS)) as usize;
        self.bits[at / WORD] &= !(1 << (at % WORD));
    }

    /// Removes the oldest block. The caller changes its state.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub(super) fn pop_oldest(&mut self) -> u32 {
        let block = self.oldest();
        let word = &mut self.bits[self.oldest];
        *word &= *word - 1;
        block
    }

    /// The oldest block.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub(super) fn oldest(&mut self) -> u32 {
        while self.bits[self.oldest] == 0 {
            self.oldest += 1;
        }
        let bit = self.bits[self.oldest].trailing_zeros() as usize;
        self.entries[self.oldest * WORD + bit]
    }

    /// Drops the entries without bits.
    #[cold]
    #[inline(never)]
    fn compact(&mut self, states: &mut [u32]) {
        let mut kept = 0;
        for word in self.oldest..self.bits.len() {
            let mut bits = std::mem::take(&mut self.bits[word]);
            while bits != 0 {
                let block = self.entries[word * WORD + bits.trailing_zeros() as usize];
                self.entries[kept] = block;
                states[block as usize] = self.tag | kept as u32;
                kept += 1;
                bits &= bits - 1;
            }
        }
        self.bits[..kept / WORD].fill(u64::MAX);
        self.bits[kept / WORD] = (1 << (kept % WORD)) - 1;
        (self.oldest, self.end) = (0, kept);
    }
}
