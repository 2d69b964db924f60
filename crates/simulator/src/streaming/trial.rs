//! Streams at the limit of what is granted, beside a greedy load and a scan of the whole disk: what
//! tests and `headtime` run, in one place.

use std::sync::Arc;

use block::{Duration, Extent, Finished, Instant, Lba, Sectors};
use document::DocumentError;
use drive::imperfection::{Chance, Periodic};
use drive::{Imperfections, Profile};
use engine::guarantees::{Beyond, FOREGROUND_BYTES};
use engine::streams::{NotGranted, Promise};
use engine::{Limits, Rules};
use scheduler::Preemption;
use scheduler::freeblock::WantedBlocks;
use scheduler::policy::NamedPolicy;
use stream::quota::Quotas;
use stream::streams::Settings;
use stream::{Rate, admission};

use super::{
    Applications, FileStarts, PAGE, StreamingFigures, StreamingSetup, file_blocks, hostile,
};
use crate::run::{AfterLoad, Arrival, Load, LoadError, LoadPart, Options};
use crate::scenario::{Background, Scenario, ScenarioError, ScenarioResult};
use crate::workload::{Synthetic, Workload};

/// A run.
#[derive(Clone, Debug)]
pub struct Trial {
    /// What is believed of the drive, and promised of it.
    pub belief: Arc<Profile>,
    /// The drive, but for its imperfections: the same, or one for which too much is promised.
    pub drive: Arc<Profile>,
    /// What it does besides.
    pub truth: DriveTruth,
    /// Where files begin.
    pub laid: FileLayout,
    /// Who chooses.
    pub policy: NamedPolicy,
    /// How larger requests of others step aside.
    pub preemption: Option<Preemption>,
    /// The streams; none: the load alone.
    pub streams: Option<TrialStreams>,
    /// Tasks of the load that always have a request waiting; none without them.
    pub tasks: u32,
    /// The share of their requests that read.
    pub read_fraction: f64,
    /// Bytes of each.
    pub bytes: u64,
    /// Whether the whole disk is scanned in gaps and idle time.
    pub scan: Scanning,
    /// When the load begins: until then buffers fill.
    pub from: Instant,
    /// When it is over.
    pub until: Instant,
    /// The seed of the load, of the noise, and of where files begin.
    pub seed: u64,
}

/// The streams of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialStreams {
    /// Bytes in a second.
    pub rate: u64,
    /// Bytes of memory, without the application's part and what the host notices late.
    pub memory: u64,
    /// Readers; none: as many as are granted.
    pub readers: Option<usize>,
    /// Recorders.
    pub recorders: usize,
    /// How many bytes of its memory an application does not have.
    pub missing: u64,
    /// The share of head time that is promised to the foreground, in thousandths.
    pub foreground_permille: u32,
}

/// What a drive does beyond its profile, and what is promised of that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriveTruth {
    /// What it does.
    pub imperfections: Imperfections,
    /// What is reckoned with.
    pub beyond: Beyond,
}

/// Where the files of a trial begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileLayout {
    /// Anywhere in the innermost zone, and each is played when it is served.
    Anywhere,
    /// Over all of it, where sweeps take the longest, and all are played at once: an adversary's,
    /// who knows the drive.
    Hostile,
}

/// Whether there is a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scanning {
    /// There is none.
    No,
    /// Of the whole disk, as one background task.
    Whole,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct TrialResult {
    /// The streams.
    pub kept: StreamingFigures,
    /// The load and the scan.
    pub played: ScenarioResult,
}

