//! The delay of a request, divided between its plan and the drive.
//!
//! ```text
//!   ended later than without its plan  =  what delays requests without plans as well
//!                                      +  what its plan was expected to cost
//!                                      +  the plan's excess
//! ```
//!
//! Recalibrations, scans of the drive's own and sectors that are read before they are written delay every
//! request. The [control group](super::control) shows by how much: its requests with a withheld plan for those
//! with a plan, and its others for those that were chosen late. Requests in gaps that were left empty show it
//! sooner and less well. In doubt the larger loss is charged.

use block::{Direction, Duration};

/// What came before a request in its gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapUse {
    /// A plan in one command with the request, and its expected loss.
    Merged(Duration),
    /// A plan with commands of its own, and its expected loss.
    Apart(Duration),
    /// Nothing, and a plan was withheld from the control group.
    Withheld,
    /// Nothing, and there was no plan to withhold from the control group.
    Control {
        /// The expected delay of the request, in nanoseconds.
        in_time: i64,
    },
    /// Nothing, but the request was chosen when a free read had ended.
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

/// By how much a request ended later than was believed without a plan, in nanoseconds. Each part counts for two
/// revolutions at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delay {
    /// The free reads before it ended so much later than believed.
    pub of_reads: i64,
    /// The rest.
    pub beyond: i64,
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
        GapUse::Unused
        | GapUse::UnusedAtEdge
        | GapUse::ChosenLate { .. }
        | GapUse::Withheld
        | GapUse::Control { .. } => None,
    }
}

/// The weight of the assumption that plans lose what is expected, in plans. A choice: a lost revolution
/// in 256 plans is chance.
const FAITH: f64 = 256.0;

/// The weight of the assumption that nothing delays requests without plans, in requests. A choice.
const CALM: f64 = 64.0;

/// The weight of what empty gaps show, in requests of the control group. A choice: a few seconds of a busy disk
/// bring as many.
const BELIEVED: f64 = 8.0;

/// The weight of older requests of the control group that remains at each settling. They are few, and the drive seldom
/// changes. A choice: about 25,000 requests, of which a sixteenth is in the control group.
const KEPT_CONTROL: f64 = 0.99;

/// The largest part of a delay that counts, in revolutions: a missed free read, and a request missed after it.
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
    /// In the same order, with a withheld plan: luck and the delay beyond that of the others without plans,
    /// which follows a change of the drive sooner.
    withheld: [DecayingMean; 2],
    /// In the same order, in the control group without one: the same beyond what was expected.
    control: [DecayingMean; 2],
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

    /// The mean with [`BELIEVED`] values of zero added, or zero if that is less.
    fn below_zero(&self) -> f64 {
        (self.nanos / (self.count + BELIEVED)).min(0.0)
    }

    fn decay(&mut self, kept: f64) {
        self.count *= kept;
        self.nanos *= kept;
    }
}

impl Delay {
    /// A delay after free reads that were so late themselves.
    pub fn after(of_reads: i64, all: i64) -> Self {
        Delay {
            of_reads,
            beyond: all - of_reads,
        }
    }

    /// What of it counts: a drive that is busy with its own for several revolutions delays the read before a
    /// request as it would have delayed the request.
    fn counted(self, period: Duration) -> i64 {
        let most = (period * MOST).as_nanos() as i64;
        self.of_reads.clamp(-most, most) + self.beyond.clamp(-most, most)
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
        (delay, luck): (Delay, Duration),
        period: Duration,
    ) -> i64 {
        let late = delay.counted(period);
        let luck = luck.as_nanos() as i64;
        let side = usize::from(direction == Direction::Write);
        let alone = self.alone[side].with_zeros(CALM);
        if let Some((kind, expected)) = kind(direction, gap) {
            let anyway = (alone + self.withheld[side].below_zero()) as i64;
            let lost = late + luck - anyway;
            self.excess[kind as usize].add(lost as f64 - expected.as_nanos() as f64);
            return lost;
        }
        match gap {
            // It misses more than others do.
            GapUse::ChosenLate { after, in_time } => {
                let anyway = (alone + self.control[side].below_zero()) as i64;
                let lost = late - anyway - in_time;
                self.excess[after as usize].nanos += lost as f64;
                return lost;
            }
            GapUse::Unused => self.alone[side].add(late as f64),
            GapUse::Withheld => self.withheld[side].add((late + luck) as f64 - alone),
            GapUse::Control { in_time } => {
                self.control[side].add((late - in_time) as f64 - alone);
            }
            GapUse::UnusedAtEdge | GapUse::Merged(_) | GapUse::Apart(_) => {}
        }
        0
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

    /// The number of withheld plans that count.
    pub(super) fn withheld(&self) -> f64 {
        self.withheld.iter().map(|mean| mean.count).sum()
    }

    pub(super) fn decay(&mut self, kept: f64) {
        for mean in self.excess.iter_mut().chain(&mut self.alone) {
            mean.decay(kept);
        }
        for mean in self.withheld.iter_mut().chain(&mut self.control) {
            mean.decay(KEPT_CONTROL);
        }
    }
}
