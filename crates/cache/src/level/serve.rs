//! How a request is served: what goes past the cache, what into it, and what is fetched ahead.

use super::{
    Asked, Chain, Evicted, Fetch, FetchId, FrameId, Goal, Interval, Level, Origin, Pattern, Plan,
    Purpose, Residency, Running, State, Verdict,
};
use crate::coordinator::{EmptyNative, ReadmoreAs, SilentHits, SilentUse, Submissions};
use crate::prefetch::{self, Ahead, Found, Mode, Note, Seen};

impl Level {
    /// DIRECT: blocks in the cache are copied without policy and prefetcher being told, the others
    /// are read and not kept.
    pub(super) fn direct(&mut self, request: u32, asked: &Asked, direct: Interval) {
        if direct.is_empty() {
            return;
        }
        let is_told = self.manners.silent_use == SilentUse::Told;
        let found = match is_told && !self.cache.residency().has_all(direct) {
            true => Found::NotAll,
            false => Found::All,
        };
        for block in direct.blocks() {
            let Some(frame) = self.cache.residency().frame(block) else {
                self.read_past(request, block);
                continue;
            };
            self.note_use(frame);
            self.counts.silent_hits += 1;
            let state = match self.manners.silent_hits {
                SilentHits::Unseen => self.cache.demand_frame_silently(frame),
                SilentHits::Touched => self.cache.demand_frame(frame, Pattern::Random),
            };
            self.deliver(request, frame, state);
        }
        if is_told {
            let seen = Seen {
                found,
                ..Self::seen(asked, direct)
            };
            self.prefetcher.on_silent_use(&seen);
        }
    }

    /// NATIVE: a request as any other, of which the level above gets what it asked for.
    pub(super) fn native(&mut self, request: u32, asked: &Asked, plan: Plan) {
        let native = plan.native(asked);
        let wanted = Interval::new(native.first, native.last.min(asked.blocks.last));
        let seen = match self.manners.readmore {
            _ if native.is_empty() && self.manners.empty_native == EmptyNative::Skipped => return,
            _ if native.is_empty() => asked.blocks,
            ReadmoreAs::Prefetch if !wanted.is_empty() => wanted,
            _ => native,
        };
        let seen = Seen {
            found: self.look_up(seen, native),
            ..Self::seen(asked, seen)
        };
        let mut advice = std::mem::take(&mut self.advice);
        advice.clear();
        let residency = self.cache.residency();
        self.prefetcher.on_request(&seen, residency, &mut advice);
        self.heed(&advice.notes);
        self.touch(request, native, wanted, &advice.notes);
        self.admit_missing(request, native, wanted, &advice.notes);
        for ahead in &advice.ahead {
            self.fetch_ahead(request, ahead, &seen, &advice.notes);
        }
        self.advice = advice;
    }

    /// Finds the frames of the native request's blocks, and says whether all is there that the
    /// prefetcher sees.
    fn look_up(&mut self, seen: Interval, native: Interval) -> Found {
        let residency = self.cache.residency();
        self.found.clear();
        let frames = native.blocks().map(|block| residency.frame(block));
        self.found.extend(frames);
        let is_all = match seen.first == native.first {
            // It begins where the native request does, and is not longer.
            true => {
                let mut looked_at = seen.blocks().zip(&self.found);
                looked_at.all(|(_, frame)| frame.is_some())
            }
            false => residency.has_all(seen),
        };
        match is_all {
            true => Found::All,
            false => Found::NotAll,
        }
    }

    /// Touches what is there, before anything can go for what is not. Blocks that the coordinator added
    /// are touched as if they had been asked for, but nobody gets them.
    fn touch(&mut self, request: u32, native: Interval, wanted: Interval, notes: &[Note]) {
        for (at, block) in native.blocks().enumerate() {
            let Some(frame) = self.found[at] else {
                continue;
            };
            if wanted.contains(block) {
                self.note_use(frame);
                let state = self.cache.demand_frame(frame, pattern(block, notes));
                self.deliver(request, frame, state);
            } else if self.manners.readmore == ReadmoreAs::Demand {
                let pattern = pattern(block, notes);
                self.cache.touch_frame_unused(frame, pattern);
            }
        }
    }

