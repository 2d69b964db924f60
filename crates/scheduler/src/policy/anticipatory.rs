//! Anticipatory scheduling: after a read the disk idles for some milliseconds, because its client
//! will probably read the next blocks.
//!
//! ```text
//!   one program        | read a |. think .| read a+1 |
//!   deadline           | read a | seek, read x, seek | read a+1 |
//!   anticipatory       | read a |  idle   | read a+1 | ...
//!                               ^ ready   ^ at most N ms later
//! ```
//!
//! Iyer, Druschel, SOSP 2001; Piggin, Linux 2.6, `block/as-iosched.c`. The elevator below is
//! [`Deadline`]; Linux's had other constants.
//!
//! Requests carry no client, so the policy is simplified. A read that begins within 4 MiB after the
//! last read counts as its client's next one. Think times and seek distances are not averaged per
//! process; only the success rate of idling is. The policy does not compute whether the expected
//! gain exceeds the wait. It does not idle while a request is expired.
//!
//! Not for many requests at once, or random ones: idle time is lost until the policy has learned
//! that.

use block::{Direction, Duration, Instant, Lba};

use crate::policy::anticipation::{IdleHistory, IdleResult};
use crate::policy::deadline::{Deadline, Key};
use crate::policy::{Choice, EligibleRequest, Policy, Sight, View};

/// An elevator with idling.
#[derive(Clone, Debug)]
pub struct Anticipatory {
    elevator: Deadline,
    patience: Duration,
    history: IdleHistory,
    after: After,
}

/// The last served request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// A request after which the policy does not idle.
    Other,
    /// A read that was selected last, without a `select` since.
    Read,
    /// A read; the policy idles for the next one until this moment.
    Until(Instant),
}

impl Anticipatory {
    /// A policy that idles for at most `millis` milliseconds after a read.
    pub fn new(millis: u32) -> Self {
        Anticipatory {
            elevator: Deadline::default(),
            patience: Duration::from_millis(u64::from(millis)),
            history: IdleHistory::default(),
            after: After::Other,
        }
    }

    /// The pending read that continues the last one, if there is one.
    fn near(&self, view: &View) -> Option<Key> {
        let end = self.elevator.read_sweep();
        let within = Lba(end.0 + NEAR_BYTES / u64::from(view.belief.block_bytes));
        self.elevator.read_from(end).filter(|next| next.0 <= within)
    }

    /// Serves the expected read, idles for it, or gives it up (`None`).
    fn anticipate(&mut self, view: &View) -> Option<Choice> {
        let late = |direction| self.elevator.is_late(direction, view.now);
        let late = late(Direction::Read) || late(Direction::Write);
        if self.after == After::Other || late || self.elevator.is_empty() {
            return None;
        }
        if let Some(key) = self.near(view) {
            self.history.learn(IdleResult::Came);
            return Some(self.elevator.serve(key, Direction::Read));
        }
        if self.after == After::Read {
            // Counted from the end of the read, and fixed now. The end of a later command would be
            // no bound.
            let until = view.ready.max(view.now) + self.patience;
            if !self.history.should_idle() {
                return None;
            }
            self.after = After::Until(until);
        }
        match self.after {
            After::Until(until) if until > view.now => return Some(Choice::WaitUntil(until)),
            _ => self.history.learn(IdleResult::Missed),
        }
        None
    }
}

impl Policy for Anticipatory {
    fn sight(&self) -> Sight {
        Sight::Head
    }

    fn add(&mut self, pending: &EligibleRequest) {
        self.elevator.add(pending);
    }

    fn withdraw(&mut self, pending: &EligibleRequest) {
        self.elevator.withdraw(pending);
    }

    fn select(&mut self, view: &View) -> Choice {
        let choice = match self.anticipate(view) {
            Some(choice) => choice,
            None => self.elevator.select(view),
        };
        self.after = match (choice, self.elevator.direction()) {
            (Choice::Serve(_), Direction::Read) => After::Read,
            (Choice::Serve(_), Direction::Write) => After::Other,
            (Choice::WaitUntil(_) | Choice::Nothing, _) => self.after,
        };
        choice
    }
}

/// The longest idle period in milliseconds (Linux: `default_antic_expire`, a 150th of a second).
pub const PATIENCE_MS: u32 = 6;

/// The largest distance from a read to its client's next one (Linux, `as_close_req`: 8192 sectors).
const NEAR_BYTES: u64 = 8192 * 512;
