//! The disk behind an engine: transfers of one instant are merged, then the engine's policy chooses the
//! commands of the drive.
//!
//! ```text
//!   jobs --add--> [ plugged: neighbours of one instant are one request ] --> engine --command--> drive
//!    ^                                                                        |  ^                 |
//!    '------------- ended ------ first job of a request <------- finished ----'  '---- outcome ----'
//! ```
//!
//! Requests wait in the plug while the engine is full. Wished blocks of the level above belong to a
//! standing background task of the engine. [`DiskWishes`] turns the sectors that it reads into
//! whole blocks.

use std::collections::VecDeque;
use std::sync::Arc;

use block::Interval;
use block::{
    Action, Class, Command, Durability, Duration, Extent, Finished, Instant, Lba, Outcome, Refused,
    Request, RequestId, Sectors, Status,
};
use cache::coordinator::Purpose;
use cache::level::Wish;
use drive::{Profile, VirtualDrive};
use engine::{Engine, Limits, Tallies};
use scheduler::ordering::PriorityLevel;
use scheduler::policy;

use super::disk::{DiskCounts, sectors_of_a_block};
use super::jobs::{JobId, Jobs, overlap};
use super::merging::MergedTransfer;
use super::report::Slack;
use super::setup::{BadSetup, EngineScheduling, ExternalBelief, Readmore};
use super::wishes::DiskWishes;
use crate::driver::{Activity, Driver, Host};

/// A drive behind an engine, and the plug in front of both.
pub(super) struct EngineDisk {
    driver: Driver,
    queue: Plug,
    blocks: u64,
}

/// The host of the driver: merges reads before the engine gets them.
struct Plug {
    /// Sectors per block.
    sectors: u64,
    /// The class of independent prefetches.
    prefetches: Class,
    /// Demands, and less urgent reads, each in order of arrival.
    plugged: [VecDeque<(Class, MergedTransfer)>; 2],
    /// The less urgent reads in the engine: first job, and blocks.
    ahead: Vec<(JobId, Interval)>,
    /// The first jobs of ended requests.
    ended: VecDeque<JobId>,
    /// The time since which the drive has commands.
    busy_since: Option<Instant>,
    /// The wished blocks, if the level above uses wishes.
    wishes: Option<DiskWishes>,
    /// Time during which the drive had commands.
    busy: Duration,
    commands: u64,
    /// Sectors of all commands, and of the written ones.
    transferred: u64,
    written: u64,
}

/// Number of recent plugged requests that a new one may join: the size of a task's plug in Linux
/// (`BLK_MAX_REQUEST_COUNT`).
const PLUGGED: usize = 32;

