//! One level: a cache with its prefetcher, and the coordinator before it.

use cache::coordinator::{
    self, Asked, Below, Coordinator, EmptyNative, Manners, Plan, Purpose, ReadmoreAs, Sent,
    SilentHits, SilentUse,
};
use cache::prefetch::{self, Advice, Found, Mode, Note, Prefetcher, Seen, Site, Waiting};
use cache::{Cache, FrameId, Interval, Origin, Pattern, State};

use super::jobs::{JobId, Jobs, NONE};
use super::report::LevelReport;
use super::setup::{BadSetup, Level, Link};

mod fetching;

use fetching::{Keeping, Run};

pub(super) struct Node {
    cache: Cache,
    prefetcher: Box<dyn Prefetcher>,
    coordinator: Option<Box<dyn Coordinator>>,
    manners: Manners,
    /// What is known of a frame that is in flight, by its number.
    comings: Vec<Coming>,
    /// Which node is asked for what is missing; [`NONE`] is the disk.
    below: u32,
    pub(super) link: Link,
    pub(super) counts: LevelReport,
}

/// A frame that is in flight.
#[derive(Clone, Copy, Debug)]
struct Coming {
    /// Which job brings its block.
    job: JobId,
    /// The next frame of the same job.
    next: Option<FrameId>,
}

/// What is kept from request to request, so that none allocates.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    advice: Advice,
    /// The frame of each block that is looked at, if it has one.
    frames: Vec<Option<FrameId>>,
    /// Absent runs of what was asked for.
    missing: Vec<Interval>,
}

/// A request that is being served.
struct Serving<'a> {
    id: JobId,
    asked: Asked,
    now: u64,
    jobs: &'a mut Jobs,
    started: &'a mut Vec<JobId>,
}

impl Node {
    pub(super) fn new(level: &Level, number: usize, below: u32) -> Result<Self, BadSetup> {
        let name = || format!("level {number}");
        let site = Site {
            frames: level.frames,
        };
        let prefetcher = prefetch::make(&level.prefetcher, &site);
        let prefetcher = prefetcher.map_err(|source| BadSetup::Settings {
            level: name(),
            source,
        })?;
        let cache = Cache::named(&level.replacement, level.frames, prefetcher.first_touch());
        let cache = cache.map_err(|source| BadSetup::Replacement {
            level: name(),
            source,
        })?;
        Ok(Node {
            comings: vec![
                Coming {
                    job: NONE,
                    next: None
                };
                cache.residency().frame_ids()
            ],
            cache,
            prefetcher,
            coordinator: None,
            manners: Manners::default(),
            below,
            link: Link::LAN,
            counts: LevelReport::default(),
        })
    }

    pub(super) fn coordinated(
        mut self,
        level: &Level,
        number: usize,
        coordinator: &str,
    ) -> Result<Self, BadSetup> {
        let below = Below {
            frames: self.cache.residency().capacity(),
        };
        let made = coordinator::make(coordinator, &below);
        let made = made.map_err(|source| BadSetup::Settings {
            level: format!("level {number}"),
            source,
        })?;
        self.manners = made.manners();
        if self.manners.sent == Sent::Marked && !level.replacement.starts_with("du") {
            return Err(BadSetup::Unmarked {
                level: format!("level {number}"),
                replacement: level.replacement.clone(),
            });
        }
        self.coordinator = Some(made);
        Ok(self)
    }

    /// Blocks that were fetched ahead, are there and were not used.
    pub(super) fn unused_at_the_end(&self) -> u64 {
        let residency = self.cache.residency();
        let is_unused = |&frame: &FrameId| {
            residency.origin(frame) != Origin::Demand && !residency.is_used(frame)
        };
        residency.frames().filter(is_unused).count() as u64
    }

    /// Blocks that are in both.
    pub(super) fn in_common_with(&self, other: &Node) -> u64 {
        let (residency, other) = (self.cache.residency(), other.cache.residency());
        let is_common = |&frame: &FrameId| other.is_resident(residency.block(frame));
        residency.frames().filter(is_common).count() as u64
    }

