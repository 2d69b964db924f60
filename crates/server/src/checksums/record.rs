//! The checksum of a chunk in 12 bytes, which survives the overwriting of two pages unread.
//!
//! ```text
//!   pages     h1  h2  h3 ... h16              CRC-32C of each page, modulo the prime 2^29 - 3
//!   whole     s0 = sum of h,  s1 = sum of x h,  s2 = sum of x² h      with x = 1 to 16
//!   page i    its new h;      s1 - i s0,  s2 - i s1                   the sums without page i
//!   i and k   both new h;     (s2 - i s1) - k (s1 - i s0)             the sum without both
//! ```
//!
//! A write of one page does not know the page's old bytes, and reading them costs a revolution. The sums are the
//! syndromes of a Reed-Solomon code: one unknown page costs one of the three equations, and its place takes the
//! checksum of the new page. Every page stays guarded, with at least 29 bits. A third page leaves no equation for
//! the rest: the chunk then has no checksum until it is read or written as a whole.

use crc_fast::CrcAlgorithm;

use super::PAGES;

/// The modulus of all sums: the largest prime below 2^29.
pub const PRIME: u32 = (1 << 29) - 3;

/// Bytes of an encoded record.
pub const RECORD_BYTES: usize = 12;

/// The checksums of a chunk's pages, each below [`PRIME`]. Pages past the volume's end have 0.
pub type PageSums = [u32; PAGES];

/// What is known of a chunk's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Record {
    /// Nothing: the next read sets the checksum.
    #[default]
    Nothing,
    /// The chunk has trimmed bytes that may read differently each time. It is not verified.
    Undefined,
    /// The sums of all pages.
    Whole([u32; 3]),
    /// The chunk after the overwriting of one page.
    One {
        /// The page.
        page: u8,
        /// The checksum of the page, if known.
        own: Option<u32>,
        /// The sums without the page.
        rest: [u32; 2],
    },
    /// The chunk after the overwriting of two pages.
    Two {
        /// The pages, in ascending order.
        pages: [u8; 2],
        /// The checksums of the pages, if known.
        own: [Option<u32>; 2],
        /// The sum without the pages.
        rest: u32,
    },
}

/// The changes of a chunk since its record was written. The masks have a bit for each page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Pages that were changed, in part or as a whole.
    pub touched: u16,
    /// Pages whose checksum is known. It includes pages past the volume's end.
    pub known: u16,
    /// The checksums of the known pages.
    pub sums: PageSums,
}

/// The comparison of a chunk that was read with its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The bytes have the checksum.
    Sound,
    /// There was no checksum.
    Unknown,
    /// The chunk has trimmed bytes and no checksum.
    Undefined,
    /// Other bytes than those that were written. The mask has the pages that explain it.
    Damaged(u16),
}

impl Record {
    /// The record of a chunk with these pages.
    pub fn of(sums: &PageSums) -> Self {
        Record::Whole(syndromes(sums))
    }

    /// The record after some changes.
    #[must_use]
    pub fn changed(self, changes: &Changes) -> Self {
        if changes.known == u16::MAX {
            return Record::of(&changes.sums);
        }
        let touched = (0..PAGES).filter(|page| changes.touched >> page & 1 == 1);
        touched.fold(self, |record, page| {
            let is_known = changes.known >> page & 1 == 1;
            record.overwritten(page as u8, is_known.then_some(changes.sums[page]))
        })
    }

    /// The record if nothing is known of these pages.
    #[must_use]
    pub fn without(self, pages: u16) -> Self {
        self.changed(&Changes {
            touched: pages,
            ..Changes::default()
        })
    }

    /// The record after the overwriting of a page whose old bytes are unknown.
    fn overwritten(self, new: u8, sum: Option<u32>) -> Self {
        match self {
            Record::Nothing | Record::Undefined => self,
            Record::Whole([s0, s1, s2]) => Record::One {
                page: new,
                own: sum,
                rest: [without(new, s0, s1), without(new, s1, s2)],
            },
            Record::One { page, rest, .. } if page == new => Record::One {
                page,
                own: sum,
                rest,
            },
            Record::One { page, own, rest } => {
                let rest = without(new, rest[0], rest[1]);
                match page < new {
                    true => Record::Two {
                        pages: [page, new],
                        own: [own, sum],
                        rest,
                    },
                    false => Record::Two {
                        pages: [new, page],
                        own: [sum, own],
                        rest,
                    },
                }
            }
            Record::Two {
                pages,
                mut own,
                rest,
            } => match pages.iter().position(|&page| page == new) {
                Some(place) => {
                    own[place] = sum;
                    Record::Two { pages, own, rest }
                }
                None => Record::Nothing,
            },
        }
    }

