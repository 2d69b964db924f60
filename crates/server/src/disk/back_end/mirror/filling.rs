//! Copies of marked regions, from the leg that has all data to the one that is being filled.

use std::io;

use block::operation::OperationError;
use block::{Action, Durability, Duration, Extent, Instant, Lba, Sectors};
use tracing::warn;

use super::{Fault, Health, Mirror, OwnCommand, Purpose};
use crate::arena::Region;
use crate::mirror::regions::{NextPiece, PIECE};
use crate::ring::Ring;

/// The copy of a mirror.
pub(super) struct Filling {
    /// The leg to which new writes go besides, once the engine knows.
    engaged: Option<usize>,
    step: Step,
    /// The blocks that are being copied, and when that began.
    piece: Option<(Extent, Instant)>,
    memory: Region,
    allowed: Allowed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The next piece may begin at this time.
    Idle(Instant),
    Reading,
    /// The bytes are there.
    Read,
    Writing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allowed {
    Yes,
    /// The service ends.
    No,
    /// What is left cannot be read.
    Stuck,
}

/// While clients have commands at the legs, a copy rests so many times as long as it took: a tenth of the time is
/// its. A choice: ten times as slow as an idle copy, and the loss of the clients is about as small.
const REST: u64 = 9;

/// The time until the next look, while writes are under way everywhere. A choice: a command of a disk.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A choice: a copy that a drive has held up for long says nothing about the next one.
const LONGEST_REST: Duration = Duration::from_secs(1);

impl Filling {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Filling {
            engaged: None,
            step: Step::Idle(Instant::ZERO),
            piece: None,
            memory: Region::map(PIECE as usize)?,
            allowed: Allowed::Yes,
        })
    }

    /// Notes that new writes go to a leg. The answer is whether they did not before.
    pub(super) fn engage(&mut self, leg: usize) -> bool {
        let is_new = self.engaged != Some(leg);
        self.engaged = Some(leg);
        is_new
    }

    /// New writes do not go to a leg that is being filled, or there is none.
    pub(super) fn disengage(&mut self) {
        self.engaged = None;
        if self.allowed == Allowed::Stuck {
            self.allowed = Allowed::Yes;
        }
    }

    /// Whether new writes go to this leg besides.
    pub(super) fn is_engaged(&self, leg: usize) -> bool {
        self.engaged == Some(leg)
    }

    /// Nothing more is copied.
    pub(super) fn stop(&mut self) {
        self.allowed = Allowed::No;
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self.step, Step::Idle(_)) && self.engaged.is_some()
    }
}

impl Mirror {
    /// Goes on with the copy. The answer is whether there was anything to do.
    pub(super) fn step_filling(&mut self, now: Instant, ring: &mut Ring) -> bool {
        if self.filling.step == Step::Read {
            return self.write_copy(now, ring);
        }
        let Step::Idle(from) = self.filling.step else {
            return false;
        };
        let Some(leg) = self.copied_leg().filter(|_| from <= now) else {
            return false;
        };
        if !self.has_room(0) || !self.has_room(1) {
            return false;
        }
        match self.regions.next_piece() {
            NextPiece::Piece(bytes) => {
                let block = u64::from(self.shape.block_bytes);
                let first = (self.superblock.data_offset + bytes.start) / block;
                let length = Sectors((bytes.end - bytes.start) / block);
                let extent = Extent::new(Lba(first), length).expect("blocks of the data");
                self.filling.piece = Some((extent, now));
                self.filling.step = Step::Reading;
                let action = Action::Read {
                    extent,
                    durability: Durability::Volatile,
                };
                let length = (bytes.end - bytes.start) as usize;
                let memory = self.filling.memory.memory().part(0, length);
                let whom = (1 - leg, Purpose::CopyRead);
                // SAFETY: nobody else uses the copy's memory until its step has ended.
                unsafe { self.give_own(now, whom, action, &[memory], ring) };
                true
            }
            NextPiece::Done if !self.regions.is_copied() => {
                warn!("regions of the mirror cannot be read from the leg that has all data");
                self.filling.allowed = Allowed::Stuck;
                false
            }
            NextPiece::Later => {
                self.filling.step = Step::Idle(now + LOOK_AGAIN);
                false
            }
            NextPiece::Done => false,
        }
    }

    /// The leg to which pieces may be copied.
    fn copied_leg(&self) -> Option<usize> {
        let is_allowed = self.filling.allowed == Allowed::Yes && self.health == Health::Whole;
        let is_recorded = self.durable == self.superblock.states;
        let leg = self.filled()?;
        (is_allowed && is_recorded && self.filling.is_engaged(leg)).then_some(leg)
    }

    /// Writes what was read to the leg that is being filled.
    fn write_copy(&mut self, now: Instant, ring: &mut Ring) -> bool {
        let leg = self
            .filled()
            .filter(|&leg| self.filling.engaged == Some(leg));
        let (Some(leg), Some((extent, _))) = (leg, self.filling.piece) else {
            self.filling.step = Step::Idle(now);
            self.regions.not_copied();
            return true;
        };
        self.filling.step = Step::Writing;
        let action = Action::Write {
            extent,
            durability: Durability::Volatile,
        };
        let length = (extent.length().0 * u64::from(self.shape.block_bytes)) as usize;
        let memory = self.filling.memory.memory().part(0, length);
        // SAFETY: nobody else uses the copy's memory until its step has ended.
        unsafe { self.give_own(now, (leg, Purpose::CopyWrite), action, &[memory], ring) };
        true
    }

    /// A piece was read.
    pub(super) fn copy_read(
        &mut self,
        now: Instant,
        own: &OwnCommand,
        result: Result<(), OperationError>,
    ) {
        match (result, own.fault) {
            (Ok(()), Fault::Leg) => self.filling.step = Step::Read,
            (Err(_), Fault::Leg) => {
                self.regions.unreadable();
                self.filling.step = Step::Idle(now);
            }
            (_, Fault::Power) => {
                self.regions.not_copied();
                self.filling.step = Step::Idle(now);
            }
        }
    }

    /// A piece was written.
    pub(super) fn copy_written(
        &mut self,
        now: Instant,
        own: &OwnCommand,
        result: Result<(), OperationError>,
    ) {
        let took = self
            .filling
            .piece
            .take()
            .map_or(Duration::ZERO, |(_, since)| now.since(since));
        let rest = match self.in_flight.is_empty() {
            true => Duration::ZERO,
            false => Duration::from_nanos(took.as_nanos().saturating_mul(REST)).min(LONGEST_REST),
        };
        self.filling.step = Step::Idle(now + rest);
        match (result, own.fault) {
            (Ok(()), Fault::Leg) => self.regions.copied(now),
            (Err(_), Fault::Leg) => {
                self.regions.not_copied();
                self.take_out(own.leg);
            }
            (_, Fault::Power) => self.regions.not_copied(),
        }
    }

    /// When the copy may go on.
    pub(super) fn next_step_of_filling(&self) -> Option<Instant> {
        let leg = self.copied_leg();
        match (self.filling.step, leg) {
            (Step::Idle(from), Some(_)) if !self.regions.is_copied() => Some(from),
            _ => None,
        }
    }
}
