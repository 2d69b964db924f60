//! The marks of regions: a bit for each, and their sectors on a leg.
//!
//! ```text
//!   sector   | 63 words of 64 marks | CRC-32C | zeroes |
//! ```
//!
//! A sector that is not whole counts as if all its regions were marked: they are then copied once more.

use super::superblock::{Id, checksum};

/// Bytes of a sector of marks.
pub const SECTOR_BYTES: usize = 512;

/// Words of marks in a sector.
const SECTOR_WORDS: usize = 63;

/// Sectors of a page, the unit in which marks are written: a disk need not read its own sector first.
pub const PAGE_SECTORS: usize = 8;

/// Bytes of a page of marks.
pub const PAGE_BYTES: usize = PAGE_SECTORS * SECTOR_BYTES;

/// Regions whose marks are in a page.
pub const PAGE_REGIONS: u64 = (PAGE_SECTORS * SECTOR_WORDS * 64) as u64;

/// A mark for each region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmap {
    words: Vec<u64>,
    count: u64,
}

impl Bitmap {
    /// No marks of `count` regions.
    pub fn empty(count: u64) -> Self {
        Bitmap {
            words: vec![0; count.div_ceil(64) as usize],
            count,
        }
    }

    /// Marks of all regions.
    pub fn full(count: u64) -> Self {
        let mut all = Bitmap::empty(count);
        (0..count).for_each(|region| all.set(region));
        all
    }

    /// The number of regions.
    pub fn regions(&self) -> u64 {
        self.count
    }

    /// Whether a region is marked.
    pub fn has(&self, region: u64) -> bool {
        self.words[(region / 64) as usize] >> (region % 64) & 1 == 1
    }

    /// Marks a region.
    pub fn set(&mut self, region: u64) {
        self.words[(region / 64) as usize] |= 1 << (region % 64);
    }

    /// Removes the mark of a region.
    pub fn clear(&mut self, region: u64) {
        self.words[(region / 64) as usize] &= !(1 << (region % 64));
    }

    /// Marks what is marked there, too.
    pub fn unite(&mut self, other: &Bitmap) {
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    /// The number of marked regions.
    pub fn marked(&self) -> u64 {
        let each = self.words.iter();
        each.map(|word| u64::from(word.count_ones())).sum()
    }

    /// The first marked region from `from` on.
    pub fn next(&self, from: u64) -> Option<u64> {
        let mut index = (from / 64) as usize;
        let mut word = self.words.get(index)? & (u64::MAX << (from % 64));
        while word == 0 {
            index += 1;
            word = *self.words.get(index)?;
        }
        Some(index as u64 * 64 + u64::from(word.trailing_zeros()))
    }

    /// All marked regions, in their order.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        std::iter::successors(self.next(0), |&before| self.next(before + 1))
    }

    /// The number of pages on a leg.
    pub fn pages(&self) -> u64 {
        self.count.div_ceil(PAGE_REGIONS)
    }

    /// The page of a region's mark.
    pub fn page_of(region: u64) -> u64 {
        region / PAGE_REGIONS
    }

    /// The bytes of a page on a leg of this mirror.
    pub fn page(&self, page: u64, mirror: &Id) -> [u8; PAGE_BYTES] {
        let mut bytes = [0; PAGE_BYTES];
        for (index, sector) in bytes.chunks_exact_mut(SECTOR_BYTES).enumerate() {
            let first = (page as usize * PAGE_SECTORS + index) * SECTOR_WORDS;
            for (place, part) in sector.chunks_exact_mut(8).take(SECTOR_WORDS).enumerate() {
                let word = self.words.get(first + place).copied().unwrap_or(0);
                part.copy_from_slice(&word.to_le_bytes());
            }
            let sum = sector_sum(sector, mirror, first);
            sector[SECTOR_WORDS * 8..][..4].copy_from_slice(&sum.to_le_bytes());
        }
        bytes
    }

    /// Takes in the bytes of a page. All regions of a sector that is not whole are marked.
    pub fn take_page(&mut self, page: u64, bytes: &[u8; PAGE_BYTES], mirror: &Id) {
        for (index, sector) in bytes.chunks_exact(SECTOR_BYTES).enumerate() {
            let first = (page as usize * PAGE_SECTORS + index) * SECTOR_WORDS;
            let written = &sector[SECTOR_WORDS * 8..][..4];
            let is_whole = sector_sum(sector, mirror, first).to_le_bytes() == *written;
            for (place, part) in sector.chunks_exact(8).take(SECTOR_WORDS).enumerate() {
                let mut word = [0; 8];
                word.copy_from_slice(part);
                if let Some(own) = self.words.get_mut(first + place) {
                    *own = match is_whole {
                        true => u64::from_le_bytes(word),
                        false => u64::MAX,
                    };
                }
            }
        }
        // No region is behind the last one.
        if let Some(last) = self.words.last_mut()
            && !self.count.is_multiple_of(64)
        {
            *last &= (1 << (self.count % 64)) - 1;
        }
    }
}

/// The checksum of a sector: of its mirror, its place and its marks.
fn sector_sum(sector: &[u8], mirror: &Id, first: usize) -> u32 {
    let mut all = mirror.to_vec();
    all.extend((first as u64).to_le_bytes());
    all.extend(&sector[..SECTOR_WORDS * 8]);
    checksum(&all)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const MIRROR: Id = [3; 16];

    proptest! {
        #[test]
        fn marks_are_a_set_that_comes_back(
            count in 1..100_000u64,
            changes in prop::collection::vec((any::<u64>(), any::<bool>()), 0..60),
        ) {
            let mut marks = Bitmap::empty(count);
            let mut naive = BTreeSet::new();
            for (region, is_set) in changes {
                let region = region % count;
                match is_set {
                    true => { marks.set(region); naive.insert(region); }
                    false => { marks.clear(region); naive.remove(&region); }
                }
            }
            prop_assert!(marks.iter().eq(naive.iter().copied()));
            prop_assert_eq!(marks.marked(), naive.len() as u64);
            let mut back = Bitmap::full(count);
            for page in 0..marks.pages() {
                back.take_page(page, &marks.page(page, &MIRROR), &MIRROR);
            }
            prop_assert_eq!(back, marks);
        }

        #[test]
        fn a_sector_that_is_not_whole_marks_all_its_regions(
            count in 1..60_000u64, at in 0..PAGE_BYTES, bit in 0..8u8,
        ) {
            let marks = Bitmap::empty(count);
            let mut page = marks.page(0, &MIRROR);
            page[at] ^= 1 << bit;
            let mut back = Bitmap::empty(count);
            back.take_page(0, &page, &MIRROR);
            let sector = (at / SECTOR_BYTES * SECTOR_WORDS * 64) as u64;
            let is_checked = at % SECTOR_BYTES < SECTOR_WORDS * 8 + 4;
            for region in 0..count {
                let within = (sector..sector + SECTOR_WORDS as u64 * 64).contains(&region);
                prop_assert_eq!(back.has(region), within && is_checked, "region {}", region);
            }
        }
    }

    #[test]
    fn marks_of_another_mirror_count_for_nothing() {
        let marks = Bitmap::empty(10);
        let mut back = Bitmap::empty(10);
        back.take_page(0, &marks.page(0, &MIRROR), &[4; 16]);
        assert_eq!(back, Bitmap::full(10));
    }
}