impl EngineDisk {
    pub(super) fn new(
        truth: &Arc<Profile>,
        scheduled: &EngineScheduling,
    ) -> Result<Self, BadSetup> {
        let sectors = sectors_of_a_block(truth)?;
        let policy = policy::find(&scheduled.policy)?;
        if PriorityLevel::of(scheduled.prefetches)
            .is_none_or(|level| level == PriorityLevel::REAL_TIME)
        {
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
                Some(DiskWishes::new(task.expect("the only task"), sectors))
            }
        };
        Ok(EngineDisk {
            driver: Driver::new(engine, drive),
            queue: Plug {
                sectors,
                prefetches: scheduled.prefetches,
                plugged: Default::default(),
                ahead: Vec::new(),
                ended: VecDeque::new(),
                busy_since: None,
                wishes,
                busy: Duration::ZERO,
                commands: 0,
                transferred: 0,
                written: 0,
            },
            blocks: truth.geometry.sectors().0 / sectors,
        })
    }

    /// Number of blocks of the disk.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Totals of the disk.
    pub(super) fn counts(&self) -> DiskCounts {
        DiskCounts {
            commands: self.queue.commands,
            blocks: self.queue.transferred.div_ceil(self.queue.sectors),
            written: self.queue.written.div_ceil(self.queue.sectors),
            busy: self.queue.busy,
        }
    }

    /// Totals of background reads.
    pub(super) fn slack(&self) -> Slack {
        let account = self.driver.engine().account();
        let losses = self.driver.engine().losses();
        Slack {
            free: account.free.blocks.0,
            idle: account.idle.blocks.0,
            lost: losses.lost,
            responses: losses.responses,
        }
    }

    /// Changes the set of wished blocks.
    pub(super) fn wish(&mut self, now: Instant, wish: Wish) {
        let wishes = self.queue.wishes.as_mut().expect("a level with wishes");
        let engine = self.driver.engine_mut();
        let changed = match wish {
            Wish::Want(blocks) => {
                wishes.want(blocks);
                engine.change_task(
                    now,
                    wishes.task,
                    engine::TaskChange::Want(extent(blocks, self.queue.sectors)),
                )
            }
            Wish::Unwant(blocks) => {
                wishes.unwant(blocks);
                engine.change_task(
                    now,
                    wishes.task,
                    engine::TaskChange::Unwant(extent(blocks, self.queue.sectors)),
                )
            }
        };
        changed.expect("blocks of the disk, and a task that stands");
    }

    /// The next wished block that has been read.
    pub(super) fn poll_read(&mut self) -> Option<u64> {
        self.queue.wishes.as_mut()?.poll()
    }

    /// Adds a job.
    pub(super) fn add(&mut self, blocks: Interval, job: JobId, jobs: &mut Jobs) {
        self.queue.add(blocks, job, jobs);
    }

    /// Whether prefetches wait for all demands.
    pub(super) fn puts_prefetches_last(&self) -> bool {
        is_less_urgent(self.queue.prefetches)
    }

    /// A demand waits for these blocks: raises the reads that fetch them to the class of demands.
    pub(super) fn hasten(&mut self, now: Instant, blocks: Interval) {
        self.queue.hasten(now, self.driver.engine_mut(), blocks);
    }

    /// Gives the engine the plugged requests, and the drive the engine's commands.
    pub(super) fn dispatch(&mut self, now: Instant) {
        self.driver.advance(now);
        let settled = self.driver.settle(&mut self.queue);
        settled.expect("a command that the drive has room for, on the disk");
    }

    /// The time of the next event.
    pub(super) fn next_event(&self) -> Option<Instant> {
        match self.queue.ended.is_empty() {
            false => Some(self.driver.now()),
            true => self.driver.next_wakeup(),
        }
    }

    /// Whether no work is left. An in-firmware engine reads remaining wishes first. The calibration
    /// of an external engine does not count, since it never ends.
    pub(super) fn is_over(&self) -> bool {
        let engine = self.driver.engine();
        let wakes = match engine.tallies() {
            None => engine.next_wakeup(),
            Some(_) => None,
        };
        let is_idle = engine.at_drive() == 0 && engine.held() == 0;
        let is_any_plugged = self.queue.plugged.iter().any(|queue| !queue.is_empty());
        is_idle && !is_any_plugged && self.queue.ended.is_empty() && wakes.is_none()
    }

    /// Comparison of the ends of commands with the belief; `None` if the belief is the truth.
    pub(super) fn tallies(&self) -> Option<Tallies> {
        self.driver.engine().belief().tallies()
    }

    /// The first job of a request that has ended by now.
    pub(super) fn ended(&mut self, now: Instant) -> Option<JobId> {
        self.driver.advance(now);
        let collected = self.driver.collect(&mut self.queue);
        collected.expect("the ends of requests refuse nothing");
        self.queue.ended.pop_front()
    }
}

impl Plug {
    /// Adds a job; it joins a plugged neighbour of its class.
    fn add(&mut self, blocks: Interval, job: JobId, jobs: &mut Jobs) {
        let class = match jobs.get(job).asked.purpose {
            Purpose::Demand => Class::default(),
            Purpose::Prefetch => self.prefetches,
        };
        let entry = MergedTransfer::of(blocks, jobs.get(job).transfer, job);
        let queue = &mut self.plugged[usize::from(is_less_urgent(class))];
        for (other, plugged) in queue.iter_mut().rev().take(PLUGGED) {
            if *other == class
                && let Some(both) = plugged
                    .followed_by(&entry, jobs)
                    .or_else(|| entry.followed_by(plugged, jobs))
            {
                *plugged = both;
                return;
            }
        }
        queue.push_back((class, entry));
    }

