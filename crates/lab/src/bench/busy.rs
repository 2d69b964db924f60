//! A busy drive with declared background tasks and a client, in virtual time.
//!
//! The load is the freeblock paper's: ten requests are always active. It lasts until all tasks and the
//! client have ended, or for the longest permitted time.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use block::{
    Class, Direction, Durability, Duration, Extent, Finished, Instant, Lba, Outcome, Owner,
    Request, RequestId, Sectors, Status,
};
use drive::{Imperfections, Profile, VirtualDrive};
use engine::{Engine, Gaps, Limits, Rules, TaskChange};
use scheduler::NamedPolicy;
use scheduler::background::{DeclaredSet, Order, SetProgress, TaskId, TaskPhase};
use scheduler::freeblock::{Caution, Losses, WantedBlocks};
use simulator::driver::{Activity, Driver, Host};
use simulator::run::{Demand, Load as _, LoadPart, Options, RunError};
use simulator::scenario::{Background, Scenario};
use simulator::workload::Synthetic;

use super::never_idle;
use crate::dice::SplitMix;
use crate::{Failure, Label, Progress, profiled};

/// The standard deviation of seek times, which no belief has: ../shared/specs/scheduling.md, 7.
const SEEK_NOISE: Duration = Duration::from_micros(60);

/// What the scheduler believes of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeliefSource {
    /// The truth without its noise: *noisy* figures.
    Truth,
    /// The finding of the profiler: *external* figures.
    Profiled,
}

/// A drive that is never idle.
#[derive(Clone, Debug)]
pub struct BusyDrive {
    truth: Arc<Profile>,
    belief: Arc<Profile>,
    imperfections: Imperfections,
    policy: NamedPolicy,
    seed: u64,
    impact_ppm: u32,
}

/// A task that is begun with the load.
#[derive(Clone, Debug)]
pub struct BegunTask {
    /// The set.
    pub set: DeclaredSet,
    /// The priority; 0 is the highest.
    pub priority: u8,
    /// The thousandths of the set's blocks that must be delivered before the task is hastened.
    pub hastened_at: Option<u64>,
}

impl BegunTask {
    /// A task of priority 0 that is never hastened.
    pub fn of(set: DeclaredSet) -> Self {
        BegunTask {
            set,
            priority: 0,
            hastened_at: None,
        }
    }
}

/// A client that transfers extents in the order in which they are given, with so many requests in flight.
#[derive(Clone, Debug)]
pub struct BusyClient {
    /// The extents.
    pub extents: Vec<Extent>,
    /// The direction of all requests.
    pub direction: Direction,
    /// The class of all requests.
    pub class: Class,
    /// Requests in flight.
    pub depth: usize,
}

/// What is served beside the load.
#[derive(Clone, Debug, Default)]
pub struct ServedBeside {
    /// The tasks.
    pub tasks: Vec<BegunTask>,
    /// The client.
    pub client: Option<BusyClient>,
    /// The longest time of a run. Zero: the load ends with the tasks and the client only.
    pub most: Duration,
}

