//! Shortest positioning time first: seek time and rotational latency to the first sector.
//!
//! Seltzer, Chen, Ousterhout, USENIX Winter 1990; Jacobson, Wilkes, HPL-CSP-91-7, 1991. The policy
//! is as good as the belief: a wrong belief about the head costs whole revolutions. Not for loads
//! with bounds on single requests: far requests starve.
//!
//! Where the belief knows a part of the tracks, and the head is on another one, the nearest request
//! goes first: no rotational latency can be predicted. From a known track, guessed angles compete with
//! predicted ones, so that both kinds of requests are chosen as often.

use block::Duration;

use crate::policy::by_cylinder::{ByCylinder, Candidate, PositioningTimes};
use crate::policy::{Choice, EligibleRequest, Policy, Sight, View};

/// The pending requests by cylinder.
#[derive(Clone, Debug, Default)]
pub struct Sptf {
    pending: ByCylinder,
}

impl Policy for Sptf {
    fn sight(&self) -> Sight {
        Sight::Head
    }

    fn add(&mut self, pending: &EligibleRequest) {
        self.pending.insert(pending);
    }

    fn withdraw(&mut self, pending: &EligibleRequest) {
        self.pending.remove(pending.ticket, pending.order);
    }

    fn select(&mut self, view: &View) -> Choice {
        let Some((_, &Candidate { ticket, order, .. })) = soonest(&self.pending, view) else {
            return Choice::Nothing;
        };
        self.pending.remove(ticket, order);
        Choice::Serve(ticket)
    }
}

/// The request with the shortest positioning time, and that time. Among equal ones the oldest.
pub(super) fn soonest<'a>(
    pending: &'a ByCylinder,
    view: &View,
) -> Option<(Duration, &'a Candidate)> {
    let times = PositioningTimes::new(view);
    let mut outward = pending.outward(view.head.cylinder);
    let first = outward.next_within(u32::MAX)?;
    let seek = times.seek(first);
    let mut shortest = seek + times.rotation(seek, first);
    let mut best = first;
    let mut radius = times.radius(shortest);
    while let Some(candidate) = outward.next_within(radius) {
        let seek = times.seek(candidate);
        if seek > shortest {
            continue;
        }
        let time = seek + times.rotation(seek, candidate);
        if (time, candidate.order) < (shortest, best.order) {
            if time < shortest {
                radius = times.radius(time);
            }
            (shortest, best) = (time, candidate);
        }
    }
    Some((shortest, best))
}
