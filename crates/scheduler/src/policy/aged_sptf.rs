//! Aged shortest positioning time first: from a positioning time, a part of the time that the
//! request has waited is taken off.
//!
//! Jacobson, Wilkes, HPL-CSP-91-7, 1991 (ASATF); Worthington, Ganger, Patt, SIGMETRICS 1994
//! (ASPTF). The weight counts as in DiskSim (`disksim_ioqueue.c`): milliseconds off for each
//! second of waiting. At 0 it is SPTF; the larger it is, the nearer it comes to first come, first
//! served. Not for a bound on waiting: under a flood of near requests a far one waits until its age
//! outweighs the whole stroke, 2 seconds on a drive of 12 ms at weight 6.
//!
//! Of two requests the age difference never changes, so that each has a *standing* that does not
//! depend on the time: its arrival by the weight. Least is the sum of positioning time and
//! standing. The search goes outward by distance and forward from the oldest at once, and stops
//! when the nearest and the oldest of the rest could not be better together.

use std::collections::BTreeSet;

use block::{Duration, Instant};

use crate::policy::by_cylinder::{ByCylinder, Candidate, Ways};
use crate::policy::{Choice, EligibleRequest, PieceId, Policy, Sight, View};

/// The requests by cylinder and by age.
#[derive(Clone, Debug)]
pub struct AgedSptf {
    pending: ByCylinder,
    by_age: BTreeSet<(Instant, u64, PieceId)>,
    weight: u32,
}

/// The best so far: positioning time and standing together in thousandths of a nanosecond, its
/// number by arrival, and its ticket.
type Best = (u64, u64, PieceId);

impl AgedSptf {
    /// One that takes off `weight` milliseconds for each second of waiting.
    pub fn new(weight: u32) -> Self {
        AgedSptf {
            pending: ByCylinder::default(),
            by_age: BTreeSet::new(),
            weight,
        }
    }

    /// How much a request that arrived then stands behind the oldest, in thousandths of a
    /// nanosecond; at the largest weight that fits for 200 days.
    fn standing(&self, submitted: Instant, oldest: Instant) -> u64 {
        let later = submitted.since(oldest).as_nanos();
        later.saturating_mul(u64::from(self.weight))
    }

    fn best(&self, view: &View) -> Option<Best> {
        let oldest = self.by_age.first()?.0;
        let ways = Ways::new(view);
        let rank = |candidate: &Candidate| {
            let seek = ways.seek(candidate);
            let time = seek + ways.rotation(seek, candidate);
            let standing = self.standing(candidate.submitted, oldest);
            let sum = (time.as_nanos() * 1000).saturating_add(standing);
            (sum, candidate.order, candidate.ticket)
        };
        let mut outward = self.pending.outward(view.head.cylinder);
        let mut best = rank(outward.next_within(u32::MAX)?);
        for &(submitted, _, ticket) in &self.by_age {
            // What neither way has come to stands at least this far behind.
            let Some(left) = best.0.checked_sub(self.standing(submitted, oldest)) else {
                break;
            };
            let reach = ways.reach(Duration::from_nanos(left / 1000));
            let Some(near) = outward.next_within(reach) else {
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

/// Milliseconds off for each second of waiting: a choice, the same as that of the aged order of a
/// drive's own queue (`drive::VirtualDrive`).
pub const WEIGHT: u32 = 6;
