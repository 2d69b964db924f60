//! Legs in files that lose their caches, and the naive list of what was written.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::rc::Rc;

use block::operation::OperationError;
use block::{Action, Command, CommandId, Durability, Extent, Instant};
use drive::Lost;

use crate::arena::Memory;
use crate::disk::back_end::pieces::{Pieces, held, in_a_row};
use crate::disk::back_end::{BackEnd, Ended, Punch, Shape, Span};
use crate::mirror::DATA_OFFSET;
use crate::ring::Ring;

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
#[derive(Clone)]
pub(super) struct Dice(Rc<Cell<u64>>);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Dice(Rc::new(Cell::new(seed)))
    }

    pub(super) fn roll(&self, sides: u64) -> u64 {
        self.0.set(self.0.get().wrapping_add(0x9E37_79B9_7F4A_7C15));
        let mut mixed = self.0.get();
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }
}

pub(super) const BLOCK: u64 = 4096;
/// Two regions of data, and a bit of a third.
pub(super) const DATA_BLOCKS: u64 = 2 * 256 + 4;
pub(super) const LEG_BYTES: u64 = DATA_OFFSET + DATA_BLOCKS * BLOCK;

/// The drive of a leg, which outlives the service.
pub(super) struct Drive {
    pub(super) file: File,
    /// Writes that were not flushed, the oldest first.
    pub(super) cache: Vec<(u64, Vec<u8>)>,
    pub(super) queue: Vec<(Command, Pieces)>,
    pub(super) is_failing: bool,
    /// Commands that it may carry out now.
    pub(super) credit: u64,
    /// Commands that the power cut has ended.
    pub(super) cut: Vec<CommandId>,
}

impl Drive {
    pub(super) fn new(path: &Path) -> Self {
        let file = File::options().read(true).write(true).open(path);
        Drive {
            file: file.expect("a leg"),
            cache: Vec::new(),
            queue: Vec::new(),
            is_failing: false,
            credit: 0,
            cut: Vec::new(),
        }
    }

    pub(super) fn read(&self, at: u64, bytes: &mut [u8]) {
        self.file.read_exact_at(bytes, at).expect("a leg");
        for (start, cached) in &self.cache {
            let from = at.max(*start);
            let to = (at + bytes.len() as u64).min(start + cached.len() as u64);
            if from < to {
                bytes[(from - at) as usize..(to - at) as usize]
                    .copy_from_slice(&cached[(from - start) as usize..(to - start) as usize]);
            }
        }
    }

    pub(super) fn carry_out(&mut self, command: &Command, memory: &Pieces) {
        let (pieces, count) = in_a_row(memory);
        match command.action {
            Action::Read { extent, .. } => {
                let mut at = extent.start().0 * BLOCK;
                for piece in &pieces[..count] {
                    // SAFETY: the command has not ended.
                    self.read(at, unsafe { piece.bytes_mut() });
                    at += piece.length as u64;
                }
            }
            Action::Write { extent, durability } => {
                let mut at = extent.start().0 * BLOCK;
                for piece in &pieces[..count] {
                    // SAFETY: the command has not ended.
                    self.cache.push((at, unsafe { piece.bytes() }.to_vec()));
                    at += piece.length as u64;
                }
                if durability == Durability::Durable {
                    // An earlier write of these bytes must not come after it.
                    self.flush();
                }
            }
            Action::Flush => self.flush(),
            _ => (),
        }
    }

    pub(super) fn flush(&mut self) {
        for (at, bytes) in self.cache.drain(..) {
            self.file.write_all_at(&bytes, at).expect("a leg");
        }
    }

    /// The power ends: each cached block is there or not, and so is each of a command under way.
    pub(super) fn crash(&mut self, dice: &Dice) {
        self.cut = self.queue.iter().map(|(command, _)| command.id).collect();
        for (command, memory) in self.queue.clone() {
            if let Action::Write { .. } = command.action
                && !self.is_failing
            {
                self.carry_out_volatile(&command, &memory);
            }
        }
        for (at, bytes) in std::mem::take(&mut self.cache) {
            for (block, part) in bytes.chunks(BLOCK as usize).enumerate() {
                if dice.roll(2) == 0 {
                    let at = at + block as u64 * BLOCK;
                    self.file.write_all_at(part, at).expect("a leg");
                }
            }
        }
    }

    pub(super) fn carry_out_volatile(&mut self, command: &Command, memory: &Pieces) {
        if let Action::Write { extent, .. } = command.action {
            let durability = Durability::Volatile;
            let action = Action::Write { extent, durability };
            self.carry_out(&Command::new(command.id, action), memory);
        }
    }
}

pub(super) struct FakeLeg {
    pub(super) drive: Rc<RefCell<Drive>>,
    pub(super) dice: Dice,
}

impl BackEnd for FakeLeg {
    fn shape(&self) -> Shape {
        Shape {
            block_bytes: BLOCK as u32,
            blocks: LEG_BYTES / BLOCK,
            trims: false,
            zeroes_fast: false,
            rotational: false,
        }
    }

