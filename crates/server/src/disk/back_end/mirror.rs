//! A back end of two legs with the same data: a mirror.
//!
//! ```text
//!   write of a leg --> region marked on both legs? --yes--> leg --ended--> engine
//!                          '--no: it waits ^           '--failed: leg is out --recorded--> engine
//!   copy: read the leg with all data, in gaps or past the engine --> write the other one
//! ```
//!
//! The engine ([`Engine::mirrored`]) gives each leg its own commands. A leg that fails a write or a flush is out. The
//! other leg's superblock says so before the engine hears of the failure, and so before the write is acknowledged.
//!
//! A leg in doubt or being filled is written and not read, until what was marked is copied.

#![allow(
    unsafe_code,
    reason = "passes on memory by address to the legs, as its caller promised it"
)]

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use block::operation::OperationError;
use block::{Action, Command, CommandId, Direction, Extent, Instant, Request, RequestId};
use drive::Lost;
use engine::{Engine, LegState, Side, WrittenLegs};
use hdrhistogram::Histogram;
use tracing::{error, info};

use super::pieces::{Pieces, held};
use super::{BackEnd, Ended, Punch, Shape, Span};
use crate::arena::Memory;
use crate::mirror::RebuildRule;
use crate::mirror::assembly::Assembly;
use crate::mirror::regions::Regions;
use crate::mirror::superblock::{LegRecord, Superblock};
use crate::ring::Ring;
use crate::status;

mod commands;
mod events;
mod filling;
mod gap_copies;
mod lane;
mod nearest;
mod pace;

use commands::{OwnCommand, Purpose};
pub use events::{MirrorEvent, MirrorObserver};
use filling::Filling;
use gap_copies::GapCopies;
pub use gap_copies::Reading;
use lane::Lane;
use nearest::LegHead;
pub use nearest::nearest;
pub use pace::GapReads;
use pace::Pace;

/// A mirror.
pub struct Mirror {
    legs: [Leg; 2],
    shape: Shape,
    /// As it should be on the legs in use.
    superblock: Superblock,
    /// The states that are on them.
    durable: [LegRecord; 2],
    regions: Regions,
    /// Commands that wait for marks, for a copy, or for room in a leg's queue.
    waiting: VecDeque<Waiting>,
    in_flight: Vec<InFlight>,
    /// Failed commands whose leg is out, until that is recorded.
    held: Vec<Ended>,
    ended: VecDeque<Ended>,
    lane: Lane,
    filling: Filling,
    gap_copies: GapCopies,
    pace: Pace,
    /// The client's blocks of the command that is started next, if it reads for one.
    next_own: Option<Extent>,
    /// Commands of its own.
    own: Vec<OwnCommand>,
    /// Where the heads of the legs were last.
    heads: [Option<LegHead>; 2],
    numbers: u64,
    health: Health,
    observer: Option<MirrorObserver>,
}

/// A leg of a mirror.
pub struct Leg {
    /// What carries its commands out, unless it could not be opened.
    pub back_end: Option<Box<dyn BackEnd>>,
    /// Its name in the log.
    pub name: String,
}

/// Whether the mirror can record what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    /// It can.
    Whole,
    /// The last leg fails to: nothing is written any more.
    Broken,
}

struct Waiting {
    command: Command,
    memory: Pieces,
    /// The blocks that it reads for a client.
    own: Option<Extent>,
}

/// A command of the engine at a leg.
struct InFlight {
    id: CommandId,
    leg: usize,
    action: Action,
    work: Work,
    fault: Fault,
}

enum Work {
    /// These blocks into this memory.
    Read(Extent, Pieces),
    /// Bytes of the data.
    Write(Range<u64>),
    Flush,
    Other,
}

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Leg,
    /// The power was cut.
    Power,
}

/// Numbers of own commands among those of the engine. Operations have small numbers.
const OWN: u64 = 1 << 62;

