//! One run and all that it needs: a drive as it is, a drive as it is believed to be, a policy, and
//! perhaps a background task.
//!
//! Every command that simulates something says what in these terms, so that `simulate`,
//! `experiment` and `paper` cannot differ in how they run it.

use std::sync::Arc;

use block::{Duration, Instant};
use drive::{Imperfections, Profile, VirtualDrive};
use engine::explanation::{Explanation, Known};
use engine::{Engine, Gaps, Limits, Preempted, Rules, Tallies};
use profiler::tracker::BeliefMode;
use scheduler::Preemption;
use scheduler::background::{Order, TaskProgress, TaskRefused};
use scheduler::freeblock::WantedBlocks;
use scheduler::policy::NamedPolicy;

use crate::driver::Driver;
use crate::ledger::{Ledger, RunTotals};
use crate::run::{
    self, AfterLoad, Audience, BackgroundScan, Load, Options, RunError, ScanPoint, Watch,
};

/// What is run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What the scheduler believes.
    pub belief: Arc<Profile>,
    /// What the drive is.
    pub truth: Arc<Profile>,
    /// What it is besides.
    pub imperfections: Imperfections,
    /// The seed of the drive's dice.
    pub seed: u64,
    /// Who chooses.
    pub policy: NamedPolicy,
    /// The engine's bounds.
    pub limits: Limits,
    /// How larger requests step aside for more urgent ones.
    pub preemption: Option<Preemption>,
    /// What is read in the background.
    pub background: Option<Background>,
}

/// A background task of a run.
#[derive(Clone, Debug)]
pub struct Background {
    /// How its reads are fitted in.
    pub rules: Rules,
    /// What it reads.
    pub wanted: WantedBlocks,
    /// When it should be done.
    pub deadline: Option<Instant>,
    /// Once so many hundredths were read, no more requests arrive.
    pub hundredths: u32,
    /// What happens when the load ends before.
    pub after_load: AfterLoad,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct ScenarioResult {
    /// The run.
    pub ran: RunTotals,
    /// Its requests.
    pub ledger: Ledger,
    /// Its background task.
    pub scan: Option<ScanResult>,
    /// What the ends of commands said of the belief, unless it is the truth.
    pub told: Option<Tallies>,
    /// What the belief was used for at the end.
    pub mode: BeliefMode,
    /// What stepping aside came to.
    pub preempted: Preempted,
}

/// What a background task came to.
#[derive(Clone, Debug)]
pub struct ScanResult {
    /// The moments at which another hundredth was read.
    pub points: Vec<ScanPoint>,
    /// How far it came.
    pub progress: TaskProgress,
    /// What came of the gaps.
    pub gaps: Gaps,
    /// The last guards: of reads after short and long seeks, then of writes.
    pub guards: [Duration; 4],
    /// The share of the mean response time that the scheduler believes to have cost, over its
    /// last few thousand requests.
    pub impact: f64,
    /// When the run ended.
    pub end: Instant,
    /// The blocks that are left.
    pub left: WantedBlocks,
}

/// Why a scenario could not be run to its end.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The load or the drive.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The background task.
    #[error(transparent)]
    Task(#[from] TaskRefused),
}

impl Scenario {
    /// Whether the scheduler knows all that there is to know: its results are then *in-firmware*.
    /// Otherwise it follows its drive.
    pub fn is_in_firmware(&self) -> bool {
        Arc::ptr_eq(&self.belief, &self.truth) && self.imperfections == Imperfections::default()
    }

    /// The same without its background task, for as long as it took.
    pub fn baseline(&self) -> Scenario {
        Scenario {
            background: None,
            ..self.clone()
        }
    }

    /// Runs it from the beginning.
    ///
    /// # Errors
    /// If the load is bad or does not fit the drive, the watcher cannot write, or the background
    /// task is refused.
    pub fn play<L: Load + ?Sized, W: Watch + ?Sized>(
        &self,
        load: &mut L,
        options: &Options,
        watch: &mut W,
    ) -> Result<ScenarioResult, ScenarioError> {
        self.play_on(self.engine(options), load, options, watch, &mut ())
    }

    /// The engine of the scenario, without its background task.
    pub fn engine(&self, options: &Options) -> Engine {
        let belief = Arc::clone(&self.belief);
        let mut engine = Engine::new(belief, &|| self.policy.make(), self.limits);
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

    /// Runs it from the beginning, with its [`engine`](Scenario::engine), beside an audience that
    /// has come.
    ///
    /// # Errors
    /// As [`Scenario::play`].
    pub fn play_on<L: Load + ?Sized, W: Watch + ?Sized, A: Audience>(
        &self,
        mut engine: Engine,
        load: &mut L,
        options: &Options,
        watch: &mut W,
        audience: &mut A,
    ) -> Result<ScenarioResult, ScenarioError> {
        let truth = Arc::clone(&self.truth);
        let drive = VirtualDrive::imperfect(truth, self.imperfections.clone(), self.seed);
        let mut ledger =
            Ledger::new(self.truth.block_bytes, self.truth.actuators).with_parts(load.parts());
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
                progress: engine.background().task(scan.task)?,
                gaps: engine.background().gaps(),
                guards: engine.background().guards(),
                impact: engine.background().impact(),
                end: ran.over,
                left: engine.background().left(scan.task)?.clone(),
            })
        });
        Ok(ScenarioResult {
            ran,
            ledger,
            scan,
            told: engine.belief().tallies(),
            mode: engine.belief().mode(),
            preempted: engine.preemption().tally(),
        })
    }
}

impl ScanResult {
    /// Wanted blocks a second by each means, in MB/s of `block_bytes`, until so many hundredths
    /// were read, or the end of the run: free, idle, paid.
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

    /// When so many hundredths were read.
    pub fn reached(&self, hundredths: u32) -> Option<Instant> {
        let point = self.points.iter().find(|p| p.hundredths >= hundredths)?;
        Some(point.at)
    }
}

/// Keeps the points of a scan beside what another watcher sees.
struct Points<'a, W: ?Sized> {
    watch: &'a mut W,
    points: Vec<ScanPoint>,
}

impl<W: Watch + ?Sized> Watch for Points<'_, W> {
    fn finished(&mut self, finished: &block::Finished) -> std::io::Result<()> {
        self.watch.finished(finished)
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
