//! A disk that does not exist: given commands, it says when each of them ends.
//!
//! ```text
//!   submit ---> queue ---> taken up by an arm as it comes free ---> ended ---> poll
//! ```
//!
//! It answers, the caller acts: after each `submit`, and at `next_wakeup`, call `poll` until it
//! answers `None`; `next_wakeup` then lies in the future.

use std::sync::Arc;

use block::{Action, Command, Direction, Extent, Instant, Outcome, Refused, Status};

use crate::angle::Angle;
use crate::firmware::QueueOrder;
use crate::imperfection::Imperfections;
use crate::mechanics::{Position, Target};
use crate::profile::Profile;
use crate::service::Service;

/// A simulated drive. Its profile is the truth; nobody outside may look at it to schedule.
#[derive(Clone, Debug)]
pub struct VirtualDrive {
    service: Service,
    /// Submitted, not taken up; in the order of submission.
    queue: Vec<Queued>,
    /// Taken up, not polled; latest first.
    ended: Vec<Ended>,
    depth: usize,
    order: QueueOrder,
}

/// A command in the drive's queue.
#[derive(Clone, Copy, Debug)]
struct Queued {
    command: Command,
    submitted: Instant,
    arm: usize,
    /// Where it begins, for commands that move the arm.
    target: Option<Target>,
}

/// A command whose end is known.
#[derive(Clone, Copy, Debug)]
struct Ended {
    outcome: Outcome,
    command: Command,
}

/// What a power cut destroyed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Writes that counted as done and are not on the medium.
    pub written: Vec<Extent>,
    /// Writes that were under way or queued: each block has the old or the new contents.
    pub undecided: Vec<Extent>,
    /// The physical sector that was being written: neither old nor new, unreadable.
    pub torn: Option<Extent>,
    /// Commands that will never end.
    pub commands: Vec<Command>,
}

/// How much of its waiting a command gets off its positioning time in the aged order: 6 ms for
/// each second (Worthington, Ganger, Patt 1994 compare several factors; ours is a choice).
const AGING_DIVISOR: u64 = 1000 / 6;

impl VirtualDrive {
    /// A drive that behaves exactly as `truth` says.
    pub fn new(truth: Arc<Profile>) -> Self {
        Self::imperfect(truth, Imperfections::default(), 0)
    }

    /// A drive that deviates from `truth`; `seed` decides how.
    pub fn imperfect(truth: Arc<Profile>, imperfections: Imperfections, seed: u64) -> Self {
        let depth = truth.queue.depth.max(1) as usize;
        let order = truth.queue.order;
        VirtualDrive {
            service: Service::new(truth, imperfections, seed),
            queue: Vec::with_capacity(depth),
            ended: Vec::with_capacity(depth),
            depth,
            order,
        }
    }

    /// The same drive with another queue: how deep, and which command is next.
    pub fn with_queue(mut self, depth: u32, order: QueueOrder) -> Self {
        self.depth = depth.max(1) as usize;
        self.order = order;
        self
    }

    /// The truth.
    pub fn truth(&self) -> &Profile {
        &self.service.truth
    }

    /// Commands that the drive holds.
    pub fn held(&self) -> usize {
        self.queue.len() + self.ended.len()
    }

    /// Gives the drive a command. It holds at most its queue's depth of them, those whose end
    /// has not been polled included.
    ///
    /// # Errors
    /// If the drive holds as many commands as it can, or the extent is not on it.
    pub fn submit(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        if self.held() >= self.depth {
            return Err(Refused::Full { limit: self.depth });
        }
        let extent = command.action.extent();
        let capacity = self.service.truth.geometry.sectors().0;
        if let Some(extent) = extent
            && extent.end().0 > capacity
        {
            return Err(Refused::PastEnd { extent, capacity });
        }
        let target = match (self.order, extent) {
            (QueueOrder::Fcfs, _) | (_, None) => None,
            (_, Some(extent)) => self
                .service
                .truth
                .geometry
                .locate(extent.start())
                .as_ref()
                .map(Target::from),
        };
        let arm = extent.map_or(0, |extent| self.service.arm_of(extent.start()));
        self.queue.push(Queued {
            command,
            submitted: now,
            arm,
            target,
        });
        Ok(())
    }

    /// The next command that has ended at `now` or before, in the order of their ends.
    pub fn poll(&mut self, now: Instant) -> Option<Outcome> {
        self.take_up(now);
        let ended = self.ended.pop_if(|ended| ended.outcome.at <= now)?;
        Some(ended.outcome)
    }

