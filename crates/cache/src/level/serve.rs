//! The service of a request: bypassed blocks, blocks in frames, and prefetches.

use super::{
    BlockState, Chain, Departed, Evicted, Fetch, FetchId, FetchInFlight, FetchOrigin, FrameId,
    Interval, Level, Pattern, Purpose, RequestPlan, Residency, UpperRequest, Verdict,
};
use crate::coordinator::{
    EmptyNative, ReadmoreAs, ReadmoreFetch, SilentHits, SilentUse, Submissions,
};
use crate::prefetch::{self, Ahead, FetchMode, LookupResult, Note, Seen};
use crate::replacement::{AdmittedRun, Refusal, Veto};

impl Level {
    /// DIRECT: cached blocks are delivered silently, without the policy; others are read past the cache.
    pub(super) fn direct(&mut self, request: u32, asked: &UpperRequest, direct: Interval) {
        let is_reported = self.rules.silent_use == SilentUse::Reported;
        let found = match is_reported && !self.cache.residency().has_all(direct) {
            true => LookupResult::NotAll,
            false => LookupResult::All,
        };
        for block in direct.blocks() {
            let Some(frame) = self.cache.residency().frame(block) else {
                self.read_past(request, block);
                continue;
            };
            self.note_use(frame);
            self.counts.silent_hits += 1;
            let state = match self.rules.silent_hits {
                SilentHits::Unseen => self.cache.demand_frame_silently(frame),
                SilentHits::Touched => self.cache.demand_frame(frame, Pattern::Random),
            };
            self.deliver(request, frame, state);
        }
        if is_reported {
            let seen = Seen {
                found,
                ..Self::seen(asked, direct)
            };
            self.prefetcher.on_silent_use(&seen);
        }
    }

    /// NATIVE: serves the rest as a regular request. The level above gets the blocks that it requested.
    pub(super) fn native(&mut self, request: u32, asked: &UpperRequest, plan: RequestPlan) {
        let native = plan.native(asked);
        let wanted = Interval::new(native.first, native.last.min(asked.blocks.last));
        let seen = match self.rules.readmore {
            _ if native.is_empty() && self.rules.empty_native == EmptyNative::Skipped => return,
            _ if native.is_empty() => asked.blocks,
            ReadmoreAs::Prefetch if !wanted.is_empty() => wanted,
            _ => native,
        };
        let mut found = std::mem::take(&mut self.found);
        let mut advice = std::mem::take(&mut self.advice);
        let residency = self.cache.residency();
        let (all, absent) = look_up(residency, seen, native, &mut found);
        let seen = Seen {
            found: all,
            ..Self::seen(asked, seen)
        };
        advice.clear();
        self.prefetcher.on_request(&seen, residency, &mut advice);
        let notes = &advice.notes[..];
        self.forward_notes(notes);
        self.touch(request, native, wanted, &found, notes);
        if absent > 0 {
            self.admit_missing(request, native, wanted, &found, notes);
        }
        for ahead in &advice.ahead {
            self.fetch_ahead(request, ahead, &seen, notes);
        }
        self.found = found;
        self.advice = advice;
    }

    /// Touches resident blocks before admissions can evict them. Blocks that the coordinator added may be touched
    /// like demands, but are not delivered.
    fn touch(
        &mut self,
        request: u32,
        native: Interval,
        wanted: Interval,
        found: &[Option<FrameId>],
        notes: &[Note],
    ) {
        let (of_wanted, of_more) = found.split_at(wanted.len() as usize);
        for (block, frame) in wanted.blocks().zip(of_wanted) {
            if let Some(frame) = *frame {
                self.note_use(frame);
                let state = self.cache.demand_frame(frame, pattern(block, notes));
                self.deliver(request, frame, state);
            }
        }
        if self.rules.readmore != ReadmoreAs::Demand {
            return;
        }
        let more = Interval::new(native.first + wanted.len(), native.last);
        for (block, frame) in more.blocks().zip(of_more) {
            if let Some(frame) = *frame {
                let pattern = pattern(block, notes);
                self.cache.touch_frame_unused(frame, pattern);
            }
        }
    }

