//! One level: a cache with its replacement policy, a prefetcher, and a coordinator in front of
//! both.
//!
//! ```text
//!   submit(now, request)                                     poll_finished -> answered
//!        |                                                          ^
//!   coordinator ---- DIRECT: silent hits, reads that are not kept --|
//!        `---------- NATIVE: prefetcher, cache ---------------------|
//!                         |                                         |
//!                    poll -> fetch                        complete(now, fetch)
//! ```
//!
//! A level's fetches are the requests of the next level: at once ([`Stack`]), or after the delay of
//! a message. The rules are those of the specification, sections 0, 8 and 9:
//!
//! - A demand for a block in flight waits for that read. No block is read twice into the cache.
//! - Synchronously prefetched blocks travel with the missing blocks before them in one fetch. A
//!   request that waits for a block of a fetch waits for all of it.
//! - If all frames are in flight, a demanded block is read past the cache, and prefetches are
//!   dropped.
//! - A submitted write changes whole blocks and is treated as a read of them, as in earlier
//!   simulators of such systems (Zhou et al.). An owner of bytes stores them instead
//!   ([`Level::store`]), and tracks which are dirty.
//! - Readmore is fetched with the request, or becomes a wish ([`Level::with_wishes`]).

use std::collections::VecDeque;

use block::{Duration, Instant, RequestId, Switch};

use crate::cache::{Cache, Evicted};
use crate::coordinator::{
    self, Coordinator, CoordinatorRules, LowerCache, Purpose, ReadmoreFetch, RequestPlan,
    Retention, UpperRequest,
};
use crate::prefetch::{self, Advice, PrefetchWaiter, Prefetcher, Site};
use crate::replacement::Verdict;
use crate::replacement::{BadReplacement, Pattern};
use crate::residency::{BlockState, FetchOrigin, FrameId, MAX_BLOCK, Residency};
use crate::settings::BadSettings;
use block::Interval;

mod owner;
mod serve;
mod slab;
mod stack;
mod trust;
mod waiters;
mod wishes;

pub use owner::{Departed, Stored};
pub use stack::Stack;
pub use wishes::Wish;

use slab::Slab;
use waiters::{Chain, Waiters};
use wishes::Wishes;

/// The parts of a level, as users write them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Composition<'a> {
    /// Frames of the cache.
    pub capacity: u64,
    /// The replacement policy, such as `lru`.
    pub replacement: &'a str,
    /// The prefetcher, such as `ra(p=8)`.
    pub prefetch: &'a str,
    /// The coordinator, such as `pfc`; `none` for the first level.
    pub coordinator: &'a str,
    /// The largest number of pending requests; more are refused.
    pub requests: u32,
}

/// The reason that a level cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLevel {
    /// The replacement policy or the size is illegal.
    #[error(transparent)]
    Replacement(#[from] BadReplacement),
    /// The prefetcher or the coordinator is illegal.
    #[error(transparent)]
    Settings(#[from] BadSettings),
    /// The level could serve no request.
    #[error("a level that serves 0 requests at a time: expected 1 at least")]
    NoRequests,
}

/// The reason that a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LevelRefused {
    /// The number of pending requests is at its limit. The front end waits for an answer.
    #[error("{0} requests are being served: expected one of them to end first")]
    Full(u32),
    /// The blocks do not exist.
    #[error("blocks {blocks} of {within}: expected blocks of it, and at least one")]
    NoSuchBlocks {
        /// The requested blocks.
        blocks: Interval,
        /// The existing blocks.
        within: Interval,
    },
}

/// The number of a fetch from [`Level::poll`] to [`Level::complete`]. Numbers are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FetchId(pub u32);

/// A request of a level to the one below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// The number of the fetch.
    pub id: FetchId,
    /// The request for the next level. Its direction is that of the original request; a drive below
    /// the last level reads in either case.
    pub asked: UpperRequest,
    /// Whether this is a fetch of readmore alone.
    pub readmore: ReadmoreFetch,
}

