//! PFC's rule: what it knows, and what it does on a request. The numbers in the comments are the lines of
//! the pseudo-code in `shared/specs/cache-and-pfc.md`, 8.

use super::Queues;
use super::readings::{
    Actions, Beyond, BypassBound, BypassFloor, CacheHit, Full, InFlight, Large, MeanOf, QueueFull,
    QueueHit, Readings, WhenFull, WindowStart,
};
use crate::coordinator::queue::{GroupQueue, Keep, OnHit};
use crate::coordinator::{RequestPlan, UpperRequest};
use crate::prefetch::following;
use crate::residency::{BlockState, Neighbours, Residency};
use block::Interval;

/// What the rule knows: of all requests, or of those of one context.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    bypass: i64,
    readmore: u64,
    mean: Mean,
}

/// The mean length of requests, as an exact fraction.
#[derive(Clone, Copy, Debug)]
struct Mean {
    sum: u64,
    count: u64,
    /// Requests in a row that were left out.
    left_out: u32,
}

/// A10: after so many outliers in a row the mean begins anew, where it is set to. A choice of the
/// specification.
const RESEED: u32 = 1000;

impl Rule {
    /// Before the first request.
    pub const NEW: Rule = Rule {
        bypass: 0,
        readmore: 0,
        mean: Mean {
            sum: 0,
            count: 0,
            left_out: 0,
        },
    };

    /// How many blocks of a request are let past, and how many more are read.
    pub fn lengths(&self) -> (u64, u64) {
        (self.bypass.max(0) as u64, self.readmore)
    }

    /// A request of at most [`LONGEST_REQUEST`](crate::coordinator::LONGEST_REQUEST) blocks.
    pub fn step(
        &mut self,
        asked: &UpperRequest,
        lower: &Residency,
        readings: &Readings,
        queues: &mut Queues,
    ) -> RequestPlan {
        // 1 to 3. The window is computed before the parameters change.
        let length = asked.blocks.len();
        let before = self.mean;
        self.mean.fold(length, readings.mean_of);
        let mean = match readings.mean_of {
            MeanOf::Previous if before.count > 0 => before,
            _ => self.mean,
        };
        let window = mean.rounded_up_or(length);
        let (whole, known) = self.adapt(asked, &mean, lower, readings, queues, window);
        // 9.
        if readings.actions == Actions::Bypass {
            self.readmore = 0;
        }
        let bypass = match (whole, readings.actions) {
            (_, Actions::Readmore) => 0,
            (Whole::Bypassed, _) => length,
            (Whole::AsUsual, _) => length.min(self.lengths().0),
        };
        let plan = RequestPlan {
            bypass,
            readmore: self.readmore,
            ..RequestPlan::default()
        };
        // 12.
        let end = match plan.native(asked) {
            native if native.is_empty() => asked.blocks.last,
            native => native.last,
        };
        let behind = match readings.window_start {
            WindowStart::After => following(end, window),
            WindowStart::WithLast => Interval::of(end, window + 1),
        };
        queues.remember(
            (plan.direct(asked), known),
            behind.intersection(asked.within),
            readings.queue_full,
        );
        plan
    }

    /// 4 to 8: the parameters.
    fn adapt(
        &mut self,
        asked: &UpperRequest,
        mean: &Mean,
        lower: &Residency,
        readings: &Readings,
        queues: &mut Queues,
        window: u64,
    ) -> (Whole, HeldBlocks) {
        let length = asked.blocks.len();
        // 4.
        let is_large = match readings.large {
            Large::Mean => mean.is_less_than(length),
            Large::Half => mean.is_less_than(length.saturating_mul(2)),
        };
        let is_vetoed = is_large && is_full(lower, readings.full);
        if is_vetoed {
            self.readmore = 0;
            if readings.when_full == WhenFull::BypassAll {
                return (Whole::Bypassed, HeldBlocks::Nothing);
            }
        }
        // 5.
        if is_ahead(asked, lower, readings) {
            self.bypass = length as i64;
            self.readmore = 0;
            return (Whole::AsUsual, HeldBlocks::Nothing);
        }
        // 6.
        let on_hit = match readings.queue_hit {
            QueueHit::Refresh => OnHit::Refresh,
            QueueHit::Stay => OnHit::Stay,
            QueueHit::Remove => OnHit::Remove,
        };
        let is_hit = is_hit(asked.blocks, lower, readings, &mut queues.bypassed);
        let both = [&mut queues.bypassed, &mut queues.behind];
        let [was_bypassed, was_behind] = GroupQueue::both_meet(both, asked.blocks, on_hit);
        // 7.
        if !was_bypassed {
            let most = match readings.bypass_bound {
                BypassBound::OnUse => i64::MAX,
                BypassBound::Window => window as i64,
                BypassBound::Request => length as i64,
            };
            self.bypass = self.bypass.saturating_add(1).min(most);
        }
        // 8.
        if !is_hit {
            if was_bypassed {
                self.bypass = match readings.bypass_floor {
                    BypassFloor::Zero => (self.bypass - 1).max(0),
                    BypassFloor::Below => self.bypass.saturating_sub(1),
                };
            }
            let may_read_more = !(is_vetoed && readings.when_full == WhenFull::Veto);
            self.readmore = if was_behind && may_read_more {
                window
            } else {
                0
            };
        }
        let known = match was_bypassed {
            true => HeldBlocks::Nothing,
            false => HeldBlocks::Absent,
        };
        (Whole::AsUsual, known)
    }
}

