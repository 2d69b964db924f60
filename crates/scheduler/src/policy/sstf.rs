//! Shortest seek time first: the request on the cylinder nearest to the head.
//!
//! Denning, AFIPS 1967. Distance stands for time, so that the policy needs no seek curve. Not for
//! loads with a hot region and a deadline elsewhere: far requests starve.

use std::collections::BTreeSet;

use crate::policy::{Choice, EligibleRequest, PieceId, Policy, Sight, View};

/// The pending requests by cylinder.
#[derive(Clone, Debug, Default)]
pub struct Sstf {
    pending: BTreeSet<(u32, u64, PieceId)>,
}

impl Policy for Sstf {
    fn sight(&self) -> Sight {
        Sight::Head
    }

    fn add(&mut self, pending: &EligibleRequest) {
        self.pending.insert(key(pending));
    }

    fn withdraw(&mut self, pending: &EligibleRequest) {
        self.pending.remove(&key(pending));
    }

    fn select(&mut self, view: &View) -> Choice {
        let Some(chosen) = self.nearest(view.head.cylinder) else {
            return Choice::Nothing;
        };
        self.pending.remove(&chosen);
        Choice::Serve(chosen.2)
    }
}

impl Sstf {
    /// The oldest of the nearest requests. Only the next occupied cylinder on either side of the
    /// head can hold it.
    fn nearest(&self, here: u32) -> Option<(u32, u64, PieceId)> {
        let outward = self.first_from(here);
        if outward.is_some_and(|(cylinder, ..)| cylinder == here) {
            return outward;
        }
        // Downwards the set yields the latest request of a cylinder first: look up its oldest.
        let below = self.pending.range(..(here, 0, PieceId(0))).next_back();
        let inward = below.and_then(|&(cylinder, ..)| self.first_from(cylinder));
        [outward, inward]
            .into_iter()
            .flatten()
            .min_by_key(|&(cylinder, order, _)| (cylinder.abs_diff(here), order))
    }

    /// The first request on `cylinder` or above.
    fn first_from(&self, cylinder: u32) -> Option<(u32, u64, PieceId)> {
        self.pending
            .range((cylinder, 0, PieceId(0))..)
            .next()
            .copied()
    }
}

fn key(pending: &EligibleRequest) -> (u32, u64, PieceId) {
    (
        pending.target.position.cylinder,
        pending.order,
        pending.ticket,
    )
}
