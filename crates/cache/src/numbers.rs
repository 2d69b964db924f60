//! Numbers 0, 1, .. for names, in order of their first appearance.
//!
//! ```text
//!   slot:    | rest of the hash | displaced | number + 1 |     64 bits, 0 = empty
//!
//!   a name's hash:   | home | rest |      a name at home is compared without a look at its text
//! ```
//!
//! The hash is a product with an odd number, so that different names have different hashes. The home of a slot and
//! the rest in it are all bits of the hash. A displaced name is in a later slot than its home, because that was
//! taken; such names are compared in the list of names.

/// The largest number of different names: a number fits 32 bits.
pub const MAX_NAMES: usize = 1 << 31;

/// The least number of slots. A choice: 128 KiB.
const LEAST: usize = 1 << 14;

/// How much the table grows at a time. A choice: a third of the names are inserted a second time.
const GROWTH: usize = 4;

/// Names that are looked up at once, so that the processor waits for their memory at once. A choice.
const AHEAD: usize = 64;

/// The multiplier of the hash: 2^64 over the golden ratio, made odd (Knuth, TAOCP 3, 6.4).
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// The number of no name.
const NOT_YET: u32 = u32::MAX;

/// The numbers of names.
#[derive(Clone, Debug)]
pub struct Numbers {
    slots: Box<[u64]>,
    names: Vec<u64>,
}

/// More than [`MAX_NAMES`] different names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {MAX_NAMES} different blocks: expected fewer")]
pub struct TooManyNames;

/// Where a name is sought.
#[derive(Clone, Copy)]
struct Sought {
    home: usize,
    /// The slot of the name at home, but for its number.
    rest: u64,
}

/// The parts of a slot in a table of this size.
#[derive(Clone, Copy)]
struct Parts {
    /// Bits of a home.
    bits: u32,
}

impl Parts {
    #[inline]
    fn sought(self, name: u64) -> Sought {
        let hash = name.wrapping_mul(MULTIPLIER);
        Sought {
            home: (hash >> (u64::BITS - self.bits)) as usize,
            rest: hash << self.bits,
        }
    }

    /// The mark of a displaced name. Numbers are below it, less one.
    #[inline]
    fn displaced(self) -> u64 {
        1 << (self.bits - 1)
    }

    /// The number in a slot, if it is that of the sought name at home.
    #[inline]
    fn at_home(self, slot: u64, sought: Sought) -> Option<u32> {
        let number = (slot ^ sought.rest).wrapping_sub(1);
        (number < self.displaced() - 1).then_some(number as u32)
    }

    /// The number in a slot, if a displaced name has the sought rest.
    #[inline]
    fn away(self, slot: u64, sought: Sought) -> Option<u32> {
        self.at_home(slot ^ self.displaced(), sought)
    }

    fn slot(self, sought: Sought, place: usize, number: u32) -> u64 {
        let displaced = match place == sought.home {
            true => 0,
            false => self.displaced(),
        };
        sought.rest | displaced | (u64::from(number) + 1)
    }
}

impl Numbers {
    /// No names yet.
    pub fn new() -> Self {
        Self {
            slots: vec![0; LEAST].into_boxed_slice(),
            names: Vec::new(),
        }
    }

    /// The number of different names so far.
    pub fn count(&self) -> u32 {
        self.names.len() as u32
    }

    /// Appends the number of each name to `numbers`.
    ///
    /// # Errors
    /// If there are too many different names.
    pub fn extend(&mut self, names: &[u64], numbers: &mut Vec<u32>) -> Result<(), TooManyNames> {
        numbers.reserve(names.len());
        let (pieces, rest) = names.as_chunks::<AHEAD>();
        for piece in pieces {
            let mut found = self.likely(piece);
            for (number, &name) in found.iter_mut().zip(piece) {
                if *number == NOT_YET {
                    *number = self.number(name)?;
                }
            }
            numbers.extend_from_slice(&found);
        }
        for &name in rest {
            numbers.push(self.number(name)?);
        }
        Ok(())
    }

