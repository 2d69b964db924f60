//! How a request is served: what goes past the cache, what into it, and what is fetched ahead.

use super::{
    Asked, Evicted, Fetch, FetchId, FrameId, Goal, Interval, Level, Origin, Pattern, Plan, Purpose,
    Residency, Running, State, Verdict,
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
        let found = self.found(direct);
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
        if self.manners.silent_use == SilentUse::Told {
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
        let behind = Interval::new(native.first.max(wanted.last + 1), native.last);
        let seen = match self.manners.readmore {
            _ if native.is_empty() && self.manners.empty_native == EmptyNative::Skipped => return,
            _ if native.is_empty() => asked.blocks,
            ReadmoreAs::Prefetch if !wanted.is_empty() => wanted,
            _ => native,
        };
        let seen = Seen {
            found: self.found(seen),
            ..Self::seen(asked, seen)
        };
        let mut advice = std::mem::take(&mut self.advice);
        advice.clear();
        let residency = self.cache.residency();
        self.prefetcher.on_request(&seen, residency, &mut advice);
        self.heed(&advice.notes);
        if !native.is_empty() {
            for block in wanted.blocks() {
                self.demand(request, block, &advice.notes);
            }
            self.read_more(request, behind, &advice.notes);
        }
        for ahead in &advice.ahead {
            self.fetch_ahead(request, ahead, &seen, &advice.notes);
        }
        self.advice = advice;
    }

    /// Hands what the request needs from below to [`Level::poll`].
    pub(super) fn send(&mut self, asked: &Asked) {
        for at in 0..self.runs.len() {
            let run = self.runs[at];
            let purpose = match run.ahead_from == run.blocks.first {
                true => Purpose::Prefetch,
                false => asked.purpose,
            };
            let id = FetchId(self.fetches.insert(run));
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

    fn found(&self, blocks: Interval) -> Found {
        match self.cache.residency().has_all(blocks) {
            true => Found::All,
            false => Found::NotAll,
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

    /// A block that was asked for.
    fn demand(&mut self, request: u32, block: u64, notes: &[Note]) {
        if let Some(frame) = self.cache.residency().frame(block) {
            self.note_use(frame);
            let state = self.cache.demand_frame(frame, pattern(block, notes));
            self.deliver(request, frame, state);
        } else if let Some(frame) = self.admit(block, Origin::Demand, notes) {
            self.cache.demand_frame_silently(frame);
            self.extend(request, block, Goal::Frame);
            self.wait(request, frame);
        } else {
            self.read_past(request, block);
        }
    }

    /// Blocks that the coordinator added: as if they had been asked for, but nobody waits.
    fn read_more(&mut self, request: u32, behind: Interval, notes: &[Note]) {
        for block in behind.blocks() {
            if self.cache.residency().is_resident(block) {
                if self.manners.readmore == ReadmoreAs::Demand {
                    self.cache.touch_unused(block, pattern(block, notes));
                }
            } else if self.admit(block, Origin::Readmore, notes).is_some() {
                self.counts.readmore += 1;
                self.extend(request, block, Goal::Ahead);
            } else {
                return;
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
                if self.admit(block, Origin::Prefetch, notes).is_none() {
                    break 'runs;
                }
                self.counts.prefetched += 1;
                // What is fetched in a message of its own begins one, and goes on with it.
                if ahead.mode == Mode::Async && block == run.first {
                    self.runs.push(running(request, block, Goal::Ahead));
                } else {
                    self.extend(request, block, Goal::Ahead);
                }
            }
        }
        self.absent = absent;
    }

    /// The block is read for the request alone.
    fn read_past(&mut self, request: u32, block: u64) {
        self.counts.bypassed += 1;
        self.extend(request, block, Goal::Past);
        let open = self
            .requests
            .get_mut(request)
            .expect("it is being submitted");
        open.missing += 1;
    }

    /// Adds a block to the last run, if it goes on with it, or begins one.
    fn extend(&mut self, request: u32, block: u64, goal: Goal) {
        let submissions = self.manners.submissions;
        if let Some(last) = self.runs.last_mut()
            && last.blocks.last + 1 == block
            && joins(last, goal, submissions)
        {
            last.blocks.last = block;
            last.frames_from += u64::from(goal == Goal::Past);
            last.ahead_from += u64::from(goal != Goal::Ahead);
            return;
        }
        self.runs.push(running(request, block, goal));
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
        let open = self
            .requests
            .get_mut(request)
            .expect("it is being submitted");
        open.missing += 1;
    }

    /// A block that was fetched ahead is used for the first time.
    fn note_use(&mut self, frame: FrameId) {
        let residency = self.cache.residency();
        let is_ahead = residency.origin(frame) != Origin::Demand;
        self.counts.ahead_used += u64::from(is_ahead && !residency.is_used(frame));
    }

    /// Gives the block a frame, if there is one.
    pub(super) fn admit(&mut self, block: u64, origin: Origin, notes: &[Note]) -> Option<FrameId> {
        let prefetcher = &mut self.prefetcher;
        let ask = |residency: &Residency, frame| -> Verdict {
            prefetcher.on_evict(residency.block(frame))
        };
        let pattern = pattern(block, notes);
        let admitted = self.cache.admit_frame(block, origin, pattern, ask).ok()?;
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

/// A fetch of one block.
fn running(request: u32, block: u64, goal: Goal) -> Running {
    Running {
        blocks: Interval::new(block, block),
        request,
        frames_from: block + u64::from(goal == Goal::Past),
        ahead_from: block + u64::from(goal != Goal::Ahead),
    }
}

/// Whether a run can go on with a block for this goal: goals come in their order, and what goes past
/// the cache is a fetch of its own unless the coordinator wants it otherwise.
fn joins(run: &Running, goal: Goal, submissions: Submissions) -> bool {
    let is_all_past = run.frames_from > run.blocks.last;
    let is_none_ahead = run.ahead_from > run.blocks.last;
    match goal {
        Goal::Past => is_all_past,
        Goal::Frame => is_none_ahead && (!is_all_past || submissions == Submissions::One),
        Goal::Ahead => !is_all_past || submissions == Submissions::One,
    }
}
