//! One cache of the system: a level, the node below it, and the link of its replies.

use cache::coordinator::Retention;
use cache::level::{BadLevel, Composition, LevelCounters};
use cache::{FetchOrigin, FrameId};

use super::jobs::NONE;
use super::merging::LARGEST;
use super::report::LevelReport;
use super::setup::{BadSetup, CacheSpec, Link, Readmore};

pub(super) struct LevelNode {
    pub(super) level: cache::Level,
    /// The node that serves its fetches; [`NONE`] is the disk.
    pub(super) below: u32,
    pub(super) link: Link,
    /// Number of requests of the level above, or of clients.
    pub(super) requests: u64,
}

/// Maximum number of outstanding requests: as many as fetches above it, so that none is refused.
const REQUESTS: u32 = u32::MAX;

impl LevelNode {
    /// The node of the level with this number, counted from 1 at the top.
    pub(super) fn new(
        of: &CacheSpec,
        coordinator: &str,
        number: usize,
        below: u32,
    ) -> Result<Self, BadSetup> {
        let composition = Composition {
            capacity: of.frames,
            replacement: &of.replacement,
            prefetch: &of.prefetcher,
            coordinator,
            requests: REQUESTS,
        };
        let level = cache::Level::new(&composition).map_err(|bad| bad_level(number, bad))?;
        if level.coordinator_rules().sent == Retention::Marked && !of.replacement.starts_with("du")
        {
            return Err(BadSetup::Unmarked {
                level: name(number),
                replacement: of.replacement.clone(),
            });
        }
        Ok(LevelNode {
            level: match below {
                NONE => level.with_longest_fetch(LARGEST),
                _ => level.with_longest_fetch(cache::coordinator::LONGEST_REQUEST),
            },
            below,
            link: Link::LAN,
            requests: 0,
        })
    }

    /// The same node with this treatment of its coordinator's readmore.
    pub(super) fn with(self, readmore: Readmore) -> Self {
        let level = match readmore {
            Readmore::Fetched => self.level,
            Readmore::Wished => self.level.with_wishes(),
            Readmore::WishedWhileGranted => self.level.with_wishes_while_granted(),
        };
        LevelNode { level, ..self }
    }

    /// The totals at the end of the run.
    pub(super) fn report(&self) -> LevelReport {
        let LevelCounters {
            asked,
            hits,
            hits_in_flight,
            silent_hits,
            bypassed,
            prefetched,
            readmore,
            readmore_used,
            wished,
            wishes_granted,
            ahead_evicted_unused,
            refused,
            ..
        } = self.level.counts();
        LevelReport {
            requests: self.requests,
            asked,
            valid: hits,
            in_flight: hits_in_flight,
            silent: silent_hits,
            bypassed,
            prefetched,
            readmore,
            readmore_used,
            wished,
            granted: wishes_granted,
            unused: ahead_evicted_unused + self.unused(),
            refused,
        }
    }

    /// Number of prefetched blocks that are resident and unused.
    fn unused(&self) -> u64 {
        let residency = self.level.residency();
        let is_unused = |&frame: &FrameId| {
            residency.origin(frame) != FetchOrigin::Demand && !residency.is_used(frame)
        };
        residency.frames().filter(is_unused).count() as u64
    }

    /// Number of blocks that are in both caches.
    pub(super) fn in_common_with(&self, other: &LevelNode) -> u64 {
        let (residency, other) = (self.level.residency(), other.level.residency());
        let is_common = |&frame: &FrameId| other.is_resident(residency.block(frame));
        residency.frames().filter(is_common).count() as u64
    }
}

fn name(number: usize) -> String {
    format!("level {number}")
}

fn bad_level(number: usize, bad: BadLevel) -> BadSetup {
    let level = name(number);
    match bad {
        BadLevel::Replacement(source) => BadSetup::Replacement { level, source },
        BadLevel::Settings(source) => BadSetup::Settings { level, source },
        BadLevel::NoRequests => unreachable!("it serves {REQUESTS}"),
    }
}
