//! PFC: lets blocks past the lower cache that the upper one will keep, and reads more where the lower
//! level is too timid, by what it has seen of both in two queues of block numbers.
//!
//! ```text
//!    bypass queue BQ:    blocks that were let past: asked for again, bypassing was too much
//!    readmore queue RQ:  blocks behind what was read: asked for, a little more would have been a hit
//! ```
//!
//! Zhang, Lee, Ma, Zhou, ICDCS 2008, to the letter as `shared/specs/cache-and-pfc.md`, 8, reads it. Where
//! the paper is ambiguous (A1 to A19 there) a parameter chooses; the defaults are the readings to use.

use block::Instant;

use super::queue::GroupQueue;
use super::{Below, Coordinator, Footprint, LONGEST_REQUEST, Manners, RequestPlan, UpperRequest};
use crate::residency::Residency;
use crate::settings::AlgorithmSettings;

mod readings;
mod rule;

pub use readings::{Actions, PARAMETERS, Readings};
pub use rule::Rule;

/// One set of parameters and two queues.
#[derive(Clone, Debug)]
pub struct Pfc {
    readings: Readings,
    rule: Rule,
    queues: Queues,
}

/// What was let past, and what lies behind what was read.
#[derive(Clone, Debug)]
pub struct Queues {
    pub(super) bypassed: GroupQueue,
    pub(super) behind: GroupQueue,
}

impl Pfc {
    /// As set.
    pub fn new(settings: &AlgorithmSettings, below: &Below) -> Self {
        Pfc {
            readings: Readings::of(settings),
            rule: Rule::NEW,
            queues: Queues::new(below, settings.get("queue")),
        }
    }
}

impl Queues {
    /// Each holds `percent` of the lower cache's blocks, at least one.
    pub fn new(below: &Below, percent: u64) -> Self {
        let capacity = u64::from(below.frames) * percent.min(100) / 100;
        Queues {
            bypassed: GroupQueue::new(capacity as u32),
            behind: GroupQueue::new(capacity as u32),
        }
    }

    /// The memory of both.
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

    fn manners(&self) -> Manners {
        self.readings.manners()
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