    /// When `poll` should be called next; in the future once `poll` has answered `None`.
    pub fn next_wakeup(&self) -> Option<Instant> {
        let ends = self.ended.last().map(|ended| ended.outcome.at);
        let free = self.queue.iter().map(|queued| self.taken_at(queued)).min();
        match (ends, free) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Says that whatever the drive did is over at `now`, and its head where it should be. For
    /// comparisons with a real drive whose completions are known: each of its commands is then
    /// judged by itself, not by the errors of those before it.
    pub fn resync(&mut self, now: Instant) {
        self.service.resync(now);
    }

    /// Says that the platter stood at `phase` at `Instant::ZERO`. For the same comparisons: a real
    /// spindle wanders, and completions tell where it is.
    pub fn turn_platter(&mut self, phase: Angle) {
        self.service.turn_platter(phase);
    }

    /// Cuts the power at `now`: the buffer is lost, a write under way is torn.
    pub fn power_cut(&mut self, now: Instant) -> Lost {
        self.take_up(now);
        self.service.idle_until(now);
        let mut lost = Lost::default();
        let (unwritten, torn) = self.service.power_cut(now);
        lost.torn = torn;
        let unended = self.ended.drain(..).filter(|ended| ended.outcome.at > now);
        lost.commands = unended.map(|ended| ended.command).collect();
        lost.commands
            .extend(self.queue.drain(..).map(|queued| queued.command));
        let writes = lost
            .commands
            .iter()
            .filter_map(|command| match command.action {
                Action::Write { extent, .. } => Some(extent),
                _ => None,
            });
        lost.undecided = writes.collect();
        // What the client never saw done is undecided, not lost.
        lost.written = unwritten;
        lost.written
            .retain(|extent| !lost.undecided.contains(extent));
        lost
    }

    /// Lets every arm that is free by `now` take up its next command.
    fn take_up(&mut self, now: Instant) {
        while let Some((index, at)) = self.next_taken(now) {
            let Queued {
                command, submitted, ..
            } = self.queue.remove(index);
            let waited = at.since(submitted);
            let outcome = if command.duration_limit.is_some_and(|limit| limit < waited) {
                Outcome {
                    id: command.id,
                    at,
                    status: Status::TimedOut,
                    account: None,
                }
            } else {
                self.service.idle_until(at);
                let served = self.service.serve(command.action, submitted);
                let account = Some(served.account);
                Outcome {
                    id: command.id,
                    at: served.at,
                    status: served.status,
                    account,
                }
            };
            let place = self
                .ended
                .partition_point(|other| other.outcome.at > outcome.at);
            self.ended.insert(place, Ended { outcome, command });
        }
    }

    /// When a command could be taken up: its arm is free.
    fn taken_at(&self, queued: &Queued) -> Instant {
        self.service.arms[queued.arm].free_at.max(queued.submitted)
    }

    /// Which command is taken up next, and when, if by `now`.
    fn next_taken(&self, now: Instant) -> Option<(usize, Instant)> {
        let earliest = |(index, queued): (usize, &Queued)| (self.taken_at(queued), index);
        let (at, first) = self.queue.iter().enumerate().map(earliest).min()?;
        if at > now {
            return None;
        }
        if self.queue.len() == 1 {
            return Some((first, at));
        }
        let arm = self.queue[first].arm;
        let present = self.queue.iter().enumerate();
        present
            .filter(|(_, queued)| queued.arm == arm && queued.submitted <= at)
            .min_by_key(|&(index, queued)| (queued.command.urgency, self.cost(queued, at), index))
            .map(|(index, _)| (index, at))
    }

    /// What the drive's order minimises. Those that do not move the arm keep their place.
    fn cost(&self, queued: &Queued, at: Instant) -> u64 {
        let Some(target) = queued.target else {
            return 0;
        };
        let direction = match queued.command.action {
            Action::Write { .. } => Direction::Write,
            _ => Direction::Read,
        };
        let position: Position = self.service.arms[queued.arm].position;
        let way = self
            .service
            .truth
            .positioning(position, at, &target, direction);
        let nanos = way.total().as_nanos();
        match self.order {
            QueueOrder::Fcfs => 0,
            QueueOrder::Sptf => nanos,
            QueueOrder::AgedSptf => {
                // Shifted so that a long wait cannot take it below zero: an hour is 21.6 s.
                const SHIFT: u64 = 1 << 40;
                let aged = at.since(queued.submitted).as_nanos() / AGING_DIVISOR;
                (nanos + SHIFT).saturating_sub(aged)
            }
        }
    }
}