    fn depth(&self) -> u32 {
        4
    }

    unsafe fn start(&mut self, _: Instant, command: &Command, memory: &[Memory], _: &mut Ring) {
        let mut drive = self.drive.borrow_mut();
        assert!(
            drive.queue.len() < 4,
            "more commands than its queue has room for"
        );
        drive.queue.push((*command, held(memory)));
    }

    fn ring_ended(&mut self, _: Instant, _: u32, _: i32, _: &mut Ring) {}

    fn poll(&mut self, _: Instant) -> Option<Ended> {
        let mut drive = self.drive.borrow_mut();
        if drive.credit == 0 || drive.queue.is_empty() {
            return None;
        }
        drive.credit -= 1;
        let place = self.dice.roll(drive.queue.len() as u64) as usize;
        let (command, memory) = drive.queue.remove(place);
        let is_change = !matches!(command.action, Action::Read { .. });
        let is_cut = drive.cut.contains(&command.id);
        let result = match is_cut || (drive.is_failing && is_change) {
            true => Err(OperationError::Io),
            false => {
                drive.carry_out(&command, &memory);
                Ok(())
            }
        };
        Some(Ended {
            id: command.id,
            result,
            account: None,
        })
    }

    fn power_cut(&mut self, _: Instant, _: &mut Ring) -> Option<Lost> {
        self.drive.borrow_mut().crash(&self.dice);
        Some(Lost::default())
    }

    fn punch(&mut self, _: u32, _: Punch, _: Span, _: &mut Ring) {}

    fn poll_punched(&mut self) -> Option<(u32, Result<(), OperationError>)> {
        None
    }
}

/// A write as its client knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Submitted,
    Acknowledged,
    /// A flush that began after its end has ended.
    Flushed,
}

/// What a read may find.
pub(super) struct Expected {
    /// For each block, the last write before the read.
    pub(super) latest: Vec<Vec<u64>>,
    /// The writes after it.
    pub(super) later: Vec<u64>,
}

/// What clients wrote: block by block, in the order of submission. Entry 0 is what was there.
pub(super) struct Oracle {
    pub(super) blocks: Vec<Vec<(u64, Written)>>,
}

impl Oracle {
    pub(super) fn new() -> Self {
        let blocks = vec![vec![(0, Written::Flushed)]; DATA_BLOCKS as usize];
        Oracle { blocks }
    }

    pub(super) fn submit(&mut self, extent: Extent, number: u64) {
        for block in self.of(extent) {
            block.push((number, Written::Submitted));
        }
    }

    pub(super) fn of(&mut self, extent: Extent) -> &mut [Vec<(u64, Written)>] {
        let first = (extent.start().0 - DATA_OFFSET / BLOCK) as usize;
        &mut self.blocks[first..first + extent.length().0 as usize]
    }

    /// What a read of an extent may find that is submitted now.
    pub(super) fn expected(&mut self, extent: Extent) -> Expected {
        let each = self.of(extent).iter();
        Expected {
            latest: each
                .map(|block| vec![block.last().expect("the first").0])
                .collect(),
            later: Vec::new(),
        }
    }

    /// For each block, what a read may find whose leg failed, so that the other one was asked.
    pub(super) fn with_later(&mut self, extent: Extent, expected: Expected) -> Vec<Vec<u64>> {
        let mut allowed = expected.latest;
        for (block, allowed) in self.of(extent).iter().zip(&mut allowed) {
            let numbers = block.iter().map(|(number, _)| *number);
            allowed.extend(numbers.filter(|number| expected.later.contains(number)));
        }
        allowed
    }

    pub(super) fn end(&mut self, extent: Extent, number: u64, how: Written) {
        for block in self.of(extent) {
            let mut all = block.iter_mut();
            let write = all
                .find(|(one, _)| *one == number)
                .expect("it was submitted");
            write.1 = how;
        }
    }

    /// What a block may hold after a crash.
    pub(super) fn may_hold(&self, block: usize) -> Vec<u64> {
        let all = &self.blocks[block];
        let last = all.iter().rposition(|(_, how)| *how == Written::Flushed);
        all[last.expect("the first is")..]
            .iter()
            .map(|(number, _)| *number)
            .collect()
    }
}

/// Fills blocks with the number of a write.
pub(super) fn fill(bytes: &mut [u8], number: u64) {
    for word in bytes.chunks_exact_mut(8) {
        word.copy_from_slice(&number.to_le_bytes());
    }
}

/// The number of the write that a block is of as a whole.
pub(super) fn number_of(block: &[u8]) -> Option<u64> {
    let mut words = block.chunks_exact(8);
    let first = words.next()?;
    let mut number = [0; 8];
    number.copy_from_slice(first);
    words
        .all(|word| word == first)
        .then_some(u64::from_le_bytes(number))
}
