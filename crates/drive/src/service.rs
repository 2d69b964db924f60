//! One command at a time: how buffer, arm, platter and bus serve it.
//!
//! ```text
//!             overhead     seek      rotation   transfer
//!   arm     |----------|----------|-----------|==========|~~~~ look-ahead ~~~~>
//!   bus                                          |===========|
//!           ready-overhead                                  done
//! ```
//!
//! A command's whole course is worked out when the drive takes it up: nothing that comes later
//! changes it.

mod ahead;
mod cache;
mod read;
mod write;

use std::sync::Arc;

use block::{
    Account, Action, BufferHit, Direction, Duration, Extent, Instant, Lba, Status, Switch,
};

use crate::angle::Angle;
use crate::buffer::Buffer;
use crate::firmware::AfterPrevious;
use crate::geometry::Run;
use crate::imperfection::{Imperfections, Luck, Mishap, Reading};
use crate::mechanics::{Pass, Position, Target};
use crate::profile::Profile;

/// The electronics and mechanics of a drive.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) truth: Arc<Profile>,
    pub(crate) arms: Vec<Arm>,
    pub(crate) buffer: Buffer,
    luck: Luck,
    bus_free: Instant,
    last: Direction,
    /// What was put on the medium last, and until when: torn if the power fails before.
    putting: Option<(Extent, Instant)>,
    /// The write pointers of the sequential-write zones; empty without such zones.
    pointers: Vec<u64>,
}

/// One actuator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arm {
    pub(crate) position: Position,
    /// When it has done what it was told.
    pub(crate) free_at: Instant,
}

/// How a command went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub(crate) at: Instant,
    pub(crate) status: Status,
    pub(crate) account: Account,
}

/// What the passes of a command add up to.
#[derive(Clone, Copy, Debug, Default)]
struct Travel {
    /// Waiting for the arm to be free of the command before.
    waited: Duration,
    seek: Duration,
    rotation: Duration,
    transfer: Duration,
    unreadable: Option<Lba>,
}

impl Travel {
    fn add(&mut self, pass: &Pass, mishap: Mishap) {
        self.seek += pass.seek;
        self.rotation += pass.rotation;
        self.transfer += pass.transfer + mishap.lost;
        self.unreadable = self.unreadable.or(mishap.unreadable);
    }
}

impl Service {
    pub(crate) fn new(truth: Arc<Profile>, imperfections: Imperfections, seed: u64) -> Self {
        let arms = vec![
            Arm {
                position: Position::default(),
                free_at: Instant::ZERO
            };
            usize::from(truth.actuators)
        ];
        let buffer = Buffer::new(truth.buffer);
        let mut luck = Luck::new(imperfections, seed, truth.spindle);
        let mut truth = truth;
        if !luck.is_perfect() {
            let spindle = luck.spindle(truth.spindle, Instant::ZERO);
            Arc::make_mut(&mut truth).spindle = spindle;
        }
        let zones = luck
            .sequential_zone()
            .map_or(0, |z| truth.geometry.sectors().0.div_ceil(z));
        let pointers = vec![0; zones as usize];
        Service {
            truth,
            arms,
            buffer,
            luck,
            bus_free: Instant::ZERO,
            last: Direction::Read,
            putting: None,
            pointers,
        }
    }

    /// Whatever was done is over at `now`, and the head where it should be.
    pub(crate) fn resync(&mut self, now: Instant) {
        for arm in &mut self.arms {
            if arm.free_at > now {
                arm.free_at = now;
            }
        }
        if let Some(ahead) = &mut self.buffer.ahead {
            ahead.at = ahead.at.min(now);
        }
        self.bus_free = self.bus_free.min(now);
    }

    /// The platter stood at `phase` at the beginning.
    pub(crate) fn turn_platter(&mut self, phase: Angle) {
        let spindle = self.truth.spindle.with_phase(phase);
        Arc::make_mut(&mut self.truth).spindle = spindle;
    }

    /// Which actuator serves a block: they share the blocks equally.
    pub(crate) fn arm_of(&self, lba: Lba) -> usize {
        match self.arms.len() {
            1 => 0,
            arms => {
                let capacity = self.truth.geometry.sectors().0;
                (u128::from(lba.0) * arms as u128 / u128::from(capacity)) as usize
            }
        }
    }

    /// Serves a command that was submitted at `submitted` and is taken up by its arm now.
    pub(crate) fn serve(&mut self, action: Action, submitted: Instant) -> Served {
        if !self.luck.is_perfect() {
            self.befall(action, submitted);
        }
        match action {
            Action::Read { extent, durability } => self.read(extent, durability, submitted),
            Action::Write { extent, durability } => self.write(extent, durability, submitted),
            Action::Seek { to } => self.seek(to, submitted),
            Action::Flush => self.flush(submitted),
            Action::SetLookAhead(switch) => {
                if switch == Switch::Off {
                    self.buffer.ahead = None;
                }
                self.buffer.look_ahead = switch;
                self.electronics_only(submitted)
            }
            Action::SetWriteCache(switch) => {
                self.buffer.write_cache = switch;
                match switch {
                    Switch::On => self.electronics_only(submitted),
                    Switch::Off => self.flush(submitted),
                }
            }
        }
    }

