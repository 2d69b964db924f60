//! Copies of marked regions past the engine, from the leg that has all data to the one that is being filled.
//!
//! They go on while the engine has no gaps for the copy, for bytes that gaps failed to read, and for a deadline.

use std::io;

use block::operation::OperationError;
use block::{Action, Direction, Durability, Duration, Extent, Instant, Request};
use engine::WrittenLegs;
use tracing::warn;

use super::{Fault, Health, Mirror, OwnCommand, Purpose};
use crate::arena::Region;
use crate::mirror::rebuild::{NextPiece, PIECE, PieceRule};
use crate::mirror::superblock::LegRecord;
use crate::ring::Ring;

/// The copy of a mirror.
pub(super) struct Filling {
    /// The leg to which new writes go besides, once the engine knows.
    engaged: Option<usize>,
    pub(super) step: Step,
    /// The next piece may begin at this time.
    pub(super) from: Instant,
    /// The blocks that are being copied, and when that began.
    piece: Option<(Extent, Instant)>,
    /// A piece, or held copies that touch.
    pub(super) memory: Region,
    allowed: Allowed,
}

/// How far the present copy has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The next piece may begin at this time.
    Idle(Instant),
    Reading,
    /// The bytes are there.
    Read,
    Writing,
    /// What gaps have brought.
    WritingHeld,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allowed {
    Yes,
    /// The service ends.
    No,
    /// What is left cannot be read.
    Stuck,
}

/// The time until the next look, while writes are under way everywhere. A choice: a command of a disk.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

impl Filling {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Filling {
            engaged: None,
            step: Step::Idle(Instant::ZERO),
            from: Instant::ZERO,
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
        self.pace.look(now);
        self.free_dropped();
        if self.held_leg(now).is_some() {
            // The disk chooses one.
            return false;
        }
        let Some(leg) = self.copied_leg().filter(|_| from <= now) else {
            return false;
        };
        let Some(rule) = self.piece_rule() else {
            return false;
        };
        if !self.has_room(0) || !self.has_room(1) {
            return false;
        }
        match self.regions.next_piece(rule) {
            NextPiece::Piece(bytes) => {
                let extent = self.blocks(&bytes);
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
            NextPiece::Done if rule == PieceRule::Any && !self.regions.is_copied() => {
                warn!("regions of the mirror cannot be read from the leg that has all data");
                self.filling.allowed = Allowed::Stuck;
                false
            }
            NextPiece::Later => {
                self.rest_until(now + LOOK_AGAIN);
                false
            }
            NextPiece::Done => false,
        }
    }

    /// The pieces that may be copied now, if any.
    fn piece_rule(&self) -> Option<PieceRule> {
        let (left, unreadable) = self.regions.stale_bytes();
        if self.pace.share_ppm(left) > 0 || left == unreadable {
            return Some(PieceRule::Any);
        }
        let has_failed = self.regions.has_failed();
        has_failed.then_some(PieceRule::Failed)
    }

    fn rest_until(&mut self, from: Instant) {
        self.filling.from = from;
        self.filling.step = Step::Idle(from);
    }

    /// The leg to which pieces may be copied.
    pub(super) fn copied_leg(&self) -> Option<usize> {
        let is_allowed = self.filling.allowed == Allowed::Yes && self.health == Health::Whole;
        let is_recorded = self.durable == self.superblock.states;
        let leg = self.filled()?;
        (is_allowed && is_recorded && self.filling.is_engaged(leg)).then_some(leg)
    }

    /// The legs that a request goes to if it is submitted now. What a leg lacks that is filled anew is not written there:
    /// it is copied later. A leg in doubt has all data but a few writes, and is kept as good as it is.
    pub fn written_legs(&self, request: &Request) -> WrittenLegs {
        let leg = self.copied_leg();
        let is_filled = leg.is_some_and(|leg| self.state(leg) == LegRecord::Filling);
        let bytes = self.data(request.extent);
        match bytes.filter(|_| is_filled && request.direction == Direction::Write) {
            Some(bytes) if self.regions.lacks(&bytes) => WrittenLegs::InSync,
            _ => WrittenLegs::All,
        }
    }

    /// Writes what was read to the leg that is being filled.
    fn write_copy(&mut self, now: Instant, ring: &mut Ring) -> bool {
        let leg = self
            .filled()
            .filter(|&leg| self.filling.engaged == Some(leg));
        let (Some(leg), Some((extent, _))) = (leg, self.filling.piece) else {
            self.rest_until(now);
            self.regions.rebuild().not_copied();
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
                self.regions.rebuild().unreadable();
                self.rest_until(now);
            }
            (_, Fault::Power) => {
                self.regions.rebuild().not_copied();
                self.rest_until(now);
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
        match (result, own.fault) {
            (Ok(()), Fault::Leg) => {
                let bytes = self.regions.copied(now);
                self.pace.copied_past_engine(bytes, took);
            }
            (Err(_), Fault::Leg) => {
                self.regions.rebuild().not_copied();
                self.take_out(own.leg);
            }
            (_, Fault::Power) => self.regions.rebuild().not_copied(),
        }
        let rest = match self.in_flight.is_empty() {
            true => Duration::ZERO,
            false => self.pace.rest(took, self.regions.stale_bytes().0),
        };
        self.rest_until(now + rest);
    }

    /// When the copy may go on.
    pub(super) fn next_step_of_filling(&self) -> Option<Instant> {
        let Step::Idle(from) = self.filling.step else {
            return None;
        };
        let leg = self.copied_leg().filter(|_| !self.regions.is_copied())?;
        // Without room something ends first.
        let is_room = self.has_room(leg);
        let piece = self.piece_rule().map(|_| from);
        let piece = piece.filter(|_| is_room && self.has_room(1 - leg));
        let held = self.regions.has_held() && is_room;
        let held = held.then(|| self.gap_copies.due());
        [piece, held, Some(self.pace.next_look())]
            .into_iter()
            .flatten()
            .min()
    }
}