    /// A request of the level above, or of a client: makes jobs for what is missing, and adds them to
    /// those that were started and are to be served below.
    pub(super) fn serve(
        &mut self,
        id: JobId,
        now: u64,
        jobs: &mut Jobs,
        scratch: &mut Scratch,
        started: &mut Vec<JobId>,
    ) {
        let asked = jobs.get(id).asked;
        self.counts.requests += 1;
        self.counts.asked += asked.blocks.len();
        let residency = self.cache.residency();
        let plan = match &mut self.coordinator {
            Some(coordinator) => coordinator.plan(&asked, residency),
            None => Plan::default(),
        };
        jobs.get_mut(id).plan = plan;
        let Scratch {
            advice,
            frames,
            missing,
        } = scratch;
        let mut serving = Serving {
            id,
            asked,
            now,
            jobs,
            started,
        };
        let direct = plan.direct(&asked);
        if !direct.is_empty() {
            self.read_past(direct, &mut serving);
        }
        let native = plan.native(&asked);
        let is_seen = self.manners.empty_native == EmptyNative::Seen;
        if native.is_empty() && !is_seen {
            return;
        }
        let looked_at = match native.is_empty() {
            true => asked.blocks,
            false => native,
        };
        let found = self.look_for(looked_at, frames, missing);
        if native.is_empty() {
            missing.clear();
        }
        let seen = self.seen(&asked, native, found);
        advice.clear();
        if self.manners.readmore == ReadmoreAs::Prefetch && native.last > seen.blocks.last {
            advice.ahead.push(prefetch::Ahead {
                blocks: Interval::new(seen.blocks.last + 1, native.last),
                mode: Mode::Async,
            });
        }
        let residency = self.cache.residency();
        self.prefetcher.on_request(&seen, residency, advice);
        self.note(&advice.notes);
        self.touch(native, &advice.notes, frames, &mut serving);
        if self.manners.readmore == ReadmoreAs::Prefetch {
            // What was added is the prefetcher's affair.
            missing.retain_mut(|run| {
                run.last = run.last.min(asked.blocks.last);
                !run.is_empty()
            });
        }
        self.fetch(&seen, advice, missing, &mut serving);
    }

    /// DIRECT: what is there is copied in silence, the rest is read and not kept.
    fn read_past(&mut self, direct: Interval, serving: &mut Serving) {
        let mut missing: Option<Interval> = None;
        for block in direct.blocks() {
            let mut state = State::Absent;
            if let Some(frame) = self.cache.residency().frame(block) {
                state = match self.manners.silent_hits {
                    SilentHits::Unseen => self.cache.demand_frame_silently(frame),
                    SilentHits::Touched => self.cache.demand_frame(frame, Pattern::Random),
                };
                self.count(state);
                self.counts.silent += 1;
                if state == State::InFlight {
                    self.await_block(block, frame, serving);
                }
            }
            match (&mut missing, state) {
                (None, State::Absent) => missing = Some(Interval::new(block, block)),
                (Some(run), State::Absent) => run.last = block,
                (run, _) => self.pass(run.take(), serving),
            }
        }
        self.pass(missing, serving);
        if self.manners.silent_use == SilentUse::Told {
            let found = match self.cache.residency().has_all(direct) {
                true => Found::All,
                false => Found::NotAll,
            };
            let seen = self.seen(&serving.asked, direct, found);
            self.prefetcher.on_silent_use(&seen);
        }
    }

    fn pass(&mut self, run: Option<Interval>, serving: &mut Serving) {
        let Some(blocks) = run else {
            return;
        };
        self.counts.bypassed += blocks.len();
        let run = Run {
            blocks,
            ahead: u64::MAX,
            keeping: Keeping::Past,
            purpose: Purpose::Demand,
        };
        self.start(run, &[], serving);
    }

    /// What the prefetcher sees: the native request, or what was asked for if nothing is left of it.
    fn seen(&self, asked: &Asked, native: Interval, found: Found) -> Seen {
        let mut blocks = match native.is_empty() {
            true => asked.blocks,
            false => native,
        };
        if self.manners.readmore == ReadmoreAs::Prefetch {
            blocks.last = blocks.last.min(asked.blocks.last).max(blocks.first);
        }
        Seen {
            client: asked.client,
            file: asked.file,
            blocks,
            within: asked.within,
            found,
        }
    }

