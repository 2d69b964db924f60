//! The delay of a request, divided between its plan and the drive.
//!
//! ```text
//!   ended later than without its plan  =  what delays requests without plans as well
//!                                      +  what its plan was expected to cost
//!                                      +  the plan's excess
//! ```
//!
//! Recalibrations, scans of the drive's own and sectors that are read before they are written delay every
//! request. Requests without a plan show by how much.

use block::{Direction, Duration};

/// What came before a request in its gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapUse {
    /// A plan in one command with the request, and its expected loss.
    Merged(Duration),
    /// A plan with commands of its own, and its expected loss.
    Apart(Duration),
    /// Nothing, but the request was chosen late, so that a delay of the host delays it.
    ChosenLate {
        /// The plan before the request before it, because of which it was.
        after: PlanKind,
        /// The expected delay of a request that is chosen in time, in nanoseconds.
        in_time: i64,
    },
    /// Nothing, and the latency is so far from both ends of a revolution that the seek is in time.
    Unused,
    /// Nothing, and the seek might be late or early.
    UnusedAtEdge,
}

/// The kinds of plans whose losses are learned apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanKind {
    /// In one command with the request.
    Merged,
    /// Commands of their own before a read.
    BeforeRead,
    /// Commands of their own before a write.
    BeforeWrite,
}

impl PlanKind {
    /// Of commands of their own before a request of this direction.
    pub fn before(direction: Direction) -> Self {
        match direction {
            Direction::Read => PlanKind::BeforeRead,
            Direction::Write => PlanKind::BeforeWrite,
        }
    }
}

/// The kind of a plan before a request, and its expected loss.
fn kind(direction: Direction, gap: GapUse) -> Option<(PlanKind, Duration)> {
    match gap {
        GapUse::Merged(expected) => Some((PlanKind::Merged, expected)),
        GapUse::Apart(expected) => Some((PlanKind::before(direction), expected)),
        GapUse::Unused | GapUse::UnusedAtEdge | GapUse::ChosenLate { .. } => None,
    }
}

/// The weight of the assumption that plans lose what is expected, in plans. A choice: a lost revolution
/// in 256 plans is chance.
const FAITH: f64 = 256.0;

/// The weight of the assumption that nothing delays requests without plans, in requests. A choice.
const CALM: f64 = 64.0;

/// The largest delay that counts, in revolutions: a missed free read, and a request missed after it.
/// What is later has another cause.
const MOST: u64 = 2;

/// The latencies at which no error of a seek changes the revolution, in eighths of one. A choice: late
/// seeks are later than early ones are early.
const INNER: std::ops::RangeInclusive<u64> = 2..=6;

/// Means of what delays requests, of the last few thousand.
#[derive(Clone, Debug, Default)]
pub(super) struct Attribution {
    /// Of merged plans, then of those apart before reads and before writes: the loss beyond what was
    /// expected.
    excess: [DecayingMean; 3],
    /// Of reads, then of writes without plans: the delay.
    alone: [DecayingMean; 2],
}

/// A mean in which older values count less.
#[derive(Clone, Copy, Debug, Default)]
struct DecayingMean {
    count: f64,
    nanos: f64,
}

impl DecayingMean {
    fn add(&mut self, nanos: f64) {
        self.count += 1.0;
        self.nanos += nanos;
    }

    /// The mean with so many values of zero added; never below zero.
    fn with_zeros(&self, zeros: f64) -> f64 {
        (self.nanos / (self.count + zeros)).max(0.0)
    }

    fn decay(&mut self, kept: f64) {
        self.count *= kept;
        self.nanos *= kept;
    }
}

impl GapUse {
    /// A gap without a plan before a request with this latency.
    pub fn unused(latency: Duration, period: Duration) -> Self {
        match INNER.contains(&(latency.as_nanos() * 8 / period.as_nanos().max(1))) {
            true => GapUse::Unused,
            false => GapUse::UnusedAtEdge,
        }
    }

    /// Whether a plan was in the gap.
    pub fn is_planned(&self) -> bool {
        matches!(self, GapUse::Merged(_) | GapUse::Apart(_))
    }
}

impl Attribution {
    /// The loss of a request that its plan caused, in nanoseconds, if it ended `late` nanoseconds later than
    /// without one and luck would have made it `luck` sooner; zero without a plan.
    pub(super) fn attribute(
        &mut self,
        (direction, gap): (Direction, GapUse),
        (late, luck): (i64, Duration),
        period: Duration,
    ) -> i64 {
        let most = (period * MOST).as_nanos() as i64;
        let late = late.clamp(-most, most);
        let alone = &mut self.alone[usize::from(direction == Direction::Write)];
        let Some((kind, expected)) = kind(direction, gap) else {
            return match gap {
                // It misses more than others do.
                GapUse::ChosenLate { after, in_time } => {
                    let lost = late - alone.with_zeros(CALM) as i64 - in_time;
                    self.excess[after as usize].nanos += lost as f64;
                    lost
                }
                GapUse::Unused => {
                    alone.add(late as f64);
                    0
                }
                GapUse::UnusedAtEdge | GapUse::Merged(_) | GapUse::Apart(_) => 0,
            };
        };
        let anyway = alone.with_zeros(CALM) as i64;
        let lost = late - anyway + luck.as_nanos() as i64;
        self.excess[kind as usize].add(lost as f64 - expected.as_nanos() as f64);
        lost
    }

    /// Adds to the loss of a merged plan that was attributed already.
    pub(super) fn add_to_merged(&mut self, late: Duration) {
        self.excess[PlanKind::Merged as usize].nanos += late.as_nanos() as f64;
    }

    /// The expected loss of a plan: what is expected of its seeks, and the excess of its kind.
    pub(super) fn expected(&self, direction: Direction, gap: GapUse) -> Duration {
        let Some((kind, expected)) = kind(direction, gap) else {
            return Duration::ZERO;
        };
        expected + Duration::from_nanos(self.excess[kind as usize].with_zeros(FAITH) as u64)
    }

    pub(super) fn decay(&mut self, kept: f64) {
        for mean in self.excess.iter_mut().chain(&mut self.alone) {
            mean.decay(kept);
        }
    }
}