/// What is known of a request's blocks in the bypass queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeldBlocks {
    Nothing,
    /// None is held.
    Absent,
}

/// What becomes of the whole request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whole {
    Bypassed,
    AsUsual,
}

impl Queues {
    /// What was let past, and what lies behind what was read.
    fn remember(
        &mut self,
        (direct, known): (Interval, HeldBlocks),
        behind: Interval,
        when_full: QueueFull,
    ) {
        let keep = match when_full {
            QueueFull::Lowest | QueueFull::Either => Keep::Lowest,
            QueueFull::Highest => Keep::Highest,
        };
        let forgotten = match known {
            HeldBlocks::Nothing => self.bypassed.add(direct, keep),
            HeldBlocks::Absent => self.bypassed.add_absent(direct, keep),
        };
        if when_full == QueueFull::Either {
            (0..forgotten).for_each(|_| self.behind.forget_oldest());
        }
        let forgotten = self.behind.add(behind, keep);
        if when_full == QueueFull::Either {
            (0..forgotten).for_each(|_| self.bypassed.forget_oldest());
        }
    }
}

impl Mean {
    fn fold(&mut self, length: u64, of: MeanOf) {
        let is_outlier = self.count > 0 && {
            let (sum, count) = (u128::from(self.sum), u128::from(self.count));
            u128::from(length) * count > 2 * sum
        };
        if is_outlier && of != MeanOf::All {
            self.left_out += 1;
            if of == MeanOf::Counted {
                self.count += 1;
            }
            if of == MeanOf::Reseeded && self.left_out == RESEED {
                *self = Mean {
                    sum: length,
                    count: 1,
                    left_out: 0,
                };
            }
            return;
        }
        // 2^47 requests of 2^16 blocks are more than any run has; then it begins anew.
        if self.sum > 1 << 62 {
            *self = Rule::NEW.mean;
        }
        self.sum += length;
        self.count += 1;
        self.left_out = 0;
    }

    /// The mean, rounded up, or this length if it is no shorter. Most lengths need no division.
    fn rounded_up_or(&self, length: u64) -> u64 {
        match u128::from(self.sum) <= u128::from(length) * u128::from(self.count) {
            true => length,
            false => self.sum.div_ceil(self.count),
        }
    }

    fn is_less_than(&self, length: u64) -> bool {
        u128::from(self.sum) < u128::from(length) * u128::from(self.count)
    }
}

fn is_full(lower: &Residency, full: Full) -> bool {
    match full {
        Full::NoFreeFrame => lower.is_full(),
        Full::AllValid => lower.is_full() && lower.in_flight() == 0,
    }
}

/// Whether the lower cache has what will be asked for next.
fn is_ahead(asked: &UpperRequest, lower: &Residency, readings: &Readings) -> bool {
    let length = asked.blocks.len();
    let beyond = match readings.beyond {
        Beyond::WithLast => Interval::of(asked.blocks.last, length + 1),
        Beyond::All | Beyond::Any => following(asked.blocks.last, length),
    };
    let beyond = beyond.intersection(asked.within);
    let mut near = lower.neighbours(beyond.first);
    let held = |block| holds(&mut near, block, readings.in_flight);
    match readings.beyond {
        Beyond::Any => beyond.blocks().any(held),
        Beyond::All | Beyond::WithLast => !beyond.is_empty() && beyond.blocks().all(held),
    }
}

fn is_hit(
    asked: Interval,
    lower: &Residency,
    readings: &Readings,
    bypassed: &mut GroupQueue,
) -> bool {
    let mut near = lower.neighbours(asked.first);
    let mut held = |block| holds(&mut near, block, readings.in_flight);
    let mut blocks = asked.blocks();
    match readings.cache_hit {
        CacheHit::Any => blocks.any(held),
        CacheHit::Bypassed => blocks.any(|block| bypassed.finds(block, OnHit::Stay) && held(block)),
        CacheHit::All => blocks.all(held),
    }
}

#[inline]
fn holds(lower: &mut Neighbours<'_>, block: u64, in_flight: InFlight) -> bool {
    match in_flight {
        InFlight::Counts => lower.is_resident(block),
        InFlight::Absent => lower.state(block) == BlockState::Valid,
    }
}