    /// What keeps the drive from taking up a command at once, and its spindle's mood.
    fn befall(&mut self, action: Action, submitted: Instant) {
        let arm = match action {
            Action::Read { extent, .. } | Action::Write { extent, .. } => {
                self.arm_of(extent.start())
            }
            Action::Seek { to } => self.arm_of(to),
            Action::Flush | Action::SetLookAhead(_) | Action::SetWriteCache(_) => 0,
        };
        let now = submitted.max(self.arms[arm].free_at);
        let stall = self.luck.stall(now);
        if !stall.is_zero() {
            self.stop_ahead(arm, submitted);
            self.arms[arm].free_at = now + stall;
        }
        if self.luck.drifts() {
            let spindle = self.luck.spindle(self.truth.spindle, now);
            Arc::make_mut(&mut self.truth).spindle = spindle;
        }
    }

    fn overhead(&self, by: AfterPrevious) -> Duration {
        match self.last {
            Direction::Read => by.read,
            Direction::Write => by.write,
        }
    }

    fn electronics_only(&mut self, submitted: Instant) -> Served {
        let overhead = self.overhead(self.truth.overheads.read_hit);
        Served {
            at: submitted + overhead,
            status: Status::Good,
            account: Account {
                overhead,
                ..Account::default()
            },
        }
    }

    fn seek(&mut self, to: Lba, submitted: Instant) -> Served {
        let arm = self.arm_of(to);
        let overhead = self.overhead(self.truth.overheads.read_miss);
        let stopped = self.stop_ahead(arm, submitted);
        let ready = (submitted + overhead)
            .max(self.arms[arm].free_at)
            .max(stopped);
        let position = match self.truth.geometry.locate(to) {
            Some(place) => Target::from(&place).position,
            None => self.arms[arm].position,
        };
        let ideal = self
            .truth
            .reposition(self.arms[arm].position, position, Direction::Read);
        let seek = self.luck.seek(ideal);
        self.arms[arm] = Arm {
            position,
            free_at: ready + seek,
        };
        let waited = ready.since(submitted + overhead);
        let travel = Travel {
            waited,
            seek,
            ..Travel::default()
        };
        self.done(
            submitted,
            overhead,
            ready + seek,
            travel,
            (BufferHit::Miss, Duration::ZERO),
        )
    }

    // One pass, as it really happens.

    fn pass(&mut self, from: Position, ready: Instant, run: &Run, direction: Direction) -> Pass {
        let zero_latency = match direction {
            Direction::Read => self.truth.buffer.zero_latency_read,
            Direction::Write => self.truth.buffer.zero_latency_write,
        };
        if self.luck.is_perfect() {
            return if zero_latency {
                self.truth.pass_zero_latency(from, ready, run, direction)
            } else {
                self.truth.pass(from, ready, run, direction)
            };
        }
        // A seek that takes longer is one that begins later and takes as long as it should.
        let position = Target::from(run).position;
        let ideal = self.truth.reposition(from, position, direction);
        let seek = self.luck.seek(ideal);
        let settled = ready + seek;
        let there = if zero_latency {
            self.truth
                .pass_zero_latency(position, settled, run, direction)
        } else {
            self.truth.pass(position, settled, run, direction)
        };
        Pass { seek, ..there }
    }

    fn mishap(&mut self, run: &Run, reading: Reading) -> Mishap {
        if self.luck.is_perfect() {
            return Mishap::default();
        }
        let period = self.truth.spindle.period();
        self.luck.pass(run, reading, period)
    }

    /// Closes a command: `data_end` is when the last block is where it should be.
    fn done(
        &mut self,
        submitted: Instant,
        overhead: Duration,
        data_end: Instant,
        travel: Travel,
        (hit, completion): (BufferHit, Duration),
    ) -> Served {
        self.bus_free = self.bus_free.max(data_end);
        let at = data_end + completion;
        let known =
            travel.waited + overhead + travel.seek + travel.rotation + travel.transfer + completion;
        let account = Account {
            queue: travel.waited,
            overhead: overhead + completion,
            seek: travel.seek,
            rotation: travel.rotation,
            transfer: travel.transfer,
            bus: at.since(submitted).saturating_sub(known),
            hit,
        };
        let status = travel
            .unreadable
            .map_or(Status::Good, |at| Status::MediumError { at });
        Served {
            at,
            status,
            account,
        }
    }
}