    /// Gives frames to what is not there; nobody waits for what the coordinator added.
    fn admit_missing(&mut self, request: u32, native: Interval, wanted: Interval, notes: &[Note]) {
        for (at, block) in native.blocks().enumerate() {
            if self.found[at].is_some() {
                continue;
            }
            let is_wanted = wanted.contains(block);
            let origin = match is_wanted {
                true => Origin::Demand,
                false => Origin::Readmore,
            };
            match self.admit(block, origin, notes) {
                Some(frame) if is_wanted => {
                    self.cache.demand_frame_silently(frame);
                    self.extend(request, block, Goal::Frame(frame));
                }
                Some(frame) => {
                    self.counts.readmore += 1;
                    self.extend(request, block, Goal::Ahead(frame));
                }
                None if is_wanted => self.read_past(request, block),
                None => return,
            }
        }
    }

    /// Hands what the request needs from below to [`Level::poll`]; it waits for what it asked for.
    pub(super) fn send(&mut self, asked: &Asked) {
        for run in &self.runs {
            let purpose = match run.awaited() {
                0 => Purpose::Prefetch,
                _ => asked.purpose,
            };
            self.missing += run.awaited();
            let id = FetchId(self.fetches.insert(*run));
            let asked = Asked {
                blocks: run.blocks,
                purpose,
                ..*asked
            };
            self.out.push_back(Fetch { id, asked });
        }
        self.runs.clear();
    }

    fn seen(asked: &Asked, blocks: Interval) -> Seen {
        Seen {
            client: asked.client,
            file: asked.file,
            blocks,
            within: asked.within,
            found: Found::All,
        }
    }

    /// Tells the replacement what the prefetcher says.
    fn heed(&mut self, notes: &[Note]) {
        for note in notes {
            match note {
                Note::Sequential(_) => {}
                Note::SequentialMiss(_) => self.cache.sequential_miss(),
                Note::Refresh(blocks) => {
                    for block in blocks.blocks() {
                        self.cache.refresh(block, Pattern::Sequential);
                    }
                }
            }
        }
    }

