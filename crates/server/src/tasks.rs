//! Background tasks of a live drive. The blocks of a task go to its sink as they are read.
//!
//! ```text
//!   end of a background read --> the blocks that a task still wants --portion--> its sink's thread
//!                                                 full: the task is held until the sink has caught up
//! ```

#![allow(
    unsafe_code,
    reason = "copies blocks from the memory into which a command has read them"
)]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, OnceLock};

use block::{Extent, Instant, Sectors};
use scheduler::background::{DeclaredSet, Order, SetProgress, TaskId, TaskPhase, TaskProgress};
use scheduler::freeblock::WantedBlocks;
use serde::{Deserialize, Serialize};

use crate::disk::{Disk, Scratch};

mod company;
mod listed;
pub mod overload;
pub mod scan;
pub mod scan_file;
pub mod set_sum;
pub mod sink;

use company::{Beside, Company, Presence};
use overload::Terms;
use sink::hooks::HookEvent;

/// A command for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Steer {
    /// The drive reads no blocks for the task until it is resumed.
    Suspend,
    /// The drive reads blocks for the task again.
    Resume,
    /// The task ends unfinished.
    Abort,
    /// The priority changes.
    Promote {
        /// The new priority; 0 is the highest.
        priority: u8,
    },
    /// A client waits for the task: its reads take turns with the commands of the foreground.
    Hasten,
}

/// Blocks that were read for a task.
#[derive(Debug)]
pub struct Portion {
    /// The first byte on the drive.
    pub offset: u64,
    /// The bytes of the blocks.
    pub bytes: Vec<u8>,
}

/// The loop's end of a task's sink.
#[derive(Clone, Debug)]
pub struct SinkHandle {
    /// The channel to the sink's thread.
    pub portions: SyncSender<Portion>,
    /// The number of portions that the sink has not processed. The sink decrements it.
    pub outstanding: Arc<AtomicUsize>,
    /// Whether the task ended because it had enough of its set.
    pub is_enough: Arc<AtomicBool>,
    /// Whether the task ends before its set is read: its program is ended, too.
    pub is_cut: Arc<AtomicBool>,
    /// The result of the sink, once it has all blocks.
    pub outcome: Arc<Outcome>,
}

/// The result of a task's sink, or its error. It is set once.
pub type Outcome = OnceLock<Result<String, String>>;

/// A task to begin.
pub struct TaskRequest {
    /// The number of the task, for clients.
    pub number: u64,
    /// The name of the task, for people.
    pub name: String,
    /// The blocks.
    pub set: DeclaredSet,
    /// The priority; 0 is the highest.
    pub priority: u8,
    /// The deadline, from now.
    pub deadline: Option<block::Duration>,
    /// The blocks that are still to be read, if the task is resumed.
    pub left: Option<WantedBlocks>,
    /// The receiver of the blocks.
    pub sink: SinkHandle,
}

/// The background tasks of a drive, including those that have ended.
#[derive(Default)]
pub(crate) struct Tasks {
    all: Vec<Ongoing>,
    /// Response times of the foreground, alone and beside tasks.
    pub(crate) company: Company,
}

/// A task and its progress.
struct Ongoing {
    number: u64,
    name: String,
    id: TaskId,
    priority: u8,
    deadline: Option<Instant>,
    /// The blocks that the sink has received, and has not.
    progress: SetProgress,
    asked: u64,
    /// The number of blocks that were processed before the task began here.
    before: u64,
    sink: Option<SinkHandle>,
    outcome: Arc<Outcome>,
    /// Shared with the sink, which may still have a program when all blocks are read.
    is_cut: Arc<AtomicBool>,
    began: Instant,
    /// The time at which the sink was closed.
    ended: Option<Instant>,
    beside: Beside,
    /// Whether the task is suspended until the sink has caught up.
    is_held: bool,
    is_suspended: bool,
    is_hastened: bool,
    /// The last known progress. The engine removes tasks that have ended.
    last: Option<TaskProgress>,
    /// The last sample of the rate: time, blocks, and blocks per second.
    pace: (Instant, u64, f64),
}

/// The number of unprocessed portions at which a task is held. A choice: a second or two of free blocks.
pub const HOLD: usize = 64;

/// The largest number of tasks in a listing. The oldest ended tasks are removed first. A choice.
const MOST_SHOWN: usize = 64;

/// The capacity of a sink's channel: the portions at which its task is held, and those of two commands in
/// flight. A read in idle time, the longest one, has 2048 blocks, each of which may be a portion.
pub const ROOM: usize = HOLD + 2 * 2048;

