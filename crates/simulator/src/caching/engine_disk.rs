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
//! ([`DiskWishes`]).

use std::collections::VecDeque;
use std::sync::Arc;

use block::Interval;
use block::{
    Class, Command, Direction, Durability, Duration, Extent, Finished, Instant, Lba, Outcome,
    Refused, Request, RequestId, Sectors, Status,
};
use cache::coordinator::Purpose;
use cache::level::Wish;
use drive::{Profile, VirtualDrive};
use engine::{Engine, Limits, Tallies};
use scheduler::ordering::PriorityLevel;
use scheduler::policy;

use super::disk::{DiskCounts, sectors_of_a_block};
use super::jobs::{JobId, Jobs, overlap};
use super::merging::MergedRead;
use super::report::Slack;
use super::setup::{BadSetup, EngineScheduling, ExternalBelief, Readmore};
use super::wishes::DiskWishes;
use crate::driver::{Activity, Driver, Host};

/// A drive behind an engine, and the queue before both.
pub(super) struct EngineDisk {
    driver: Driver,
    queue: Plug,
    blocks: u64,
}

/// The host of the driver: what is to be read, merged before the engine gets it.
struct Plug {
    /// Sectors of a block.
    sectors: u64,
    /// The class of prefetches that come by themselves.
    prefetches: Class,
    /// Demands, and what is less urgent, each in the order in which they came.
    plugged: [VecDeque<(Class, MergedRead)>; 2],
    /// What was asked of the engine that is less urgent than demands: first jobs, and blocks.
    ahead: Vec<(JobId, Interval)>,
    /// First jobs of requests that have ended.
    ended: VecDeque<JobId>,
    /// Since when the drive has commands.
    busy_since: Option<Instant>,
    /// If the level above may wish.
    wishes: Option<DiskWishes>,
    /// For how long the drive had commands.
    busy: Duration,
    commands: u64,
    /// Sectors of all commands.
    read: u64,
}

/// A request joins one of the last so many that are plugged: as many as Linux holds in a task's plug
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
                read: 0,
            },
            blocks: truth.geometry.sectors().0 / sectors,
        })
    }

    /// How many blocks it has.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// What it did.
    pub(super) fn counts(&self) -> DiskCounts {
        DiskCounts {
            commands: self.queue.commands,
            blocks: self.queue.read.div_ceil(self.queue.sectors),
            busy: self.queue.busy,
        }
    }

    /// What it read in the background.
    pub(super) fn slack(&self) -> Slack {
        let account = self.driver.engine().background().account();
        let losses = self.driver.engine().background().losses();
        Slack {
            free: account.free.blocks.0,
            idle: account.idle.blocks.0,
            lost: losses.lost,
            responses: losses.responses,
        }
    }

    /// What is wished changes.
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

    /// The next block that was read for wishes.
    pub(super) fn poll_read(&mut self) -> Option<u64> {
        self.queue.wishes.as_mut()?.poll()
    }

    /// A job is to be read.
    pub(super) fn add(&mut self, blocks: Interval, job: JobId, jobs: &mut Jobs) {
        self.queue.add(blocks, job, jobs);
    }

    /// Whether what is fetched ahead waits for all that is demanded.
    pub(super) fn puts_prefetches_last(&self) -> bool {
        is_less_urgent(self.queue.prefetches)
    }

    /// A demand waits for these blocks: what reads them is as urgent as a demand.
    pub(super) fn hasten(&mut self, now: Instant, blocks: Interval) {
        self.queue.hasten(now, self.driver.engine_mut(), blocks);
    }

    /// Gives the engine what is plugged, and the drive what the engine chooses.
    pub(super) fn dispatch(&mut self, now: Instant) {
        self.driver.advance(now);
        let settled = self.driver.settle(&mut self.queue);
        settled.expect("a command that the drive has room for, on the disk");
    }

    /// When something happens.
    pub(super) fn next_event(&self) -> Option<Instant> {
        match self.queue.ended.is_empty() {
            false => Some(self.driver.now()),
            true => self.driver.next_wakeup(),
        }
    }

    /// Whether nothing is left to do. In the firmware what is still wished is read first; outside the engine
    /// looks where the platter is for ever.
    pub(super) fn is_over(&self) -> bool {
        let engine = self.driver.engine();
        let wakes = match engine.belief().tallies() {
            None => engine.next_wakeup(),
            Some(_) => None,
        };
        let is_idle = engine.dispatch().at_drive() == 0 && engine.held() == 0;
        let is_any_plugged = self.queue.plugged.iter().any(|queue| !queue.is_empty());
        is_idle && !is_any_plugged && self.queue.ended.is_empty() && wakes.is_none()
    }

    /// What the ends of commands said of the belief, if that is not the truth.
    pub(super) fn told(&self) -> Option<Tallies> {
        self.driver.engine().belief().tallies()
    }

    /// The first of the jobs of a request that has ended by now.
    pub(super) fn ended(&mut self, now: Instant) -> Option<JobId> {
        self.driver.advance(now);
        let collected = self.driver.collect(&mut self.queue);
        collected.expect("the ends of requests refuse nothing");
        self.queue.ended.pop_front()
    }
}

impl Plug {
    /// A job is to be read; it joins a plugged neighbour of its class.
    fn add(&mut self, blocks: Interval, job: JobId, jobs: &mut Jobs) {
        let class = match jobs.get(job).asked.purpose {
            Purpose::Demand => Class::default(),
            Purpose::Prefetch => self.prefetches,
        };
        let entry = MergedRead::of(blocks, job);
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

    /// What reads these blocks becomes as urgent as a demand.
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

    /// What the engine is to be asked next, if it has room.
    fn unplug(&mut self, engine: &Engine) -> Option<(Class, MergedRead)> {
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
        let read = engine.dispatch().background_of(outcome.id);
        if let (Some(wishes), Some(extent)) = (&mut self.wishes, read) {
            wishes.read(extent);
        }
        if engine.dispatch().at_drive() == 1
            && let Some(since) = self.busy_since.take()
        {
            self.busy += now.since(since);
        }
    }

    fn request_ended(
        &mut self,
        _: Instant,
        _: &mut Engine,
        finished: Finished,
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
                direction: Direction::Read,
                extent: extent(entry.blocks, self.sectors),
                class,
                durability: Durability::Volatile,
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
        self.read += extent.map_or(0, |extent| extent.length().0);
    }

    fn next_event(&self, _: Instant, _: &Engine) -> Option<Instant> {
        None
    }
}

/// Whether requests of this class wait for demands.
fn is_less_urgent(class: Class) -> bool {
    PriorityLevel::of(class) > PriorityLevel::of(Class::default())
}

/// A drive that is not quite what it is believed to be.
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

/// Blocks in sectors.
fn extent(blocks: Interval, sectors: u64) -> Extent {
    let start = Lba(blocks.first * sectors);
    let length = Sectors(blocks.len() * sectors);
    Extent::new(start, length).expect("a run of blocks is not empty")
}

/// One request for both, if one of them begins where the other ends.
fn either_way(one: &MergedRead, other: &MergedRead, jobs: &mut Jobs) -> Option<MergedRead> {
    let behind = one.followed_by(other, jobs);
    behind.or_else(|| other.followed_by(one, jobs))
}
