//! Anticipatory scheduling: after a read the disk idles for some milliseconds, because its owner will probably read the
//! next blocks.
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
//! The disk idles for the owner of the last read unless
//! - the owner has another read or writes: then the elevator goes on, with the owner's read first if it is near;
//! - its reads come later than the disk would idle, or idling for it has mostly failed;
//! - another read is nearer than its reads usually are;
//! - a request is expired.
//!
//! Simplified: exits of processes are not seen, owners that read the same blocks by turns are not known as such, and the
//! expected gain is not weighed against the wait. After a read of an unknown owner, any read that begins within 4 MiB
//! behind it counts as the next one.
//!
//! Not for many requests at once, or random ones: idle time is lost until the policy has learned that.

use std::collections::BTreeSet;

use block::{Direction, Duration, Instant, Lba, Owner};

use crate::policy::anticipation::{IdleHistory, IdleResult};
use crate::policy::deadline::{Deadline, Key};
use crate::policy::owners::{Backlog, Owners};
use crate::policy::{Choice, EligibleRequest, Policy, Sight, View};

/// An elevator with idling.
#[derive(Clone, Debug)]
pub struct Anticipatory {
    elevator: Deadline,
    patience: Duration,
    /// The success of idling after reads of unknown owners.
    history: IdleHistory,
    owners: Owners,
    /// The pending reads of known owners.
    reads: BTreeSet<(Owner, Key)>,
    after: After,
    /// The owner of the last read.
    owner: Owner,
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
            owners: Owners::default(),
            reads: BTreeSet::new(),
            after: After::Other,
            owner: Owner::NOBODY,
        }
    }

    /// Serves the expected read, idles for it, or gives it up (`None`).
    fn anticipate(&mut self, view: &View) -> Option<Choice> {
        let late = |direction| self.elevator.is_late(direction, view.now);
        let late = late(Direction::Read) || late(Direction::Write);
        if self.after == After::Other || late || self.elevator.is_empty() {
            return None;
        }
        if self.has_come(view) {
            self.learn(IdleResult::Came);
            let key = self.near(view)?;
            return Some(self.elevator.serve(key, Direction::Read));
        }
        if self.after == After::Read {
            // Counted from the end of the read, and fixed now. The end of a later command would be
            // no bound.
            let until = view.ready.max(view.now) + self.patience;
            if !self.is_worth_idling() {
                return None;
            }
            self.after = After::Until(until);
        } else if self.is_another_nearer() {
            return None;
        }
        match self.after {
            After::Until(until) if until > view.now => return Some(Choice::WaitUntil(until)),
            _ => self.learn(IdleResult::Missed),
        }
        None
    }

    /// Whether the read that the policy idles for is pending.
    fn has_come(&self, view: &View) -> bool {
        match self.owner.is_known() {
            true => self.nearest_of_owner().is_some(),
            false => self.near(view).is_some(),
        }
    }

    /// The pending read that continues the last one, if there is one: of the same owner, in either direction. Of an unknown
    /// owner, it is the first one upwards of any owner.
    fn near(&self, view: &View) -> Option<Key> {
        let end = self.elevator.read_sweep();
        let within = NEAR_BYTES / u64::from(view.belief.block_bytes);
        let next = match self.owner.is_known() {
            true => self.nearest_of_owner(),
            false => self.elevator.read_from(end),
        };
        next.filter(|next| next.0.0.abs_diff(end.0) <= within)
    }

    /// The pending read of the owner that is nearest to the end of the last one.
    fn nearest_of_owner(&self) -> Option<Key> {
        let end = self.elevator.read_sweep();
        let from = (self.owner, (Lba(0), 0))..(self.owner, (end, 0));
        let upwards = (self.owner, (end, 0))..=(self.owner, (Lba(u64::MAX), u64::MAX));
        let below = self.reads.range(from).next_back();
        let above = self.reads.range(upwards).next();
        let both = [above, below].into_iter().flatten().map(|&(_, key)| key);
        both.min_by_key(|key| key.0.0.abs_diff(end.0))
    }

    /// Whether to begin an idle period for the owner of the last read.
    fn is_worth_idling(&mut self) -> bool {
        if !self.owner.is_known() {
            return self.history.should_idle();
        }
        let patience = self.patience;
        !self.is_another_nearer() && {
            let habits = self.owners.habits(self.owner);
            habits.comes_within(patience) && habits.idling.should_idle()
        }
    }

    /// Whether the read that the elevator would serve is nearer than the next one of the owner is expected.
    fn is_another_nearer(&mut self) -> bool {
        let end = self.elevator.read_sweep();
        let other = self.elevator.read_from(end);
        self.owner.is_known()
            && other.is_some_and(|(start, _)| {
                let habits = self.owners.habits(self.owner);
                habits.is_nearer(start.0 - end.0)
            })
    }

    /// Learns from an idle period, or from a read that came before one.
    fn learn(&mut self, result: IdleResult) {
        match self.owner.is_known() {
            true => self.owners.habits(self.owner).idling.learn(result),
            false => self.history.learn(result),
        }
    }

    /// Notes the request that the elevator has served.
    fn note_served(&mut self) {
        let (key, owner) = self.elevator.last_served();
        self.owner = owner;
        self.after = match self.elevator.direction() {
            Direction::Read => After::Read,
            Direction::Write => After::Other,
        };
        if self.after == After::Read && owner.is_known() {
            self.reads.remove(&(owner, key));
            self.owners.served(owner);
        }
    }

    /// The pending reads of an owner.
    fn reads_of(&self, owner: Owner) -> impl Iterator<Item = Key> {
        let all = (owner, (Lba(0), 0))..=(owner, (Lba(u64::MAX), u64::MAX));
        self.reads.range(all).map(|&(_, key)| key)
    }
}

impl Policy for Anticipatory {
    fn sight(&self) -> Sight {
        Sight::Head
    }

    fn add(&mut self, pending: &EligibleRequest) {
        self.elevator.add(pending);
        let owner = pending.owner;
        if !owner.is_known() {
            return;
        }
        if pending.direction == Direction::Write {
            if owner == self.owner {
                // A program that writes meanwhile does not read on.
                self.after = After::Other;
            }
            return;
        }
        let backlog = match self.reads_of(owner).next() {
            None => Backlog::None,
            Some(_) => Backlog::Some,
        };
        let key = (pending.extent.start(), pending.order);
        self.reads.insert((owner, key));
        self.owners
            .arrived(owner, pending.extent, pending.submitted, backlog);
    }

    fn withdraw(&mut self, pending: &EligibleRequest) {
        self.elevator.withdraw(pending);
        let key = (pending.extent.start(), pending.order);
        self.reads.remove(&(pending.owner, key));
    }

    fn select(&mut self, view: &View) -> Choice {
        self.owners.ended(view.ready);
        let choice = match self.anticipate(view) {
            Some(choice) => choice,
            None => self.elevator.select(view),
        };
        if let Choice::Serve(_) = choice {
            self.note_served();
        }
        choice
    }
}

/// The longest idle period in milliseconds (Linux: `default_antic_expire`, a 150th of a second).
pub const PATIENCE_MS: u32 = 6;

/// The largest distance from a read to its owner's next one (Linux, `as_close_req`: 8192 sectors).
const NEAR_BYTES: u64 = 8192 * 512;