/// The result of a fetch or request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All blocks were read.
    Done,
    /// At least one block could not be read.
    Failed,
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The request.
    pub id: RequestId,
    /// The result.
    pub ending: Ending,
}

/// Counters of blocks since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelCounters {
    /// Blocks that the level above requested.
    pub asked: u64,
    /// Requested blocks that were valid; silent hits included.
    pub hits: u64,
    /// Requested blocks that were in flight.
    pub hits_in_flight: u64,
    /// Hits of both kinds that the policy did not see.
    pub silent_hits: u64,
    /// Blocks that were read past the cache.
    pub bypassed: u64,
    /// Blocks that the prefetcher fetched ahead.
    pub prefetched: u64,
    /// Blocks that the coordinator fetched ahead; granted wishes included.
    pub readmore: u64,
    /// Blocks fetched ahead by either that were used.
    pub ahead_used: u64,
    /// Blocks fetched ahead by either that were evicted unused.
    pub ahead_evicted_unused: u64,
    /// Blocks that the coordinator fetched ahead and that were used.
    pub readmore_used: u64,
    /// Blocks that found every frame in flight. Requested ones are read past the cache, others are
    /// dropped.
    pub refused: u64,
    /// Wished blocks; repeated wishes count once. Wishes that have not ended are the current ones
    /// ([`Level::wished`]).
    pub wished: u64,
    /// Wishes that got a frame.
    pub wishes_granted: u64,
    /// Wishes that ended ungranted: the block was requested, fetched or changed, or found no frame.
    pub wishes_withdrawn: u64,
    /// Wishes that newer ones replaced.
    pub wishes_expired: u64,
}

/// A pending request.
#[derive(Debug)]
struct PendingRequest {
    id: RequestId,
    asked: UpperRequest,
    plan: RequestPlan,
    since: Instant,
    /// The number of blocks that it waits for.
    missing: u64,
    ending: Ending,
}

/// A fetch in flight, and the destination of its blocks.
///
/// ```text
///   | past the cache, to the request | into frames, requested | into frames, fetched ahead |
///   first                            frames_from              ahead_from              last
/// ```
#[derive(Clone, Copy, Debug)]
struct FetchInFlight {
    blocks: Interval,
    request: u32,
    frames_from: u64,
    ahead_from: u64,
    frames: Chain,
    /// The first frame that is fetched ahead.
    ahead: FrameId,
}

impl FetchInFlight {
    /// The number of its blocks that its own request waits for.
    fn awaited(&self) -> u64 {
        self.ahead_from - self.blocks.first
    }

    /// Whether some of its blocks are fetched ahead.
    fn is_ahead(&self) -> bool {
        self.ahead_from <= self.blocks.last
    }
}

/// One level.
pub struct Level {
    cache: Cache,
    prefetcher: Box<dyn Prefetcher>,
    coordinator: Box<dyn Coordinator>,
    rules: CoordinatorRules,
    requests: Slab<PendingRequest>,
    most_requests: u32,
    fetches: Slab<FetchInFlight>,
    waiters: Waiters,
    /// Fetches that were not polled yet.
    out: VecDeque<Fetch>,
    finished: VecDeque<Answered>,
    /// Evicted blocks that were not polled yet, if the owner polls them.
    departed: Option<VecDeque<Departed>>,
    /// The wishes, if readmore becomes wishes.
    wishes: Option<Wishes>,
    counts: LevelCounters,
    /// The longest fetch, in blocks.
    longest: u64,
    advice: Advice,
    /// The frames of the current request's blocks, as the cache was before it.
    found: Vec<Option<FrameId>>,
    /// The number of blocks that the current request waits for.
    missing: u64,
    /// The runs to fetch for the current request.
    runs: Vec<FetchInFlight>,
    /// The frames of the last admission.
    admitted: Vec<FrameId>,
    absent: Vec<Interval>,
}