    /// The numbers of the names that are in their home slots, and [`NOT_YET`] for others.
    #[inline]
    fn likely(&self, names: &[u64; AHEAD]) -> [u32; AHEAD] {
        let parts = self.parts();
        let mask = self.slots.len() - 1;
        names.map(|name| {
            let sought = parts.sought(name);
            let slot = self.slots[sought.home & mask];
            parts.at_home(slot, sought).unwrap_or(NOT_YET)
        })
    }

    /// The number of a name.
    ///
    /// # Errors
    /// If it is one name too many.
    #[inline]
    pub fn number(&mut self, name: u64) -> Result<u32, TooManyNames> {
        let parts = self.parts();
        let sought = parts.sought(name);
        let mask = self.slots.len() - 1;
        let slot = self.slots[sought.home & mask];
        if slot == 0 {
            return self.add(name, sought.home);
        }
        if let Some(number) = parts.at_home(slot, sought) {
            return Ok(number);
        }
        let mut place = sought.home;
        loop {
            place = (place + 1) & mask;
            let slot = self.slots[place];
            if slot == 0 {
                return self.add(name, place);
            }
            if let Some(number) = parts.away(slot, sought)
                && self.names[number as usize] == name
            {
                return Ok(number);
            }
        }
    }

    #[inline]
    fn parts(&self) -> Parts {
        Parts {
            bits: self.slots.len().trailing_zeros(),
        }
    }

    /// Adds a name whose search ended at an empty slot.
    fn add(&mut self, name: u64, place: usize) -> Result<u32, TooManyNames> {
        if self.names.len() == MAX_NAMES {
            return Err(TooManyNames);
        }
        let number = self.names.len() as u32;
        let parts = self.parts();
        self.names.push(name);
        match (self.names.len() as u64) < parts.displaced() - 1 {
            true => self.slots[place] = parts.slot(parts.sought(name), place, number),
            false => self.grow(),
        }
        Ok(number)
    }

    #[cold]
    fn grow(&mut self) {
        let count = self.slots.len() * GROWTH;
        self.slots = vec![0; count].into_boxed_slice();
        let parts = self.parts();
        for (number, &name) in (0..).zip(&self.names) {
            let sought = parts.sought(name);
            let mut place = sought.home;
            while self.slots[place] != 0 {
                place = (place + 1) & (count - 1);
            }
            self.slots[place] = parts.slot(sought, place, number);
        }
    }
}

impl Default for Numbers {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn a_name_has_the_number_of_its_first_appearance(
            picks in prop::collection::vec(0u64..30_000, 1..40_000),
            stride in prop::sample::select(vec![1_u64, 16, 4096, 1 << 33, 1 << 48, u64::MAX / 30_011]),
        ) {
            let names: Vec<u64> = picks.iter().map(|pick| pick.wrapping_mul(stride)).collect();
            let mut known = BTreeMap::new();
            let expected: Vec<u32> = names
                .iter()
                .map(|name| {
                    let next = known.len() as u32;
                    *known.entry(*name).or_insert(next)
                })
                .collect();
            let mut numbers = Numbers::new();
            let mut found = Vec::new();
            numbers.extend(&names, &mut found).expect("few names");
            prop_assert_eq!(found, expected);
            prop_assert_eq!(numbers.count() as usize, known.len());
        }
    }

    /// Names with one home, and with the rest of another's home: the displaced ones are told apart.
    #[test]
    fn names_that_collide_are_told_apart() {
        let inverse = inverse(MULTIPLIER);
        let bits = LEAST.trailing_zeros();
        let name = |home: u64, rest: u64| (home << (u64::BITS - bits) | rest).wrapping_mul(inverse);
        let names: Vec<u64> = (0..40)
            .flat_map(|rest| {
                [
                    name(5, rest),
                    name(6, rest),
                    name(7, rest),
                    name(LEAST as u64 - 1, rest),
                ]
            })
            .collect();
        let mut numbers = Numbers::new();
        for round in 0..2 {
            for (expected, &name) in (0..).zip(&names) {
                assert_eq!(numbers.number(name), Ok(expected), "round {round}");
            }
        }
        assert_eq!(numbers.number(0), Ok(160), "its hash is 0");
        assert_eq!(numbers.number(0), Ok(160));
    }

    /// The inverse modulo 2^64, by Newton's iteration.
    fn inverse(odd: u64) -> u64 {
        (0..6).fold(odd, |inverse, _| {
            inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)))
        })
    }
}
