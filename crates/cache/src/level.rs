//! One level: a cache with its replacement, a prefetcher, and the coordinator in front of both.
//!
//! ```text
//!   submit(now, asked)                                       poll_finished -> answered
//!        |                                                          ^
//!   coordinator ---- DIRECT: silent hits, reads that are not kept --|
//!        `---------- NATIVE: prefetcher, cache ---------------------|
//!                         |                                         |
//!                    poll -> fetch                        complete(now, fetch)
//! ```
//!
//! What a level fetches is what it asks the next one: levels are put on top of each other by handing
//! the fetches of one to the other, at once ([`Stack`]) or after whatever a message costs. The rules
//! are those of the specification, sections 0, 8 and 9:
//!
//! - A demand for a block in flight waits for that read. It is never read twice into the cache.
//! - What the prefetcher fetches synchronously travels with the missing blocks that it follows: one
//!   fetch, and whoever waits for a block of it waits for all of it.
//! - When no frame is free of reads, a demanded block is read past the cache, and what was to be
//!   fetched ahead is not.
//! - A write that is submitted changes whole blocks and is treated as a read of them, as in earlier
//!   simulators of such systems (Zhou et al.). Who keeps the blocks' bytes stores them instead
//!   ([`Level::store`]); which of them are not yet written below is that owner's affair.
//! - What the coordinator reads more is fetched with the request, or only wished ([`Level::with_wishes`]).

use std::collections::VecDeque;

use block::{Duration, Instant, RequestId, Switch};

use crate::cache::{Cache, Evicted};
use crate::coordinator::{
    self, Below, Coordinator, Manners, Purpose, RequestPlan, Retention, UpperRequest,
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

/// What a level is made of, each as users write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Composition<'a> {
    /// Blocks of the cache.
    pub capacity: u64,
    /// As `lru`.
    pub replacement: &'a str,
    /// As `ra(p=8)`.
    pub prefetch: &'a str,
    /// As `pfc`; `none` for the first level.
    pub coordinator: &'a str,
    /// So many requests are served at a time; one more is refused.
    pub requests: u32,
}

/// Why there is no such level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLevel {
    /// No such cache.
    #[error(transparent)]
    Replacement(#[from] BadReplacement),
    /// No such prefetcher or coordinator.
    #[error(transparent)]
    Settings(#[from] BadSettings),
    /// It could never serve anything.
    #[error("a level that serves 0 requests at a time: expected 1 at least")]
    NoRequests,
}

/// Why a request is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LevelRefused {
    /// As many as may be are being served: the front end has to wait for an answer.
    #[error("{0} requests are being served: expected one of them to end first")]
    Full(u32),
    /// There are no such blocks.
    #[error("blocks {blocks} of {within}: expected blocks of it, and at least one")]
    NoSuchBlocks {
        /// What was asked for.
        blocks: Interval,
        /// Of what.
        within: Interval,
    },
}

/// Names a fetch from [`Level::poll`] to [`Level::complete`]; numbers are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FetchId(pub u32);

/// What a level asks of what is below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Its name.
    pub id: FetchId,
    /// The request of the next level. Its direction is that of the request for which it is fetched:
    /// a drive below the last level is to read.
    pub asked: UpperRequest,
}

/// How a fetch or a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All blocks are there.
    Done,
    /// At least one could not be read.
    Failed,
}

/// A request has its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Which.
    pub id: RequestId,
    /// How.
    pub ending: Ending,
}

/// What happened so far, in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelCounters {
    /// Asked for by the level above.
    pub asked: u64,
    /// Of these, found valid; silent hits included.
    pub hits: u64,
    /// Of these, found in flight.
    pub hits_in_flight: u64,
    /// Of the hits of both kinds, those that the policy did not see.
    pub silent_hits: u64,
    /// Read past the cache.
    pub bypassed: u64,
    /// Fetched ahead by the prefetcher.
    pub prefetched: u64,
    /// Fetched ahead by the coordinator, granted wishes included.
    pub readmore: u64,
    /// Of these two, those that have been used.
    pub ahead_used: u64,
    /// Of these two, those that went without having been used.
    pub ahead_evicted_unused: u64,
    /// Of what the coordinator fetched ahead, what has been used.
    pub readmore_used: u64,
    /// Found every frame in flight: what was asked for is read past the cache, the rest is not fetched.
    pub refused: u64,
    /// Wished by the coordinator; what was wished already is not counted again. Those that have not ended
    /// are those that are wished now ([`Level::wished`]).
    pub wished: u64,
    /// Of these, those that took a frame.
    pub wishes_granted: u64,
    /// Of these, those that were asked for, fetched or changed before, or found no frame.
    pub wishes_withdrawn: u64,
    /// Of these, those that left for newer ones.
    pub wishes_expired: u64,
}

/// A request that is being served.
#[derive(Debug)]
struct Open {
    id: RequestId,
    asked: UpperRequest,
    plan: RequestPlan,
    since: Instant,
    /// Blocks that it waits for.
    missing: u64,
    ending: Ending,
}

