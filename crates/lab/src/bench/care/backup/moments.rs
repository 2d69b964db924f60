//! The diary of a verify load: when each write of a unit was sent and acknowledged, and the moments that an image can
//! be of.
//!
//! ```text
//!   unit 1   |--v1--|        |--v2--|
//!   unit 2        |--v1--|              |--v2--|
//!   an image with v2 of unit 1 and v1 of unit 2: from the sending of v2 to the end of the other v2
//! ```

use std::ops::Range;

use crate::dice::SplitMix;

/// Bytes of a unit: a chunk of dirty bitmaps.
pub const UNIT: u64 = 64 << 10;

/// What was written.
#[derive(Clone, Debug)]
pub struct Diary {
    seed: u64,
    /// Events so far: sendings and acknowledgements.
    now: u64,
    units: Vec<Vec<Version>>,
}

/// A write of a unit. The number is its place.
#[derive(Clone, Copy, Debug)]
struct Version {
    sent: u64,
    /// If the service was killed before, there was none.
    acknowledged: Option<u64>,
}

/// What an image turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedImage {
    /// The moments at which the volume was like this. There are none if it never was.
    pub moments: Range<u64>,
    /// Bytes of units that have no version.
    pub wrong_bytes: u64,
}

impl Diary {
    /// A volume of so many units of zeroes.
    pub fn new(seed: u64, units: u64) -> Self {
        let first = Version {
            sent: 0,
            acknowledged: Some(0),
        };
        Diary {
            seed,
            now: 0,
            units: vec![vec![first]; units as usize],
        }
    }

    /// The number of units.
    pub fn units(&self) -> u64 {
        self.units.len() as u64
    }

    /// The present moment.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Notes that a unit is written; returns the bytes.
    pub fn sent(&mut self, unit: u64) -> Vec<u8> {
        self.now += 1;
        let sent = self.now;
        let versions = &mut self.units[unit as usize];
        versions.push(Version {
            sent,
            acknowledged: None,
        });
        let number = versions.len() as u64 - 1;
        self.contents(unit, number)
    }

    /// Notes that the last write of a unit was acknowledged.
    pub fn acknowledged(&mut self, unit: u64) {
        self.now += 1;
        if let Some(last) = self.units[unit as usize].last_mut() {
            last.acknowledged = Some(self.now);
        }
    }

    /// Units whose last write was not acknowledged: after a kill they may be there in part.
    pub fn in_doubt(&self) -> Vec<u64> {
        let each = (0..self.units()).zip(&self.units);
        let is_open = |versions: &[Version]| {
            versions
                .last()
                .is_some_and(|last| last.acknowledged.is_none())
        };
        each.filter(|(_, versions)| is_open(versions))
            .map(|(unit, _)| unit)
            .collect()
    }

    /// Bytes of a unit that differ from its last version.
    pub fn wrong_bytes(&self, unit: u64, bytes: &[u8]) -> u64 {
        let last = self.units[unit as usize].len() as u64 - 1;
        differing(bytes, &self.contents(unit, last))
    }

    /// Units of which a write was sent between two moments.
    pub fn changed(&self, between: &Range<u64>) -> u64 {
        let is_changed = |versions: &&Vec<Version>| {
            let mut sent = versions.iter().map(|version| version.sent);
            sent.any(|sent| between.contains(&sent))
        };
        self.units.iter().filter(is_changed).count() as u64
    }

    /// The moments of an image that was begun and ended between two.
    pub fn judge(&self, image: &[u8], between: &Range<u64>) -> JudgedImage {
        let (mut moments, mut wrong_bytes) = (between.clone(), 0);
        for (unit, bytes) in (0..self.units()).zip(image.chunks(UNIT as usize)) {
            let versions = &self.units[unit as usize];
            // The first eight bytes are the number.
            let number = bytes
                .first_chunk()
                .map(|number| u64::from_le_bytes(*number));
            let number = number.filter(|&number| number < versions.len() as u64);
            let wrong = number.map_or(UNIT, |number| {
                differing(bytes, &self.contents(unit, number))
            });
            wrong_bytes += wrong;
            let Some(number) = number.filter(|_| wrong == 0) else {
                continue;
            };
            let (version, later) = (number as usize, &versions[number as usize + 1..]);
            moments.start = moments.start.max(versions[version].sent);
            let replaced = later.iter().find_map(|version| version.acknowledged);
            moments.end = moments.end.min(replaced.unwrap_or(u64::MAX));
        }
        JudgedImage {
            moments,
            wrong_bytes,
        }
    }

    /// The bytes of a version of a unit.
    fn contents(&self, unit: u64, number: u64) -> Vec<u8> {
        if number == 0 {
            return vec![0; UNIT as usize];
        }
        let mut dice = SplitMix::new(self.seed ^ (unit << 32) ^ (number << 8));
        let rest = (1..UNIT / 8).map(|_| dice.number());
        let words = std::iter::once(number).chain(rest);
        words.flat_map(u64::to_le_bytes).collect()
    }
}

fn differing(bytes: &[u8], expected: &[u8]) -> u64 {
    let pairs = bytes.iter().zip(expected);
    let short = expected.len().saturating_sub(bytes.len()) as u64;
    short + pairs.filter(|(one, other)| one != other).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_of_the_moments_between_the_sending_of_what_it_has_and_the_end_of_what_it_lacks()
    {
        let mut diary = Diary::new(1, 2);
        let first = diary.sent(0); // 1
        diary.acknowledged(0); // 2
        let second = diary.sent(0); // 3
        let other = diary.sent(1); // 4
        diary.acknowledged(1); // 5
        diary.acknowledged(0); // 6
        let empty = vec![0; UNIT as usize];
        let judge = |image: [&Vec<u8>; 2], between| {
            let image = image.map(|unit| unit.clone()).concat();
            diary.judge(&image, &between).moments
        };
        assert_eq!(judge([&first, &empty], 0..9), 1..5);
        assert_eq!(judge([&first, &other], 0..9), 4..6);
        assert_eq!(judge([&second, &empty], 0..9), 3..5);
        assert_eq!(judge([&second, &other], 0..9), 4..9);
        assert!(
            judge([&empty, &other], 0..9).is_empty(),
            "it lacks an earlier write"
        );
        assert!(
            judge([&first, &empty], 6..9).is_empty(),
            "it is older than its begin"
        );
        let mut torn = second.clone();
        torn[5_000] ^= 1;
        let judged = diary.judge(&[torn, other].concat(), &(0..9));
        assert_eq!(judged.wrong_bytes, 1);
        assert_eq!((diary.changed(&(2..4)), diary.changed(&(2..5))), (1, 2));
    }

    #[test]
    fn a_write_that_was_never_acknowledged_may_be_in_any_later_image_until_it_is_rewritten() {
        let mut diary = Diary::new(2, 1);
        let first = diary.sent(0); // 1
        assert_eq!(diary.in_doubt(), [0]);
        let empty = vec![0; UNIT as usize];
        assert_eq!(diary.judge(&empty, &(0..9)).moments, 0..9);
        assert_eq!(diary.judge(&first, &(0..9)).moments, 1..9);
        diary.sent(0); // 2
        diary.acknowledged(0); // 3
        assert_eq!(diary.in_doubt(), [0; 0]);
        assert_eq!(diary.judge(&first, &(0..9)).moments, 1..3);
        assert!(diary.wrong_bytes(0, &first) > UNIT / 2);
    }
}