    /// Raises the reads of these blocks to the class of demands.
    fn hasten(&mut self, now: Instant, engine: &mut Engine, blocks: Interval) {
        let [demanded, ahead] = &mut self.plugged;
        ahead.retain(|(_, entry)| {
            let is_wanted = overlap(entry.blocks, blocks);
            if is_wanted {
                demanded.push_back((Class::default(), *entry));
            }
            !is_wanted
        });
        let sectors = self.sectors;
        self.ahead.retain(|&(first, read)| {
            let is_wanted = overlap(read, blocks);
            if is_wanted {
                let (id, extent) = (RequestId(u64::from(first)), extent(read, sectors));
                // What is at the drive already is as fast as can be.
                let _ = engine.upgrade(now, id, extent, Class::default());
            }
            !is_wanted
        });
    }

    /// The next request for the engine, if the engine has room.
    fn unplug(&mut self, engine: &Engine) -> Option<(Class, MergedTransfer)> {
        let queue = self.plugged.iter_mut().find(|queue| !queue.is_empty())?;
        let (class, _) = queue.front()?;
        match engine.has_room(*class) {
            true => queue.pop_front(),
            false => None,
        }
    }
}

impl Host for Plug {
    type Error = Refused;

    fn command_ended(&mut self, now: Instant, engine: &Engine, outcome: &Outcome) {
        let read = engine.background_of(outcome.id);
        if let (Some(wishes), Some(extent)) = (&mut self.wishes, read) {
            wishes.read(extent);
        }
        if engine.at_drive() == 1
            && let Some(since) = self.busy_since.take()
        {
            self.busy += now.since(since);
        }
    }

    fn request_ended(
        &mut self,
        _: Instant,
        _: &mut Engine,
        finished: &mut Finished,
    ) -> Result<(), Refused> {
        assert_eq!(finished.status, Status::Good, "a drive without faults");
        let first = finished.request.id.0 as JobId;
        self.ahead.retain(|&(other, _)| other != first);
        self.ended.push_back(first);
        Ok(())
    }

    fn act(&mut self, now: Instant, engine: &mut Engine) -> Result<Activity, Refused> {
        while let Some((class, entry)) = self.unplug(engine) {
            let request = Request {
                id: RequestId(u64::from(entry.first)),
                direction: entry.direction,
                extent: extent(entry.blocks, self.sectors),
                class,
                durability: Durability::Volatile,
                owner: block::Owner::NOBODY,
            };
            engine.submit(now, request)?;
            if is_less_urgent(class) {
                self.ahead.push((entry.first, entry.blocks));
            }
        }
        Ok(Activity::Waits)
    }

    fn dispatched(&mut self, now: Instant, command: &Command) {
        self.busy_since.get_or_insert(now);
        self.commands += 1;
        let extent = command.action.extent();
        let sectors = extent.map_or(0, |extent| extent.length().0);
        self.transferred += sectors;
        if matches!(command.action, Action::Write { .. }) {
            self.written += sectors;
        }
    }

    fn next_event(&self, _: Instant, _: &Engine) -> Option<Instant> {
        None
    }
}

/// Whether requests of this class wait for demands.
fn is_less_urgent(class: Class) -> bool {
    PriorityLevel::of(class) > PriorityLevel::of(Class::default())
}

/// A drive that deviates from its profile.
fn imperfect(truth: &Arc<Profile>, outside: &ExternalBelief) -> Result<VirtualDrive, BadSetup> {
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

/// The sectors of these blocks.
fn extent(blocks: Interval, sectors: u64) -> Extent {
    let start = Lba(blocks.first * sectors);
    let length = Sectors(blocks.len() * sectors);
    Extent::new(start, length).expect("a run of blocks is not empty")
}