    /// Admits absent blocks. The request does not wait for those that the coordinator added.
    fn admit_missing(
        &mut self,
        request: u32,
        native: Interval,
        wanted: Interval,
        found: &[Option<FrameId>],
        notes: &[Note],
    ) {
        let mut at = 0;
        while let Some(there) = found[at..].iter().position(Option::is_none) {
            at += there;
            let run = found[at..].iter().take_while(|frame| frame.is_none());
            let run = Interval::of(native.first + at as u64, run.count() as u64);
            at += run.len() as usize;
            let asked = Interval::new(run.first, run.last.min(wanted.last));
            let more = Interval::new(run.first + asked.len(), run.last);
            self.admit_wanted(request, asked, notes);
            let mode = match self.rules.readmore_fetch {
                ReadmoreFetch::Joined => FetchMode::Sync,
                ReadmoreFetch::Own => FetchMode::Async,
            };
            let count = self.admit_all(request, more, FetchOrigin::Readmore, mode, notes);
            self.counts.readmore += count;
            if count < more.len() {
                return;
            }
        }
    }

    /// Admits requested blocks while there are frames; the rest is read past the cache.
    fn admit_wanted(&mut self, request: u32, wanted: Interval, notes: &[Note]) {
        let count = self.admit_all(request, wanted, FetchOrigin::Demand, FetchMode::Sync, notes);
        if count < wanted.len() {
            // Each of the rest found no frame, and the first one is counted already.
            self.counts.refused += wanted.len() - count - 1;
            let rest = Interval::new(wanted.first + count, wanted.last);
            rest.blocks()
                .for_each(|block| self.read_past(request, block));
        }
    }

    /// Admits absent blocks and fetches them in this mode. The request waits for demands. Stops before the first
    /// block without a frame. Returns the number of admitted blocks.
    fn admit_all(
        &mut self,
        request: u32,
        blocks: Interval,
        origin: FetchOrigin,
        mode: FetchMode,
        notes: &[Note],
    ) -> u64 {
        if blocks.is_empty() {
            return 0;
        }
        let mut frames = std::mem::take(&mut self.admitted);
        frames.clear();
        let mut rest = blocks;
        while !rest.is_empty() {
            let (alike, pattern) = alike(rest, notes);
            let admitted = AdmittedRun {
                blocks: alike,
                origin,
                pattern,
            };
            if self.admit_run(&admitted, &mut frames).is_err() {
                break;
            }
            rest.first += alike.len();
        }
        if origin == FetchOrigin::Demand {
            for &frame in &frames {
                self.cache.demand_frame_silently(frame);
            }
        }
        self.fetch_into(request, blocks.first, &frames, origin, mode);
        self.admitted = frames;
        self.admitted.len() as u64
    }

    /// Passes the request's fetches to [`Level::poll`]. The request waits for its own blocks.
    pub(super) fn send(&mut self, asked: &UpperRequest) {
        for run in &self.runs {
            let purpose = match run.awaited() {
                0 => Purpose::Prefetch,
                _ => asked.purpose,
            };
            self.missing += run.awaited();
            let readmore = match self.rules.readmore_fetch {
                ReadmoreFetch::Own if run.awaited() == 0 => self.readmore_of(run),
                _ => ReadmoreFetch::Joined,
            };
            let id = FetchId(self.fetches.insert(*run));
            let asked = UpperRequest {
                blocks: run.blocks,
                purpose,
                ..*asked
            };
            self.out.push_back(Fetch {
                id,
                asked,
                readmore,
            });
        }
        self.runs.clear();
    }

    /// Whether a run that no request waits for begins with readmore.
    fn readmore_of(&self, run: &FetchInFlight) -> ReadmoreFetch {
        match self.cache.residency().origin(run.ahead) {
            FetchOrigin::Readmore => ReadmoreFetch::Own,
            _ => ReadmoreFetch::Joined,
        }
    }

    fn seen(asked: &UpperRequest, blocks: Interval) -> Seen {
        Seen {
            client: asked.client,
            file: asked.file,
            blocks,
            within: asked.within,
            found: LookupResult::All,
        }
    }

