//! The task of the engine that reads what a leg of a mirror lacks.
//!
//! ```text
//!   missing blocks --a round: one task--> read in gaps and idle time --> the mirror writes them to the leg
//!        ^                                                                   |
//!        '---- what a write has made old, or found no memory ----------------'
//! ```

use block::{Duration, Instant};
use engine::Engine;
use profiler::tracker::BeliefMode;
use scheduler::background::{Order, TaskId};
use scheduler::freeblock::WantedBlocks;

use super::Disk;
use super::back_end::mirror::{GapReads, Reading, nearest};

/// The rounds of a copy.
#[derive(Default)]
pub(super) struct Rounds {
    task: Option<RoundTask>,
    /// When the next one may begin.
    next: Instant,
}

impl Rounds {
    /// Whether there is a round, or was one: between two of them gaps are used.
    fn is_used(&self) -> bool {
        self.task.is_some() || self.next > Instant::ZERO
    }
}

#[derive(Clone, Copy)]
struct RoundTask {
    id: TaskId,
    turn: Turn,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Reads,
    Waits,
}

/// From one round to the next. A choice: what a round leaves are a few blocks.
const BETWEEN: Duration = Duration::from_millis(200);

/// The priority of the task: before scans and scrubs, because a mirror with one leg loses data with that one.
const PRIORITY: u8 = 0;

impl Disk {
    /// Lets the engine read what the mirror wants of it.
    pub(super) fn follow_rebuild(&mut self) {
        let Some(mirror) = self.back_end.mirror() else {
            return;
        };
        let reading = mirror.reading();
        if let Some(RoundTask { id, turn }) = self.rounds.task {
            let is_over = |engine: &Engine| engine.task(id).is_none_or(|task| task.ended.is_some());
            if reading == Reading::Nothing {
                // It may have ended.
                let _ = self.engine.abort_task(self.now, id);
                self.rounds.task = None;
            } else if is_over(&self.engine) {
                self.rounds = Rounds {
                    task: None,
                    next: self.now + BETWEEN,
                };
            } else {
                let changed = match (reading, turn) {
                    (Reading::Wait, Turn::Reads) => {
                        // It is under way, as was just seen.
                        let _ = self.engine.suspend_task(self.now, id);
                        Turn::Waits
                    }
                    (Reading::Wanted, Turn::Waits) => {
                        let _ = self.engine.resume_task(self.now, id);
                        Turn::Reads
                    }
                    _ => turn,
                };
                self.rounds.task = Some(RoundTask { id, turn: changed });
            }
        }
        if reading == Reading::Wanted && self.rounds.task.is_none() && self.rounds.next <= self.now
        {
            self.begin_round();
        }
        self.tell_of_gaps();
        self.write_held();
    }

    /// Writes the held copies that the head of the leg reaches first, as the engine believes.
    fn write_held(&mut self) {
        let Some(mirror) = self.back_end.mirror() else {
            return;
        };
        let Some((leg, head, writes)) = mirror.held_writes(self.now) else {
            return;
        };
        let arm = self.engine.arms().nth(leg as usize);
        let chosen = arm.and_then(|arm| nearest(arm.belief().profile(), head, self.now, &writes));
        if let Some(chosen) = chosen {
            mirror.write_held(self.now, chosen, &mut self.ring);
        }
    }

    /// Tells the mirror whether gaps are used: without a task, and in safe mode, they are not.
    fn tell_of_gaps(&mut self) {
        let Some(mirror) = self.back_end.mirror() else {
            return;
        };
        let Some(survivor) = mirror.survivor() else {
            return;
        };
        let arm = self.engine.arms().nth(survivor as usize);
        let is_trusted = arm.is_some_and(|arm| arm.belief().mode() == BeliefMode::Positioning);
        mirror.use_gaps(match is_trusted && self.rounds.is_used() {
            true => GapReads::Used,
            false => GapReads::Unused,
        });
    }

    fn begin_round(&mut self) {
        if !self.engine.background().is_on() {
            return;
        }
        let Some(mirror) = self.back_end.mirror() else {
            return;
        };
        self.rounds.next = self.now + BETWEEN;
        let mut wanted = WantedBlocks::none(&self.engine.profile().geometry);
        for extent in mirror.wanted() {
            // Both legs have the blocks of the data, and the engine those of the first.
            if wanted.add(extent).is_err() {
                return;
            }
        }
        if wanted.left() == 0 {
            return;
        }
        let order = Order {
            wanted,
            priority: PRIORITY,
            deadline: None,
        };
        // With too many tasks the next round is tried again.
        if let Ok(id) = self.engine.begin_task(self.now, order) {
            let turn = Turn::Reads;
            self.rounds.task = Some(RoundTask { id, turn });
        }
    }

    /// When the next round may begin.
    pub(super) fn next_round(&mut self) -> Option<Instant> {
        if !self.engine.background().is_on() || self.rounds.task.is_some() {
            return None;
        }
        let is_wanted = self.back_end.mirror()?.reading() == Reading::Wanted;
        is_wanted.then_some(self.rounds.next)
    }
}
