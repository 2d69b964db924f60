//! The disk with our engine before it: whatever is asked for at one instant is merged, then the engine's
//! policy says which command the drive gets.
//!
//! ```text
//!   jobs --add--> [ plugged: neighbours of one instant are one request ] --> engine --command--> drive
//!    ^                                                                        |  ^                 |
//!    '------------- ended ------ first job of a request <------- finished ----'  '---- outcome ----'
//! ```
//!
//! Requests that the engine has no room for stay plugged. What the level above wishes is wanted by a
//! standing task of the engine; sectors that it reads for that are blocks again when all of one are there
//! ([`Wishes`]).

use std::collections::VecDeque;
use std::sync::Arc;

use block::Interval;
use block::{
    Class, Direction, Durability, Extent, Instant, Lba, Request, RequestId, Sectors, Status,
};
use cache::coordinator::Purpose;
use cache::level::Wish;
use drive::{Profile, VirtualDrive};
use engine::{Engine, Limits, Tallies};
use scheduler::ordering::Level;
use scheduler::policy;

use super::disk::{DiskCounts, Entry, sectors_of_a_block};
use super::jobs::{JobId, Jobs, overlap};
use super::report::Slack;
use super::setup::{BadSetup, Outside, Readmore, Scheduled};
use super::wishes::Wishes;

/// A drive, an engine, and what is to be read.
pub(super) struct EngineDisk {
    engine: Engine,
    drive: VirtualDrive,
    /// Sectors of a block.
    sectors: u64,
    blocks: u64,
    /// The class of prefetches that come by themselves.
    prefetches: Class,
    /// Demands, and what is less urgent, each in the order in which they came.
    plugged: [VecDeque<(Class, Entry)>; 2],
    /// What was asked of the engine that is less urgent than demands: first jobs, and blocks.
    ahead: Vec<(JobId, Interval)>,
    /// First jobs of requests that have ended.
    ended: VecDeque<JobId>,
    now: u64,
    /// Since when the drive has commands.
    busy_since: Option<u64>,
    /// If the level above may wish.
    wishes: Option<Wishes>,
    /// In nanoseconds.
    busy: u64,
    commands: u64,
    /// Sectors of all commands.
    read: u64,
}

/// A request joins one of the last so many that are plugged: as many as Linux holds in a task's plug
/// (`BLK_MAX_REQUEST_COUNT`).
const PLUGGED: usize = 32;

impl EngineDisk {
    pub(super) fn new(truth: &Arc<Profile>, scheduled: &Scheduled) -> Result<Self, BadSetup> {
        let sectors = sectors_of_a_block(truth)?;
        let policy = policy::find(&scheduled.policy)?;
        if Level::of(scheduled.prefetches).is_none_or(|level| level == Level::REAL_TIME) {
            return Err(BadSetup::Class(scheduled.prefetches));
        }
        let (belief, drive) = match &scheduled.outside {
            None => (truth, VirtualDrive::new(Arc::clone(truth))),
            Some(outside) => (&outside.belief, imperfect(truth, outside)?),
        };
        let limits = Limits::suited_to(policy, belief);
        let mut engine = Engine::new(Arc::clone(belief), &|| policy.make(), limits);
        if scheduled.outside.is_some() {
            engine = engine.with_tracking(policy);
        }
        if let Some(rules) = scheduled.background {
            if limits.commands_at_drive < 2 {
                return Err(BadSetup::OneCommand);
            }
            engine = engine.with_background(rules);
        }
        let wishes = match (scheduled.readmore, scheduled.background) {
            (Readmore::Fetched, _) => None,
            (_, None) => return Err(BadSetup::NeverGranted),
            (_, Some(_)) => {
                let task = engine.begin_standing_task(Instant::ZERO, 0);
                Some(Wishes::new(task.expect("the only task"), sectors))
            }
        };
        Ok(EngineDisk {
            engine,
            drive,
            sectors,
            blocks: truth.geometry.sectors().0 / sectors,
            prefetches: scheduled.prefetches,
            plugged: Default::default(),
            ahead: Vec::new(),
            ended: VecDeque::new(),
            now: 0,
            busy_since: None,
            wishes,
            busy: 0,
            commands: 0,
            read: 0,
        })
    }