    /// Blocks that the prefetcher wants: those that are not there, as far as frames are to be had.
    fn fetch_ahead(&mut self, request: u32, ahead: &Ahead, seen: &Seen, notes: &[Note]) {
        let mut absent = std::mem::take(&mut self.absent);
        absent.clear();
        let residency = self.cache.residency();
        prefetch::absent_runs(ahead.blocks, seen, residency, |run| absent.push(run));
        'runs: for run in &absent {
            for block in run.blocks() {
                let Some(frame) = self.admit(block, Origin::Prefetch, notes) else {
                    break 'runs;
                };
                self.counts.prefetched += 1;
                // What is fetched in a message of its own begins one, and goes on with it.
                if ahead.mode == Mode::Async && block == run.first {
                    self.begin(request, block, Goal::Ahead(frame));
                } else {
                    self.extend(request, block, Goal::Ahead(frame));
                }
            }
        }
        self.absent = absent;
    }

    /// The block is read for the request alone.
    fn read_past(&mut self, request: u32, block: u64) {
        self.counts.bypassed += 1;
        self.extend(request, block, Goal::Past);
    }

    /// Adds a block to the last run, if it goes on with it, or begins one.
    #[inline]
    fn extend(&mut self, request: u32, block: u64, goal: Goal) {
        let submissions = self.manners.submissions;
        match self.runs.last_mut() {
            Some(last)
                if last.blocks.last + 1 == block
                    && last.blocks.len() < self.longest
                    && joins(last, goal, submissions) =>
            {
                last.blocks.last = block;
                match goal {
                    Goal::Past => {
                        last.frames_from = block + 1;
                        last.ahead_from = block + 1;
                    }
                    Goal::Frame(frame) => {
                        last.ahead_from = block + 1;
                        self.waiters.join(&mut last.frames, frame);
                    }
                    Goal::Ahead(frame) => self.waiters.join(&mut last.frames, frame),
                }
            }
            _ => self.begin(request, block, goal),
        }
    }

    /// Begins a run with a block.
    #[inline(never)]
    fn begin(&mut self, request: u32, block: u64, goal: Goal) {
        let mut frames = Chain::default();
        let (frames_from, ahead_from) = match goal {
            Goal::Past => (block + 1, block + 1),
            Goal::Frame(frame) => {
                self.waiters.join(&mut frames, frame);
                (block, block + 1)
            }
            Goal::Ahead(frame) => {
                self.waiters.join(&mut frames, frame);
                (block, block)
            }
        };
        self.runs.push(Running {
            blocks: Interval::new(block, block),
            request,
            frames_from,
            ahead_from,
            frames,
        });
    }

    /// The block was found: it can be had at once, or has to be waited for.
    fn deliver(&mut self, request: u32, frame: FrameId, state: State) {
        if state == State::InFlight {
            self.counts.hits_in_flight += 1;
            self.wait(request, frame);
        } else {
            self.counts.hits += 1;
        }
    }

    fn wait(&mut self, request: u32, frame: FrameId) {
        self.waiters.push(frame, request);
        self.missing += 1;
    }

    /// A block that was fetched ahead is used for the first time.
    fn note_use(&mut self, frame: FrameId) {
        let residency = self.cache.residency();
        if residency.is_used(frame) {
            return;
        }
        let origin = residency.origin(frame);
        self.counts.ahead_used += u64::from(origin != Origin::Demand);
        self.counts.readmore_used += u64::from(origin == Origin::Readmore);
    }

    /// Gives a block that has none a frame, if there is one.
    pub(super) fn admit(&mut self, block: u64, origin: Origin, notes: &[Note]) -> Option<FrameId> {
        let prefetcher = &mut self.prefetcher;
        let ask = |residency: &Residency, frame| -> Verdict {
            prefetcher.on_evict(residency.block(frame))
        };
        let pattern = pattern(block, notes);
        let Ok(admitted) = self.cache.admit_absent(block, origin, pattern, ask) else {
            self.counts.refused += 1;
            return None;
        };
        self.unwish(Interval::new(block, block));
        if let Some(evicted) = admitted.evicted {
            self.note_eviction(&evicted);
        }
        if let (Some(frame), Some(evicted)) = (admitted.vacated, admitted.evicted) {
            self.depart(frame, evicted.block);
        }
        Some(admitted.frame)
    }

    fn note_eviction(&mut self, evicted: &Evicted) {
        let is_ahead = evicted.origin != Origin::Demand;
        self.counts.ahead_evicted_unused += u64::from(is_ahead && !evicted.was_used);
        self.coordinator.on_evicted(evicted);
    }
}

/// What the prefetcher says of the block.
fn pattern(block: u64, notes: &[Note]) -> Pattern {
    let is_in = |note: &Note| matches!(note, Note::Sequential(run) if run.contains(block));
    match notes.iter().any(is_in) {
        true => Pattern::Sequential,
        false => Pattern::Random,
    }
}

/// Whether a run can go on with a block for this goal: goals come in their order, and what goes past
/// the cache is a fetch of its own unless the coordinator wants it otherwise.
fn joins(run: &Running, goal: Goal, submissions: Submissions) -> bool {
    let is_all_past = run.frames_from > run.blocks.last;
    let is_none_ahead = run.ahead_from > run.blocks.last;
    match goal {
        Goal::Past => is_all_past,
        Goal::Frame(_) => is_none_ahead && (!is_all_past || submissions == Submissions::One),
        Goal::Ahead(_) => !is_all_past || submissions == Submissions::One,
    }
}