    /// Forwards the prefetcher's notes to the replacement policy.
    fn forward_notes(&mut self, notes: &[Note]) {
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

    /// Fetches the absent blocks of a prefetch, while there are frames.
    fn fetch_ahead(&mut self, request: u32, ahead: &Ahead, seen: &Seen, notes: &[Note]) {
        let mut absent = std::mem::take(&mut self.absent);
        absent.clear();
        let residency = self.cache.residency();
        prefetch::absent_runs(ahead.blocks, seen, residency, |run| absent.push(run));
        for run in &absent {
            let count = self.admit_all(request, *run, FetchOrigin::Prefetch, ahead.mode, notes);
            self.counts.prefetched += count;
            if count < run.len() {
                break;
            }
        }
        self.absent = absent;
    }

    /// Reads a block for the request alone.
    fn read_past(&mut self, request: u32, block: u64) {
        self.counts.bypassed += 1;
        if let Some(last) = self.runs.last_mut()
            && last.blocks.last + 1 == block
            && last.blocks.len() < self.longest
            && last.is_all_past()
        {
            last.blocks.last = block;
            last.frames_from = block + 1;
            last.ahead_from = block + 1;
            return;
        }
        self.runs.push(FetchInFlight {
            blocks: Interval::new(block, block),
            request,
            frames_from: block + 1,
            ahead_from: block + 1,
            frames: Chain::default(),
            ahead: FrameId::HEAD,
        });
    }

    /// Fetches consecutive blocks from `first` on into frames. They extend the last run if it may continue with
    /// them; an asynchronous fetch begins its own run.
    fn fetch_into(
        &mut self,
        request: u32,
        mut first: u64,
        frames: &[FrameId],
        origin: FetchOrigin,
        mode: FetchMode,
    ) {
        let is_ahead = origin != FetchOrigin::Demand;
        let mut rest = frames;
        while !rest.is_empty() {
            let begins = mode == FetchMode::Async && rest.len() == frames.len();
            let last = match self.runs.last_mut() {
                Some(last)
                    if !begins && last.may_continue(first, origin, self.rules.submissions) =>
                {
                    Some(last).filter(|last| last.blocks.len() < self.longest)
                }
                _ => None,
            };
            let had = last.as_ref().map_or(0, |last| last.blocks.len());
            let (some, others) = rest.split_at(rest.len().min((self.longest - had) as usize));
            let end = first + some.len() as u64;
            let run = match last {
                Some(last) => last,
                None => {
                    self.runs.push(FetchInFlight {
                        blocks: Interval::new(first, first),
                        request,
                        frames_from: first,
                        ahead_from: first,
                        frames: Chain::default(),
                        ahead: FrameId::HEAD,
                    });
                    self.runs.last_mut().expect("it was put there")
                }
            };
            run.blocks.last = end - 1;
            if !is_ahead {
                run.ahead_from = end;
            } else if run.ahead_from == first {
                run.ahead = some[0];
            }
            self.waiters.join(&mut run.frames, some);
            (first, rest) = (end, others);
        }
    }

    /// Delivers a resident block, or waits for one in flight.
    fn deliver(&mut self, request: u32, frame: FrameId, state: BlockState) {
        if state == BlockState::InFlight {
            self.counts.hits_in_flight += 1;
            self.waiters.push(frame, request);
            self.missing += 1;
        } else {
            self.counts.hits += 1;
        }
    }

    /// Counts the first use of a block that was fetched ahead.
    fn note_use(&mut self, frame: FrameId) {
        let residency = self.cache.residency();
        if residency.is_used(frame) {
            return;
        }
        let origin = residency.origin(frame);
        self.counts.ahead_used += u64::from(origin != FetchOrigin::Demand);
        self.counts.readmore_used += u64::from(origin == FetchOrigin::Readmore);
    }

    /// Admits an absent block. Returns its frame, if there is one.
    pub(super) fn admit(&mut self, block: u64, origin: FetchOrigin) -> Option<FrameId> {
        let admitted = AdmittedRun {
            blocks: Interval::new(block, block),
            origin,
            pattern: Pattern::Random,
        };
        let mut frames = std::mem::take(&mut self.admitted);
        frames.clear();
        let given = self.admit_run(&admitted, &mut frames);
        let frame = frames.pop();
        self.admitted = frames;
        given.ok().and(frame)
    }

    /// Admits absent blocks while there are frames, and appends these to `frames`.
    fn admit_run(
        &mut self,
        admitted: &AdmittedRun,
        frames: &mut Vec<FrameId>,
    ) -> Result<(), Refusal> {
        let had = frames.len();
        let (prefetcher, coordinator) = (&mut self.prefetcher, &mut self.coordinator);
        let (counts, departed) = (&mut self.counts, &mut self.departed);
        let mut leave = |residency: &Residency, frame: FrameId, veto| {
            let evicted = Evicted::from(residency, frame);
            if veto == Veto::Possible && prefetcher.on_evict(evicted.block) == Verdict::SecondChance
            {
                return Verdict::SecondChance;
            }
            let is_ahead = evicted.origin != FetchOrigin::Demand;
            counts.ahead_evicted_unused += u64::from(is_ahead && !evicted.was_used);
            coordinator.on_evicted(&evicted);
            if let Some(departed) = departed {
                let block = evicted.block;
                departed.push_back(Departed { frame, block });
            }
            Verdict::Evict
        };
        let given = self.cache.admit_run(admitted, &mut leave, frames);
        self.counts.refused += u64::from(given.is_err());
        if self.wishes.is_some() {
            let count = (frames.len() - had) as u64;
            for block in Interval::of(admitted.blocks.first, count).blocks() {
                self.unwish(Interval::new(block, block));
            }
        }
        given
    }
}

/// Looks up the frames of the native request's blocks. Returns whether all blocks that the prefetcher sees are
/// resident, and the number of the native request's absent blocks.
fn look_up(
    residency: &Residency,
    seen: Interval,
    native: Interval,
    found: &mut Vec<Option<FrameId>>,
) -> (LookupResult, usize) {
    found.clear();
    let mut near = residency.neighbours(native.first);
    found.extend(native.blocks().map(|block| near.frame(block)));
    let absent = |frames: &[Option<FrameId>]| frames.iter().filter(|frame| frame.is_none()).count();
    let of_native = absent(found);
    let is_all = match seen.first == native.first {
        true if of_native == 0 => true,
        // It has the native request's first block, and is not longer.
        true => absent(&found[..seen.len() as usize]) == 0,
        false => residency.has_all(seen),
    };
    match is_all {
        true => (LookupResult::All, of_native),
        false => (LookupResult::NotAll, of_native),
    }
}

/// The block's pattern by the prefetcher's notes.
fn pattern(block: u64, notes: &[Note]) -> Pattern {
    let is_in = |note: &Note| matches!(note, Note::Sequential(run) if run.contains(block));
    match notes.iter().any(is_in) {
        true => Pattern::Sequential,
        false => Pattern::Random,
    }
}

/// The longest prefix of blocks with the same pattern.
fn alike(blocks: Interval, notes: &[Note]) -> (Interval, Pattern) {
    let first = pattern(blocks.first, notes);
    if notes.is_empty() {
        return (blocks, first);
    }
    let alike = blocks.blocks();
    let alike = alike.take_while(|block| pattern(*block, notes) == first);
    (Interval::of(blocks.first, alike.count() as u64), first)
}

impl FetchInFlight {
    /// Whether none of the run's blocks goes into a frame.
    fn is_all_past(&self) -> bool {
        self.frames_from > self.blocks.last
    }

    /// Whether the run may continue with this block in a frame. Demands precede prefetches. Bypassed blocks are a
    /// separate fetch unless the coordinator requests one submission.
    fn may_continue(&self, block: u64, origin: FetchOrigin, submissions: Submissions) -> bool {
        self.blocks.last + 1 == block
            && (!self.is_all_past() || submissions == Submissions::One)
            && (origin != FetchOrigin::Demand || !self.is_ahead())
    }
}
