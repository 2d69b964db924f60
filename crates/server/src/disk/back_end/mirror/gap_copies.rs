//! Copies of what tasks of the engine read in gaps, from the leg that has all data to the one that is being filled.
//!
//! ```text
//!   read of a task ended --bytes that are missing--> memory --the leg has a moment--> write --> copied
//!                                                      '-- the copies that its head reaches first
//! ```
//!
//! The rules that keep newer data are in [`crate::mirror::rebuild`].

#![allow(
    unsafe_code,
    reason = "copies what a command has read, before the engine hears of its end"
)]

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use block::operation::OperationError;
use block::{Action, CommandId, Durability, Duration, Extent, Instant, Lba, Sectors};

use engine::Side;

use super::filling::Step;
use super::nearest::LegHead;
use super::pace::GapReads;
use super::{Fault, Mirror, OwnCommand, Purpose};
use crate::arena::{Arena, Buffer};
use crate::disk::back_end::pieces::Pieces;
use crate::ring::Ring;

/// Memory of copies that wait. A choice: a second of a fast disk's gaps.
const HELD_BYTES: usize = 32 << 20;

/// The leg that is filled gets a copy when it has no commands of clients, at the latest after this time. A choice: a
/// few commands of a disk.
const PATIENCE: Duration = Duration::from_millis(50);

/// Runs of held copies above the head of the leg, and below it, between which the disk chooses. A choice: in full memory
/// the farthest one is a sixth of the disk away, and to look at all takes less than 0.1 ms.
const CANDIDATES: usize = 64;

/// What the engine should do for the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Nothing: no leg is being filled.
    Nothing,
    /// Read what is missing.
    Wanted,
    /// Wait: there is hardly any memory left.
    Wait,
}

/// The copies that wait.
pub(super) struct GapCopies {
    arena: Arena,
    buffers: BTreeMap<u64, Buffer>,
    keys: u64,
    /// The copy that is being written, if it is one alone.
    writing: Option<u64>,
    /// When the last one was written.
    wrote: Instant,
    reading: Reading,
}

impl GapCopies {
    pub(super) fn new() -> io::Result<Self> {
        Ok(GapCopies {
            arena: Arena::map(HELD_BYTES)?,
            buffers: BTreeMap::new(),
            keys: 0,
            writing: None,
            wrote: Instant::ZERO,
            reading: Reading::Wanted,
        })
    }

    fn free(&mut self, key: u64) {
        if let Some(buffer) = self.buffers.remove(&key) {
            self.arena.free(buffer);
        }
    }

    /// When the next copy is written at the latest.
    pub(super) fn due(&self) -> Instant {
        self.wrote + PATIENCE
    }
}

impl Mirror {
    /// The client's blocks of the command that is started next; the rest of them is read for tasks.
    pub fn starts_next(&mut self, own: Option<Extent>) {
        self.next_own = own;
    }

    /// What the engine should do for the copy.
    pub fn reading(&mut self) -> Reading {
        if self.copied_leg().is_none() || self.regions.is_copied() {
            return Reading::Nothing;
        }
        let left = self.gap_copies.arena.left();
        self.gap_copies.reading = match self.gap_copies.reading {
            Reading::Wait if left < HELD_BYTES / 4 * 3 => Reading::Wait,
            _ if left < HELD_BYTES / 2 => Reading::Wait,
            _ => Reading::Wanted,
        };
        self.gap_copies.reading
    }

    /// The blocks that a task of the engine should read, in their order.
    pub fn wanted(&mut self) -> Vec<Extent> {
        let wanted = self.regions.wanted();
        wanted.iter().map(|bytes| self.blocks(bytes)).collect()
    }

    /// The leg that has all data while the other one is filled.
    pub fn survivor(&self) -> Option<Side> {
        let leg = self.filled()?;
        Some(Side::ALL[1 - leg])
    }

    /// Whether the engine reads for the copy in gaps.
    pub fn use_gaps(&mut self, used: GapReads) {
        self.pace.use_gaps(used);
    }

    /// The blocks of bytes of the data.
    pub(super) fn blocks(&self, bytes: &Range<u64>) -> Extent {
        let block = u64::from(self.shape.block_bytes);
        let first = (self.superblock.data_offset + bytes.start) / block;
        let length = Sectors((bytes.end - bytes.start) / block);
        Extent::new(Lba(first), length).expect("whole blocks of the data")
    }

    /// A leg begins to read these blocks, of which a client wants `own`.
    pub(super) fn gap_read_began(&mut self, id: CommandId, extent: Extent, own: Option<Extent>) {
        let leg = super::leg_of(id);
        if self.copied_leg() != Some(1 - leg) {
            return;
        }
        let (start, end) = (extent.start().0, extent.end().0);
        let parts = match own.and_then(|own| own.intersection(extent)) {
            Some(own) => [start..own.start().0, own.end().0..end],
            None => [start..end, end..end],
        };
        let block = u64::from(self.shape.block_bytes);
        let (offset, length) = (self.superblock.data_offset, self.superblock.data_bytes);
        for part in parts {
            // A read may begin before the data or end behind them.
            let from = (part.start * block).max(offset);
            let to = (part.end * block).min(offset + length);
            if from < to {
                self.regions.read_began(id.0, from - offset..to - offset);
            }
        }
    }

