//! What is used of a volume, in pieces of 64 KiB.

use std::ops::Range;

use crate::checksums::CHUNK;

/// A bit for each chunk of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedMap {
    length: u64,
    bits: Vec<u64>,
}

impl UsedMap {
    /// A volume of `length` bytes of which nothing is used.
    pub fn none(length: u64) -> Self {
        UsedMap {
            length,
            bits: vec![0; length.div_ceil(CHUNK).div_ceil(64) as usize],
        }
    }

    /// Adds the chunks with some of these bytes. What lies past the volume is left out.
    pub fn add(&mut self, bytes: Range<u64>) {
        let end = bytes.end.min(self.length);
        if bytes.start >= end {
            return;
        }
        let end = end.div_ceil(CHUNK);
        let mut chunk = bytes.start / CHUNK;
        while chunk < end {
            let word = (chunk / 64) as usize;
            let last = end.min((chunk / 64 + 1) * 64);
            let count = last - chunk;
            let mask = u64::MAX >> (64 - count);
            self.bits[word] |= mask << (chunk % 64);
            chunk = last;
        }
    }

    /// Bytes of the volume.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Whether some bytes of a chunk are used.
    pub fn has(&self, chunk: u64) -> bool {
        let word = self.bits.get((chunk / 64) as usize);
        word.is_some_and(|word| word >> (chunk % 64) & 1 == 1)
    }

    /// Bytes of the used chunks.
    pub fn bytes(&self) -> u64 {
        let chunks: u64 = self
            .bits
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum();
        let is_last_used = self.length > 0 && self.has((self.length - 1) / CHUNK);
        match is_last_used && !self.length.is_multiple_of(CHUNK) {
            true => (chunks - 1) * CHUNK + self.length % CHUNK,
            false => chunks * CHUNK,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_chunk_is_used_exactly_if_a_byte_of_it_is(
            length in 1..40 * CHUNK,
            ranges in prop::collection::vec((0..45 * CHUNK, 0..9 * CHUNK), 0..8),
        ) {
            let mut map = UsedMap::none(length);
            let ranges: Vec<Range<u64>> =
                ranges.into_iter().map(|(start, bytes)| start..start + bytes).collect();
            for range in &ranges {
                map.add(range.clone());
            }
            let mut bytes = 0;
            for chunk in 0..length.div_ceil(CHUNK) {
                let (start, end) = (chunk * CHUNK, ((chunk + 1) * CHUNK).min(length));
                let overlaps = |range: &Range<u64>| range.start.max(start) < range.end.min(end);
                let is_used = ranges.iter().any(overlaps);
                prop_assert_eq!(map.has(chunk), is_used, "chunk {}", chunk);
                bytes += if is_used { end - start } else { 0 };
            }
            prop_assert_eq!(map.bytes(), bytes);
        }
    }
}
