//! A load that knows what it wrote: each unit carries its number and its version, and what a flush
//! or FUA has promised is remembered.

use std::collections::BTreeMap;

use block::Durability;
use block::operation::{Ask, OperationError};
use nbd::request::Asked;

use crate::client::{Client, End};

/// Bytes that are written at once: some blocks.
const UNIT: u64 = 2048;
const SECTOR: usize = 512;

/// Units of the load, spread over the drive so that the arm has something to do.
pub const UNITS: u64 = 96;
/// A unit begins so many bytes behind the one before it.
pub const SPREAD: u64 = 1 << 20;

/// What the load asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    Write,
    Durable,
    Flush,
}

/// The book.
pub struct Ledger {
    units: Vec<Unit>,
    under_way: BTreeMap<u64, UnderWay>,
    dice: u64,
}

/// Versions of one unit.
#[derive(Clone, Default)]
struct Unit {
    /// Given to the last write.
    last: u64,
    /// It was promised to be there: this one or a later one.
    promised: u64,
    /// The last that ended well.
    ended: u64,
    is_busy: bool,
}

enum UnderWay {
    Write {
        unit: usize,
        durability: Durability,
    },
    /// With the versions that had ended when it was submitted.
    Flush(Vec<u64>),
}

impl Ledger {
    pub fn new(seed: u64) -> Ledger {
        Ledger {
            units: vec![Unit::default(); UNITS as usize],
            under_way: BTreeMap::new(),
            dice: seed,
        }
    }

    /// The bytes that the load needs.
    pub fn bytes(&self) -> u64 {
        UNITS * SPREAD
    }

    /// What is asked for next, and of which unit.
    pub fn next(&mut self) -> (Rule, usize) {
        let rule = match self.roll(10) {
            0 => Rule::Flush,
            1 => Rule::Durable,
            _ => Rule::Write,
        };
        // Versions that are under way together have no order.
        loop {
            let unit = self.roll(UNITS) as usize;
            if !self.units[unit].is_busy {
                return (rule, unit);
            }
        }
    }

    pub fn submit(&mut self, client: &mut Client, rule: Rule, unit: usize) {
        let durability = match rule {
            Rule::Write => Durability::Volatile,
            Rule::Durable => Durability::Durable,
            Rule::Flush => {
                let cookie = client.submit(Asked::Of(Ask::Flush), 0, 0, &[]);
                self.under_way
                    .insert(cookie, UnderWay::Flush(self.had_ended()));
                return;
            }
        };
        let version = self.units[unit].last + 1;
        self.units[unit].last = version;
        self.units[unit].is_busy = true;
        let ask = Asked::Of(Ask::Write { durability });
        let payload = contents(unit, version);
        let cookie = client.submit(ask, unit as u64 * SPREAD, UNIT, &payload);
        let write = UnderWay::Write { unit, durability };
        self.under_way.insert(cookie, write);
    }

    /// A flush is taken for granted that was not sent.
    pub fn imagine(&mut self, _: usize) {
        let ended = self.had_ended();
        self.promise(&ended);
    }

    pub fn ended(&mut self, end: &End) {
        match self.under_way.remove(&end.cookie) {
            Some(UnderWay::Write { unit, durability }) => {
                let unit = &mut self.units[unit];
                unit.is_busy = false;
                unit.ended = unit.last;
                if durability == Durability::Durable {
                    unit.promised = unit.last;
                }
            }
            Some(UnderWay::Flush(ended)) => self.promise(&ended),
            None => panic!("an end of nothing"),
        }
    }

    /// Nobody knows what it did.
    pub fn failed(&mut self, end: &End) {
        if let Some(UnderWay::Write { unit, .. }) = self.under_way.remove(&end.cookie) {
            self.units[unit].is_busy = false;
        }
    }

    /// Nobody answers any more.
    pub fn nobody_answers(&mut self) {
        self.under_way.clear();
        for unit in &mut self.units {
            unit.is_busy = false;
        }
    }

    /// Reads all units: what is broken, and how many sectors could not be read that need not be.
    /// From now on what is there is what counts.
    pub fn verify(&mut self, client: &mut Client) -> (Vec<String>, usize) {
        let (mut broken, mut unreadable) = (Vec::new(), 0);
        for unit in 0..self.units.len() {
            let Unit { last, promised, .. } = self.units[unit];
            let mut oldest = last;
            for (sector, bytes) in sectors(client, unit).iter().enumerate() {
                let found = bytes.as_ref().map(|bytes| version(unit, sector, bytes));
                match found {
                    Err(OperationError::Io) if promised < last => {
                        unreadable += 1;
                        oldest = promised;
                    }
                    Ok(Some(found)) if (promised..=last).contains(&found) => {
                        oldest = oldest.min(found);
                    }
                    found => broken.push(format!(
                        "unit {unit} sector {sector}: {found:?}, expected {promised} to {last}"
                    )),
                }
            }
            // No write is under way: what all sectors have is there to stay.
            self.units[unit].ended = oldest;
        }
        (broken, unreadable)
    }

    fn had_ended(&self) -> Vec<u64> {
        self.units.iter().map(|unit| unit.ended).collect()
    }

    fn promise(&mut self, ended: &[u64]) {
        for (unit, &ended) in self.units.iter_mut().zip(ended) {
            unit.promised = unit.promised.max(ended);
        }
    }

    fn roll(&mut self, sides: u64) -> u64 {
        // SplitMix64.
        self.dice = self.dice.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.dice;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }
}

/// The bytes of each sector of a unit.
fn sectors(client: &mut Client, unit: usize) -> Vec<Result<Vec<u8>, OperationError>> {
    let read = Asked::Of(Ask::Read);
    let from = unit as u64 * SPREAD;
    let whole = client.ask(read, from, UNIT, &[]);
    if whole.result == Ok(()) {
        let sectors = whole.bytes.chunks_exact(SECTOR);
        return sectors.map(|bytes| Ok(bytes.to_vec())).collect();
    }
    let each = (from..from + UNIT).step_by(SECTOR);
    let ends = each.map(|offset| client.ask(read, offset, SECTOR as u64, &[]));
    ends.map(|end| end.result.map(|()| end.bytes)).collect()
}

/// Version zero is what was never written.
fn contents(unit: usize, version: u64) -> Vec<u8> {
    let words = (0..UNIT / 8).map(|word| word_of(unit, version, word));
    words.flat_map(u64::to_le_bytes).collect()
}

/// The version of a sector; `None` if it is a mixture, or another unit's.
fn version(unit: usize, sector: usize, bytes: &[u8]) -> Option<u64> {
    if bytes.iter().all(|&byte| byte == 0) {
        return Some(0);
    }
    let words: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
        .collect();
    let first = (sector * SECTOR / 8) as u64;
    let version = (words[0] ^ salt(unit, first)) >> 8;
    let expected = (first..)
        .take(words.len())
        .map(|word| word_of(unit, version, word));
    expected.eq(words.iter().copied()).then_some(version)
}

fn word_of(unit: usize, version: u64, word: u64) -> u64 {
    (version << 8) ^ salt(unit, word)
}

fn salt(unit: usize, word: u64) -> u64 {
    (unit as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ word.wrapping_mul(0xD6E8_FEB8_6659_FD93)
}
