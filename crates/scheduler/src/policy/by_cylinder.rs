//! The pending requests by cylinder, and the way from the head to each of them: what the policies
//! that look at positioning times search.
//!
//! ```text
//!   cylinders    a  b    c      head    d       e  f   g
//!   outward                3 <-- | --> 1
//!                      5 <------ | --------> 2, 4
//!                                |<------------>|
//!                                     reach: beyond, the arm alone takes longer
//!                                     than the best that has been found
//! ```
//!
//! A search visits the requests by ascending distance, and stops at the first that is beyond its
//! reach. Only what is near is looked at, and what is chosen is nevertheless the best of all: the
//! reach is that of [`farthest_within`](drive::seek::SeekTable::farthest_within), which knows that
//! seek tables go up and down.
//!
//! The keys are a sorted vector: with the thousand requests that an engine holds, moving four
//! kilobytes costs less than a balanced tree's way down.

use block::{Direction, Duration, Instant};
use drive::{Position, Profile, SeekTarget};

use crate::policy::{EligibleRequest, PieceId, View};

/// The pending requests by cylinder.
#[derive(Clone, Debug, Default)]
pub struct ByCylinder {
    /// (cylinder, ticket), ascending, each in half of the bits.
    keys: Vec<u64>,
    /// By ticket; of tickets that are not pending, anything.
    candidates: Vec<Candidate>,
}

/// What has to be known of a request to rank it.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Where it begins.
    pub target: SeekTarget,
    /// Its number by arrival.
    pub order: u64,
    /// When it arrived.
    pub submitted: Instant,
    /// Names it in the answer.
    pub ticket: PieceId,
    /// Which way the bytes go.
    pub direction: Direction,
}

/// The requests by ascending distance from a cylinder.
pub struct Outward<'a> {
    here: u32,
    /// Ascending; those at the end are next.
    below: &'a [u64],
    /// Ascending; those at the beginning are next.
    above: &'a [u64],
    candidates: &'a [Candidate],
}

/// How long the ways from the head are, worked out once for a choice.
pub struct Ways<'a> {
    belief: &'a Profile,
    head: Position,
    /// When the arm begins to move for a read, and for a write.
    read: Instant,
    write: Instant,
}

impl ByCylinder {
    /// Takes a request in.
    pub fn insert(&mut self, pending: &EligibleRequest) {
        let candidate = Candidate {
            target: pending.target,
            order: pending.order,
            submitted: pending.submitted,
            ticket: pending.ticket,
            direction: pending.direction,
        };
        let slot = pending.ticket.0 as usize;
        if self.candidates.len() <= slot {
            self.candidates.resize(slot + 1, candidate);
        }
        self.candidates[slot] = candidate;
        let key = key(&candidate);
        let place = self.keys.partition_point(|&other| other < key);
        self.keys.insert(place, key);
    }

    /// Forgets the request with this ticket and this number, if it is there; answers what was.
    pub fn remove(&mut self, ticket: PieceId, order: u64) -> Option<Candidate> {
        let candidate = *self.candidates.get(ticket.0 as usize)?;
        if candidate.order != order {
            return None;
        }
        let place = self.keys.binary_search(&key(&candidate)).ok()?;
        self.keys.remove(place);
        Some(candidate)
    }

    /// The pending request with this ticket.
    pub fn get(&self, ticket: PieceId) -> &Candidate {
        &self.candidates[ticket.0 as usize]
    }

    /// The requests, the nearest first.
    pub fn outward(&self, here: u32) -> Outward<'_> {
        let place = self
            .keys
            .partition_point(|&key| key < u64::from(here) << 32);
        let (below, above) = self.keys.split_at(place);
        Outward {
            here,
            below,
            above,
            candidates: &self.candidates,
        }
    }
}

impl<'a> Outward<'a> {
    /// The next request, if it is at most `reach` cylinders away.
    #[inline]
    pub fn next_within(&mut self, reach: u32) -> Option<&'a Candidate> {
        let inward = self.below.last().map(|key| self.here - cylinder(*key));
        let outward = self.above.first().map(|key| cylinder(*key) - self.here);
        let key = match (inward, outward) {
            (Some(inward), Some(outward)) if inward <= outward && inward <= reach => {
                self.below.split_off_last()
            }
            (Some(inward), None) if inward <= reach => self.below.split_off_last(),
            (_, Some(outward)) if outward <= reach => self.above.split_off_first(),
            _ => None,
        }?;
        Some(&self.candidates[*key as u32 as usize])
    }
}

impl<'a> Ways<'a> {
    /// The ways in this situation.
    pub fn new(view: &View<'a>) -> Self {
        Ways {
            belief: view.belief,
            head: view.head,
            read: view.start(Direction::Read),
            write: view.start(Direction::Write),
        }
    }

    /// What the arm and the head switch take.
    #[inline]
    pub fn seek(&self, to: &Candidate) -> Duration {
        self.belief
            .reposition(self.head, to.target.position, to.direction)
    }

    /// What remains until the first sector after that seek.
    #[inline]
    pub fn rotation(&self, seek: Duration, to: &Candidate) -> Duration {
        let start = match to.direction {
            Direction::Read => self.read,
            Direction::Write => self.write,
        };
        self.belief.spindle.wait(start + seek, to.target.angle)
    }

    /// How far the arm may have to go to whatever it reaches within this time.
    pub fn reach(&self, time: Duration) -> u32 {
        let belief = self.belief;
        let settled = time.adjusted(belief.write_settle_nanos.saturating_neg());
        let read = belief.seek.read().farthest_within(time);
        read.max(belief.seek.write().farthest_within(settled))
    }
}

/// By cylinder, and by ticket on the same cylinder.
fn key(candidate: &Candidate) -> u64 {
    u64::from(candidate.target.position.cylinder) << 32 | u64::from(candidate.ticket.0)
}

fn cylinder(key: u64) -> u32 {
    (key >> 32) as u32
}