    /// How many blocks it has.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// What it did.
    pub(super) fn counts(&self) -> DiskCounts {
        DiskCounts {
            commands: self.commands,
            blocks: self.read.div_ceil(self.sectors),
            busy: self.busy,
        }
    }

    /// What it read in the background.
    pub(super) fn slack(&self) -> Slack {
        let account = self.engine.background_account();
        let losses = self.engine.losses();
        Slack {
            free: account.free.blocks.0,
            idle: account.idle.blocks.0,
            lost: losses.lost,
            responses: losses.responses,
        }
    }

    /// What is wished changes.
    pub(super) fn wish(&mut self, now: u64, wish: Wish) {
        let wishes = self.wishes.as_mut().expect("a level with wishes");
        let now = Instant::from_nanos(now);
        let changed = match wish {
            Wish::Want(blocks) => {
                wishes.want(blocks);
                let extent = extent(blocks, self.sectors);
                self.engine.want(now, wishes.task, extent)
            }
            Wish::Unwant(blocks) => {
                wishes.unwant(blocks);
                let extent = extent(blocks, self.sectors);
                self.engine.unwant(now, wishes.task, extent)
            }
        };
        changed.expect("blocks of the disk, and a task that stands");
    }

    /// The next block that was read for wishes.
    pub(super) fn poll_read(&mut self) -> Option<u64> {
        self.wishes.as_mut()?.poll()
    }

    /// A job is to be read.
    pub(super) fn add(&mut self, blocks: Interval, job: JobId, jobs: &mut Jobs) {
        let class = match jobs.get(job).asked.purpose {
            Purpose::Demand => Class::default(),
            Purpose::Prefetch => self.prefetches,
        };
        let entry = Entry::of(blocks, job);
        let queue = &mut self.plugged[usize::from(is_less_urgent(class))];
        for (other, plugged) in queue.iter_mut().rev().take(PLUGGED) {
            if *other == class
                && let Some(both) = either_way(plugged, &entry, jobs)
            {
                *plugged = both;
                return;
            }
        }
        queue.push_back((class, entry));
    }

    /// Whether what is fetched ahead waits for all that is demanded.
    pub(super) fn puts_prefetches_last(&self) -> bool {
        is_less_urgent(self.prefetches)
    }

    /// Somebody waits for these blocks: what reads them is as urgent as a demand.
    pub(super) fn hasten(&mut self, now: u64, blocks: Interval) {
        let [demanded, ahead] = &mut self.plugged;
        ahead.retain(|(_, entry)| {
            let is_wanted = overlap(entry.blocks, blocks);
            if is_wanted {
                demanded.push_back((Class::default(), *entry));
            }
            !is_wanted
        });
        let (engine, sectors) = (&mut self.engine, self.sectors);
        self.ahead.retain(|&(first, read)| {
            let is_wanted = overlap(read, blocks);
            if is_wanted {
                let (id, extent) = (RequestId(u64::from(first)), extent(read, sectors));
                // What is at the drive already is as fast as can be.
                let _ = engine.upgrade(Instant::from_nanos(now), id, extent, Class::default());
            }
            !is_wanted
        });
    }

    /// Gives the engine what is plugged, and the drive what the engine chooses.
    pub(super) fn dispatch(&mut self, now: u64) {
        loop {
            self.collect(now);
            while let Some((class, entry)) = self.unplug() {
                self.submit(now, class, &entry);
            }
            while let Some(command) = self.engine.poll(Instant::from_nanos(now)) {
                self.busy_since.get_or_insert(now);
                self.commands += 1;
                let extent = command.action.extent();
                self.read += extent.map_or(0, |extent| extent.length().0);
                let submitted = self.drive.submit(Instant::from_nanos(now), command);
                submitted.expect("a command that the drive has room for, on the disk");
            }
            let is_settled = |then: Instant| then.as_nanos() > now;
            if self.drive.next_wakeup().is_none_or(is_settled) {
                return;
            }
        }
    }

