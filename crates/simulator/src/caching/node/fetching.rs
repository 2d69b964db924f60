//! What a level asks the one below for: runs of blocks, each of which is a message or an I/O.
//!
//! ```text
//!   asked:     | hit | miss  miss |
//!   run:             |------------|-- sync --|     one message: what follows the last missing run
//!   run:                                         |-- async --|
//! ```

use cache::coordinator::{self, Asked, Purpose};
use cache::prefetch::{self, Advice, Mode, Note, Seen};
use cache::{Evicted, FrameId, Interval, Origin, Pattern, Residency};

use super::{Coming, Node, Serving, pattern};
use crate::caching::disk::LARGEST;
use crate::caching::jobs::NONE;

/// A run of blocks that is read from below.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) blocks: Interval,
    /// From here on it is the prefetcher's.
    pub(super) ahead: u64,
    pub(super) keeping: Keeping,
    pub(super) purpose: Purpose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeping {
    Kept,
    Past,
}

impl Node {
    /// Makes jobs of what is missing, with what is fetched along, and of what is fetched by itself.
    pub(super) fn fetch(
        &mut self,
        seen: &Seen,
        advice: &mut Advice,
        missing: &mut Vec<Interval>,
        serving: &mut Serving,
    ) {
        let last_missing = missing.pop();
        for &blocks in missing.iter() {
            let run = Run {
                blocks,
                ahead: u64::MAX,
                keeping: Keeping::Kept,
                purpose: serving.asked.purpose,
            };
            self.start(run, &advice.notes, serving);
        }
        // Only what follows the last missing run can travel with it.
        let mut along = last_missing.map(|blocks| Run {
            blocks,
            ahead: u64::MAX,
            keeping: Keeping::Kept,
            purpose: serving.asked.purpose,
        });
        for at in 0..advice.ahead.len() {
            let ahead = advice.ahead[at];
            missing.clear();
            let residency = self.cache.residency();
            prefetch::absent_runs(ahead.blocks, seen, residency, |run| missing.push(run));
            for &blocks in missing.iter() {
                if let Some(run) = &mut along {
                    let follows = run.blocks.last + 1 == blocks.first;
                    if ahead.mode == Mode::Sync && follows {
                        run.ahead = run.ahead.min(blocks.first);
                        run.blocks.last = blocks.last;
                        continue;
                    }
                }
                if let Some(run) = along.take() {
                    self.start(run, &advice.notes, serving);
                }
                let run = Run {
                    blocks,
                    ahead: blocks.first,
                    keeping: Keeping::Kept,
                    purpose: Purpose::Prefetch,
                };
                self.start(run, &advice.notes, serving);
            }
        }
        if let Some(run) = along.take() {
            self.start(run, &advice.notes, serving);
        }
    }

    /// Asks the level below for a run, for the disk in commands of its largest size.
    pub(super) fn start(&mut self, run: Run, notes: &[Note], serving: &mut Serving) {
        let largest = match self.below {
            NONE => LARGEST,
            _ => coordinator::LONGEST_REQUEST,
        };
        let mut rest = run.blocks;
        while !rest.is_empty() {
            let piece = Interval::of(rest.first, rest.len().min(largest));
            self.start_piece(
                Run {
                    blocks: piece,
                    ..run
                },
                notes,
                serving,
            );
            rest.first = piece.last + 1;
        }
    }

    fn start_piece(&mut self, run: Run, notes: &[Note], serving: &mut Serving) {
        let asked = Asked {
            blocks: run.blocks,
            purpose: run.purpose,
            ..serving.asked
        };
        let node = serving.jobs.get(serving.id).server;
        let child = serving.jobs.add(asked, self.below, node, serving.now);
        let mut end = Some(run.blocks.last);
        let mut frames = None;
        if run.keeping == Keeping::Kept {
            for block in run.blocks.blocks() {
                let is_ahead = block >= run.ahead;
                let origin = match (is_ahead, block > serving.asked.blocks.last) {
                    (true, _) => Origin::Prefetch,
                    (false, true) => Origin::Readmore,
                    (false, false) => Origin::Demand,
                };
                if let Some(frame) = self.admit(block, origin, pattern(block, notes)) {
                    self.comings[frame.index()] = Coming {
                        job: child,
                        next: frames,
                    };
                    frames = Some(frame);
                } else if origin != Origin::Demand {
                    // Nobody waits for it, and there is no room: it is not read.
                    end = block.checked_sub(1);
                    break;
                }
            }
        }
        let Some(end) = end.filter(|&end| end >= run.blocks.first) else {
            serving.jobs.end(child);
            return;
        };
        let job = serving.jobs.get_mut(child);
        job.asked.blocks.last = end;
        job.frames = frames;
        if run.ahead <= end {
            job.ahead = Interval::new(run.ahead.max(run.blocks.first), end);
        }
        if run.blocks.first < run.ahead && run.blocks.first <= serving.asked.blocks.last {
            serving.jobs.wait(serving.id, child);
        }
        serving.started.push(child);
    }

    /// Gives the block a frame, if there is one.
    fn admit(&mut self, block: u64, origin: Origin, pattern: Pattern) -> Option<FrameId> {
        let prefetcher = &mut self.prefetcher;
        let ask = |residency: &Residency, frame| prefetcher.on_evict(residency.block(frame));
        let Ok(admitted) = self.cache.admit_frame(block, origin, pattern, ask) else {
            self.counts.refused += 1;
            return None;
        };
        match origin {
            Origin::Demand => (),
            Origin::Prefetch => self.counts.prefetched += 1,
            Origin::Readmore => self.counts.readmore += 1,
        }
        if let Some(evicted) = admitted.evicted {
            self.count_evicted(&evicted);
        }
        Some(admitted.frame)
    }

    fn count_evicted(&mut self, evicted: &Evicted) {
        let is_ahead = evicted.origin != Origin::Demand;
        self.counts.unused += u64::from(is_ahead && !evicted.was_used);
        if let Some(coordinator) = &mut self.coordinator {
            coordinator.on_evicted(evicted);
        }
    }
}
