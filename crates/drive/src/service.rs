//! The service of one command at a time by buffer, arm, platter and bus.
//!
//! ```text
//!             overhead     seek      rotation   transfer
//!   arm     |----------|----------|-----------|==========|~~~~ look-ahead ~~~~>
//!   bus                                          |===========|
//!           ready-overhead                                  done
//! ```
//!
//! The drive starts a command when the earlier commands of its arm have ended. The whole course of
//! the command is computed then, and no later event changes it. Overhead begins at the submission,
//! so that the wait for the arm hides it. A buffer hit starts even while the arm destages.
//!
//! With two actuators, each has its own blocks, look-ahead and bus transfers. On a modern bus, a
//! block of the other actuator takes a microsecond.

mod ahead;
mod cache;
mod pass;
mod power;
mod read;
mod write;

use std::ops::Range;
use std::sync::Arc;

use block::{
    Account, Action, BufferHit, Direction, Durability, Duration, Extent, Instant, Lba, Status,
    Switch,
};

use crate::angle::Angle;
use crate::buffer::{BufferLookup, SegmentBuffer};
use crate::firmware::AfterPrevious;
use crate::imperfection::{Imperfections, Luck, Mishap};
use crate::mechanics::{Pass, Position, SeekTarget};
use crate::profile::Profile;
use crate::zones::Zones;
use power::Put;

/// The electronics and mechanics of a drive.
#[derive(Clone, Debug)]
pub(crate) struct DriveService {
    pub(crate) truth: Arc<Profile>,
    pub(crate) arms: Vec<Actuator>,
    buffer: SegmentBuffer,
    luck: Luck,
    last: Direction,
    /// Writes to the medium that are in progress, or will be by commands that have started.
    puts: Vec<Put>,
    /// The end of the cached write that was put on the medium last, and the moment.
    last_cached: Option<(Lba, Instant)>,
    /// The host-managed zones, if the drive has such.
    pub(crate) zones: Option<Zones>,
    /// The block after the last read of the medium, and the blocks of its track; see
    /// [`crate::geometry::TrackExtents::track`].
    after_read: (Lba, Range<u64>),
}

/// One actuator.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Actuator {
    pub(crate) position: Position,
    /// The end of its started commands, and of its destaging.
    pub(crate) free_at: Instant,
    /// The end of its started commands.
    pub(crate) turn: Instant,
    /// The end of its bus transfers.
    bus_free: Instant,
    /// Its look-ahead is not given up before.
    ahead_until: Instant,
}

/// The submission and the start of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandTimes {
    pub(crate) submitted: Instant,
    pub(crate) at: Instant,
}

/// The end, status and account of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServiceRecord {
    pub(crate) at: Instant,
    pub(crate) status: Status,
    pub(crate) account: Account,
}

/// The sums of a command's passes.
#[derive(Clone, Copy, Debug, Default)]
struct Travel {
    /// The wait for the arm.
    waited: Duration,
    seek: Duration,
    rotation: Duration,
    transfer: Duration,
    unreadable: Option<Lba>,
}

/// The buffer hit of a command, and the overhead of its completion.
#[derive(Clone, Copy, Debug)]
struct CommandCompletion {
    hit: BufferHit,
    completion: Duration,
}

impl CommandTimes {
    /// The moment at which the command is decoded and its turn has come.
    fn ready(&self, overhead: Duration) -> Instant {
        (self.submitted + overhead).max(self.at)
    }
}

impl Travel {
    fn add(&mut self, pass: &Pass, mishap: Mishap) {
        self.seek += pass.seek;
        self.rotation += pass.rotation;
        self.transfer += pass.transfer + mishap.lost;
        self.unreadable = self.unreadable.or(mishap.unreadable);
    }

    /// Adds the part after `from` of a pass that began at `at`.
    fn add_after(&mut self, from: Instant, at: Instant, pass: &Pass, mishap: Mishap) {
        let on_track = at + pass.seek;
        let begins = on_track + pass.rotation;
        let ends = begins + pass.transfer + mishap.lost;
        let part = |start: Instant, end: Instant| end.since(start.max(from));
        let after = Pass {
            seek: part(at, on_track),
            rotation: part(on_track, begins),
            transfer: part(begins, ends),
            ..Pass::default()
        };
        let unreadable = mishap.unreadable;
        self.add(
            &after,
            Mishap {
                lost: Duration::ZERO,
                unreadable,
            },
        );
    }