    /// Compares the pages of a chunk that was read with the record.
    pub fn verify(&self, sums: &PageSums) -> Verdict {
        let [s0, s1, s2] = syndromes(sums);
        let of_page = |page: u8, own: Option<u32>| {
            own.filter(|&own| own != sums[usize::from(page)])
                .map_or(0, |_| 1 << page)
        };
        let damaged = match *self {
            Record::Nothing => return Verdict::Unknown,
            Record::Undefined => return Verdict::Undefined,
            Record::Whole(kept) => {
                let [d0, d1, d2] = [minus(s0, kept[0]), minus(s1, kept[1]), minus(s2, kept[2])];
                one_page([d0, d1])
                    .filter(|&page| without(page, d1, d2) == 0)
                    .map_or_else(|| all_unless_zero(d0 | d1 | d2), |page| 1 << page)
            }
            Record::One { page, own, rest } => {
                let d0 = minus(without(page, s0, s1), rest[0]);
                let d1 = minus(without(page, s1, s2), rest[1]);
                let others = one_page([d0, d1]).filter(|&other| other != page);
                of_page(page, own)
                    | others.map_or_else(
                        || all_unless_zero(d0 | d1) & !(1 << page),
                        |other| 1 << other,
                    )
            }
            Record::Two { pages, own, rest } => {
                let reduced = [without(pages[0], s0, s1), without(pages[0], s1, s2)];
                let found = without(pages[1], reduced[0], reduced[1]);
                let others = all_unless_zero(minus(found, rest)) & !(1 << pages[0] | 1 << pages[1]);
                of_page(pages[0], own[0]) | of_page(pages[1], own[1]) | others
            }
        };
        match damaged {
            0 => Verdict::Sound,
            mask => Verdict::Damaged(mask),
        }
    }

    /// The record in 96 bits: three sums of 29 bits, and 9 bits for what they are.
    pub fn encode(&self) -> [u8; RECORD_BYTES] {
        let sum = |own: Option<u32>| own.unwrap_or(PRIME);
        let (code, slots) = match *self {
            Record::Nothing => (0, [0; 3]),
            Record::Undefined => (1, [0; 3]),
            Record::Whole(sums) => (2, sums),
            Record::One { page, own, rest } => {
                (FIRST_ONE + u16::from(page), [sum(own), rest[0], rest[1]])
            }
            Record::Two { pages, own, rest } => {
                let [low, high] = pages.map(u16::from);
                let code = FIRST_TWO + high * (high - 1) / 2 + low;
                (code, [sum(own[0]), sum(own[1]), rest])
            }
        };
        let [a, b, c] = slots.map(u128::from);
        let word = u128::from(code) | a << 9 | b << 38 | c << 67;
        let mut bytes = [0; RECORD_BYTES];
        bytes.copy_from_slice(&word.to_le_bytes()[..RECORD_BYTES]);
        bytes
    }

    /// The record of these bytes, or `None` if no record has them.
    pub fn decode(bytes: [u8; RECORD_BYTES]) -> Option<Self> {
        let mut word = [0; 16];
        word[..RECORD_BYTES].copy_from_slice(&bytes);
        let word = u128::from_le_bytes(word);
        let slot = |shift: u32| (word >> shift) as u32 & ((1 << 29) - 1);
        let slots = [slot(9), slot(38), slot(67)];
        let sum = |slot: u32| (slot < PRIME).then_some(slot);
        let code = word as u16 & 0x1FF;
        let record = match code {
            0 => Record::Nothing,
            1 => Record::Undefined,
            2 => Record::Whole(slots),
            FIRST_ONE..FIRST_TWO => Record::One {
                page: (code - FIRST_ONE) as u8,
                own: sum(slots[0]),
                rest: [slots[1], slots[2]],
            },
            FIRST_TWO..CODES => {
                let index = code - FIRST_TWO;
                let high = (1..PAGES as u16).rfind(|high| high * (high - 1) / 2 <= index)?;
                let low = index - high * (high - 1) / 2;
                Record::Two {
                    pages: [low as u8, high as u8],
                    own: [sum(slots[0]), sum(slots[1])],
                    rest: slots[2],
                }
            }
            _ => return None,
        };
        // Other encodings of the same record are none.
        let is_reduced = match record {
            Record::Whole(sums) => sums.iter().all(|&sum| sum < PRIME),
            Record::One { rest, .. } => rest.iter().all(|&sum| sum < PRIME),
            Record::Two { rest, .. } => rest < PRIME,
            Record::Nothing | Record::Undefined => true,
        };
        (is_reduced && record.encode() == bytes).then_some(record)
    }
}

/// The first code of chunks with an overwritten page, of chunks with two, and the number of codes.
const FIRST_ONE: u16 = 3;
const FIRST_TWO: u16 = FIRST_ONE + PAGES as u16;
const CODES: u16 = FIRST_TWO + (PAGES * (PAGES - 1) / 2) as u16;

