//! Aged shortest positioning time first: the positioning time minus a share of the waiting time.
//!
//! Jacobson, Wilkes, HPL-CSP-91-7, 1991 (ASATF); Worthington, Ganger, Patt, SIGMETRICS 1994
//! (ASPTF). The weight counts as in DiskSim (`disksim_ioqueue.c`): milliseconds subtracted for each
//! second of waiting. Weight 0 is SPTF; a large weight approaches first come, first served. Not for
//! a bound on waiting: under a flood of near requests a far one waits until its age outweighs the
//! whole stroke. That is 2 seconds on a drive of 12 ms at weight 6.
//!
//! The age difference of two requests never changes. Each request therefore has a constant
//! *standing*: its arrival times the weight. The best request has the least sum of positioning time
//! and standing. The search goes outward by distance and forward from the oldest at once. It stops
//! when the nearest and the oldest of the rest together could not be better.

use std::collections::BTreeSet;

use block::{Duration, Instant};

use crate::policy::by_cylinder::{ByCylinder, Candidate, PositioningTimes};
use crate::policy::{Choice, EligibleRequest, PieceId, Policy, Sight, View};

/// The pending requests by cylinder and by age.
#[derive(Clone, Debug)]
pub struct AgedSptf {
    pending: ByCylinder,
    by_age: BTreeSet<(Instant, u64, PieceId)>,
    weight: u32,
}

/// The best request so far: positioning time plus standing in thousandths of a nanosecond, arrival
/// number, ticket.
type Best = (u64, u64, PieceId);

impl AgedSptf {
    /// A policy that subtracts `weight` milliseconds for each second of waiting.
    pub fn new(weight: u32) -> Self {
        AgedSptf {
            pending: ByCylinder::default(),
            by_age: BTreeSet::new(),
            weight,
        }
    }

    /// The standing of a request relative to the oldest, in thousandths of a nanosecond. At the
    /// largest weight it fits for 200 days.
    fn standing(&self, submitted: Instant, oldest: Instant) -> u64 {
        let later = submitted.since(oldest).as_nanos();
        later.saturating_mul(u64::from(self.weight))
    }

    fn best(&self, view: &View) -> Option<Best> {
        let oldest = self.by_age.first()?.0;
        let times = PositioningTimes::new(view);
        let rank = |candidate: &Candidate| {
            let seek = times.seek(candidate);
            let time = seek + times.rotation(seek, candidate);
            let standing = self.standing(candidate.submitted, oldest);
            let sum = (time.as_nanos() * 1000).saturating_add(standing);
            (sum, candidate.order, candidate.ticket)
        };
        let mut outward = self.pending.outward(view.head.cylinder);
        let mut best = rank(outward.next_within(u32::MAX)?);
        for &(submitted, _, ticket) in &self.by_age {
            // The standing of every unvisited request is at least this large.
            let Some(left) = best.0.checked_sub(self.standing(submitted, oldest)) else {
                break;
            };
            let radius = times.radius(Duration::from_nanos(left / 1000));
            let Some(near) = outward.next_within(radius) else {
                break;
            };
            best = best.min(rank(near)).min(rank(self.pending.get(ticket)));
        }
        Some(best)
    }

    fn remove(&mut self, ticket: PieceId, order: u64) {
        if let Some(removed) = self.pending.remove(ticket, order) {
            self.by_age.remove(&(removed.submitted, order, ticket));
        }
    }
}

impl Policy for AgedSptf {
    fn sight(&self) -> Sight {
        Sight::Head
    }

    fn add(&mut self, pending: &EligibleRequest) {
        self.pending.insert(pending);
        self.by_age
            .insert((pending.submitted, pending.order, pending.ticket));
    }

    fn withdraw(&mut self, pending: &EligibleRequest) {
        self.remove(pending.ticket, pending.order);
    }

    fn select(&mut self, view: &View) -> Choice {
        let Some((_, order, ticket)) = self.best(view) else {
            return Choice::Nothing;
        };
        self.remove(ticket, order);
        Choice::Serve(ticket)
    }
}

/// Milliseconds subtracted for each second of waiting. A choice: the weight of the aged order of a
/// drive's own queue (`drive::VirtualDrive`).
pub const WEIGHT: u32 = 6;
