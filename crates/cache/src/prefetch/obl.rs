//! One block lookahead: after a request, the block that follows it.
//!
//! Smith, ACM Computing Surveys 14(3), 1982: always, on a miss only, or tagged, which is on a miss and
//! on the first demand for a block that was itself fetched ahead.

use super::{Advice, LookupResult, Prefetcher, Seen, Site, following};
use crate::lru_map::LruMap;
use crate::replacement::Verdict;
use crate::residency::Residency;
use crate::settings::{AlgorithmSettings, Parameter, Values};
use block::Interval;

/// Fetches one block ahead.
#[derive(Clone, Debug)]
pub struct OneBlock {
    when: When,
    /// Blocks that were fetched ahead and not requested.
    tagged: LruMap<u64, ()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Always,
    OnMiss,
    Tagged,
}

/// The parameters.
pub const PARAMETERS: &[Parameter] = &[Parameter {
    key: "when",
    what: "After which requests: Smith 1982 compares the three.",
    values: Values::Words(&["always", "on-miss", "tagged"]),
}];

impl OneBlock {
    /// A prefetcher with these settings.
    pub fn new(settings: &AlgorithmSettings, site: &Site) -> Self {
        let (when, tags) = match settings.get("when") {
            0 => (When::Always, 1),
            1 => (When::OnMiss, 1),
            _ => (When::Tagged, site.frames.try_into().unwrap_or(usize::MAX)),
        };
        OneBlock {
            when,
            tagged: LruMap::new(tags),
        }
    }

    /// Whether one of the blocks has a tag; they have none afterwards.
    fn untag(&mut self, blocks: Interval) -> bool {
        let untagged = blocks
            .blocks()
            .filter(|&block| self.tagged.remove(block).is_some());
        untagged.count() > 0
    }
}

impl Prefetcher for OneBlock {
    fn on_request(&mut self, seen: &Seen, residency: &Residency, advice: &mut Advice) {
        let is_missed = seen.found == LookupResult::NotAll;
        let is_due = match self.when {
            When::Always => true,
            When::OnMiss => is_missed,
            When::Tagged => self.untag(seen.walk()) || is_missed,
        };
        let next = following(seen.blocks.last, 1);
        if !is_due || next.is_empty() || residency.is_resident(next.first) {
            return;
        }
        if self.when == When::Tagged && seen.within.contains(next.first) {
            self.tagged.insert(next.first, ());
        }
        advice.fetch(next, seen.mode());
    }

    fn on_evict(&mut self, block: u64) -> Verdict {
        self.tagged.remove(block);
        Verdict::Evict
    }

    fn on_silent_use(&mut self, seen: &Seen) {
        self.untag(seen.walk());
    }
}
