//! Storage that loses or keeps each unflushed sector as dice say, and stops at a chosen operation.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use super::BLOCK;
use crate::checksums::region::Medium;

/// Decides among a number of outcomes.
pub trait Chance {
    fn roll(&mut self, sides: u64) -> u64;
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
#[derive(Clone)]
pub struct Dice(pub u64);

impl Chance for Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }
}

/// Decides every combination of outcomes in turn.
#[derive(Default)]
pub struct Odometer {
    /// Outcomes and their numbers, in the order of the decisions.
    wheels: Vec<(u64, u64)>,
    at: usize,
}

impl Odometer {
    /// Turns to the next combination. The answer is whether there is one.
    pub fn turn(&mut self) -> bool {
        self.at = 0;
        while let Some((outcome, sides)) = self.wheels.pop() {
            if outcome + 1 < sides {
                self.wheels.push((outcome + 1, sides));
                return true;
            }
        }
        false
    }
}

impl Chance for Odometer {
    fn roll(&mut self, sides: u64) -> u64 {
        if self.at == self.wheels.len() {
            self.wheels.push((0, sides));
        }
        self.at += 1;
        self.wheels[self.at - 1].0
    }
}

/// The number of operations until the machine stops.
#[derive(Clone, Default)]
pub struct Fuse(Rc<Cell<Option<u64>>>);

impl Fuse {
    pub fn set(&self, operations: Option<u64>) {
        self.0.set(operations);
    }

    /// Counts an operation. The answer is whether it still happens.
    pub fn burns(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.map(|left| left.saturating_sub(1)));
        left != Some(0)
    }

    pub fn is_out(&self) -> bool {
        self.0.get() == Some(0)
    }
}

/// Bytes whose sectors have older versions until they are flushed.
#[derive(Clone, Default)]
pub struct Storage {
    pub bytes: Vec<u8>,
    /// The versions of unflushed sectors, the durable one first.
    pub older: BTreeMap<u64, Vec<Vec<u8>>>,
    pub fuse: Fuse,
    /// The size of sectors as a power of two of blocks: coarser ones have fewer combinations.
    pub shift: u32,
}

impl Storage {
    pub fn sector(&self) -> u64 {
        BLOCK << self.shift
    }

    pub fn put(&mut self, offset: u64, bytes: &[u8]) {
        let (mut at, end) = (offset, offset + bytes.len() as u64);
        while at < end {
            let sector = at / self.sector();
            let next = end.min((sector + 1) * self.sector());
            let whole =
                sector * self.sector()..((sector + 1) * self.sector()).min(self.bytes.len() as u64);
            let old = self.bytes[whole.start as usize..whole.end as usize].to_vec();
            self.older.entry(sector).or_default().push(old);
            self.bytes[at as usize..next as usize]
                .copy_from_slice(&bytes[(at - offset) as usize..(next - offset) as usize]);
            at = next;
        }
    }

    /// The power is cut: each unflushed sector has any of its versions.
    pub fn lose(&mut self, chance: &mut dyn Chance) {
        for (sector, versions) in std::mem::take(&mut self.older) {
            let which = chance.roll(versions.len() as u64 + 1) as usize;
            if let Some(version) = versions.get(which) {
                let place = (sector * self.sector()) as usize;
                self.bytes[place..place + version.len()].copy_from_slice(version);
            }
        }
    }

    fn operate(&self) -> io::Result<()> {
        match self.fuse.burns() {
            true => Ok(()),
            false => Err(io::Error::other("the machine has stopped")),
        }
    }
}

impl Medium for Storage {
    fn length(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn set_length(&mut self, bytes: u64) -> io::Result<()> {
        self.operate()?;
        self.bytes.resize(bytes as usize, 0);
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        bytes.copy_from_slice(&self.bytes[offset as usize..offset as usize + bytes.len()]);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.operate()?;
        self.put(offset, bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.operate()?;
        self.older.clear();
        Ok(())
    }
}
