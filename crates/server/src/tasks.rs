//! Background tasks of a live drive: their blocks go to a sink as they are read.
//!
//! ```text
//!   end of a background read --> the blocks that a task still wants --portion--> its sink's thread
//!                                                 full: the task is held until the sink has caught up
//! ```

#![allow(
    unsafe_code,
    reason = "copies blocks from the memory into which a command has read them"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, OnceLock};

use block::{Extent, Instant, Lba, Sectors};
use scheduler::background::{Order, Progress, State, TaskId};
use scheduler::freeblock::Wanted;
use serde::{Deserialize, Serialize};

use crate::arena::Memory;
use crate::disk::Disk;
use crate::status::{Task, TaskState};

mod company;

use company::{Beside, Company, Presence};

/// What can be done to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Steer {
    /// Its blocks are no longer looked for.
    Suspend,
    /// They are again.
    Resume,
    /// It is given up.
    Abort,
    /// It has another priority from now on.
    Promote {
        /// 0 is looked for first.
        priority: u8,
    },
}

/// Some blocks that were read for a task.
#[derive(Debug)]
pub struct Portion {
    /// Where they are, in bytes of the drive.
    pub offset: u64,
    /// What they hold.
    pub bytes: Vec<u8>,
}

/// Where a task's blocks go.
#[derive(Clone, Debug)]
pub struct Sink {
    /// To the thread that takes them.
    pub portions: SyncSender<Portion>,
    /// How many of them it has not dealt with yet; it counts down.
    pub outstanding: Arc<AtomicUsize>,
    /// What came of it, once it has had everything.
    pub outcome: Arc<Outcome>,
}

/// What came of a task's blocks, or what went wrong with them; set once.
pub type Outcome = OnceLock<Result<String, String>>;

/// What is to be read in the background.
pub struct Scan {
    /// Names the task for clients.
    pub number: u64,
    /// What it is, for people.
    pub name: String,
    /// The bytes of the drive that it reads; whole blocks.
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
    /// 0 is looked for first.
    pub priority: u8,
    /// When it should be done, from now.
    pub deadline: Option<block::Duration>,
    /// What of it is still to be read, if it is gone on with.
    pub left: Option<Wanted>,
    /// Who gets the blocks.
    pub sink: Sink,
}

/// The background tasks of a drive, those that have ended, too.
#[derive(Default)]
pub(crate) struct Tasks {
    all: Vec<Ongoing>,
    /// The foreground alone, and beside tasks.
    pub(crate) company: Company,
}

/// A task and its progress.
struct Ongoing {
    number: u64,
    name: String,
    id: TaskId,
    priority: u8,
    deadline: Option<Instant>,
    /// The blocks that its sink was not given yet.
    missing: Wanted,
    asked: u64,
    /// Blocks that were dealt with before it was begun here.
    before: u64,
    sink: Option<Sink>,
    outcome: Arc<Outcome>,
    began: Instant,
    /// When its sink was closed.
    ended: Option<Instant>,
    beside: Beside,
    /// Suspended until the sink has caught up.
    is_held: bool,
    is_suspended: bool,
    /// How far it was when that was asked last: the engine forgets those that have ended.
    last: Option<Progress>,
    /// What was read and when, when the rate was last worked out, and the rate.
    pace: (Instant, u64, f64),
}

/// With so many portions that a sink has not dealt with its task is held. A choice: a second or two
/// of free blocks.
pub const HOLD: usize = 64;

/// So many tasks are shown, those that have ended, too; the oldest of these go first. A choice.
const MOST_SHOWN: usize = 64;

/// How many portions a sink's channel has to have room for: those at which its task is held, and
/// what the commands at the drive may still bring.
pub const ROOM: usize = 4 * HOLD;