impl Mirror {
    /// A mirror that was assembled, with its marks and superblock on the legs in use.
    ///
    /// # Errors
    /// If there is no memory for it.
    ///
    /// # Panics
    /// If neither leg is there, or a leg is used that is not.
    pub fn new(legs: [Leg; 2], assembly: Assembly) -> io::Result<Self> {
        let Assembly { superblock, marks } = assembly;
        let shapes = legs
            .iter()
            .filter_map(|leg| Some(leg.back_end.as_ref()?.shape()));
        let like = shapes.reduce(|one, other| {
            assert_eq!(one.block_bytes, other.block_bytes, "legs of other blocks");
            Shape {
                rotational: one.rotational || other.rotational,
                ..one
            }
        });
        let like = like.expect("a leg that is there");
        for (leg, state) in legs.iter().zip(superblock.states) {
            assert!(leg.back_end.is_some() || state == LegRecord::Out, "no leg");
        }
        let bytes = superblock.data_offset + superblock.data_bytes;
        let mut regions = Regions::new(
            superblock.mirror,
            superblock.region_bytes,
            superblock.data_bytes,
            marks,
            Instant::ZERO,
        );
        if superblock.states.iter().any(|&state| is_filled(state)) {
            regions.copy_marked();
        }
        Ok(Mirror {
            legs,
            shape: Shape {
                blocks: bytes / u64::from(like.block_bytes),
                // What a leg reads after a trim is its own affair.
                trims: false,
                zeroes_fast: false,
                ..like
            },
            durable: superblock.states,
            superblock,
            regions,
            waiting: VecDeque::new(),
            in_flight: Vec::new(),
            held: Vec::new(),
            ended: VecDeque::new(),
            lane: Lane::new()?,
            filling: Filling::new()?,
            gap_copies: GapCopies::new()?,
            pace: Pace::default(),
            next_own: None,
            own: Vec::new(),
            heads: [None; 2],
            numbers: 0,
            health: Health::Whole,
            observer: None,
        })
    }

    /// What the engine should use a leg for.
    pub fn use_of(&self, leg: Side) -> LegState {
        let leg = leg as usize;
        let filled = match self.filling.is_engaged(leg) || self.is_drained(leg) {
            true => LegState::Filling,
            // What it was given before is over first.
            false => LegState::Out,
        };
        match (self.state(leg), self.durable[leg]) {
            (LegRecord::InSync, LegRecord::InSync) => LegState::InSync,
            (LegRecord::InSync, _) => LegState::Filling,
            // Its failure is recorded before anything goes on without it.
            (LegRecord::Out, LegRecord::InSync) => LegState::InSync,
            (LegRecord::Out, LegRecord::Out) => LegState::Out,
            (_, LegRecord::Doubtful | LegRecord::Filling) => filled,
            // It is not read any more, and written when that is recorded.
            (LegRecord::Doubtful | LegRecord::Filling, _) => LegState::Out,
        }
    }

    fn is_drained(&self, leg: usize) -> bool {
        let mut all = self.in_flight.iter().map(|one| one.leg);
        let mut waiting = self.waiting.iter().map(|one| leg_of(one.command.id));
        !all.any(|one| one == leg) && !waiting.any(|one| one == leg)
    }

    /// The engine writes to a leg that is to be filled, from now on.
    pub fn engage(&mut self, now: Instant, leg: Side) {
        let leg = leg as usize;
        if self.filled() == Some(leg) && self.filling.engage(leg) {
            self.pace.begin(now);
            self.regions.copy_marked();
            self.regions.engage();
        }
    }

    /// A request was submitted to these legs: the marks of a write become durable while it waits.
    pub fn submitted(&mut self, request: &Request, legs: WrittenLegs) {
        let bytes = self.data(request.extent);
        if let Some(bytes) = bytes.filter(|_| request.direction == Direction::Write) {
            match legs {
                WrittenLegs::All => self.regions.submitted(request.id, bytes),
                WrittenLegs::InSync => self.regions.submitted_past(request.id, bytes),
            }
        }
    }

