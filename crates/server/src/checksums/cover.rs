//! Checksums of a chunk's pages from pieces of any length.
//!
//! ```text
//!   page        |            4 KiB             |
//!   pieces      [ crc a ][     crc b           ]      joined to the page's CRC without the bytes
//! ```
//!
//! Commands begin and end at any block, so a page may come in parts.

use super::record::{Changes, crc, joined, page_sum};
use super::{CHUNK, PAGE, PAGES};

/// A part of a page and its CRC-32C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The page in its chunk.
    pub page: u8,
    /// The first byte in the page.
    pub start: u16,
    /// The end in the page.
    pub end: u16,
    /// The CRC-32C of the bytes.
    pub crc: u32,
}

/// The pages of which all bytes are known, and parts of others.
#[derive(Clone, Debug, Default)]
pub struct Cover {
    known: u16,
    crcs: [u32; PAGES],
    parts: Vec<Piece>,
}

/// The pieces of bytes that begin at `offset` of a volume, with their chunks.
pub fn pieces(offset: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, Piece)> {
    ranges(offset, bytes.len() as u64).map(move |(chunk, at, mut piece)| {
        let place = (at - offset) as usize;
        piece.crc = crc(&bytes[place..place + usize::from(piece.end - piece.start)]);
        (chunk, piece)
    })
}

/// The pages of a range: chunk, first byte of the part, and the part without its CRC.
fn ranges(offset: u64, length: u64) -> impl Iterator<Item = (u64, u64, Piece)> {
    let end = offset + length;
    let mut at = offset;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let (start, until) = (at, end.min((at / PAGE + 1) * PAGE));
        at = until;
        let piece = Piece {
            page: (start % CHUNK / PAGE) as u8,
            start: (start % PAGE) as u16,
            end: (start % PAGE + (until - start)) as u16,
            crc: 0,
        };
        Some((start / CHUNK, start, piece))
    })
}

impl Cover {
    /// Adds a part of a page, of which the chunk has `length` bytes. It replaces parts with common bytes.
    pub fn put(&mut self, piece: Piece, length: u64) {
        self.forget(piece.page, piece.start..piece.end);
        let mut joint = piece;
        while let Some(place) = (self.parts.iter()).position(|part| {
            part.page == joint.page && (part.end == joint.start || part.start == joint.end)
        }) {
            let part = self.parts.swap_remove(place);
            let (first, second) = match part.end == joint.start {
                true => (part, joint),
                false => (joint, part),
            };
            joint = Piece {
                start: first.start,
                end: second.end,
                crc: joined(first.crc, second.crc, u64::from(second.end - second.start)),
                ..first
            };
        }
        let of_page = length
            .saturating_sub(u64::from(piece.page) * PAGE)
            .min(PAGE);
        match joint.start == 0 && u64::from(joint.end) == of_page {
            true => {
                self.known |= 1 << piece.page;
                self.crcs[usize::from(piece.page)] = joint.crc;
            }
            false => self.parts.push(joint),
        }
    }

    /// Forgets what is known of a part of a page.
    pub fn forget(&mut self, page: u8, part: std::ops::Range<u16>) {
        self.known &= !(1 << page);
        self.parts.retain(|other| {
            other.page != page || other.end <= part.start || part.end <= other.start
        });
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.known = 0;
        self.parts.clear();
    }

    /// The pages whose bytes are all known.
    pub fn known(&self) -> u16 {
        self.known
    }

    /// The checksums of the known pages of a chunk of `length` bytes. Pages past the end are known.
    pub fn changes(&self, length: u64) -> Changes {
        let mut changes = Changes::default();
        for (page, sum) in changes.sums.iter_mut().enumerate() {
            if self.known >> page & 1 == 1 {
                *sum = page_sum(self.crcs[page]);
                changes.known |= 1 << page;
            }
            if page as u64 * PAGE >= length {
                changes.known |= 1 << page;
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Pieces in any order and with overlaps: a known page has the CRC of its bytes.
        #[test]
        fn known_pages_have_the_crc_of_their_bytes(
            length in (1..=16_u64 * 8).prop_map(|blocks| blocks * 512),
            writes in prop::collection::vec((0..128_u64, 1..40_u64, any::<u8>()), 1..40),
        ) {
            let mut bytes = vec![0; length as usize];
            let mut written = vec![false; length as usize];
            let mut cover = Cover::default();
            for (first, count, value) in writes {
                let (from, to) = ((first * 512).min(length), ((first + count) * 512).min(length));
                let range = from as usize..to as usize;
                for (place, byte) in bytes[range.clone()].iter_mut().enumerate() {
                    *byte = value.wrapping_add(place as u8);
                }
                written[range.clone()].fill(true);
                for (chunk, piece) in pieces(from, &bytes[range]) {
                    prop_assert_eq!(chunk, 0);
                    cover.put(piece, length);
                }
            }
            let changes = cover.changes(length);
            for page in 0..PAGES {
                let from = (page as u64 * PAGE).min(length) as usize;
                let to = ((page as u64 + 1) * PAGE).min(length) as usize;
                if cover.known() >> page & 1 == 1 {
                    prop_assert!(written[from..to].iter().all(|&is| is));
                    prop_assert_eq!(changes.sums[page], page_sum(crc(&bytes[from..to])));
                }
                if from == to {
                    prop_assert!(changes.known >> page & 1 == 1);
                }
            }
        }
    }

    #[test]
    fn parts_without_overlaps_are_joined_in_any_order() {
        let bytes: Vec<u8> = (0..CHUNK).map(|n| (n % 249) as u8).collect();
        let mut cover = Cover::default();
        // Every other block, then the rest.
        for parity in [1, 0] {
            for block in (0..128).filter(|block| block % 2 == parity) {
                let from = block * 512;
                let part = &bytes[from..from + 512];
                pieces(from as u64, part).for_each(|(_, piece)| cover.put(piece, CHUNK));
            }
        }
        assert_eq!(cover.known(), u16::MAX);
        let mut whole = Cover::default();
        pieces(0, &bytes).for_each(|(_, piece)| whole.put(piece, CHUNK));
        assert_eq!(whole.changes(CHUNK), cover.changes(CHUNK));
    }
}