/// The end of a task.
#[derive(Clone, Debug)]
pub struct EndedTask {
    /// The time at which the task had enough; `None` if the run ended first.
    pub ended: Option<Instant>,
    /// The times at which half and nine tenths of its blocks were delivered.
    pub shares: [Option<Instant>; 2],
    /// The time at which it was hastened, and the blocks that it lacked then.
    pub hastened: Option<(Instant, Vec<Extent>)>,
    /// Blocks of the set, rounded up to slices.
    pub asked: u64,
    /// Blocks of those that were delivered.
    pub delivered: u64,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct BusyFigures {
    /// The tasks in their order.
    pub tasks: Vec<EndedTask>,
    /// The end of the client's last request.
    pub client_ended: Option<Instant>,
    /// The client's requests that have ended while the load was there.
    pub client_requests: u64,
    /// What came of the gaps.
    pub gaps: Gaps,
    /// Blocks of all background reads.
    pub read: u64,
    /// The mean response time of the load, in milliseconds.
    pub mean_ms: f64,
    /// The engine's estimate of the loss.
    pub losses: Losses,
    /// The end of the run.
    pub end: Instant,
}

impl BusyDrive {
    /// A drive, believed as `source` says. The host of background reads turns its write cache off: it hides
    /// where the head is.
    ///
    /// # Errors
    /// If it cannot be profiled.
    pub fn new(
        drive: &Profile,
        source: BeliefSource,
        policy: NamedPolicy,
        (seed, impact_ppm): (u64, u32),
        progress: &dyn Progress,
    ) -> Result<Self, Failure> {
        let truth = Arc::new(drive.switched(block::Switch::On, block::Switch::Off));
        let imperfections = Imperfections {
            seek_noise: SEEK_NOISE,
            ..Imperfections::default()
        };
        let belief = match source {
            BeliefSource::Truth => Arc::clone(&truth),
            BeliefSource::Profiled => {
                progress.begin(&format!("profiling {}", truth.name));
                // The load meets other random events.
                Arc::new(profiled::belief(&truth, &imperfections, !seed)?)
            }
        };
        Ok(BusyDrive {
            truth,
            belief,
            imperfections,
            policy,
            seed,
            impact_ppm,
        })
    }

    /// The relation between belief and truth.
    pub fn mode(&self) -> Label {
        let is_truth = Arc::ptr_eq(&self.belief, &self.truth);
        Label::of((!is_truth).then_some(self.belief.provenance)).with_noise()
    }

    /// The drive.
    pub fn truth(&self) -> &Profile {
        &self.truth
    }

    /// Megabytes of so many blocks.
    pub fn megabytes(&self, blocks: u64) -> f64 {
        blocks as f64 * f64::from(self.truth.block_bytes) / 1e6
    }

    /// Pieces of so many bytes at random places of the drive, each on a multiple of its length.
    ///
    /// # Errors
    /// If they are more than half of the drive.
    pub fn scattered(&self, seed: u64, count: u64, bytes: u64) -> Result<Vec<Extent>, Failure> {
        let truth = &self.truth;
        let length = (bytes / u64::from(truth.block_bytes)).max(1);
        let places = truth.geometry.sectors().0 / length;
        if count > places / 2 {
            return Err(Failure::input(format!(
                "{count} pieces of {bytes} bytes on {}: expected at most half of the drive",
                truth.name
            )));
        }
        let mut dice = SplitMix::new(!seed);
        let mut chosen = BTreeSet::new();
        while (chosen.len() as u64) < count {
            chosen.insert(dice.below(places));
        }
        let piece = |place: u64| Extent::new(Lba(place * length), Sectors(length));
        let pieces = chosen.into_iter().map(piece).collect::<Result<_, _>>();
        pieces.map_err(Failure::failed)
    }

    /// Serves the load, and what is beside it, to the end.
    ///
    /// # Errors
    /// If a task is refused, or the drive refuses a command.
    pub fn serve(&self, beside: &ServedBeside) -> Result<BusyFigures, Failure> {
        let mut engine = self.scenario().engine(&Options::default());
        let mut tasks = Vec::new();
        for begun in &beside.tasks {
            tasks.push(WatchedTask::begin(&mut engine, begun)?);
        }
        let truth = Arc::clone(&self.truth);
        let drive = VirtualDrive::imperfect(truth, self.imperfections.clone(), self.seed);
        let mut host = BusyHost {
            load: never_idle::load(Some(self.seed), &self.truth)?,
            ready: VecDeque::new(),
            has_begun: false,
            submitted: 0,
            client: beside.client.clone().map(ClientState::new),
            tasks,
            responses: (0, 0),
            read: 0,
            until: (beside.most > Duration::ZERO).then(|| Instant::ZERO + beside.most),
        };
        let mut driver = Driver::new(engine, drive);
        driver.run(&mut host).map_err(Failure::failed)?;
        let (requests, nanos) = host.responses;
        let engine = driver.engine();
        Ok(BusyFigures {
            tasks: host.tasks.into_iter().map(WatchedTask::end).collect(),
            client_ended: host.client.as_ref().and_then(|client| client.ended),
            client_requests: host.client.map_or(0, |client| client.done),
            gaps: engine.gaps(),
            read: host.read,
            mean_ms: nanos as f64 / 1e6 / requests.max(1) as f64,
            losses: engine.losses(),
            end: driver.now(),
        })
    }