/// The CRC-32C of some bytes, which [`joined`] can join.
pub fn crc(bytes: &[u8]) -> u32 {
    crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// The CRC-32C of some bytes and `length` more after them, from those of both.
pub fn joined(first: u32, second: u32, length: u64) -> u32 {
    let (first, second) = (u64::from(first), u64::from(second));
    crc_fast::checksum_combine(CrcAlgorithm::Crc32Iscsi, first, second, length) as u32
}

/// The checksum of a page with this CRC-32C.
pub fn page_sum(crc: u32) -> u32 {
    crc % PRIME
}

fn syndromes(sums: &PageSums) -> [u32; 3] {
    let mut all = [0_u64; 3];
    for (x, &sum) in (1_u64..).zip(sums) {
        let sum = u64::from(sum);
        // Sixteen summands below 2^37: no overflow.
        all[0] += sum;
        all[1] += x * sum;
        all[2] += x * x * sum;
    }
    all.map(|sum| (sum % u64::from(PRIME)) as u32)
}

/// The sum `higher` less `page`'s part, where `lower` is the sum of the power below.
fn without(page: u8, lower: u32, higher: u32) -> u32 {
    let x = u64::from(page) + 1;
    let part = x * u64::from(lower) % u64::from(PRIME);
    minus(higher, part as u32)
}

fn minus(a: u32, b: u32) -> u32 {
    (a + PRIME - b) % PRIME
}

/// The only page whose damage explains two differences of sums in a row.
fn one_page([d0, d1]: [u32; 2]) -> Option<u8> {
    let is_any = d0 != 0 || d1 != 0;
    (0..PAGES as u8).find(|&page| is_any && without(page, d0, d1) == 0)
}

fn all_unless_zero(difference: u32) -> u16 {
    match difference {
        0 => 0,
        _ => u16::MAX,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sums() -> impl Strategy<Value = PageSums> {
        proptest::array::uniform16(0..PRIME)
    }

    #[test]
    fn the_modulus_is_prime() {
        let divisors = (2..).take_while(|divisor: &u32| divisor * divisor <= PRIME);
        assert!(
            divisors
                .into_iter()
                .all(|divisor| !PRIME.is_multiple_of(divisor))
        );
    }

    #[test]
    fn crcs_join() {
        let bytes: Vec<u8> = (0..4096_u32).map(|n| (n * 7 % 251) as u8).collect();
        assert_eq!(crc(b"123456789"), 0xE306_9283, "CRC-32C of RFC 3720");
        for cut in [0, 1, 512, 4095, 4096] {
            let (a, b) = bytes.split_at(cut);
            assert_eq!(joined(crc(a), crc(b), b.len() as u64), crc(&bytes));
        }
    }

    #[test]
    fn every_code_is_one_record() {
        let mut all = std::collections::BTreeSet::new();
        let mut add = |record: Record| {
            assert_eq!(Record::decode(record.encode()), Some(record));
            assert!(all.insert(record.encode()));
        };
        add(Record::Nothing);
        add(Record::Undefined);
        let whole = Record::of(&[7; PAGES]);
        add(whole);
        for low in 0..PAGES as u8 {
            let one = whole.overwritten(low, Some(1));
            add(one);
            (low + 1..PAGES as u8).for_each(|high| add(one.overwritten(high, None)));
        }
        assert_eq!(all.len(), usize::from(CODES));
        assert_eq!(Record::decode([0xFF; RECORD_BYTES]), None);
    }

    proptest! {
        /// Whatever pages were overwritten, known or not: what was written is sound, and one changed page is
        /// found unless its own checksum is unknown or the chunk has none.
        #[test]
        fn a_changed_page_is_found(
            old in sums(),
            new in sums(),
            writes in prop::collection::vec((0..PAGES as u8, any::<bool>()), 0..5),
            victim in 0..PAGES,
            damage in 1..PRIME,
        ) {
            let mut now = old;
            let mut record = Record::of(&old);
            let mut unknown = 0_u16;
            let mut pages = std::collections::BTreeSet::new();
            for (page, is_known) in writes {
                let place = usize::from(page);
                now[place] = new[place];
                pages.insert(page);
                unknown &= !(1 << page);
                unknown |= u16::from(!is_known) << page;
                let changes = Changes {
                    touched: 1 << page,
                    known: u16::from(is_known) << page,
                    sums: new,
                };
                record = record.changed(&changes);
                prop_assert_eq!(Record::decode(record.encode()), Some(record));
            }
            let expected = match pages.len() {
                0..=2 => Verdict::Sound,
                _ => Verdict::Unknown,
            };
            prop_assert_eq!(record.verify(&now), expected);
            now[victim] = (now[victim] + damage) % PRIME;
            match record.verify(&now) {
                Verdict::Damaged(mask) => prop_assert!(mask >> victim & 1 == 1, "the page is among the suspects"),
                Verdict::Sound => prop_assert!(unknown >> victim & 1 == 1),
                verdict => prop_assert_eq!(verdict, Verdict::Unknown),
            }
            if pages.is_empty() {
                prop_assert_eq!(record.verify(&now), Verdict::Damaged(1 << victim), "located");
            }
        }

        #[test]
        fn any_bytes_are_one_record_or_none(bytes in any::<[u8; RECORD_BYTES]>()) {
            if let Some(record) = Record::decode(bytes) {
                prop_assert_eq!(record.encode(), bytes);
            }
        }
    }
}
