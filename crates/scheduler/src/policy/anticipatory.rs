//! Anticipatory scheduling: after a read the disk idles for some milliseconds, because whoever read
//! will probably ask for what comes next, and the arm should not be sent away meanwhile.
//!
//! ```text
//!   one program        | read a |. think .| read a+1 |
//!   deadline           | read a | seek, read x, seek | read a+1 |
//!   anticipatory       | read a |  idle   | read a+1 | ...
//!                               ^ ready   ^ at most N ms later
//! ```
//!
//! Iyer, Druschel, SOSP 2001; Piggin, Linux 2.6, `block/as-iosched.c`. The elevator below is
//! [`Deadline`], from which Linux's differed in its constants. Simplified, because a request does
//! not say whose it is: the next read of the same client is taken to be the one that begins within
//! 4 MiB after the last read. Hence there is one client, who read last; think times and seek
//! distances are not averaged for each process but summed up in how often the read came; whether
//! the expected gain is larger than the wait is not computed. Once a request has expired nothing
//! is waited for. Not for many requests at once, or random ones: the idling is then lost, until it
//! has learned not to.

use block::{Direction, Duration, Instant, Lba};

use crate::policy::anticipation::{Hope, Occasion};
use crate::policy::deadline::{Deadline, Key};
use crate::policy::{Choice, EligibleRequest, Policy, Sight, View};

/// An elevator, and what is hoped for.
#[derive(Clone, Debug)]
pub struct Anticipatory {
    elevator: Deadline,
    patience: Duration,
    hope: Hope,
    after: After,
}

/// What is served at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// Nothing that another request would follow.
    Other,
    /// A read that was chosen last; since then nobody has asked.
    Read,
    /// A read; the next one is waited for until then.
    Until(Instant),
}

impl Anticipatory {
    /// One that idles for at most `millis` milliseconds after a read.
    pub fn new(millis: u32) -> Self {
        Anticipatory {
            elevator: Deadline::default(),
            patience: Duration::from_millis(u64::from(millis)),
            hope: Hope::default(),
            after: After::Other,
        }
    }

    /// The read that a client would go on with, if it is there.
    fn near(&self, view: &View) -> Option<Key> {
        let end = self.elevator.read_sweep();
        let within = Lba(end.0 + NEAR_BYTES / u64::from(view.belief.block_bytes));
        self.elevator.read_from(end).filter(|next| next.0 <= within)
    }

    /// What to do about the read that might follow.
    fn anticipate(&mut self, view: &View) -> Option<Choice> {
        let late = |direction| self.elevator.is_late(direction, view.now);
        let late = late(Direction::Read) || late(Direction::Write);
        if self.after == After::Other || late || self.elevator.is_empty() {
            return None;
        }
        if let Some(key) = self.near(view) {
            self.hope.learn(Occasion::Came);
            return Some(self.elevator.serve(key, Direction::Read));
        }
        if self.after == After::Read {
            // Counted from the end of the read. It is fixed now: were it counted from a later
            // command's end, nothing would bound it.
            let until = view.ready.max(view.now) + self.patience;
            if !self.hope.takes_occasion() {
                return None;
            }
            self.after = After::Until(until);
        }
        match self.after {
            After::Until(until) if until > view.now => return Some(Choice::WaitUntil(until)),
            _ => self.hope.learn(Occasion::Missed),
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

/// How long it idles, in milliseconds (Linux: `default_antic_expire`, a 150th of a second).
pub const PATIENCE_MS: u32 = 6;

/// How far after a read the next one of the same client may begin (Linux, `as_close_req`: 8192
/// sectors).
const NEAR_BYTES: u64 = 8192 * 512;
