//! What the bytes may be: for each block all values that some order of the operations gives it.
//!
//! A write's value is possible from its submission on. When it has ended, values whose writes had
//! ended before it was submitted are gone. Everything else may be in either order.

use crate::station::BLOCK;

/// A value of a block: the number of the write that gave it, zero for zeroes.
pub type Stamp = u64;

/// The blocks.
#[derive(Clone)]
pub struct Model {
    blocks: Vec<Vec<Value>>,
    now: u64,
    stamps: Stamp,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Value {
    stamp: Stamp,
    change: u64,
    /// When it ended; `u64::MAX` before that.
    ended: u64,
}

/// A write that has been submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    number: u64,
    pub first: u64,
    pub count: u64,
}

impl Model {
    /// All zeroes.
    pub fn new(blocks: u64) -> Model {
        let zeroes = Value {
            stamp: 0,
            change: 0,
            ended: 0,
        };
        Model {
            blocks: vec![vec![zeroes]; blocks as usize],
            now: 0,
            stamps: 0,
        }
    }

    /// A stamp that was not used.
    pub fn stamp(&mut self) -> Stamp {
        self.stamps += 1;
        self.stamps
    }

    /// A write of a value to some blocks is submitted.
    pub fn submit(&mut self, first: u64, count: u64, stamp: Stamp) -> Change {
        self.now += 1;
        let change = self.now;
        for block in self.range(first, count) {
            block.push(Value {
                stamp,
                change,
                ended: u64::MAX,
            });
        }
        Change {
            number: change,
            first,
            count,
        }
    }

    /// It has ended well: what was there before it is gone.
    pub fn done(&mut self, change: Change) {
        self.end(change);
        self.settle(change);
    }

    /// It has ended before, and what was there before it is gone now.
    pub fn settle(&mut self, change: Change) {
        for block in self.range(change.first, change.count) {
            block.retain(|value| value.change == change.number || value.ended > change.number);
        }
    }

    /// It has ended, and nobody knows what it did.
    pub fn end(&mut self, change: Change) {
        self.now += 1;
        let now = self.now;
        for block in self.range(change.first, change.count) {
            let of_it = block.iter_mut().find(|v| v.change == change.number);
            if let Some(value) = of_it {
                value.ended = now;
            }
        }
    }

    /// The present moment.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// A read that was submitted at a moment has found this value: earlier ones are gone.
    pub fn found(&mut self, block: u64, stamp: Stamp, since: u64) {
        self.blocks[block as usize].retain(|value| value.stamp == stamp || value.ended > since);
    }

    /// Blocks from `first` on may have what they may have in `other`.
    pub fn restore(&mut self, first: u64, other: &Model) {
        let count = self.blocks.len() as u64 - first;
        let from = &other.blocks[first as usize..];
        self.range(first, count).clone_from_slice(from);
    }

    /// It was refused, and did nothing.
    pub fn never_was(&mut self, change: Change) {
        for block in self.range(change.first, change.count) {
            block.retain(|value| value.change != change.number);
        }
    }

    /// What a read that is submitted now may find, as long as no other write is submitted.
    pub fn possible(&self, first: u64, count: u64) -> Vec<Vec<Stamp>> {
        let blocks = &self.blocks[first as usize..(first + count) as usize];
        let stamps = |block: &Vec<Value>| block.iter().map(|value| value.stamp).collect();
        blocks.iter().map(stamps).collect()
    }

    fn range(&mut self, first: u64, count: u64) -> &mut [Vec<Value>] {
        &mut self.blocks[first as usize..(first + count) as usize]
    }
}

/// The bytes of some blocks with a value.
pub fn contents(first: u64, count: u64, stamp: Stamp) -> Vec<u8> {
    let mut bytes = Vec::with_capacity((count * BLOCK) as usize);
    for block in first..first + count {
        for word in 0..BLOCK / 8 {
            bytes.extend_from_slice(&word_of(block, stamp, word).to_le_bytes());
        }
    }
    bytes
}

/// The value of a block's bytes; `None` if they are no value's: mixed, or another block's.
pub fn stamp_of(block: u64, bytes: &[u8]) -> Option<Stamp> {
    if bytes.iter().all(|&byte| byte == 0) {
        return Some(0);
    }
    let words: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
        .collect();
    let stamp = words[0];
    let expected = (0..words.len() as u64).map(|word| word_of(block, stamp, word));
    expected.eq(words.iter().copied()).then_some(stamp)
}

fn word_of(block: u64, stamp: Stamp, word: u64) -> u64 {
    match word {
        0 => stamp,
        _ => (block << 32 | stamp) ^ word.wrapping_mul(0x9E37_79B9_7F4A_7C15),
    }
}