    /// A request has ended.
    pub fn finished(&mut self, now: Instant, id: RequestId) {
        self.regions.finished(now, id);
    }

    /// By when legs are to be filled, and what may be paid for it.
    #[must_use]
    pub fn with_rebuild(mut self, rule: RebuildRule) -> Self {
        self.pace.set(rule, self.superblock.data_bytes);
        self
    }

    /// Whether nothing that is written can be acknowledged.
    pub fn is_broken(&self) -> bool {
        self.health == Health::Broken
    }

    /// No more is copied. Marks are removed at the end.
    pub fn close(&mut self) {
        self.filling.stop();
    }

    /// All writes were flushed: removes the marks.
    pub fn sweep(&mut self) {
        self.lane.sweep();
    }

    /// The bytes of the data under blocks. There are none before the data.
    fn data(&self, extent: Extent) -> Option<Range<u64>> {
        let block = u64::from(self.shape.block_bytes);
        let offset = self.superblock.data_offset;
        let first = (extent.start().0 * block).checked_sub(offset)?;
        let end = extent.end().0 * block - offset;
        (end <= self.superblock.data_bytes).then_some(first..end)
    }

    fn state(&self, leg: usize) -> LegRecord {
        self.superblock.states[leg]
    }

    /// The legs that are written.
    fn in_use(&self) -> impl Iterator<Item = usize> + use<> {
        let states = self.superblock.states;
        (0..2).filter(move |&leg| states[leg] != LegRecord::Out)
    }

    /// The leg that is being filled.
    fn filled(&self) -> Option<usize> {
        (0..2).find(|&leg| is_filled(self.state(leg)))
    }

    /// Changes states, which are recorded next.
    fn change(&mut self, leg: usize, to: LegRecord) {
        self.superblock.states[leg] = to;
        self.superblock.events += 1;
        self.lane.record();
    }

    /// A leg failed to write. The answer is whether it is out. The last leg with all data stays.
    fn take_out(&mut self, leg: usize) -> bool {
        if self.state(leg) == LegRecord::Out {
            return true;
        }
        if self.state(1 - leg) != LegRecord::InSync {
            return false;
        }
        let name = &self.legs[leg].name;
        error!(
            leg,
            name, "a leg of the mirror fails: it is out, and the other one serves alone"
        );
        self.tell(MirrorEvent::LegOut(name.clone()));
        self.change(leg, LegRecord::Out);
        self.regions.stop_copying();
        self.filling.disengage();
        self.pace.end();
        true
    }

    /// The power of both legs was cut: what they had not made durable may differ.
    fn doubt(&mut self) {
        for one in &mut self.in_flight {
            one.fault = Fault::Power;
        }
        for own in &mut self.own {
            own.fault = Fault::Power;
        }
        self.filling.disengage();
        if self.in_use().count() < 2 {
            return;
        }
        self.regions.copy_marked();
        if self.superblock.states == [LegRecord::InSync; 2] {
            info!("the power of the mirror was cut: marked regions are copied to leg 1");
            self.change(1, LegRecord::Doubtful);
        }
    }
}

fn is_filled(state: LegRecord) -> bool {
    matches!(state, LegRecord::Doubtful | LegRecord::Filling)
}

fn leg_of(id: CommandId) -> usize {
    Engine::leg_of(id) as usize
}

impl BackEnd for Mirror {
    fn shape(&self) -> Shape {
        self.shape
    }

    unsafe fn start(
        &mut self,
        now: Instant,
        command: &Command,
        memory: &[Memory],
        ring: &mut Ring,
    ) {
        let waiting = Waiting {
            command: *command,
            memory: held(memory),
            own: self.next_own.take(),
        };
        // SAFETY: the caller's promise, passed on.
        unsafe { self.start_or_wait(now, waiting, ring) };
    }