    /// A command that read has ended. What it brought of missing bytes is held.
    pub(super) fn gap_read_ended(
        &mut self,
        id: CommandId,
        extent: Extent,
        memory: &Pieces,
        (result, fault): (Result<(), OperationError>, Fault),
    ) {
        let block = u64::from(self.shape.block_bytes);
        let given = memory.iter().flatten().map(|piece| piece.length as u64);
        let is_whole = given.sum::<u64>() == extent.length().0 * block;
        let rebuild = self.regions.rebuild();
        match (result, fault) {
            (Ok(()), Fault::Leg) if is_whole => (),
            // Nobody has its bytes.
            (Ok(()), Fault::Leg) => return rebuild.read_forgotten(id.0),
            (Err(_), Fault::Leg) => return rebuild.read_failed(id.0),
            (_, Fault::Power) => return rebuild.read_forgotten(id.0),
        }
        let read_from = extent.start().0 * block;
        for bytes in rebuild.read_ended(id.0) {
            // Without room its bytes stay missing.
            let length = (bytes.end - bytes.start) as usize;
            let Some(mut buffer) = self.gap_copies.arena.allocate(length) else {
                continue;
            };
            let skipped = self.superblock.data_offset + bytes.start - read_from;
            copy(memory, skipped as usize, buffer.bytes_mut());
            self.gap_copies.keys += 1;
            let key = self.gap_copies.keys;
            self.gap_copies.buffers.insert(key, buffer);
            self.regions.rebuild().hold(key, bytes);
        }
    }

    /// Nobody needs the bytes of copies that were dropped.
    pub(super) fn free_dropped(&mut self) {
        while let Some(key) = self.regions.rebuild().poll_dropped() {
            self.gap_copies.free(key);
        }
    }

    /// The leg to which held copies may be written now, if there are any.
    pub(super) fn held_leg(&self, now: Instant) -> Option<usize> {
        let leg = self.copied_leg().filter(|&leg| self.has_room(leg))?;
        let is_free = !self.in_flight.iter().any(|one| one.leg == leg);
        let is_due = is_free || now >= self.gap_copies.due();
        let is_idle = matches!(self.filling.step, Step::Idle(_));
        (is_idle && is_due && self.regions.has_held()).then_some(leg)
    }

    /// The writes of held copies between which the disk chooses now, and where the head of their leg was last.
    pub fn held_writes(&mut self, now: Instant) -> Option<(Side, Option<LegHead>, Vec<Extent>)> {
        let leg = self.held_leg(now)?;
        let head = self.heads[leg];
        let data = head.and_then(|head| self.data(Extent::block(head.block)));
        let near = data.map_or(0, |data| data.start);
        let runs = self.regions.rebuild().held_runs(near, CANDIDATES);
        let writes = runs.iter().map(|run| self.blocks(run)).collect();
        Some((Side::ALL[leg], head, writes))
    }

    /// Writes the held copies that [`Mirror::held_writes`] has named.
    pub fn write_held(&mut self, now: Instant, write: Extent, ring: &mut Ring) {
        let (Some(leg), Some(bytes)) = (self.held_leg(now), self.data(write)) else {
            return;
        };
        let run = self.regions.rebuild().take_run(bytes.start);
        let gathered = self.filling.memory.bytes_mut();
        let copies = &mut self.gap_copies;
        let memory = match &run[..] {
            [] => return,
            [one] => {
                copies.writing = Some(one.key);
                let memory = copies.buffers.get(&one.key).map(Buffer::memory);
                memory.expect("a copy has memory until it is written or dropped")
            }
            run => {
                let mut length = 0;
                for held in run {
                    let buffer = copies.buffers.get(&held.key);
                    let of = buffer.expect("a copy has memory until it is written or dropped");
                    let of = of.bytes();
                    gathered[length..length + of.len()].copy_from_slice(of);
                    length += of.len();
                    copies.free(held.key);
                }
                self.filling.memory.memory().part(0, length)
            }
        };
        self.filling.step = Step::WritingHeld;
        let action = Action::Write {
            extent: write,
            durability: Durability::Volatile,
        };
        let whom = (leg, Purpose::HeldWrite);
        // SAFETY: the buffer is kept until the write has ended, and nobody else uses the memory of pieces until then.
        unsafe { self.give_own(now, whom, action, &[memory], ring) };
    }

    /// Copies were written.
    pub(super) fn held_written(
        &mut self,
        now: Instant,
        own: &OwnCommand,
        result: Result<(), OperationError>,
    ) {
        if let Some(key) = self.gap_copies.writing.take() {
            self.gap_copies.free(key);
        }
        self.gap_copies.wrote = now;
        self.filling.step = Step::Idle(self.filling.from);
        match (result, own.fault) {
            (Ok(()), Fault::Leg) => {
                let bytes = self.regions.copied(now);
                self.pace.copied_from_gaps(bytes);
            }
            (Err(_), Fault::Leg) => {
                self.regions.rebuild().not_copied();
                self.take_out(own.leg);
            }
            (_, Fault::Power) => self.regions.rebuild().not_copied(),
        }
    }
}

/// Copies bytes of a command's memory from one of its bytes on.
fn copy(memory: &Pieces, mut skipped: usize, mut to: &mut [u8]) {
    for piece in memory.iter().flatten() {
        if skipped >= piece.length {
            skipped -= piece.length;
            continue;
        }
        let count = (piece.length - skipped).min(to.len());
        // SAFETY: the command has ended, and the engine has not heard of it: its memory is there and nobody writes it.
        let from = unsafe { piece.part(skipped, count).bytes() };
        let (now, rest) = to.split_at_mut(count);
        now.copy_from_slice(from);
        (to, skipped) = (rest, 0);
    }
}
