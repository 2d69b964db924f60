//! One simulated run: a truth, a belief, a policy and, optionally, a background task.
//!
//! All commands that simulate describe their runs in these terms, so that `simulate`, `experiment`
//! and `paper` run them alike.

use std::sync::Arc;

use block::{Duration, Instant};
use drive::{Imperfections, Profile, VirtualDrive};
use engine::explanation::{Explanation, Known};
use engine::{Engine, Gaps, Limits, Preempted, ReadRule, Rules, Tallies};
use profiler::slow_heads::SlowHeads;
use profiler::tracker::BeliefMode;
use scheduler::Preemption;
use scheduler::background::{Order, TaskProgress, TaskRefused};
use scheduler::freeblock::{Losses, WantedBlocks};
use scheduler::policy::NamedPolicy;

use crate::driver::{Driver, SimulatedDrive};
use crate::ledger::{Ledger, RunTotals};
use crate::mirror::{self, MirroredDrives};
use crate::run::{
    self, AfterLoad, Audience, BackgroundScan, EndedCommand, Load, Options, RunError, ScanPoint,
    Watch,
};

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The profile that the scheduler believes.
    pub belief: Arc<Profile>,
    /// The profile of the simulated drive.
    pub truth: Arc<Profile>,
    /// Deviations of the drive from its profile.
    pub imperfections: Imperfections,
    /// The seed of the drive's random numbers.
    pub seed: u64,
    /// The scheduling policy.
    pub policy: NamedPolicy,
    /// The limits of the engine.
    pub limits: Limits,
    /// The rules by which large requests yield to more urgent ones.
    pub preemption: Option<Preemption>,
    /// The background task.
    pub background: Option<Background>,
    /// Two drives hold the same blocks, and reads are served under this rule.
    pub mirror: Option<ReadRule>,
}

/// The background task of a run.
#[derive(Clone, Debug)]
pub struct Background {
    /// The rules for background reads.
    pub rules: Rules,
    /// The blocks to read.
    pub wanted: WantedBlocks,
    /// The target time of completion.
    pub deadline: Option<Instant>,
    /// Percentage of the blocks after which no more requests arrive.
    pub hundredths: u32,
    /// Treatment of the task if the load ends first.
    pub after_load: AfterLoad,
}

impl Background {
    /// A task without a deadline, beside requests until the load ends.
    pub fn new(rules: Rules, wanted: WantedBlocks) -> Self {
        Background {
            rules,
            wanted,
            deadline: None,
            hundredths: 100,
            after_load: AfterLoad::Stop,
        }
    }
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct ScenarioResult {
    /// Totals of the run.
    pub ran: RunTotals,
    /// Sums over all requests.
    pub ledger: Ledger,
    /// Results of the background task.
    pub scan: Option<ScanResult>,
    /// Comparison of the ends of commands with the belief; `None` if the belief is the truth.
    pub tallies: Option<Tallies>,
    /// The heads of each actuator, or of each drive of a mirror, beside each other; empty if the belief is the truth.
    pub slow_heads: Vec<SlowHeads>,
    /// The nanoseconds by which commands were found to arrive later at the drive than believed at first.
    pub host_delay: i64,
    /// The use of the belief at the end of the run.
    pub mode: BeliefMode,
    /// Results of preemption.
    pub preempted: Preempted,
}

/// The results of a background task.
#[derive(Clone, Debug)]
pub struct ScanResult {
    /// One point for each hundredth of the blocks.
    pub points: Vec<ScanPoint>,
    /// Final progress.
    pub progress: TaskProgress,
    /// Use of the gaps.
    pub gaps: Gaps,
    /// The last guards: of reads after short and long seeks, then of writes.
    pub guards: [Duration; 4],
    /// The scheduler's estimate of its cost, as a fraction of the mean response time over the last
    /// few thousand requests.
    pub impact: f64,
    /// The foreground's response times, and the estimated loss, over the whole run.
    pub losses: Losses,
    /// The end of the run.
    pub end: Instant,
    /// The blocks that were not read.
    pub left: WantedBlocks,
}

/// An error of a scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The load or the drive failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The background task was refused.
    #[error(transparent)]
    Task(#[from] TaskRefused),
}

impl Scenario {
    /// Whether the belief is the exact truth: the results are then *in-firmware*. Otherwise the
    /// scheduler tracks its drive, and they are *external*.
    pub fn is_in_firmware(&self) -> bool {
        Arc::ptr_eq(&self.belief, &self.truth) && self.imperfections == Imperfections::default()
    }

    /// The same scenario without its background task.
    pub fn baseline(&self) -> Scenario {
        Scenario {
            background: None,
            ..self.clone()
        }
    }

    /// Runs the scenario from the beginning. The loop of the run is compiled in this crate, and not for each caller.
    ///
    /// # Errors
    /// If the load is bad or does not fit the drive, the observer cannot write, or the background
    /// task is refused.
    pub fn play(
        &self,
        load: &mut dyn Load,
        options: &Options,
        watch: &mut dyn Watch,
    ) -> Result<ScenarioResult, ScenarioError> {
        self.play_on(self.engine(options), load, options, watch, None)
    }