    fn ring_ended(&mut self, now: Instant, key: u32, result: i32, ring: &mut Ring) {
        if let Some(back_end) = &mut self.legs[0].back_end {
            back_end.ring_ended(now, key, result, ring);
        }
    }

    fn second_ring_ended(&mut self, now: Instant, key: u32, result: i32, ring: &mut Ring) {
        if let Some(back_end) = &mut self.legs[1].back_end {
            ring.of_leg(1, |ring| back_end.ring_ended(now, key, result, ring));
        }
    }

    fn advance(&mut self, now: Instant, ring: &mut Ring) {
        loop {
            let mut is_any = false;
            for leg in 0..2 {
                while let Some(ended) = self.legs[leg]
                    .back_end
                    .as_mut()
                    .and_then(|leg| leg.poll(now))
                {
                    is_any = true;
                    self.leg_ended(now, ended);
                }
            }
            is_any |= self.step_lane(now, ring);
            is_any |= self.step_filling(now, ring);
            is_any |= self.release(now, ring);
            if !is_any {
                return;
            }
        }
    }

    fn poll(&mut self, _: Instant) -> Option<Ended> {
        self.ended.pop_front()
    }

    fn depth(&self) -> u32 {
        let depths = self
            .legs
            .iter()
            .filter_map(|leg| Some(leg.back_end.as_ref()?.depth()));
        depths.min().unwrap_or(1)
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let legs = self.legs.iter().filter_map(|leg| leg.back_end.as_ref());
        let legs = legs.filter_map(|leg| leg.next_wakeup());
        let own = [self.next_step_of_lane(), self.next_step_of_filling()];
        legs.chain(own.into_iter().flatten()).min()
    }

    fn is_busy(&self) -> bool {
        let is_unwritten = self.regions.has_changed() || self.lane.is_wanted();
        !self.own.is_empty() || (is_unwritten && !self.is_broken())
    }

    fn punch(&mut self, _key: u32, _what: Punch, _span: Span, _ring: &mut Ring) {
        unreachable!("a mirror neither trims nor zeroes: its shape says so");
    }

    fn poll_punched(&mut self) -> Option<(u32, Result<(), OperationError>)> {
        None
    }

    fn lateness(&self) -> Option<&Histogram<u64>> {
        self.legs[0].back_end.as_ref()?.lateness()
    }

    fn power_cut(&mut self, now: Instant, ring: &mut Ring) -> Option<Lost> {
        let mut all: Option<Lost> = None;
        for leg in 0..2 {
            let Some(back_end) = &mut self.legs[leg].back_end else {
                continue;
            };
            let lost = ring.of_leg(leg, |ring| back_end.power_cut(now, ring));
            if let Some(lost) = lost {
                let all = all.get_or_insert_default();
                all.written.extend(lost.written);
                all.undecided.extend(lost.undecided);
                all.torn.extend(lost.torn);
                all.commands.extend(lost.commands);
            }
        }
        if all.is_some() {
            self.doubt();
        }
        all
    }

    fn mirror(&mut self) -> Option<&mut Mirror> {
        Some(self)
    }

    fn condition(&self) -> Option<status::Mirror> {
        let legs = self.legs.iter().zip(self.superblock.states);
        let legs = legs.map(|(leg, state)| status::Leg {
            path: leg.name.clone(),
            state: state.name().to_owned(),
        });
        let (to_copy_bytes, unreadable_bytes) = self.regions.stale_bytes();
        Some(status::Mirror {
            legs: legs.collect(),
            data_bytes: self.superblock.data_bytes,
            to_copy_bytes,
            unreadable_bytes,
            marked_bytes: self.regions.marked_bytes(),
            rebuild: self.pace.status(to_copy_bytes),
        })
    }
}

#[cfg(test)]
mod tests;
