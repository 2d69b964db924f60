//! Shortest positioning time first with a seek window: of the requests that are nearly as near as
//! the nearest, the one with the least seek time.
//!
//! ```text
//!   positioning time   |---------|---------------|------------------->
//!                      0     shortest     N % longer
//!                                 ^ in the window: the least seek
//! ```
//!
//! Lumb, Schindler, Ganger, FAST 2002, 5.3, where it is called SPTF-SW60%: a positioning time may
//! be up to 60 % longer than the shortest. Saved seek time becomes rotational latency, which free
//! blocks fill. Not for a disk without background work: it is then a worse SPTF.

use block::Duration;

use crate::policy::by_cylinder::{ByCylinder, Candidate, PositioningTimes};
use crate::policy::sptf::soonest;
use crate::policy::{Choice, EligibleRequest, Policy, Sight, View};

/// The pending requests by cylinder, and the width of the window.
#[derive(Clone, Debug)]
pub struct SptfSw {
    pending: ByCylinder,
    percent: u32,
}

impl SptfSw {
    /// A policy whose window ends `percent` per cent above the shortest positioning time.
    pub fn new(percent: u32) -> Self {
        SptfSw {
            pending: ByCylinder::default(),
            percent,
        }
    }

    /// The longest positioning time in the window.
    fn window(&self, shortest: Duration) -> Duration {
        let percent = 100 + u64::from(self.percent);
        Duration::from_nanos(shortest.as_nanos() * percent / 100)
    }

    /// The request with the least seek time in the window. Among equal ones the oldest.
    fn smallest_seek(&self, view: &View) -> Option<&Candidate> {
        let (shortest, mut best) = soonest(&self.pending, view)?;
        let times = PositioningTimes::new(view);
        let window = self.window(shortest);
        let mut smallest = times.seek(best);
        let mut radius = times.radius(smallest);
        let mut outward = self.pending.outward(view.head.cylinder);
        while let Some(candidate) = outward.next_within(radius) {
            let seek = times.seek(candidate);
            if (seek, candidate.order) < (smallest, best.order)
                && seek + times.rotation(seek, candidate) <= window
            {
                if seek < smallest {
                    radius = times.radius(seek);
                }
                (smallest, best) = (seek, candidate);
            }
        }
        Some(best)
    }
}

impl Policy for SptfSw {
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
        let Some(&Candidate { ticket, order, .. }) = self.smallest_seek(view) else {
            return Choice::Nothing;
        };
        self.pending.remove(ticket, order);
        Choice::Serve(ticket)
    }
}

/// The width of the window in percent of the shortest positioning time (Lumb et al., FAST 2002,
/// 5.3).
pub const WINDOW_PERCENT: u32 = 60;
