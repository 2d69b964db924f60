//! The book of a verify load: what each unit may contain, and the damage that was done to it.
//!
//! ```text
//!   unit     acknowledged v3 --write of v4 sent--> v3 or v4 --acknowledged--> v4
//!                                              '--service killed--> each sector v3 or v4
//! ```

use crate::dice::SplitMix;

/// Bytes of a unit: a chunk of checksums, which a write of all of it replaces.
pub const UNIT: u64 = server::checksums::CHUNK;

/// Bytes of a sector, of which a drive writes all or nothing.
pub const SECTOR: u64 = 512;

/// The kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injury {
    /// A bit of the medium was inverted.
    Flip,
    /// The drive cannot read the sector.
    Latent,
}

/// Damage that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injected {
    /// The kind.
    pub injury: Injury,
    /// The byte of the volume.
    pub byte: u64,
    /// Whether a write of the unit had not settled when the service was killed: decision 0096 does not promise
    /// that a flip there is found.
    pub in_doubt: bool,
}

/// What each unit may contain.
#[derive(Clone, Debug)]
pub struct Book {
    seed: u64,
    units: Vec<Unit>,
}

/// The contents of a unit.
#[derive(Clone, Debug)]
struct Unit {
    /// The versions that each sector may have; the last is that of the last write.
    possible: Vec<u64>,
    is_busy: bool,
    injected: Option<Injected>,
}

impl Book {
    /// A volume of so many units, of which nothing was written: all bytes are zero, which is version 0.
    pub fn new(seed: u64, units: u64) -> Self {
        let unit = Unit {
            possible: vec![0],
            is_busy: false,
            injected: None,
        };
        Book {
            seed,
            units: vec![unit; units as usize],
        }
    }

    /// The number of units.
    pub fn units(&self) -> u64 {
        self.units.len() as u64
    }

    /// Whether the load may write a unit: no write of it is in flight, and it has no damage, which a write would
    /// mend.
    pub fn is_writable(&self, unit: u64) -> bool {
        let unit = &self.units[unit as usize];
        !unit.is_busy && unit.injected.is_none()
    }

    /// Whether a unit may be damaged: nothing of it is in flight, and each sector has one possible content.
    pub fn is_at_rest(&self, unit: u64) -> bool {
        self.is_writable(unit) && self.units[unit as usize].possible.len() == 1
    }

    /// Notes a write; returns its bytes.
    pub fn write_begun(&mut self, unit: u64) -> Vec<u8> {
        let entry = &mut self.units[unit as usize];
        let version = entry.possible.iter().max().copied().unwrap_or(0) + 1;
        entry.possible.push(version);
        entry.is_busy = true;
        self.contents(unit, version)
    }

    /// Notes that a write was acknowledged.
    pub fn write_ended(&mut self, unit: u64) {
        let entry = &mut self.units[unit as usize];
        let last = entry.possible.last().copied().unwrap_or(0);
        entry.possible = vec![last];
        entry.is_busy = false;
    }

    /// Notes that the service is dead: writes in flight are done, in part done or not done.
    pub fn killed(&mut self) {
        for unit in &mut self.units {
            unit.is_busy = false;
        }
    }

    /// Notes damage.
    pub fn inject(&mut self, injected: Injected) {
        let unit = &mut self.units[(injected.byte / UNIT) as usize];
        unit.injected = Some(injected);
    }

    /// The damage that was done and not mended.
    pub fn injected(&self) -> impl Iterator<Item = Injected> {
        self.units.iter().filter_map(|unit| unit.injected)
    }

    /// The damage of a unit.
    pub fn injected_in(&self, unit: u64) -> Option<Injected> {
        self.units[unit as usize].injected
    }

    /// Notes that the damage of a unit was mended by a write of all of it.
    pub fn mended(&mut self, unit: u64) {
        self.units[unit as usize].injected = None;
    }

    /// The bytes of a unit that are wrong: of sectors that have no possible content, without the damaged one.
    pub fn wrong_bytes(&self, unit: u64, bytes: &[u8]) -> u64 {
        let entry = &self.units[unit as usize];
        let mut left: Vec<usize> = (0..bytes.len() / SECTOR as usize).collect();
        if let Some(injected) = entry.injected {
            let damaged = (injected.byte % UNIT / SECTOR) as usize;
            left.retain(|&sector| sector != damaged);
        }
        let mut closest = vec![SECTOR; bytes.len() / SECTOR as usize];
        for &version in &entry.possible {
            let expected = self.contents(unit, version);
            left.retain(|&sector| {
                let place = sector * SECTOR as usize..(sector + 1) * SECTOR as usize;
                let pairs = bytes[place.clone()].iter().zip(&expected[place]);
                let wrong = pairs.filter(|(found, expected)| found != expected).count() as u64;
                closest[sector] = closest[sector].min(wrong);
                wrong > 0
            });
        }
        left.into_iter().map(|sector| closest[sector]).sum()
    }

    /// The bytes of a version of a unit.
    fn contents(&self, unit: u64, version: u64) -> Vec<u8> {
        if version == 0 {
            return vec![0; UNIT as usize];
        }
        let mut dice = SplitMix::new(self.seed ^ (unit << 32) ^ (version << 8));
        let words = (0..UNIT / 8).map(|_| dice.number());
        words.flat_map(u64::to_le_bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_write_may_be_there_in_part_and_an_acknowledged_one_must_be() {
        let mut book = Book::new(1, 2);
        let first = book.write_begun(1);
        assert!(!book.is_writable(1));
        book.write_ended(1);
        assert_eq!(book.wrong_bytes(1, &first), 0);
        assert!(book.wrong_bytes(1, &vec![0; UNIT as usize]) > UNIT / 2);
        let second = book.write_begun(1);
        book.killed();
        assert!(book.is_writable(1) && !book.is_at_rest(1));
        let half = UNIT as usize / 2;
        let torn = [&second[..half], &first[half..]].concat();
        assert_eq!(book.wrong_bytes(1, &torn), 0);
        // A sector is never torn: it is that of the first version and has wrong bytes of the second.
        let torn = [&second[..half + 8], &first[half + 8..]].concat();
        assert!((1..=8).contains(&book.wrong_bytes(1, &torn)));
        // A third version is above both.
        let third = book.write_begun(1);
        book.write_ended(1);
        assert!(third != second && third != first);
        assert!(book.wrong_bytes(1, &second) > 0);
    }

    #[test]
    fn only_the_damaged_sector_may_be_wrong() {
        let mut book = Book::new(2, 3);
        let mut bytes = book.write_begun(2);
        book.write_ended(2);
        bytes[5_000] ^= 4;
        assert_eq!(book.wrong_bytes(2, &bytes), 1);
        let injected = Injected {
            injury: Injury::Flip,
            byte: 2 * UNIT + 5_000,
            in_doubt: false,
        };
        book.inject(injected);
        assert_eq!(book.injected().collect::<Vec<_>>(), [injected]);
        assert_eq!(book.wrong_bytes(2, &bytes), 0);
        bytes[9_000] ^= 4;
        assert_eq!(book.wrong_bytes(2, &bytes), 1);
        assert!(!book.is_writable(2));
        book.mended(2);
        assert!(book.is_at_rest(2));
    }
}
