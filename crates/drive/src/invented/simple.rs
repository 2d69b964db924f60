//! A drive without buffer and bus that serves its queue in order, track by track.

use std::collections::VecDeque;

use crate::{Position, Profile, SeekTarget};
use block::{
    Account, Action, Command, Direction, Duration, Extent, Instant, Outcome, Refused, Status,
};

/// From the end of the medium's part of a command to its completion.
pub const COMPLETION: Duration = Duration::from_micros(50);

/// A drive without buffer and bus that serves its queue in order.
pub struct SimpleDrive {
    truth: Profile,
    /// Every so many commands, the drive misses its sector and loses a revolution.
    pub misses_every: Option<u64>,
    served: u64,
    position: Position,
    /// When the last command has left the medium.
    pub free: Instant,
    previous: Direction,
    outcomes: VecDeque<Outcome>,
}

impl SimpleDrive {
    /// An idle drive with this truth.
    pub fn new(truth: Profile) -> Self {
        SimpleDrive {
            truth,
            misses_every: None,
            served: 0,
            position: Position::default(),
            free: Instant::ZERO,
            previous: Direction::Read,
            outcomes: VecDeque::new(),
        }
    }

    /// Takes a command into the queue.
    ///
    /// # Errors
    /// If the queue is full.
    ///
    /// # Panics
    /// If the command neither reads nor writes.
    pub fn submit(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        let limit = self.truth.queue.depth as usize;
        if self.outcomes.len() >= limit {
            return Err(Refused::Full { limit });
        }
        let (direction, extent) = match command.action {
            Action::Read { extent, .. } => (Direction::Read, extent),
            Action::Write { extent, .. } => (Direction::Write, extent),
            other => panic!("{other:?} is not what an engine says"),
        };
        let overhead = self.overhead(direction);
        let start = self.free.max(now + overhead);
        let mut account = Account {
            queue: start.since(now + overhead),
            overhead: overhead + COMPLETION,
            ..Account::default()
        };
        self.free = self.travel(start, direction, extent, &mut account);
        self.previous = direction;
        self.served += 1;
        self.outcomes.push_back(Outcome {
            id: command.id,
            at: self.free + COMPLETION,
            status: Status::Good,
            account: Some(account),
        });
        Ok(())
    }

    /// The next outcome that is due.
    pub fn poll(&mut self, now: Instant) -> Option<Outcome> {
        let due = self.outcomes.front().is_some_and(|next| next.at <= now);
        due.then(|| self.outcomes.pop_front()).flatten()
    }

    /// When the next outcome is due.
    pub fn next_wakeup(&self) -> Option<Instant> {
        self.outcomes.front().map(|next| next.at)
    }

    fn overhead(&self, direction: Direction) -> Duration {
        let overhead = match direction {
            Direction::Read => self.truth.overheads.read_miss,
            Direction::Write => self.truth.overheads.write_miss,
        };
        match self.previous {
            Direction::Read => overhead.read,
            Direction::Write => overhead.write,
        }
    }

    fn travel(
        &mut self,
        start: Instant,
        direction: Direction,
        extent: Extent,
        account: &mut Account,
    ) -> Instant {
        let mut at = start;
        let number = self.served + 1;
        if self
            .misses_every
            .is_some_and(|every| number.is_multiple_of(every))
        {
            account.rotation += self.truth.spindle.period();
            at += self.truth.spindle.period();
        }
        for run in self.truth.geometry.runs(extent) {
            let pass = self.truth.pass(self.position, at, &run, direction);
            account.seek += pass.seek;
            account.rotation += pass.rotation;
            account.transfer += pass.transfer;
            at += pass.total();
            self.position = SeekTarget::from(&run).position;
        }
        at
    }
}