impl Level {
    /// Makes a level of its parts.
    ///
    /// # Errors
    /// If a part is unknown or illegal.
    pub fn new(of: &Composition) -> Result<Self, BadLevel> {
        if of.requests == 0 {
            return Err(BadLevel::NoRequests);
        }
        let site = Site {
            frames: of.capacity,
        };
        let prefetcher = prefetch::make(of.prefetch, &site)?;
        let cache = Cache::named(of.replacement, of.capacity, prefetcher.first_touch())?;
        let below = LowerCache {
            frames: cache.residency().capacity(),
        };
        let coordinator = coordinator::make(of.coordinator, &below)?;
        Ok(Self::of(cache, prefetcher, coordinator, of.requests))
    }

    /// A level of these parts.
    fn of(
        cache: Cache,
        prefetcher: Box<dyn Prefetcher>,
        coordinator: Box<dyn Coordinator>,
        most_requests: u32,
    ) -> Self {
        Self {
            rules: coordinator.rules(),
            waiters: Waiters::new(cache.residency().frame_ids()),
            cache,
            prefetcher,
            coordinator,
            requests: Slab::default(),
            most_requests,
            fetches: Slab::default(),
            out: VecDeque::new(),
            finished: VecDeque::new(),
            departed: None,
            wishes: None,
            counts: LevelCounters::default(),
            longest: u64::MAX,
            advice: Advice::default(),
            found: Vec::new(),
            missing: 0,
            runs: Vec::new(),
            admitted: Vec::new(),
            absent: Vec::new(),
        }
    }

    /// Replaces the prefetcher by one that no table has. The level has served no request yet, and its cache keeps
    /// the first touch of the named one.
    #[must_use]
    pub fn with_prefetcher(mut self, prefetcher: Box<dyn Prefetcher>) -> Self {
        self.prefetcher = prefetcher;
        self
    }

    /// Limits fetches to `blocks` blocks, at least one. Longer ones are divided.
    #[must_use]
    pub fn with_longest_fetch(mut self, blocks: u64) -> Self {
        self.longest = blocks.max(1);
        self
    }

    /// The resident blocks.
    pub fn residency(&self) -> &Residency {
        self.cache.residency()
    }

    /// Whether all fetches have been polled.
    pub fn is_polled(&self) -> bool {
        self.out.is_empty()
    }

    /// The counters.
    pub fn counts(&self) -> LevelCounters {
        self.counts
    }

    /// The rules of the coordinator.
    pub fn coordinator_rules(&self) -> CoordinatorRules {
        self.rules
    }

    /// The number of requests without an answer.
    pub fn pending(&self) -> usize {
        self.requests.len()
    }

    /// Submits a request from above. Its answer comes once, from [`Level::poll_finished`].
    ///
    /// # Errors
    /// If too many requests are pending, or the blocks do not exist.
    pub fn submit(
        &mut self,
        now: Instant,
        id: RequestId,
        asked: UpperRequest,
    ) -> Result<(), LevelRefused> {
        if let Some(ending) = self.serve(now, id, asked)? {
            self.finished.push_back(Answered { id, ending });
        }
        Ok(())
    }