    fn scenario(&self) -> Scenario {
        Scenario {
            belief: Arc::clone(&self.belief),
            truth: Arc::clone(&self.truth),
            imperfections: self.imperfections.clone(),
            seed: self.seed,
            policy: self.policy,
            limits: Limits::suited_to(self.policy, &self.belief),
            preemption: None,
            background: Some(Background::new(
                Rules {
                    caution: Caution::Learned {
                        impact_ppm: self.impact_ppm,
                    },
                    ..Rules::default()
                },
                // The tasks are begun one by one.
                WantedBlocks::none(&self.belief.geometry),
            )),
            mirror: None,
        }
    }
}

/// The host of a run.
struct BusyHost {
    load: Synthetic,
    ready: VecDeque<Demand>,
    has_begun: bool,
    submitted: u64,
    client: Option<ClientState>,
    tasks: Vec<WatchedTask>,
    /// Requests of the load, and the sum of their response times in nanoseconds.
    responses: (u64, u64),
    read: u64,
    until: Option<Instant>,
}

/// A task, and what was delivered for it.
struct WatchedTask {
    id: TaskId,
    progress: SetProgress,
    asked: u64,
    hasten_at: Option<u64>,
    ended: EndedTask,
}

/// The shares of a set whose times are noted, in thousandths.
const SHARES: [u64; 2] = [500, 900];

impl WatchedTask {
    fn begin(engine: &mut Engine, begun: &BegunTask) -> Result<Self, Failure> {
        let wanted = begun.set.wanted(&engine.profile().geometry);
        let wanted = wanted.map_err(Failure::input)?;
        let order = Order {
            wanted: wanted.clone(),
            priority: begun.priority,
            deadline: None,
        };
        let id = engine.begin_task(Instant::ZERO, order);
        Ok(WatchedTask {
            id: id.map_err(Failure::failed)?,
            asked: wanted.left(),
            progress: SetProgress::new(begun.set.clone(), wanted),
            hasten_at: begun.hastened_at,
            ended: EndedTask {
                ended: None,
                shares: [None; 2],
                hastened: None,
                asked: 0,
                delivered: 0,
            },
        })
    }

    fn look(&mut self, now: Instant, engine: &mut Engine) {
        if self.ended.ended.is_some() {
            return;
        }
        let delivered = self.asked - self.progress.missing().left();
        for (share, at) in SHARES.iter().zip(&mut self.ended.shares) {
            if at.is_none() && delivered * 1000 >= share * self.asked {
                *at = Some(now);
            }
        }
        if self.progress.is_enough() {
            // It has finished by itself if all its blocks were read.
            let _ = engine.change_task(now, self.id, TaskChange::Finish);
            self.ended.ended = Some(now);
            return;
        }
        let surplus = self.progress.give_up_surplus();
        if !surplus.is_empty() {
            let narrowed = engine.narrow_task(now, self.id, &surplus);
            narrowed.expect("a task that is under way");
        }
        let phase = engine.task(self.id).map(|task| task.state);
        assert_ne!(phase, Some(TaskPhase::Finished), "it lacks blocks");
        if self
            .hasten_at
            .is_some_and(|share| delivered * 1000 >= share * self.asked)
        {
            self.hasten_at = None;
            self.ended.hastened = Some((now, self.progress.missing().extents().collect()));
            let hastened = engine.change_task(now, self.id, TaskChange::Hasten);
            hastened.expect("a task that is under way");
        }
    }

    fn end(mut self) -> EndedTask {
        self.ended.asked = self.asked;
        self.ended.delivered = self.asked - self.progress.missing().left();
        self.ended
    }
}

/// A client, and how far it is.
struct ClientState {
    client: BusyClient,
    next: usize,
    in_flight: usize,
    done: u64,
    ended: Option<Instant>,
}

impl ClientState {
    fn new(client: BusyClient) -> Self {
        ClientState {
            client,
            next: 0,
            in_flight: 0,
            done: 0,
            ended: None,
        }
    }