/// Why a trial could not be run.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// A stream that was wished for was refused.
    #[error("a stream of the trial: {0}")]
    NotGranted(#[from] NotGranted),
    /// Streams have a rate.
    #[error("streams of 0 bytes in a second: expected at least one")]
    ZeroRate,
    /// The belief is no drive's.
    #[error("nothing can be promised: {0}")]
    NoPoints(#[from] stream::head_times::NoPoints),
    /// The load.
    #[error(transparent)]
    Load(#[from] DocumentError),
    /// The run.
    #[error(transparent)]
    Run(#[from] ScenarioError),
}

impl DriveTruth {
    /// Seeks that scatter by 60 us, a spindle and electronics that wander, a recalibration now and
    /// then, retries; and all of that promised: seeks and electronics at 3.09 deviations (the 99.9th
    /// percentile), and for each round a recalibration and six retries of a revolution: of the 450
    /// tracks of a round one in a thousand is read twice, and seven of them in one round of a million.
    pub fn noisy() -> DriveTruth {
        DriveTruth {
            imperfections: Imperfections {
                seek_noise: Duration::from_micros(60),
                overhead_noise: Duration::from_micros(10),
                spindle_ppm: 30,
                spindle_drift_ppm: 30,
                recalibration: Periodic {
                    every: Duration::from_secs(60),
                    costs: Duration::from_millis(50),
                },
                media_retry: Chance {
                    per_million: 1_000,
                    costs: Duration::ZERO,
                },
                settle_retry: Chance {
                    per_million: 1_000,
                    costs: Duration::from_millis(2),
                },
                ..Imperfections::default()
            },
            beyond: Beyond {
                seek: Duration::from_micros(186),
                overhead: Duration::from_micros(31),
                stall: Duration::from_millis(100),
            },
        }
    }

    /// Seek noise of 6 us, whose 99.9th percentile is within what a skew has to spare.
    pub fn quiet() -> DriveTruth {
        DriveTruth {
            imperfections: Imperfections {
                seek_noise: Duration::from_micros(6),
                ..Imperfections::default()
            },
            beyond: Beyond {
                seek: Duration::from_micros(19),
                ..Beyond::default()
            },
        }
    }
}

impl Trial {
    /// Runs it.
    ///
    /// # Errors
    /// If a stream that was wished for is refused, or the load does not fit the drive.
    pub fn play(&self) -> Result<TrialResult, TrialError> {
        let options = Options {
            until: Some(self.until),
            ..Options::default()
        };
        let scenario = self.scenario();
        let mut load = Later {
            load: self.load()?,
            by: self.from.since(Instant::ZERO),
        };
        let engine = scenario.engine(&options);
        let Some(asked) = &self.streams else {
            let played = scenario.play_on(engine, &mut load, &options, &mut (), &mut ())?;
            let kept = StreamingFigures::default();
            return Ok(TrialResult { kept, played });
        };
        let mut engine = engine.with_guarantees(self.promise(asked))?;
        let wish = self.laid_out(asked)?;
        let mut applications = Applications::attach(&mut engine, wish)?;
        let played = scenario.play_on(engine, &mut load, &options, &mut (), &mut applications)?;
        Ok(TrialResult {
            kept: *applications.kept(),
            played,
        })
    }

    /// How many streams are granted; the load does not matter.
    ///
    /// # Errors
    /// As [`Trial::play`].
    pub fn granted(&self) -> Result<usize, TrialError> {
        let Some(asked) = &self.streams else {
            return Ok(0);
        };
        let (kept, _) = self.attached(asked)?;
        Ok(kept.streams)
    }

    /// What is granted, and the blocks of each file.
    fn attached(&self, asked: &TrialStreams) -> Result<(StreamingFigures, u64), TrialError> {
        let engine = self.scenario().engine(&Options::default());
        let mut engine = engine.with_guarantees(self.promise(asked))?;
        let mut wish = self.wish(asked)?;
        let blocks = file_blocks(&engine, &wish);
        if self.laid == FileLayout::Hostile {
            // Both ends of the place are taken: how many are granted depends on how far they are.
            let ends = [wish.place.start(), Lba(wish.place.end().0 - blocks)];
            let starts = ends.into_iter().cycle().take(MOST_STREAMS);
            wish.layout = FileStarts::At(starts.collect());
        }
        let applications = Applications::attach(&mut engine, wish)?;
        Ok((*applications.kept(), blocks))
    }

    /// The streams, and where their files are.
    fn laid_out(&self, asked: &TrialStreams) -> Result<StreamingSetup, TrialError> {
        let wish = self.wish(asked)?;
        if self.laid == FileLayout::Anywhere {
            return Ok(wish);
        }
        let (kept, blocks) = self.attached(asked)?;
        let round = kept.plan.map_or(Duration::ZERO, |plan| plan.round);
        let batch = wish.rate.bytes_within(round) / u64::from(self.drive.block_bytes);
        let files = (kept.streams, blocks);
        let starts = hostile::starts(&self.drive, wish.place, files, Sectors(batch.max(1)));
        Ok(StreamingSetup {
            layout: FileStarts::At(starts),
            ..wish
        })
    }

    fn promise(&self, asked: &TrialStreams) -> Promise {
        Promise {
            beyond: self.truth.beyond,
            rules: admission::Rules {
                foreground_permille: asked.foreground_permille,
                latency: LATENCY,
                longest_round: LONGEST_ROUND,
                streams: MOST_STREAMS,
            },
            quotas: Quotas::open(),
            settings: Settings {
                page: PAGE,
                fill: FOREGROUND_BYTES,
                priority: 0,
            },
            place: None,
        }
    }

    fn wish(&self, asked: &TrialStreams) -> Result<StreamingSetup, TrialError> {
        let rate = Rate::new(asked.rate).ok_or(TrialError::ZeroRate)?;
        Ok(StreamingSetup {
            readers: asked.readers,
            recorders: asked.recorders,
            rate,
            memory: asked.memory.saturating_add(own_part(rate)),
            at_once: AT_ONCE,
            further: asked.missing,
            place: innermost(&self.belief),
            layout: FileStarts::Anywhere,
            latency: LATENCY,
            until: self.until,
            seed: self.seed,
        })
    }

    fn scenario(&self) -> Scenario {
        Scenario {
            belief: Arc::clone(&self.belief),
            truth: Arc::clone(&self.drive),
            imperfections: self.truth.imperfections.clone(),
            seed: self.seed,
            policy: self.policy,
            limits: Limits::suited_to(self.policy, &self.belief),
            preemption: self.preemption,
            background: match self.scan {
                Scanning::No => None,
                Scanning::Whole => Some(Background {
                    rules: Rules::default(),
                    wanted: WantedBlocks::all(&self.belief.geometry),
                    deadline: None,
                    hundredths: 100,
                    after_load: AfterLoad::Stop,
                }),
            },
        }
    }

    /// Requests of one size anywhere on the disk, as fast as they are answered.
    fn load(&self) -> Result<Synthetic, DocumentError> {
        let text = format!(
            "name = \"greedy\"\nread_fraction = {}\n\
             [arrivals]\nmodel = \"closed\"\ntasks = {}\nthink_ms = 0\nthink = \"constant\"\n\
             [size]\nkind = \"fixed\"\nkib = {}\n[placement]\nkind = \"uniform\"\n",
            self.read_fraction,
            self.tasks,
            self.bytes / 1024,
        );
        let mut load = Workload::parse("the load of a trial", &text)?;
        load.seed = self.seed;
        Synthetic::new(
            &load,
            self.belief.block_bytes,
            self.belief.geometry.sectors().0,
        )
    }
}

/// What an application needs besides: see `stream::admission::Demand::own_part`.
fn own_part(rate: Rate) -> u64 {
    AT_ONCE + 2 * rate.bytes_until(LATENCY) + 3 * PAGE
}

/// A load that begins so much later.
struct Later {
    load: Synthetic,
    by: Duration,
}

impl Load for Later {
    fn next_arrival(&mut self) -> Result<Option<Arrival>, LoadError> {
        let arrival = self.load.next_arrival()?;
        Ok(arrival.map(|arrival| Arrival {
            at: arrival.at + self.by,
            ..arrival
        }))
    }

    fn on_finished(
        &mut self,
        now: Instant,
        part: LoadPart,
        finished: &Finished,
    ) -> Result<Option<Arrival>, LoadError> {
        self.load.on_finished(now, part, finished)
    }
}

/// The blocks of a drive's innermost zone, its slowest.
fn innermost(belief: &Profile) -> Extent {
    let blocks = belief.geometry.sectors().0;
    let zones = belief.geometry.zones();
    let first = zones.last().map_or(0, |zone| zone.first.0);
    let zone = Extent::new(Lba(first), Sectors(blocks - first));
    zone.expect("a zone has blocks")
}

/// How late the host may notice anything. A choice: a tick of Linux 2.4, and of many later
/// configurations.
const LATENCY: Duration = Duration::from_millis(10);

/// A choice: rounds at the limit are shorter, so that it bounds nothing there.
const LONGEST_ROUND: Duration = Duration::from_secs(10);

/// A choice: more than any of the drives takes.
const MOST_STREAMS: usize = 1_000;

/// What an application reads or writes at once (ABISS, 4: rdrt's reads).
const AT_ONCE: u64 = 64 * 1024;