    /// [`Level::submit`] with an immediate answer if the request need not wait. Such an answer does
    /// not come from [`Level::poll_finished`].
    ///
    /// # Errors
    /// As [`Level::submit`].
    pub fn serve(
        &mut self,
        now: Instant,
        id: RequestId,
        asked: UpperRequest,
    ) -> Result<Option<Ending>, LevelRefused> {
        let (blocks, within) = (asked.blocks, asked.within);
        let is_within = within.first <= blocks.first && blocks.last <= within.last;
        if blocks.is_empty() || !is_within || blocks.last > MAX_BLOCK {
            return Err(LevelRefused::NoSuchBlocks { blocks, within });
        }
        if self.requests.len() == self.most_requests as usize {
            return Err(LevelRefused::Full(self.most_requests));
        }
        self.unwish(blocks);
        let plan = self.coordinator.plan(now, &asked, self.cache.residency());
        // The slot of the request if it has to wait.
        let request = self.requests.next();
        self.missing = 0;
        self.counts.asked += blocks.len();
        if plan.bypass > 0 {
            self.direct(request, &asked, plan.direct(&asked));
        }
        match self.wishes_now(plan) {
            Switch::Off => self.native(request, &asked, plan),
            Switch::On => {
                let readmore = 0;
                self.native(request, &asked, RequestPlan { readmore, ..plan });
                self.wish(&asked, plan);
            }
        }
        if !self.runs.is_empty() {
            self.send(&asked);
        }
        if self.missing == 0 {
            self.answer(&asked, plan, Duration::ZERO);
            return Ok(Some(Ending::Done));
        }
        self.requests.insert(PendingRequest {
            id,
            asked,
            plan,
            since: now,
            missing: self.missing,
            ending: Ending::Done,
        });
        Ok(None)
    }

    /// The next fetch for the level below.
    pub fn poll(&mut self) -> Option<Fetch> {
        self.out.pop_front()
    }

    /// The next answered request.
    pub fn poll_finished(&mut self) -> Option<Answered> {
        self.finished.pop_front()
    }

    /// Notes the end of a fetch.
    ///
    /// # Panics
    /// If there is no such fetch: each ends once.
    pub fn complete(&mut self, now: Instant, id: FetchId, ending: Ending) {
        let run = self.fetches.remove(id.0).expect("a fetch under way");
        let waiting = match run.is_ahead() && self.waiters.is_awaited(run.ahead) {
            true => PrefetchWaiter::Reader,
            false => PrefetchWaiter::Nobody,
        };
        let mut is_awaited = false;
        let mut next = self.waiters.after(run.frames, None);
        while let Some(frame) = next {
            match ending {
                Ending::Done => self.cache.complete_frame(frame),
                Ending::Failed => self.cache.withdraw_frame(frame),
            }
            is_awaited |= self.waiters.is_awaited(frame);
            next = self.waiters.after(run.frames, Some(frame));
        }
        self.arrived(now, run.request, run.awaited(), ending);
        if is_awaited {
            self.arrived_for_others(now, run.frames, ending);
        }
        if run.is_ahead() && ending == Ending::Done {
            let ahead = Interval::new(run.ahead_from, run.blocks.last);
            self.prefetcher.on_prefetch_complete(ahead, waiting);
        }
    }

    /// Wakes other requests that wait for the frames of a fetch.
    fn arrived_for_others(&mut self, now: Instant, frames: Chain, ending: Ending) {
        let mut next = self.waiters.after(frames, None);
        while let Some(frame) = next {
            while let Some(request) = self.waiters.pop(frame) {
                self.arrived(now, request, 1, ending);
            }
            next = self.waiters.after(frames, Some(frame));
        }
    }

    /// Notes that some blocks of a request have arrived.
    fn arrived(&mut self, now: Instant, request: u32, blocks: u64, ending: Ending) {
        if blocks == 0 {
            return;
        }
        let open = self.requests.get_mut(request).expect("a request waits");
        open.missing -= blocks;
        if ending == Ending::Failed {
            open.ending = ending;
        }
        if open.missing == 0 {
            let open = self.requests.remove(request).expect("a request waits");
            self.answer(&open.asked, open.plan, now.since(open.since));
            self.finished.push_back(Answered {
                id: open.id,
                ending: open.ending,
            });
        }
    }

    /// Reports an answered request to the coordinator.
    fn answer(&mut self, asked: &UpperRequest, plan: RequestPlan, waited: Duration) {
        if self.rules.sent == Retention::Marked {
            for block in asked.blocks.blocks() {
                self.cache.sent(block);
            }
        }
        self.coordinator.on_answered(asked, plan, waited);
    }
}

#[cfg(test)]
mod tests;
