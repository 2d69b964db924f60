//! A set of chunks: one bit each.

use std::ops::Range;

/// A set of chunks of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
    length: u64,
}

impl Bits {
    /// The empty set of `length` chunks.
    pub fn none(length: u64) -> Self {
        Bits {
            words: vec![0; length.div_ceil(64) as usize],
            length,
        }
    }

    /// The number of chunks that could be in the set.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Whether a chunk is in the set.
    pub fn has(&self, chunk: u64) -> bool {
        chunk < self.length && self.words[(chunk / 64) as usize] >> (chunk % 64) & 1 == 1
    }

    /// Adds chunks. Those past the end are left out.
    pub fn add(&mut self, chunks: Range<u64>) {
        for chunk in chunks.start..chunks.end.min(self.length) {
            self.words[(chunk / 64) as usize] |= 1 << (chunk % 64);
        }
    }

    /// Adds the chunks of another set.
    pub fn merge(&mut self, other: &Bits) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
        self.cut();
    }

    /// The number of chunks in the set.
    pub fn count(&self) -> u64 {
        let ones = self.words.iter().map(|word| u64::from(word.count_ones()));
        ones.sum()
    }

    /// Changes the number of chunks. New ones are not in the set.
    pub fn resize(&mut self, length: u64) {
        self.words.resize(length.div_ceil(64) as usize, 0);
        self.length = length;
        self.cut();
    }

    /// The chunks of the set.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        let each = (0_u64..).zip(&self.words);
        each.flat_map(|(place, word)| {
            (0..64)
                .filter(move |bit| word >> bit & 1 == 1)
                .map(move |bit| place * 64 + bit)
        })
    }

    /// How many chunks right before one are in the set, counted to `most`.
    pub fn run_before(&self, chunk: u64, most: u64) -> u64 {
        let before = (chunk.saturating_sub(most)..chunk).rev();
        before.take_while(|chunk| self.has(*chunk)).count() as u64
    }

    fn cut(&mut self) {
        if let Some(last) = self.words.last_mut()
            && !self.length.is_multiple_of(64)
        {
            *last &= (1 << (self.length % 64)) - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_is_a_set(
            length in 1..300_u64,
            ranges in prop::collection::vec((0..320_u64, 0..70_u64), 0..8),
            then in 1..300_u64,
        ) {
            let (mut bits, mut naive) = (Bits::none(length), BTreeSet::new());
            for (start, count) in &ranges {
                bits.add(*start..start + count);
                naive.extend((*start..start + count).filter(|chunk| *chunk < length));
            }
            prop_assert_eq!(bits.iter().collect::<BTreeSet<_>>(), naive.clone());
            prop_assert_eq!(bits.count(), naive.len() as u64);
            let run = (0..length).rev().take_while(|chunk| naive.contains(chunk)).count();
            prop_assert_eq!(bits.run_before(length, 40), run.min(40) as u64);
            bits.resize(then);
            naive.retain(|chunk| *chunk < then);
            prop_assert_eq!(bits.iter().collect::<BTreeSet<_>>(), naive.clone());
            let mut other = Bits::none(then);
            other.add(0..then.min(9));
            bits.merge(&other);
            naive.extend(0..then.min(9));
            prop_assert_eq!(bits.iter().collect::<BTreeSet<_>>(), naive);
        }
    }
}
