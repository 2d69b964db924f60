//! Approximate numbers of demands per block: a count-min sketch with counters of four bits.
//!
//! ```text
//!            block --hash--> one counter in each of four rows
//!   row 0:  . . 3 . . . . .          count = the minimum of the four
//!   row 1:  7 . . . . . . .          add: increments the counters at the minimum
//!   row 2:  . . . . . 3 . .          (conservative update), up to 15
//!   row 3:  . 4 . . . . . .          after `sample` additions all are halved
//! ```

/// Counters of four bits in a word of 64.
const IN_A_WORD: u64 = 16;

/// The highest count.
const MOST: u64 = 15;

/// The mask that halves all counters of a shifted word: clears bits from the neighbouring counters.
const HALVES: u64 = 0x7777_7777_7777_7777;

/// Four odd multipliers for four hashes: digits of the fractional parts of the square roots of 2,
/// 3, 5 and 7.
const MULTIPLIERS: [u64; 4] = [
    0x6A09_E667_F3BC_C909,
    0xBB67_AE85_84CA_A73B,
    0x3C6E_F372_FE94_F82B,
    0xA54F_F53A_5F1D_36F1,
];

/// A sketch.
#[derive(Debug)]
pub(super) struct Sketch {
    /// The four rows in order.
    words: Box<[u64]>,
    /// The shift from a hash to a counter's index in its row.
    shift: u32,
    added: u64,
    sample: u64,
}

impl Sketch {
    /// A sketch with a counter per block in each row, rounded up to a power of two.
    pub(super) fn new(blocks: u32, sample: u64) -> Self {
        let counters = u64::from(blocks).next_power_of_two().max(IN_A_WORD);
        Self {
            words: vec![0; (counters / IN_A_WORD * 4) as usize].into_boxed_slice(),
            shift: 64 - counters.trailing_zeros(),
            added: 0,
            sample,
        }
    }

    /// Counts a demand for the block.
    pub(super) fn add(&mut self, block: u64) {
        let least = self.estimate(block);
        if least < MOST {
            for row in 0..4 {
                let (word, shift) = self.place(row, block);
                if (self.words[word] >> shift) & MOST == least {
                    self.words[word] += 1 << shift;
                }
            }
        }
        self.added += 1;
        if self.added == self.sample {
            self.added = 0;
            for word in &mut self.words {
                *word = (*word >> 1) & HALVES;
            }
        }
    }

    /// The estimated number of demands for the block. It is an upper bound, except for halving and
    /// the highest count.
    pub(super) fn estimate(&self, block: u64) -> u64 {
        let count = |row| {
            let (word, shift) = self.place(row, block);
            (self.words[word] >> shift) & MOST
        };
        count(0).min(count(1)).min(count(2)).min(count(3))
    }

    /// The position of the block's counter in a row: word and shift.
    fn place(&self, row: usize, block: u64) -> (usize, u64) {
        let spread = (block ^ (block >> 32)).wrapping_mul(MULTIPLIERS[row]);
        let counter = spread >> self.shift;
        let word = row as u64 * (self.words.len() as u64 / 4) + counter / IN_A_WORD;
        (word as usize, counter % IN_A_WORD * 4)
    }
}

#[cfg(test)]
mod tests {
    use super::Sketch;

    #[test]
    fn it_counts_up_to_fifteen_and_never_too_little() {
        let mut sketch = Sketch::new(64, 1 << 40);
        for block in 0..200_u64 {
            for _ in 0..block % 20 {
                sketch.add(block << 30);
            }
        }
        let mut exact = 0;
        for block in 0..200_u64 {
            let estimate = sketch.estimate(block << 30);
            assert!(estimate >= (block % 20).min(15), "block {block}");
            exact += u32::from(estimate == (block % 20).min(15));
        }
        // Three times as many blocks as counters in a row: many are too high, not all.
        assert!(exact > 40, "{exact} of 200 are exact");
    }

    #[test]
    fn all_are_halved_after_the_sample() {
        let mut sketch = Sketch::new(1024, 20);
        for _ in 0..9 {
            sketch.add(1);
        }
        for _ in 0..10 {
            sketch.add(2);
        }
        assert_eq!((sketch.estimate(1), sketch.estimate(2)), (9, 10));
        sketch.add(3);
        assert_eq!((sketch.estimate(1), sketch.estimate(2)), (4, 5));
        assert_eq!(sketch.estimate(3), 0);
    }
}