    /// The engine of the scenario, without its background task.
    ///
    /// # Panics
    /// If a mirror's drives have two actuators.
    pub fn engine(&self, options: &Options) -> Engine {
        let belief = Arc::clone(&self.belief);
        let policy = || self.policy.make();
        let mut engine = match self.mirror {
            None => Engine::new(belief, &policy, self.limits),
            Some(rule) => {
                let second = mirror::second(&belief, self.seed);
                let made = Engine::mirrored([belief, second], rule, &policy, self.limits);
                made.expect("two drives of one model, with an actuator each")
            }
        };
        if options.slowest > 0 {
            engine = engine.with_explanations(Known::Profile);
        }
        if !self.is_in_firmware() {
            engine = engine.with_tracking(self.policy);
        }
        if let Some(rules) = self.preemption {
            engine = engine.with_preemption(rules);
        }
        if let Some(background) = &self.background {
            engine = engine.with_background(background.rules);
        }
        engine
    }

    /// Runs the scenario from the beginning on an [`engine`](Scenario::engine), beside an audience.
    ///
    /// # Errors
    /// As [`Scenario::play`].
    pub fn play_on(
        &self,
        engine: Engine,
        load: &mut dyn Load,
        options: &Options,
        watch: &mut dyn Watch,
        audience: Option<&mut dyn Audience>,
    ) -> Result<ScenarioResult, ScenarioError> {
        let truth = &self.truth;
        if self.mirror.is_some() {
            let drives = MirroredDrives::new(truth, &self.imperfections, self.seed);
            return self.play_with((engine, drives, 2), load, options, watch, audience);
        }
        let imperfections = self.imperfections.clone();
        let drive = VirtualDrive::imperfect(Arc::clone(truth), imperfections, self.seed);
        let arms = truth.actuators;
        self.play_with((engine, drive, arms), load, options, watch, audience)
    }

    /// Runs the scenario with an engine and a drive of so many arms.
    fn play_with<D: SimulatedDrive>(
        &self,
        (mut engine, drive, arms): (Engine, D, u8),
        load: &mut dyn Load,
        options: &Options,
        watch: &mut dyn Watch,
        audience: Option<&mut dyn Audience>,
    ) -> Result<ScenarioResult, ScenarioError> {
        let mut ledger = Ledger::new(self.truth.block_bytes, arms).with_parts(load.parts());
        let mut options = *options;
        if let Some(background) = &self.background {
            let order = Order {
                wanted: background.wanted.clone(),
                priority: 0,
                deadline: background.deadline,
            };
            options.scan = Some(BackgroundScan {
                task: engine.begin_task(Instant::ZERO, order)?,
                hundredths: background.hundredths,
                after_load: background.after_load,
            });
        }
        let mut watch = Points {
            watch,
            points: Vec::new(),
        };
        let mut driver = Driver::new(engine, drive);
        let ran = run::run_beside(
            &mut driver,
            load,
            &options,
            &mut ledger,
            &mut watch,
            audience,
        )?;
        let engine = driver.engine();
        let scan = options.scan.and_then(|scan| {
            Some(ScanResult {
                points: watch.points,
                progress: engine.task(scan.task)?,
                gaps: engine.gaps(),
                guards: engine.guards(),
                impact: engine.impact(),
                losses: engine.losses(),
                end: ran.over,
                left: engine.left(scan.task)?,
            })
        });
        Ok(ScenarioResult {
            ran,
            ledger,
            scan,
            tallies: engine.tallies(),
            slow_heads: engine.slow_heads().cloned().collect(),
            host_delay: engine.host_delay(),
            mode: engine.mode(),
            preempted: engine.preempted(),
        })
    }
}

impl ScanResult {
    /// Transfer rates of wanted blocks in MB/s of `block_bytes` until `hundredths` were read, or
    /// the end of the run. The order is free, idle, paid.
    pub fn rates(&self, hundredths: u32, block_bytes: u32) -> [f64; 3] {
        let point = self.points.iter().find(|p| p.hundredths >= hundredths);
        let (account, at) = match point {
            Some(point) => (point.account, point.at),
            None => (self.progress.account, self.end),
        };
        let rate = |blocks: block::Sectors| match at.as_nanos() {
            0 => 0.0,
            _ => blocks.0 as f64 * f64::from(block_bytes) / 1e6 / at.as_secs_f64(),
        };
        [account.free, account.idle, account.paid].map(|moved| rate(moved.blocks))
    }

    /// The time at which `hundredths` were read.
    pub fn reached(&self, hundredths: u32) -> Option<Instant> {
        let point = self.points.iter().find(|p| p.hundredths >= hundredths)?;
        Some(point.at)
    }
}

/// Collects the points of a scan beside another observer.
struct Points<'a> {
    watch: &'a mut dyn Watch,
    points: Vec<ScanPoint>,
}

impl Watch for Points<'_> {
    fn finished(&mut self, finished: &block::Finished) -> std::io::Result<()> {
        self.watch.finished(finished)
    }

    fn wants_commands(&self) -> bool {
        self.watch.wants_commands()
    }

    fn command(&mut self, ended: &EndedCommand) {
        self.watch.command(ended);
    }

    fn progress(&mut self, progress: run::RunProgress) {
        self.watch.progress(progress);
    }

    fn slow(&mut self, number: u64, explanation: &Explanation) {
        self.watch.slow(number, explanation);
    }

    fn scanned(&mut self, point: &ScanPoint) {
        self.points.push(*point);
        self.watch.scanned(point);
    }
}
