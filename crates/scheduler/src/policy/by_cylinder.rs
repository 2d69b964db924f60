//! The pending requests by cylinder, for policies that compare positioning times.
//!
//! ```text
//!   cylinders    a  b    c      head    d       e  f   g
//!   outward                3 <-- | --> 1
//!                      5 <------ | --------> 2, 4
//!                                |<------------>|
//!                                     radius: beyond, the arm alone takes longer
//!                                     than the best that has been found
//! ```
//!
//! A search visits the requests by ascending distance, and stops at the first one beyond the
//! radius. The choice is the best of all requests, because the radius is
//! [`reach`](drive::seek::SeekTable::reach). That allows for seek tables that
//! are not monotonic.
//!
//! The keys are a sorted vector. With the thousand requests of an engine, moving four kilobytes
//! costs less than the descent of a balanced tree.

use std::hint::select_unpredictable;

use block::{Direction, Duration, Extent, Instant};
use drive::{Certainty, Position, Profile, SeekTarget};

use crate::policy::{EligibleRequest, PieceId, View};

/// The pending requests by cylinder.
#[derive(Clone, Debug, Default)]
pub struct ByCylinder {
    /// (cylinder, ticket), ascending, each in half of the bits.
    keys: Vec<u64>,
    /// By ticket. Entries of tickets that are not pending are arbitrary.
    candidates: Vec<Candidate>,
}

/// The facts by which a policy ranks a request.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The position of its first block.
    pub target: SeekTarget,
    /// Its arrival number.
    pub order: u64,
    /// Its moment of arrival.
    pub submitted: Instant,
    /// The ticket that names it in the answer.
    pub ticket: PieceId,
    /// The direction of the transfer.
    pub direction: Direction,
}

/// The requests by ascending distance from a cylinder.
pub struct Outward<'a> {
    here: u32,
    keys: &'a [u64],
    /// The number of keys below that are left; the next one is the last of them.
    below: usize,
    /// The next key above.
    above: usize,
    candidates: &'a [Candidate],
}

/// Positioning times from the head, prepared once for a choice.
pub struct PositioningTimes<'a> {
    belief: &'a Profile,
    head: Position,
    /// The moment at which the arm begins to move for a read, and for a write.
    read: Instant,
    write: Instant,
    /// The rotational latency of all requests, if the head is on a track that was not measured: half
    /// a revolution. The seek decides then.
    unpredicted: Option<Duration>,
}

impl ByCylinder {
    /// Adds a request.
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

    /// Removes the request with this ticket and arrival number, if it is pending, and returns it.
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

    /// The requests, nearest first.
    pub fn outward(&self, here: u32) -> Outward<'_> {
        let place = self
            .keys
            .partition_point(|&key| key < u64::from(here) << 32);
        Outward {
            here,
            keys: &self.keys,
            below: place,
            above: place,
            candidates: &self.candidates,
        }
    }
}

impl<'a> Outward<'a> {
    /// The next request, if it is at most `radius` cylinders away.
    #[inline]
    pub fn next_within(&mut self, radius: u32) -> Option<&'a Candidate> {
        let before = self.keys.get(self.below.wrapping_sub(1));
        let after = self.keys.get(self.above);
        let inward = before.map_or(u64::MAX, |key| u64::from(self.here - cylinder(*key)));
        let outward = after.map_or(u64::MAX, |key| u64::from(cylinder(*key) - self.here));
        if inward.min(outward) > u64::from(radius) {
            return None;
        }
        // Which side is nearer is not predictable.
        let is_inward = inward <= outward;
        let place = select_unpredictable(is_inward, self.below.wrapping_sub(1), self.above);
        self.below -= usize::from(is_inward);
        self.above += usize::from(!is_inward);
        Some(&self.candidates[self.keys[place] as u32 as usize])
    }
}

impl<'a> PositioningTimes<'a> {
    /// The positioning times of a situation.
    pub fn new(view: &View<'a>) -> Self {
        let belief = view.belief;
        PositioningTimes {
            belief,
            head: view.head,
            read: view.start(Direction::Read),
            write: view.start(Direction::Write),
            unpredicted: match certainty_of(belief, view.head) {
                Certainty::Known => None,
                Certainty::Guessed => {
                    Some(Duration::from_nanos(belief.spindle.period().as_nanos() / 2))
                }
            },
        }
    }

    /// The seek time to a request, with the head switch.
    #[inline]
    pub fn seek(&self, to: &Candidate) -> Duration {
        self.belief
            .reposition(self.head, to.target.position, to.direction)
    }

    /// The rotational latency of a request after that seek.
    #[inline]
    pub fn rotation(&self, seek: Duration, to: &Candidate) -> Duration {
        if let Some(latency) = self.unpredicted {
            return latency;
        }
        let start = match to.direction {
            Direction::Read => self.read,
            Direction::Write => self.write,
        };
        self.belief.spindle.wait(start + seek, to.target.angle)
    }

    /// A distance beyond which the arm takes longer than `time`.
    #[inline]
    pub fn radius(&self, time: Duration) -> u32 {
        let belief = self.belief;
        let settled = time.adjusted(belief.write_settle_nanos.saturating_neg());
        let read = belief.seek.read().reach(time);
        read.max(belief.seek.write().reach(settled))
    }
}

/// Whether the track under the head was measured.
fn certainty_of(belief: &Profile, head: Position) -> Certainty {
    if belief.confidence.is_none() {
        return Certainty::Known;
    }
    let track = belief.geometry.track_at(head.cylinder, head.head);
    track.map_or(Certainty::Guessed, |track| {
        belief.certainty(Extent::block(track.first))
    })
}

/// The key: by cylinder, then by ticket.
fn key(candidate: &Candidate) -> u64 {
    u64::from(candidate.target.position.cylinder) << 32 | u64::from(candidate.ticket.0)
}

fn cylinder(key: u64) -> u32 {
    (key >> 32) as u32
}