    /// Adds later passes.
    fn join(&mut self, next: &Travel) {
        self.waited += next.waited;
        self.seek += next.seek;
        self.rotation += next.rotation;
        self.transfer += next.transfer;
        self.unreadable = self.unreadable.or(next.unreadable);
    }

    fn head(&self) -> Duration {
        self.seek + self.rotation + self.transfer
    }
}

impl DriveService {
    pub(crate) fn new(truth: Arc<Profile>, imperfections: Imperfections, seed: u64) -> Self {
        let arms = usize::from(truth.actuators.max(1));
        let mut luck = Luck::new(imperfections, seed, truth.spindle);
        let capacity = truth.geometry.sectors().0;
        let zones = luck
            .sequential_zone()
            .map(|blocks| Zones::new(blocks, capacity));
        let mut truth = truth;
        if !luck.is_perfect() {
            let spindle = luck.spindle(truth.spindle, Instant::ZERO);
            Arc::make_mut(&mut truth).spindle = spindle;
        }
        DriveService {
            arms: vec![Actuator::default(); arms],
            buffer: SegmentBuffer::new(truth.buffer, arms),
            luck,
            last: Direction::Read,
            puts: Vec::new(),
            last_cached: None,
            zones,
            after_read: (Lba(0), 0..0),
            truth,
        }
    }

    /// Ends all activity at `now`, with the head in its final position.
    pub(crate) fn resync(&mut self, now: Instant) {
        for arm in &mut self.arms {
            arm.free_at = arm.free_at.min(now);
            arm.turn = arm.turn.min(now);
            arm.bus_free = arm.bus_free.min(now);
            arm.ahead_until = arm.ahead_until.min(now);
        }
        for ahead in self.buffer.aheads.iter_mut().flatten() {
            let (next, position) = (ahead.next, ahead.position);
            ahead.reach(next, ahead.at.min(now), position);
        }
        for put in &mut self.puts {
            put.until = put.until.min(now);
        }
    }

    /// Sets the platter's initial phase; a look-ahead in progress keeps its sector.
    pub(crate) fn turn_platter(&mut self, phase: Angle) {
        let before = self.truth.spindle;
        let after = before.with_phase(phase);
        Arc::make_mut(&mut self.truth).spindle = after;
        for ahead in self.buffer.aheads.iter_mut().flatten() {
            let (there, here) = (after.angle_at(ahead.at), before.angle_at(ahead.at));
            let (late, early) = (after.time_of(here - there), after.time_of(there - here));
            let at = if late <= early {
                ahead.at + late
            } else {
                ahead.at.saturating_sub(early)
            };
            let (next, position) = (ahead.next, ahead.position);
            ahead.reach(next, at, position);
        }
    }

    /// The actuator of a block.
    #[inline]
    pub(crate) fn arm_of(&self, lba: Lba) -> usize {
        match self.arms.len() {
            1 => 0,
            _ => self.truth.actuator_of(lba),
        }
    }

    /// Serves a command that its arm starts now.
    pub(crate) fn serve(&mut self, action: Action, taken: CommandTimes) -> ServiceRecord {
        self.forget_puts(taken.at);
        let taken = if self.luck.is_perfect() {
            taken
        } else {
            self.apply_disturbances(action, taken)
        };
        match action {
            Action::Read { extent, durability } => self.read(extent, durability, taken),
            Action::Write { extent, durability } => self.write(extent, durability, taken),
            Action::Seek { to } => self.seek(to, taken),
            Action::Flush => self.flush(taken),
            Action::SetLookAhead(switch) => {
                if switch == Switch::Off {
                    for arm in 0..self.arms.len() {
                        self.stop_ahead(arm, taken.at);
                    }
                }
                self.buffer.look_ahead = switch;
                self.electronics_only(taken)
            }
            Action::SetWriteCache(switch) => {
                self.buffer.write_cache = switch;
                match switch {
                    Switch::On => self.electronics_only(taken),
                    Switch::Off => self.flush(taken),
                }
            }
        }
    }

    /// Whether a command needs no arm, so that it does not wait for destaging.
    pub(crate) fn needs_no_arm(&self, action: Action) -> bool {
        match action {
            Action::Read { extent, durability } => {
                let arm = self.arm_of(extent.start());
                durability == Durability::Volatile
                    && self.buffer.find(arm, extent).0 == BufferLookup::All
            }
            Action::Write { extent, durability } => self.takes_early(extent, durability),
            Action::Seek { .. } => self.truth.seek_command == Switch::Off,
            Action::Flush | Action::SetLookAhead(_) | Action::SetWriteCache(_) => true,
        }
    }