impl Tasks {
    /// Begins a task.
    ///
    /// # Errors
    /// The reason, and what was expected.
    pub(crate) fn begin(&mut self, disk: &mut Disk, scan: TaskRequest) -> Result<(), String> {
        disk.check_background()?;
        let wanted = scan.set.wanted(&disk.engine.profile().geometry);
        let wanted = wanted.map_err(|error| error.to_string())?;
        let asked = wanted.left();
        let wanted = scan.left.unwrap_or(wanted);
        let before = asked.saturating_sub(wanted.left());
        let deadline = scan.deadline.map(|length| disk.now + length);
        while self.all.len() >= MOST_SHOWN {
            let ended = self.all.iter().position(|task| task.sink.is_none());
            match ended {
                Some(place) => drop(self.all.remove(place)),
                None => break,
            }
        }
        let order = Order {
            wanted: wanted.clone(),
            priority: scan.priority,
            deadline,
        };
        let id = disk
            .engine
            .begin_task(disk.now, order)
            .map_err(|refused| refused.to_string())?;
        self.all.push(Ongoing {
            number: scan.number,
            name: scan.name,
            id,
            priority: scan.priority,
            deadline,
            asked,
            before,
            progress: SetProgress::new(scan.set, wanted),
            began: disk.now,
            ended: None,
            beside: Beside::begin(&self.company, disk.engine.losses()),
            outcome: Arc::clone(&scan.sink.outcome),
            is_cut: Arc::clone(&scan.sink.is_cut),
            sink: Some(scan.sink),
            is_held: false,
            is_suspended: false,
            is_hastened: false,
            last: None,
            pace: (disk.now, before, 0.0),
        });
        self.look_after(disk);
        Ok(())
    }

    /// Checks whether a task can end in time, at a pace if it has one.
    ///
    /// # Errors
    /// The time at which it would end at the earliest, and what was expected.
    pub(crate) fn check_terms(
        disk: &Disk,
        scan: &TaskRequest,
        pace_bytes_s: Option<u64>,
    ) -> Result<(), String> {
        let Some(deadline) = scan.deadline else {
            return Ok(());
        };
        let least = overload::least_blocks(&scan.set);
        let blocks = match &scan.left {
            None => least,
            // What any pieces lack that were begun before is not known.
            Some(_) if scan.set.needed() < scan.set.pieces().len() => 0,
            Some(left) => least.min(left.left()),
        };
        let arms = disk.engine.arms().count();
        let terms = Terms {
            deadline,
            pace_bytes_s,
        };
        overload::check(disk.engine.profile(), arms, blocks, terms)
    }

    /// Suspends, resumes, aborts or promotes a task.
    ///
    /// # Errors
    /// If no active task has this number.
    pub(crate) fn steer(
        &mut self,
        disk: &mut Disk,
        number: u64,
        steer: Steer,
    ) -> Result<(), String> {
        let unknown = || format!("no task {number} is under way");
        let mut tasks = self.all.iter_mut();
        let task = tasks
            .find(|task| task.number == number)
            .ok_or_else(unknown)?;
        let (id, now) = (task.id, disk.now);
        let done = match steer {
            Steer::Suspend => {
                task.is_suspended = true;
                disk.engine.suspend_task(now, id)
            }
            Steer::Resume => {
                task.is_suspended = false;
                match task.is_held {
                    true => Ok(()),
                    false => disk.engine.resume_task(now, id),
                }
            }
            Steer::Abort => {
                task.is_cut.store(true, Ordering::Release);
                task.sink = None;
                match (disk.engine.abort_task(now, id), task.outcome.get()) {
                    // All blocks are read, and the program still had something to do.
                    (Err(_), None) => Ok(()),
                    (done, _) => done,
                }
            }
            Steer::Promote { priority } => {
                task.priority = priority;
                disk.engine.promote_task(now, id, priority)
            }
            Steer::Hasten => {
                task.is_hastened = true;
                disk.engine.hasten_task(now, id)
            }
        };
        self.look_after(disk);
        done.map_err(|_| unknown())
    }

    /// Aborts a task whose sink has ended.
    pub(crate) fn sink_gone(&mut self, disk: &mut Disk, number: u64) {
        let mut tasks = self.all.iter_mut();
        if let Some(task) = tasks.find(|task| task.number == number)
            && task.sink.take().is_some()
        {
            // Those that have ended are not under way.
            let _ = disk.engine.abort_task(disk.now, task.id);
            self.look_after(disk);
        }
    }

    /// What a task has done whose sink has ended, or the problem; `None` if its user or the service has given it up, or
    /// it is not known.
    pub(crate) fn end_of(&self, disk: &Disk, number: u64) -> Option<HookEvent> {
        let task = self.all.iter().find(|task| task.number == number)?;
        if task.is_cut.load(Ordering::Acquire) {
            return None;
        }
        let progress = disk.engine.task(task.id).or(task.last);
        let failed = progress.map_or(0, |progress| progress.failed.0) * disk.block();
        let is_done = task.progress.is_enough() || failed > 0;
        let result = match task.outcome.get()?.clone() {
            Ok(_) if failed > 0 => Err(format!("{failed} bytes could not be read")),
            Ok(_) if !is_done => Err("not all was read".to_owned()),
            result => result,
        };
        Some(HookEvent {
            task: Some(number),
            name: task.name.clone(),
            result,
        })
    }

    /// Resumes a task whose sink has caught up.
    pub(crate) fn caught_up(&mut self, disk: &mut Disk, number: u64) {
        let mut tasks = self.all.iter_mut();
        if let Some(task) = tasks.find(|task| task.number == number)
            && std::mem::take(&mut task.is_held)
            && !task.is_suspended
        {
            // It may have been finished or aborted meanwhile.
            let _ = disk.engine.resume_task(disk.now, task.id);
        }
    }