    /// When something happens.
    pub(super) fn next_event(&self) -> Option<u64> {
        if !self.ended.is_empty() {
            return Some(self.now);
        }
        let next = [self.drive.next_wakeup(), self.engine.next_wakeup()];
        next.into_iter().flatten().min().map(Instant::as_nanos)
    }

    /// Whether nothing is left to do. In the firmware what is still wished is read first; outside the engine
    /// looks where the platter is for ever.
    pub(super) fn is_over(&self) -> bool {
        let wakes = match self.engine.told() {
            None => self.engine.next_wakeup(),
            Some(_) => None,
        };
        let is_idle = self.engine.at_drive() == 0 && self.engine.held() == 0;
        let is_any_plugged = self.plugged.iter().any(|queue| !queue.is_empty());
        is_idle && !is_any_plugged && self.ended.is_empty() && wakes.is_none()
    }

    /// What the ends of commands said of the belief, if that is not the truth.
    pub(super) fn told(&self) -> Option<Tallies> {
        self.engine.told()
    }

    /// The first of the jobs of a request that has ended by now.
    pub(super) fn ended(&mut self, now: u64) -> Option<JobId> {
        self.collect(now);
        self.ended.pop_front()
    }

    /// Tells the engine which commands have ended, and hears which requests have.
    fn collect(&mut self, now: u64) {
        self.now = now;
        let now = Instant::from_nanos(now);
        while let Some(outcome) = self.drive.poll(now) {
            let read = self.engine.background_of(outcome.id);
            if let (Some(wishes), Some(extent)) = (&mut self.wishes, read) {
                wishes.read(extent);
            }
            self.engine.complete(now, outcome.id, outcome);
            if self.engine.at_drive() == 0
                && let Some(since) = self.busy_since.take()
            {
                self.busy += self.now - since;
            }
        }
        while let Some(finished) = self.engine.poll_finished() {
            assert_eq!(finished.status, Status::Good, "a drive without faults");
            let first = finished.request.id.0 as JobId;
            self.ahead.retain(|&(other, _)| other != first);
            self.ended.push_back(first);
        }
    }

    /// What the engine is to be asked next, if it has room.
    fn unplug(&mut self) -> Option<(Class, Entry)> {
        let queue = self.plugged.iter_mut().find(|queue| !queue.is_empty())?;
        let (class, _) = queue.front()?;
        match self.engine.has_room(*class) {
            true => queue.pop_front(),
            false => None,
        }
    }

    fn submit(&mut self, now: u64, class: Class, entry: &Entry) {
        let request = Request {
            id: RequestId(u64::from(entry.first)),
            direction: Direction::Read,
            extent: extent(entry.blocks, self.sectors),
            class,
            durability: Durability::Volatile,
        };
        let submitted = self.engine.submit(Instant::from_nanos(now), request);
        submitted.expect("the engine has room, and the blocks are on the disk");
        if is_less_urgent(class) {
            self.ahead.push((entry.first, entry.blocks));
        }
    }
}

/// Whether requests of this class wait for demands.
fn is_less_urgent(class: Class) -> bool {
    Level::of(class) > Level::of(Class::default())
}

/// A drive that is not quite what it is believed to be.
fn imperfect(truth: &Arc<Profile>, outside: &Outside) -> Result<VirtualDrive, BadSetup> {
    let (believed, sectors) = (&outside.belief.geometry, &truth.geometry);
    let (believed, sectors) = (believed.sectors().0, sectors.sectors().0);
    if believed != sectors {
        return Err(BadSetup::Belief { believed, sectors });
    }
    let imperfections = outside.imperfections.clone();
    Ok(VirtualDrive::imperfect(
        Arc::clone(truth),
        imperfections,
        outside.seed,
    ))
}

/// Blocks in sectors.
fn extent(blocks: Interval, sectors: u64) -> Extent {
    let start = Lba(blocks.first * sectors);
    let length = Sectors(blocks.len() * sectors);
    Extent::new(start, length).expect("a run of blocks is not empty")
}

/// One request for both, if one of them begins where the other ends.
fn either_way(one: &Entry, other: &Entry, jobs: &mut Jobs) -> Option<Entry> {
    let behind = one.followed_by(other, jobs);
    behind.or_else(|| other.followed_by(one, jobs))
}