    /// Applies the spindle's drift and a stall before a command. Returns its delayed start.
    fn apply_disturbances(&mut self, action: Action, taken: CommandTimes) -> CommandTimes {
        let arm = action
            .extent()
            .map_or(0, |extent| self.arm_of(extent.start()));
        if self.luck.drifts(taken.at) {
            for arm in 0..self.arms.len() {
                self.follow_ahead(arm, taken.at);
            }
            let spindle = self.luck.spindle(self.truth.spindle, taken.at);
            Arc::make_mut(&mut self.truth).spindle = spindle;
        }
        let free_at = self.arms[arm].free_at;
        let sliced = self.luck.slice(free_at, taken.at);
        if let Some((until, chance)) = sliced {
            self.stop_ahead(arm, taken.at);
            let blocks = u128::from(self.truth.geometry.sectors().0);
            let block = Lba(((u128::from(chance) * blocks) >> 64) as u64);
            // A block of another arm's share leaves this one where it was.
            let is_own = self.arm_of(block) == arm;
            let place = self.truth.geometry.locate(block).filter(|_| is_own);
            let arm = &mut self.arms[arm];
            arm.position = place.map_or(arm.position, |place| SeekTarget::from(&place).position);
            arm.free_at = arm.free_at.max(until);
        }
        let stall = self.luck.stall(free_at, taken.at);
        if stall.is_zero() {
            return taken;
        }
        self.stop_ahead(arm, taken.at);
        let at = taken.at + stall;
        let arm = &mut self.arms[arm];
        arm.free_at = arm.free_at.max(at);
        arm.turn = arm.turn.max(at);
        CommandTimes { at, ..taken }
    }

    fn overhead(&mut self, by: AfterPrevious) -> Duration {
        let ideal = match self.last {
            Direction::Read => by.read,
            Direction::Write => by.write,
        };
        self.luck.overhead(ideal)
    }

    fn electronics_only(&mut self, taken: CommandTimes) -> ServiceRecord {
        let overhead = self.overhead(self.truth.overheads.read_hit);
        let ending = CommandCompletion {
            hit: BufferHit::Miss,
            completion: Duration::ZERO,
        };
        let ready = taken.ready(overhead);
        self.done(taken, overhead, ready, Travel::default(), ending)
    }

    fn seek(&mut self, to: Lba, taken: CommandTimes) -> ServiceRecord {
        if self.truth.seek_command == Switch::Off {
            return self.electronics_only(taken);
        }
        let arm = self.arm_of(to);
        self.destage_first(Extent::block(to));
        let overhead = self.overhead(self.truth.overheads.read_miss);
        self.stop_ahead(arm, taken.at);
        let Actuator {
            position: from,
            free_at,
            ..
        } = self.arms[arm];
        let decoded = taken.ready(overhead);
        let ready = decoded.max(free_at);
        let place = self.truth.geometry.locate(to);
        let position = place.map_or(from, |place| SeekTarget::from(&place).position);
        let ideal = self.truth.reposition(from, position, Direction::Read);
        let seek = self.luck.seek(ideal);
        self.arms[arm].position = position;
        self.arms[arm].free_at = ready + seek;
        self.arms[arm].turn = ready + seek;
        let travel = Travel {
            waited: ready.since(decoded),
            seek,
            ..Travel::default()
        };
        let ending = CommandCompletion {
            hit: BufferHit::Miss,
            completion: Duration::ZERO,
        };
        self.done(taken, overhead, ready + seek, travel, ending)
    }

    /// Completes a command whose last block has arrived at `data_end`. Time that neither waiting,
    /// overhead nor the head's travel explains is the bus's.
    fn done(
        &mut self,
        taken: CommandTimes,
        overhead: Duration,
        data_end: Instant,
        travel: Travel,
        ending: CommandCompletion,
    ) -> ServiceRecord {
        let at = data_end + ending.completion;
        let total = at.since(taken.submitted);
        let decoded = taken.submitted + overhead;
        let waited = taken.ready(overhead).since(decoded) + travel.waited;
        let overhead = overhead + ending.completion;
        let known = waited + overhead + travel.head();
        let account = Account {
            queue: waited,
            overhead,
            seek: travel.seek,
            rotation: travel.rotation,
            transfer: travel.transfer,
            bus: total.saturating_sub(known),
            hit: ending.hit,
        };
        let status = travel
            .unreadable
            .map_or(Status::Good, |at| Status::MediumError { at });
        ServiceRecord {
            at,
            status,
            account,
        }
    }
}