    /// Ends all tasks at the end of the service. Otherwise the drive would never be idle.
    pub(crate) fn leave(&mut self, disk: &mut Disk) {
        for task in &mut self.all {
            task.is_cut.store(true, Ordering::Release);
            task.sink = None;
        }
        disk.engine.abort_tasks(disk.now);
        self.look_after(disk);
    }

    /// Notes which tasks have ended, and whether the foreground is alone.
    fn look_after(&mut self, disk: &Disk) {
        let losses = disk.engine.losses();
        let mut presence = Presence::Alone;
        for task in &mut self.all {
            if task.sink.is_none() && task.ended.is_none() {
                task.ended = Some(disk.now);
                task.beside.end(&self.company, losses);
            }
            if task.sink.is_some() && !task.is_suspended {
                presence = Presence::Tasks;
            }
        }
        self.company.turn(disk.now, presence);
    }

    /// Whether a task is active.
    pub(crate) fn is_any_active(&self, disk: &Disk) -> bool {
        let mut ids = self.all.iter().map(|task| task.id);
        ids.any(|id| {
            let progress = disk.engine.task(id);
            progress.is_some_and(|progress| progress.ended.is_none())
        })
    }

    /// Sends blocks that were read to the sinks of the tasks that still want them.
    ///
    /// A task that began after the read gets none of it: the blocks may have changed in between.
    pub(crate) fn deliver(&mut self, disk: &mut Disk, scratch: &Scratch) {
        let (start, memory) = (scratch.start, scratch.memory());
        let block = disk.block() as usize;
        let blocks = (memory.length / block) as u64;
        let Ok(extent) = Extent::new(start, Sectors(blocks)) else {
            return;
        };
        let mut parts = Vec::new();
        for task in &mut self.all {
            let Some(sink) = &task.sink else { continue };
            let has_room = sink.outstanding.load(Ordering::Acquire) + blocks as usize <= ROOM;
            if !has_room || scratch.begun < task.began {
                // It stays wanted, and is read again.
                continue;
            }
            parts.clear();
            task.progress.deliver(extent, |run| parts.push(run));
            let set = task.progress.set();
            for part in parts.iter().flat_map(|&run| set.parts(run)) {
                let place = (part.start().0 - start.0) as usize * block;
                let piece = memory.part(place, part.length().0 as usize * block);
                // SAFETY: the command that read it has ended, and its buffer is still its own.
                let bytes = unsafe { piece.bytes() }.to_vec();
                let offset = part.start().0 * block as u64;
                sink.outstanding.fetch_add(1, Ordering::AcqRel);
                if sink.portions.try_send(Portion { offset, bytes }).is_err() {
                    sink.outstanding.fetch_sub(1, Ordering::AcqRel);
                    // The sink has gone: nobody wants the blocks any more.
                    let _ = disk.engine.abort_task(disk.now, task.id);
                }
            }
            if task.progress.is_enough() && task.progress.missing().left() > 0 {
                // Others of the set would do as well, and are read for nothing. It may have ended already.
                let _ = disk.engine.finish_task(disk.now, task.id);
                continue;
            }
            let surplus = task.progress.give_up_surplus();
            if !surplus.is_empty() {
                // It may have ended already.
                let _ = disk.engine.narrow_task(disk.now, task.id, surplus);
            }
            if sink.outstanding.load(Ordering::Acquire) >= HOLD && !task.is_held {
                task.is_held = true;
                let _ = disk.engine.suspend_task(disk.now, task.id);
            }
        }
    }

    /// Closes the sinks of tasks that have read everything. Blocks for which a sink had no room are
    /// requested again.
    pub(crate) fn end(&mut self, disk: &mut Disk) {
        for task in &mut self.all {
            if task.sink.is_none() {
                continue;
            }
            let progress = disk.engine.task(task.id);
            let Some(state) = progress.map(|progress| progress.state) else {
                continue;
            };
            let is_enough = task.progress.is_enough();
            let missing = task.progress.missing();
            let is_short = !is_enough && missing.left() > progress.map_or(0, |p| p.failed.0);
            match state {
                TaskPhase::Finished if is_short => {
                    let order = Order {
                        wanted: missing.clone(),
                        priority: task.priority,
                        deadline: task.deadline.filter(|&at| at > disk.now),
                    };
                    if let Ok(id) = disk.engine.begin_task(disk.now, order) {
                        task.id = id;
                        task.progress.take_up_all();
                        if task.is_hastened {
                            let _ = disk.engine.hasten_task(disk.now, id);
                        }
                    }
                }
                TaskPhase::Finished | TaskPhase::Aborted => {
                    // The engine forgets it when another one begins, and the sink may end later.
                    task.last = progress;
                    if let Some(sink) = task.sink.take() {
                        sink.is_enough.store(is_enough, Ordering::Release);
                    }
                }
                TaskPhase::Active | TaskPhase::Suspended => (),
            }
        }
        if !self.all.is_empty() {
            self.look_after(disk);
        }
    }
}

#[cfg(test)]
mod tests;