/// A fetch that is under way, and where its blocks go.
///
/// ```text
///   | past the cache, to the request | into frames, asked for | into frames, fetched ahead |
///   first                            frames_from              ahead_from              last
/// ```
#[derive(Clone, Copy, Debug)]
struct Running {
    blocks: Interval,
    request: u32,
    frames_from: u64,
    ahead_from: u64,
    frames: Chain,
    /// The first frame of what is fetched ahead.
    ahead: FrameId,
}

impl Running {
    /// How many of its blocks the request waits for that made it.
    fn awaited(&self) -> u64 {
        self.ahead_from - self.blocks.first
    }

    /// Whether some of it is fetched ahead.
    fn is_ahead(&self) -> bool {
        self.ahead_from <= self.blocks.last
    }
}

/// One level.
pub struct Level {
    cache: Cache,
    prefetcher: Box<dyn Prefetcher>,
    coordinator: Box<dyn Coordinator>,
    manners: Manners,
    requests: Slab<Open>,
    most_requests: u32,
    fetches: Slab<Running>,
    waiters: Waiters,
    /// What was asked for below and not polled.
    out: VecDeque<Fetch>,
    finished: VecDeque<Answered>,
    /// Blocks that have gone and were not polled, if somebody polls them.
    departed: Option<VecDeque<Departed>>,
    /// If what the coordinator reads more is wished.
    wishes: Option<Wishes>,
    counts: LevelCounters,
    /// The longest fetch, in blocks.
    longest: u64,
    advice: Advice,
    /// The frame of each block of the request that is being submitted, as the cache was before it.
    found: Vec<Option<FrameId>>,
    /// How many blocks that request has to wait for.
    missing: u64,
    /// Runs to fetch for it.
    runs: Vec<Running>,
    /// Frames that were given last.
    admitted: Vec<FrameId>,
    absent: Vec<Interval>,
}

impl Level {
    /// As composed.
    ///
    /// # Errors
    /// If there is no such replacement, prefetcher or coordinator, or a size that cannot be.
    pub fn new(of: &Composition) -> Result<Self, BadLevel> {
        if of.requests == 0 {
            return Err(BadLevel::NoRequests);
        }
        let site = Site {
            frames: of.capacity,
        };
        let prefetcher = prefetch::make(of.prefetch, &site)?;
        let cache = Cache::named(of.replacement, of.capacity, prefetcher.first_touch())?;
        let below = Below {
            frames: cache.residency().capacity(),
        };
        let coordinator = coordinator::make(of.coordinator, &below)?;
        Ok(Self::of(cache, prefetcher, coordinator, of.requests))
    }

    /// Of these parts.
    fn of(
        cache: Cache,
        prefetcher: Box<dyn Prefetcher>,
        coordinator: Box<dyn Coordinator>,
        most_requests: u32,
    ) -> Self {
        Self {
            manners: coordinator.manners(),
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

    /// The level, which fetches at most so many blocks at a time, at least one: what is longer becomes
    /// several fetches.
    #[must_use]
    pub fn with_longest_fetch(mut self, blocks: u64) -> Self {
        self.longest = blocks.max(1);
        self
    }

    /// What is in the cache.
    pub fn residency(&self) -> &Residency {
        self.cache.residency()
    }

    /// Whether all that is to be fetched has been polled.
    pub fn is_polled(&self) -> bool {
        self.out.is_empty()
    }

    /// What happened so far.
    pub fn counts(&self) -> LevelCounters {
        self.counts
    }

    /// What the coordinator never changes.
    pub fn manners(&self) -> Manners {
        self.manners
    }

    /// How many requests have no answer yet.
    pub fn pending(&self) -> usize {
        self.requests.len()
    }

    /// A request from above. Its answer comes by [`Level::poll_finished`], once.
    ///
    /// # Errors
    /// If too many are being served, or there are no such blocks.
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

    /// [`Level::submit`] for who hears at once of what need not wait: that is not told a second time by
    /// [`Level::poll_finished`].
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
        // It gets this place if it has to wait.
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
        self.requests.insert(Open {
            id,
            asked,
            plan,
            since: now,
            missing: self.missing,
            ending: Ending::Done,
        });
        Ok(None)
    }

    /// What is to be asked of what is below.
    pub fn poll(&mut self) -> Option<Fetch> {
        self.out.pop_front()
    }

    /// A request that has its answer.
    pub fn poll_finished(&mut self) -> Option<Answered> {
        self.finished.pop_front()
    }

    /// A fetch has ended.
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

    /// Frames have come for which others wait than who made their fetch.
    fn arrived_for_others(&mut self, now: Instant, frames: Chain, ending: Ending) {
        let mut next = self.waiters.after(frames, None);
        while let Some(frame) = next {
            while let Some(request) = self.waiters.pop(frame) {
                self.arrived(now, request, 1, ending);
            }
            next = self.waiters.after(frames, Some(frame));
        }
    }

    /// So many blocks of a request are there.
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

    /// A request has all its blocks, after so long.
    fn answer(&mut self, asked: &UpperRequest, plan: RequestPlan, waited: Duration) {
        if self.manners.sent == Retention::Marked {
            for block in asked.blocks.blocks() {
                self.cache.sent(block);
            }
        }
        self.coordinator.on_answered(asked, plan, waited);
    }
}

#[cfg(test)]
mod tests;