impl Tasks {
    /// Begins a task.
    ///
    /// # Errors
    /// Why not, and what was expected.
    pub(crate) fn begin(&mut self, disk: &mut Disk, scan: Scan) -> Result<(), String> {
        disk.check_background()?;
        let block = disk.block();
        let extent = Extent::new(Lba(scan.offset / block), Sectors(scan.length / block));
        let extent = extent.map_err(|error| error.to_string())?;
        let mut wanted = Wanted::none(&disk.engine.belief().profile().geometry);
        wanted.add(extent).map_err(|error| error.to_string())?;
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
            missing: wanted,
            began: disk.now,
            ended: None,
            beside: Beside::begin(&self.company, disk.engine.background().losses()),
            outcome: Arc::clone(&scan.sink.outcome),
            sink: Some(scan.sink),
            is_held: false,
            is_suspended: false,
            last: None,
            pace: (disk.now, before, 0.0),
        });
        self.look_after(disk);
        Ok(())
    }

    /// Does something to a task.
    ///
    /// # Errors
    /// If there is none of that number under way.
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
                task.sink = None;
                disk.engine.abort_task(now, id)
            }
            Steer::Promote { priority } => {
                task.priority = priority;
                disk.engine.promote_task(now, id, priority)
            }
        };
        self.look_after(disk);
        done.map_err(|_| unknown())
    }

    /// A sink takes nothing more: of a task that is under way nobody wants the rest.
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

    /// A sink has caught up.
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

    /// How the tasks stand, the oldest first.
    pub(crate) fn listed(&mut self, disk: &Disk) -> Vec<Task> {
        let (now, engine) = (disk.now, &disk.engine);
        let (company, losses) = (&self.company, engine.background().losses());
        let block = disk.block();
        let each = self.all.iter_mut().filter_map(|task| {
            let progress = engine.background().task(task.id).or(task.last)?;
            task.last = Some(progress);
            let done = task.asked - task.missing.left();
            let passed = now.since(task.pace.0).as_secs_f64();
            if passed >= 1.0 {
                let rate = (done - task.pace.1) as f64 / passed;
                task.pace = (now, done, rate);
            }
            let rate = task.pace.2;
            Some(Task {
                id: task.number,
                name: task.name.clone(),
                state: match progress.state {
                    State::Active => TaskState::Active,
                    State::Suspended if task.is_held && !task.is_suspended => TaskState::Active,
                    State::Suspended => TaskState::Suspended,
                    State::Finished => TaskState::Finished,
                    State::Aborted => TaskState::Aborted,
                },
                priority: task.priority,
                asked_bytes: task.asked * block,
                done_bytes: done * block,
                free_bytes: progress.account.free.blocks.0 * block,
                idle_bytes: progress.account.idle.blocks.0 * block,
                paid_bytes: progress.account.paid.blocks.0 * block,
                failed_bytes: progress.failed.0 * block,
                outcome: task.outcome.get().and_then(|ended| ended.clone().ok()),
                problem: task.outcome.get().and_then(|ended| ended.clone().err()),
                resumed_bytes: task.before * block,
                elapsed_s: task.ended.unwrap_or(now).since(task.began).as_secs_f64(),
                impact: task.beside.until(company, losses),
                mb_per_s: rate * block as f64 / 1e6,
                eta_s: (rate > 0.0).then(|| task.missing.left() as f64 / rate),
            })
        });
        each.collect()
    }

    /// Nothing more is read for tasks: the drive would never come to rest.
    pub(crate) fn leave(&mut self, disk: &mut Disk) {
        for task in &mut self.all {
            task.sink = None;
        }
        disk.engine.leave_tasks(disk.now);
        self.look_after(disk);
    }

    /// Notes which tasks have ended, and whether the foreground is alone.
    fn look_after(&mut self, disk: &Disk) {
        let losses = disk.engine.background().losses();
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

    /// Whether there is a task under way.
    pub(crate) fn is_any_active(&self, disk: &Disk) -> bool {
        let mut ids = self.all.iter().map(|task| task.id);
        ids.any(|id| {
            let progress = disk.engine.background().task(id);
            progress.is_some_and(|progress| progress.ended.is_none())
        })
    }

    /// Blocks were read that some task may want: each gets what it has not had.
    pub(crate) fn deliver(&mut self, disk: &mut Disk, start: Lba, memory: Memory) {
        let block = disk.block() as usize;
        let blocks = (memory.length / block) as u64;
        let Ok(extent) = Extent::new(start, Sectors(blocks)) else {
            return;
        };
        for task in &mut self.all {
            let Some(sink) = &task.sink else { continue };
            if sink.outstanding.load(Ordering::Acquire) + 2 > ROOM {
                // It stays wanted, and is read again.
                continue;
            }
            let lbas = || (0..blocks).map(|place| Lba(start.0 + place));
            let had: Vec<bool> = lbas().map(|lba| task.missing.contains(lba)).collect();
            task.missing.remove(extent);
            let gone = lbas().zip(had);
            let new = gone.map(|(lba, had)| had && !task.missing.contains(lba));
            for (first, count) in runs(new) {
                let piece = memory.part(first * block, count * block);
                // SAFETY: the command that read it has ended, and its buffer is still its own.
                let bytes = unsafe { piece.bytes() }.to_vec();
                let offset = (start.0 + first as u64) * block as u64;
                sink.outstanding.fetch_add(1, Ordering::AcqRel);
                if sink.portions.try_send(Portion { offset, bytes }).is_err() {
                    sink.outstanding.fetch_sub(1, Ordering::AcqRel);
                    // The sink has gone: nobody wants the blocks any more.
                    let _ = disk.engine.abort_task(disk.now, task.id);
                }
            }
            if sink.outstanding.load(Ordering::Acquire) >= HOLD && !task.is_held {
                task.is_held = true;
                let _ = disk.engine.suspend_task(disk.now, task.id);
            }
        }
    }

    /// Tasks of which all was read have their sinks closed; what a sink had no room for is asked
    /// for again.
    pub(crate) fn end(&mut self, disk: &mut Disk) {
        for task in &mut self.all {
            if task.sink.is_none() {
                continue;
            }
            let progress = disk.engine.background().task(task.id);
            let Some(state) = progress.map(|progress| progress.state) else {
                continue;
            };
            let is_short = task.missing.left() > progress.map_or(0, |p| p.failed.0);
            match state {
                State::Finished if is_short => {
                    let order = Order {
                        wanted: task.missing.clone(),
                        priority: task.priority,
                        deadline: task.deadline.filter(|&at| at > disk.now),
                    };
                    if let Ok(id) = disk.engine.begin_task(disk.now, order) {
                        task.id = id;
                    }
                }
                State::Finished | State::Aborted => task.sink = None,
                State::Active | State::Suspended => (),
            }
        }
        if !self.all.is_empty() {
            self.look_after(disk);
        }
    }
}

/// Runs of places at which something is so: their first places and how many there are.
fn runs(each: impl Iterator<Item = bool>) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (place, _) in each.enumerate().filter(|(_, is)| *is) {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == place => *count += 1,
            _ => runs.push((place, 1)),
        }
    }
    runs
}