    fn next(&mut self) -> Option<Demand> {
        let extent = *self.client.extents.get(self.next)?;
        (self.in_flight < self.client.depth).then(|| {
            self.next += 1;
            self.in_flight += 1;
            Demand {
                direction: self.client.direction,
                extent,
                class: self.client.class,
                part: LoadPart::ONLY,
                owner: Owner::task(0),
            }
        })
    }

    /// A request has ended. One that is late has had the drive without the load.
    fn end_one(&mut self, now: Instant, is_late: bool) {
        self.in_flight -= 1;
        self.done += u64::from(!is_late);
        if self.in_flight == 0 && self.next == self.client.extents.len() {
            self.ended = Some(now);
        }
    }
}

/// The first id of the client's requests.
const CLIENT_IDS: u64 = 1 << 62;

impl BusyHost {
    fn is_closed(&self, now: Instant) -> bool {
        let have_ended = self.tasks.iter().all(|task| task.ended.ended.is_some());
        let client = self.client.as_ref();
        let has_ended = client.is_none_or(|client| client.ended.is_some());
        let has_purpose = !self.tasks.is_empty() || self.client.is_some();
        (has_purpose && have_ended && has_ended) || self.until.is_some_and(|until| until <= now)
    }

    fn submit(&mut self, now: Instant, engine: &mut Engine, first_id: u64, demand: Demand) {
        let request = Request {
            id: RequestId(first_id + self.submitted),
            direction: demand.direction,
            extent: demand.extent,
            class: demand.class,
            durability: Durability::Volatile,
            owner: demand.owner,
        };
        self.submitted += 1;
        engine
            .submit(now, request)
            .expect("the engine has room, and the drive the blocks");
    }
}

impl Host for BusyHost {
    type Error = RunError;

    fn command_ended(&mut self, _: Instant, engine: &Engine, outcome: &Outcome) {
        if let (Some(extent), Status::Good) = (engine.background_of(outcome.id), outcome.status) {
            self.read += extent.length().0;
            for task in &mut self.tasks {
                task.progress.deliver(extent, |_| {});
            }
        }
    }

    fn request_ended(
        &mut self,
        now: Instant,
        _: &mut Engine,
        finished: &mut Finished,
    ) -> Result<(), RunError> {
        if finished.request.id.0 >= CLIENT_IDS {
            let is_late = self.until.is_some_and(|until| until < now);
            if let Some(client) = &mut self.client {
                client.end_one(now, is_late);
            }
            return Ok(());
        }
        self.responses.0 += 1;
        self.responses.1 += finished.response().as_nanos();
        let arrival = self.load.on_finished(now, LoadPart::ONLY, finished)?;
        self.ready.extend(arrival.map(|arrival| arrival.demand));
        Ok(())
    }

    fn act(&mut self, now: Instant, engine: &mut Engine) -> Result<Activity, RunError> {
        if !std::mem::replace(&mut self.has_begun, true) {
            while let Some(arrival) = self.load.next_arrival()? {
                self.ready.push_back(arrival.demand);
            }
        }
        for task in &mut self.tasks {
            task.look(now, engine);
        }
        while !self.is_closed(now) && engine.has_room(Class::default()) {
            let own = self.client.as_mut().and_then(ClientState::next);
            if let Some(demand) = own {
                self.submit(now, engine, CLIENT_IDS, demand);
                continue;
            }
            let Some(demand) = self.ready.pop_front() else {
                break;
            };
            self.submit(now, engine, 0, demand);
        }
        Ok(Activity::Waits)
    }

    fn is_over(&mut self, now: Instant, engine: &mut Engine) -> bool {
        self.is_closed(now) && engine.held() == 0
    }

    fn next_event(&self, now: Instant, _: &Engine) -> Option<Instant> {
        self.until.filter(|&until| until > now)
    }
}
