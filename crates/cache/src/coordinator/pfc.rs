//! PFC: bypasses the lower cache for blocks that the upper one will keep, and adds readmore if the
//! lower level prefetches too little. It observes both in two queues of block numbers.
//!
//! ```text
//!    bypass queue BQ:    bypassed blocks: a repeated request shows that the bypass was too long
//!    readmore queue RQ:  blocks behind reads: a request shows that readmore would have been a hit
//! ```
//!
//! Zhang, Lee, Ma, Zhou, ICDCS 2008, as `shared/specs/cache-and-pfc.md`, 8, reads it. A parameter
//! decides each ambiguity of the paper (A1 to A19 there); the defaults are the recommended
//! readings.

use block::Instant;

use super::queue::GroupQueue;
use super::{
    Coordinator, CoordinatorRules, Footprint, LONGEST_REQUEST, LowerCache, RequestPlan,
    UpperRequest,
};
use crate::residency::Residency;
use crate::settings::AlgorithmSettings;

mod readings;
mod rule;

pub use readings::{Actions, PARAMETERS, Readings};
pub use rule::Rule;

/// A PFC coordinator: its parameters and two queues.
#[derive(Clone, Debug)]
pub struct Pfc {
    readings: Readings,
    rule: Rule,
    queues: Queues,
}

/// The bypass queue and the readmore queue.
#[derive(Clone, Debug)]
pub struct Queues {
    pub(super) bypassed: GroupQueue,
    pub(super) behind: GroupQueue,
}

impl Pfc {
    /// A coordinator with these settings.
    pub fn new(settings: &AlgorithmSettings, below: &LowerCache) -> Self {
        Pfc {
            readings: Readings::of(settings),
            rule: Rule::NEW,
            queues: Queues::new(below, settings.get("queue")),
        }
    }
}

impl Queues {
    /// Queues of `percent` of the lower cache's blocks each, at least one.
    pub fn new(below: &LowerCache, percent: u64) -> Self {
        let capacity = u64::from(below.frames) * percent.min(100) / 100;
        Queues {
            bypassed: GroupQueue::new(capacity as u32),
            behind: GroupQueue::new(capacity as u32),
        }
    }

    /// The memory of both queues.
    pub fn footprint(&self) -> Footprint {
        self.bypassed.footprint() + self.behind.footprint()
    }
}

impl Coordinator for Pfc {
    fn plan(&mut self, _: Instant, asked: &UpperRequest, lower: &Residency) -> RequestPlan {
        if asked.blocks.len() > LONGEST_REQUEST || self.readings.passes(asked) {
            return RequestPlan::default();
        }
        self.rule
            .step(asked, lower, &self.readings, &mut self.queues)
    }

    fn rules(&self) -> CoordinatorRules {
        self.readings.rules()
    }

    fn footprint(&self) -> Footprint {
        let itself = Footprint {
            rule: 0,
            beyond: size_of::<Self>(),
        };
        self.queues.footprint() + itself
    }
}

#[cfg(test)]
mod tests;
