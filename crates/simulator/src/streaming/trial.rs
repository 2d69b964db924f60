//! Streams at the limit of admission beside a greedy load and a scan of the whole disk. Tests and
//! `headtime` share this setup.

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
    Applications, FileStarts, PAGE, StreamingFigures, StreamingSetup, files::file_blocks, hostile,
};
use crate::run::{AfterLoad, Arrival, Load, LoadError, LoadPart, Options};
use crate::scenario::{Background, Scenario, ScenarioError, ScenarioResult};
use crate::workload::{Synthetic, Workload};

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The profile on which the guarantees are based.
    pub belief: Arc<Profile>,
    /// The profile of the simulated drive: the belief, or a drive for which the guarantees are too
    /// high.
    pub drive: Arc<Profile>,
    /// Deviations of the drive from its profile.
    pub truth: DriveTruth,
    /// The positions of the files.
    pub laid: FileLayout,
    /// The scheduling policy.
    pub policy: NamedPolicy,
    /// The rules by which large requests of other clients yield.
    pub preemption: Option<Preemption>,
    /// The streams; `None`: the load alone.
    pub streams: Option<TrialStreams>,
    /// Number of load tasks with one outstanding request each.
    pub tasks: u32,
    /// The fraction of their requests that read.
    pub read_fraction: f64,
    /// Bytes of each request.
    pub bytes: u64,
    /// Whether the whole disk is scanned in gaps and idle time.
    pub scan: Scanning,
    /// The start of the load; buffers fill before it.
    pub from: Instant,
    /// The end of the run.
    pub until: Instant,
    /// The seed of the load, the noise and the positions of files.
    pub seed: u64,
}

/// The streams of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialStreams {
    /// Bytes per second.
    pub rate: u64,
    /// Bytes of memory, without the application's own part and the host's reaction time.
    pub memory: u64,
    /// Number of readers; `None`: as many as are granted.
    pub readers: Option<usize>,
    /// Number of recorders.
    pub recorders: usize,
    /// Bytes of its memory that an application lacks.
    pub missing: u64,
    /// The fraction of head time reserved for the foreground, in thousandths.
    pub foreground_permille: u32,
}

/// The behaviour of a drive beyond its profile, and the allowance of the guarantees for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriveTruth {
    /// The actual deviations.
    pub imperfections: Imperfections,
    /// The deviations that admission allows for.
    pub beyond: Beyond,
}

/// The positions of the files of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileLayout {
    /// Anywhere in the innermost zone; each file is played as soon as its stream is in service.
    Anywhere,
    /// At the positions where sweeps take longest, all played together: the choice of an adversary
    /// who knows the drive.
    Hostile,
}

/// Whether a scan runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scanning {
    /// No scan.
    No,
    /// A scan of the whole disk as one background task.
    Whole,
}

/// The results of a trial.
#[derive(Clone, Debug)]
pub struct TrialResult {
    /// The results of the streams.
    pub kept: StreamingFigures,
    /// The results of the load and the scan.
    pub played: ScenarioResult,
}

/// An error of a trial.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// A required stream was refused.
    #[error("a stream of the trial: {0}")]
    NotGranted(#[from] NotGranted),
    /// The rate of a stream is zero.
    #[error("streams of 0 bytes in a second: expected at least one")]
    ZeroRate,
    /// The belief does not support guarantees.
    #[error("nothing can be promised: {0}")]
    NoPoints(#[from] stream::head_times::NoPoints),
    /// The load is malformed.
    #[error(transparent)]
    Load(#[from] DocumentError),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] ScenarioError),
}

impl DriveTruth {
    /// Seeks that scatter by 60 us, drift of spindle and electronics, recalibrations and retries,
    /// with guarantees that allow for all of it. Seeks and electronics count with 3.09 deviations
    /// (the 99.9th percentile). Each round allows for one recalibration and six retries of a
    /// revolution. One in a thousand of the 450 tracks of a round is read twice, seven of them in
    /// one round of a million.
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

    /// Seek noise of 6 us, whose 99.9th percentile is within the spare time of a skew.
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
    /// Runs the trial.
    ///
    /// # Errors
    /// If a required stream is refused, or the load does not fit the drive.
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
            let played = scenario.play_on(engine, &mut load, &options, &mut (), None)?;
            let kept = StreamingFigures::default();
            return Ok(TrialResult { kept, played });
        };
        let mut engine = engine.with_guarantees(self.promise(asked))?;
        let wish = self.laid_out(asked)?;
        let mut applications = Applications::attach(&mut engine, wish)?;
        let played = scenario.play_on(
            engine,
            &mut load,
            &options,
            &mut (),
            Some(&mut applications),
        )?;
        Ok(TrialResult {
            kept: *applications.kept(),
            played,
        })
    }

    /// Number of granted streams; independent of the load.
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

    /// The granted streams, and the number of blocks of each file.
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

    /// The parameters of the streams with the positions of their files.
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
        // What an application needs besides: see `stream::admission::Demand::own_part`.
        let own_part = AT_ONCE + 2 * rate.bytes_until(LATENCY) + 3 * PAGE;
        Ok(StreamingSetup {
            readers: asked.readers,
            recorders: asked.recorders,
            rate,
            memory: asked.memory.saturating_add(own_part),
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
            mirror: None,
        }
    }

    /// Requests of one size anywhere on the disk, each sent when the one before has ended.
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

/// A load with a delayed start.
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

/// The blocks of a drive's innermost, slowest zone.
fn innermost(belief: &Profile) -> Extent {
    let blocks = belief.geometry.sectors().0;
    let zones = belief.geometry.zones();
    let first = zones.last().map_or(0, |zone| zone.first.0);
    let zone = Extent::new(Lba(first), Sectors(blocks - first));
    zone.expect("a zone has blocks")
}

/// The reaction time of the host. A choice: a tick of Linux 2.4, and of many later configurations.
const LATENCY: Duration = Duration::from_millis(10);

/// A choice: rounds at the limit are shorter, so this bound has no effect there.
const LONGEST_ROUND: Duration = Duration::from_secs(10);

/// A choice: more streams than any of the drives supports.
const MOST_STREAMS: usize = 1_000;

/// What an application reads or writes at once (ABISS, 4: rdrt's reads).
const AT_ONCE: u64 = 64 * 1024;