    fn note(&mut self, notes: &[Note]) {
        for note in notes {
            match note {
                Note::SequentialMiss(_) => self.cache.sequential_miss(),
                Note::Refresh(blocks) => {
                    for block in blocks.blocks() {
                        self.cache.refresh(block, Pattern::Sequential);
                    }
                }
                Note::Sequential(_) => (),
            }
        }
    }

    /// Looks each block up, and collects the runs that are missing.
    fn look_for(
        &self,
        blocks: Interval,
        frames: &mut Vec<Option<FrameId>>,
        missing: &mut Vec<Interval>,
    ) -> Found {
        frames.clear();
        missing.clear();
        let residency = self.cache.residency();
        for block in blocks.blocks() {
            let frame = residency.frame(block);
            frames.push(frame);
            if frame.is_none() {
                match missing.last_mut() {
                    Some(run) if run.last + 1 == block => run.last = block,
                    _ => missing.push(Interval::new(block, block)),
                }
            }
        }
        match missing.is_empty() {
            true => Found::All,
            false => Found::NotAll,
        }
    }

    /// Touches what is there, and waits for what is in flight.
    fn touch(
        &mut self,
        native: Interval,
        notes: &[Note],
        frames: &[Option<FrameId>],
        serving: &mut Serving,
    ) {
        let last_asked = serving.asked.blocks.last;
        for (block, frame) in native.blocks().zip(frames) {
            let Some(frame) = *frame else {
                continue;
            };
            let pattern = pattern(block, notes);
            if block > last_asked {
                if self.manners.readmore == ReadmoreAs::Demand {
                    // As if it had been asked for, but nobody is sent it: it is not used.
                    self.cache.refresh(block, pattern);
                }
                continue;
            }
            let state = self.cache.demand_frame(frame, pattern);
            self.count(state);
            if state == State::InFlight {
                self.await_block(block, frame, serving);
            }
        }
    }

    fn count(&mut self, state: State) {
        match state {
            State::Absent => (),
            State::InFlight => self.counts.in_flight += 1,
            State::Valid => self.counts.valid += 1,
        }
    }

    /// The request waits for the job that brings the block.
    fn await_block(&mut self, block: u64, frame: FrameId, serving: &mut Serving) {
        let bringing = self.comings[frame.index()].job;
        let job = serving.jobs.get_mut(bringing);
        job.is_ahead_awaited |= job.ahead.first == block && !job.ahead.is_empty();
        serving.jobs.wait(serving.id, bringing);
    }

    /// A job has brought its blocks.
    pub(super) fn receive(&mut self, id: JobId, jobs: &Jobs) {
        let job = jobs.get(id);
        let mut next = job.frames;
        while let Some(frame) = next {
            self.cache.complete_frame(frame);
            next = self.comings[frame.index()].next;
        }
        if !job.ahead.is_empty() {
            let waiting = match job.is_ahead_awaited {
                true => Waiting::Reader,
                false => Waiting::Nobody,
            };
            self.prefetcher.on_prefetch_complete(job.ahead, waiting);
        }
    }

    /// A request has all that it asked for.
    pub(super) fn answer(&mut self, id: JobId, now: u64, jobs: &Jobs) {
        let job = jobs.get(id);
        if let Some(coordinator) = &mut self.coordinator {
            let waited = block::Duration::from_nanos(now - job.at);
            coordinator.on_answered(&job.asked, job.plan, waited);
        }
        if self.manners.sent == Sent::Marked {
            job.asked
                .blocks
                .blocks()
                .for_each(|block| self.cache.sent(block));
        }
    }
}

/// What the prefetcher takes the block for.
fn pattern(block: u64, notes: &[Note]) -> Pattern {
    let is_sequential = |note: &Note| match note {
        Note::Sequential(blocks) => blocks.contains(block),
        Note::SequentialMiss(_) | Note::Refresh(_) => false,
    };
    match notes.iter().any(is_sequential) {
        true => Pattern::Sequential,
        false => Pattern::Random,
    }
}
