//! A background scan beside the paper's OLTP load: the run of all claims about free blocks.
//!
//! ```text
//!   with     OLTP + scan  |== start ==|======= first half =======|===== whole =====|
//!   without  OLTP         |================ for the same time =====================|
//! ```

use block::{Direction, Duration, Extent, Lba, Switch};
use drive::geometry::TrackExtent;
use drive::{Position, Profile};
use engine::Rules;
use rayon::prelude::*;
use scheduler::freeblock::{Caution, Ranges, SameTrack, WantedBlocks};
use simulator::ledger::RunReport;
use simulator::run::{AfterLoad, Options};
use simulator::scenario::{Background, ScanResult, ScenarioResult};
use simulator::workload::{Overrides, Workload};

use super::scene::{Model, Noise, PaperScene, load};
use super::{Effort, PaperBench};
use crate::Failure;

/// A run with a scan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScanTrial {
    /// The drive.
    pub model: Model,
    /// The scheduler's knowledge of the drive.
    pub known: TrialBelief,
    /// The noise of the drive's seeks.
    pub noise: Noise,
    /// Whether the drive looks ahead.
    pub look_ahead: Switch,
    /// The policy.
    pub policy: &'static str,
    /// The permitted tracks.
    pub tracks: Tracks,
    /// The guard, and the rules about near misses.
    pub caution: Caution,
    /// Whether a learned guard withholds plans to measure its loss.
    pub control_group: Switch,
    /// The search for plans.
    pub search: Search,
    /// The length of the scan, in hundredths.
    pub part: u32,
    /// The foreground's load.
    pub load: TrialLoad,
    /// The seed of the load.
    pub seed: u64,
}

/// The foreground's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialLoad {
    /// OLTP with ten pending requests (section 5.1).
    Oltp,
    /// Reads of small files (section 5.4), by as many clients as OLTP has requests.
    SmallFiles,
}

/// The limits of the search for plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// Examined tracks.
    pub tracks: u32,
    /// Stops of a plan.
    pub stops: u8,
}

/// A scheduler's knowledge of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialBelief {
    /// The truth without its noise.
    Truth,
    /// The profiler's findings.
    Profiled,
}

/// The tracks on which free blocks are read by separate commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracks {
    /// The paper's rule for a drive with look-ahead: not on tracks of foreground commands.
    Others,
    /// All tracks, in two ranges on those of foreground commands.
    All,
}

/// The results of a trial.
#[derive(Clone, Debug)]
pub struct TrialOutcome {
    /// The rate of free blocks until each hundredth of the scan, in MB/s.
    pub curve: Vec<(u32, f64)>,
    /// The rate of free blocks over the whole run, in MB/s.
    pub free: f64,
    /// The rate of the load, in MB/s.
    pub foreground: f64,
    /// The load's requests per second.
    pub rate: f64,
    /// The increase of the mean response time by the scan, in percent.
    pub mean_loss: f64,
    /// The increase of the 99th percentile by the scan, in percent.
    pub p99_loss: f64,
    /// The loss of the load's throughput to the scan, in percent.
    pub throughput_loss: f64,
    /// Foreground commands in 1,000 that a plan made late.
    pub mispredicted: f64,
    /// Foreground commands in 1,000 whose gap was left alone: a near miss, or a plan not worth its
    /// risk.
    pub left_alone: f64,
    /// The last guards: of reads after short and long seeks, then of writes.
    pub guards: [Duration; 4],
    /// The drive.
    pub drive: TrialDrive,
}

/// The size and the rate of a disk that is read sequentially.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrialDrive {
    /// The number of tracks.
    pub tracks: u64,
    /// The size, in MB.
    pub megabytes: f64,
    /// The mean rate of the medium, in MB/s: its bytes over one revolution for each track.
    pub potential: f64,
    /// The rate of a sequential read of the whole disk, in MB/s: with the skews between tracks.
    pub streaming: f64,
}

/// The results of trials.
#[derive(Debug, Default)]
pub struct Trials {
    all: Vec<(ScanTrial, TrialOutcome)>,
}

impl ScanTrial {
    /// A scheduler in the firmware: belief = truth, no noise, no guard. Any track is permitted,
    /// because the firmware does not look ahead into unwanted blocks.
    pub fn in_firmware(model: Model, policy: &'static str) -> ScanTrial {
        ScanTrial {
            model,
            known: TrialBelief::Truth,
            noise: Noise::default(),
            look_ahead: Switch::Off,
            policy,
            tracks: Tracks::All,
            caution: fixed(Duration::ZERO),
            control_group: Switch::On,
            search: Search::default(),
            part: 100,
            load: TrialLoad::Oltp,
            seed: 1,
        }
    }

    /// An external scheduler, as in the paper.
    pub fn external(
        model: Model,
        noise: Noise,
        policy: &'static str,
        guard: Duration,
    ) -> ScanTrial {
        ScanTrial {
            known: TrialBelief::Profiled,
            noise,
            look_ahead: Switch::On,
            tracks: Tracks::Others,
            caution: fixed(guard),
            ..ScanTrial::in_firmware(model, policy)
        }
    }

    /// The drive and what is known of it.
    ///
    /// # Errors
    /// If the drive is not shipped.
    pub fn scene(&self) -> Result<PaperScene, Failure> {
        let scene = match self.known {
            TrialBelief::Truth => PaperScene::noisy(self.model, self.noise),
            TrialBelief::Profiled => PaperScene::external(self.model, self.noise),
        }?;
        Ok(match self.look_ahead {
            Switch::On => scene,
            Switch::Off => scene.without_look_ahead(),
        })
    }

    fn rules(&self) -> Rules {
        let (same_track, ranges) = match self.tracks {
            Tracks::Others => (SameTrack::Never, Ranges::One),
            Tracks::All => (SameTrack::Allowed, Ranges::Two),
        };
        Rules {
            stops: self.search.stops,
            tracks: self.search.tracks,
            caution: self.caution,
            control_group: self.control_group,
            same_track,
            ranges,
            idle_after: None,
            ..Rules::default()
        }
    }

    /// Runs it, and the load alone for the same time.
    ///
    /// # Errors
    /// If the drive is not shipped, or the load does not fit on it.
    pub fn run(&self, effort: Effort) -> Result<TrialOutcome, Failure> {
        let scene = self.scene()?;
        let load = self.load.workload(self.seed)?;
        let mut scenario = scene.scenario(self.policy)?;
        let drive = scene.belief();
        scenario.background = Some(Background {
            rules: self.rules(),
            wanted: WantedBlocks::all(&drive.geometry),
            deadline: None,
            hundredths: part(self.part, effort),
            after_load: AfterLoad::Stop,
        });
        let requests = match effort {
            Effort::Requests(requests) => Some(requests),
            Effort::Full | Effort::Quick => None,
        };
        let options = Options {
            requests,
            ..Options::default()
        };
        let with = scenario.play(&mut scene.begin(&load)?, &options, &mut ());
        let with = with.map_err(Failure::failed)?;
        let options = Options {
            requests: None,
            until: Some(with.ran.end),
            ..options
        };
        let alone = scenario.baseline();
        let without = alone.play(&mut scene.begin(&load)?, &options, &mut ());
        let without = without.map_err(Failure::failed)?;
        let Some(scanned) = &with.scan else {
            return Err(Failure::failed("a scan that was begun is unknown"));
        };
        let outcome = TrialOutcome::new(&with, scanned, &without, drive.block_bytes);
        let megabytes = drive.capacity_bytes() as f64 / 1e6;
        let revolution = drive.spindle.period().as_secs_f64();
        Ok(TrialOutcome {
            drive: TrialDrive {
                tracks: drive.geometry.tracks(),
                megabytes,
                potential: megabytes / (drive.geometry.tracks() as f64 * revolution),
                streaming: megabytes / sequential(scene.truth()).as_secs_f64(),
            },
            ..outcome
        })
    }
}

impl Default for Search {
    /// The engine's own.
    fn default() -> Self {
        let Rules { tracks, stops, .. } = Rules::default();
        Search { tracks, stops }
    }
}

impl TrialOutcome {
    fn new(
        with: &ScenarioResult,
        scanned: &ScanResult,
        without: &ScenarioResult,
        block_bytes: u32,
    ) -> TrialOutcome {
        let report = |played: &ScenarioResult| played.ledger.report(&played.ran);
        let (busy, alone) = (report(with), report(without));
        let response = |report: &RunReport| {
            let response = report.all.response.as_ref();
            response.map_or((f64::NAN, f64::NAN), |times| (times.mean_ms, times.p99_ms))
        };
        let ((mean, p99), (mean_alone, p99_alone)) = (response(&busy), response(&alone));
        let more = |with: f64, without: f64| (with / without - 1.0) * 100.0;
        let gaps = &scanned.gaps;
        let of_1000 = |count: u64| count as f64 * 1e3 / with.ran.requests.max(1) as f64;
        let curve = scanned.points.iter().map(|point| {
            let hundredths = point.hundredths;
            (hundredths, scanned.rates(hundredths, block_bytes)[0])
        });
        TrialOutcome {
            curve: curve.collect(),
            free: scanned.rates(101, block_bytes)[0],
            foreground: busy.megabytes_per_second,
            rate: busy.requests_per_second,
            mean_loss: more(mean, mean_alone),
            p99_loss: more(p99, p99_alone),
            throughput_loss: -more(busy.requests_per_second, alone.requests_per_second),
            mispredicted: of_1000(gaps.mispredicted),
            left_alone: of_1000(gaps.near_miss + gaps.unworthy),
            guards: scanned.guards,
            drive: TrialDrive::default(),
        }
    }

    /// The free bandwidth in percent of the rate of a sequential read.
    pub fn share(&self, hundredths: u32) -> f64 {
        self.until(hundredths) / self.drive.streaming * 100.0
    }

    /// The ratio of moved bytes to the load's own.
    pub fn utilisation(&self, hundredths: u32) -> f64 {
        (self.foreground + self.until(hundredths)) / self.foreground
    }

    /// The rate of free blocks until this hundredth, in MB/s; over the whole run, if the scan ended
    /// before.
    pub fn until(&self, hundredths: u32) -> f64 {
        let reached = self.curve.iter().find(|(at, _)| *at >= hundredths);
        reached.map_or(self.free, |(_, rate)| *rate)
    }

    /// The rates at the start, over the first half, and over the whole run.
    pub fn parts(&self) -> String {
        let [start, half, whole] = [1, 50, 100].map(|part| self.until(part));
        format!("{start:.2} / {half:.2} / {whole:.2}")
    }

    /// Scans of the whole drive in a day, at the rate until this hundredth.
    pub fn scans_a_day(&self, hundredths: u32) -> f64 {
        self.until(hundredths) * 86_400.0 / self.drive.megabytes
    }
}

impl Trials {
    /// Runs each of the trials once, on all cores.
    ///
    /// # Errors
    /// If one of them cannot be run.
    pub fn of(
        bench: &PaperBench,
        trials: impl IntoIterator<Item = ScanTrial>,
    ) -> Result<Trials, Failure> {
        let mut run = Trials::default();
        run.add(bench, trials)?;
        Ok(run)
    }

    /// Runs those of the trials that were not run yet.
    ///
    /// # Errors
    /// If one of them cannot be run.
    pub fn add(
        &mut self,
        bench: &PaperBench,
        trials: impl IntoIterator<Item = ScanTrial>,
    ) -> Result<(), Failure> {
        let mut new: Vec<ScanTrial> = Vec::new();
        for trial in trials {
            if !new.contains(&trial) && self.get(&trial).is_err() {
                new.push(trial);
            }
        }
        bench.expect(new.len());
        let run = |trial: ScanTrial| {
            let outcome = trial.run(bench.effort)?;
            bench.done();
            Ok((trial, outcome))
        };
        let outcomes: Result<Vec<_>, Failure> = new.into_par_iter().map(run).collect();
        self.all.extend(outcomes?);
        Ok(())
    }

    /// What a trial came to.
    ///
    /// # Errors
    /// If it is none of them.
    pub fn get(&self, trial: &ScanTrial) -> Result<&TrialOutcome, Failure> {
        let found = self.all.iter().find(|(other, _)| other == trial);
        let found = found.ok_or_else(|| Failure::failed(format!("not run: {trial:?}")));
        found.map(|(_, outcome)| outcome)
    }
}

/// A guard that does not change.
pub fn fixed(guard: Duration) -> Caution {
    Caution::Fixed {
        guard,
        near_miss: Duration::ZERO,
    }
}

/// The end of a scan at this effort, in hundredths.
pub fn part(part: u32, effort: Effort) -> u32 {
    match effort {
        Effort::Full => part,
        Effort::Quick | Effort::Requests(_) => part.min(START),
    }
}

/// The remark on a shortened scan.
pub fn remark(effort: Effort) -> String {
    match effort {
        Effort::Full => String::new(),
        Effort::Quick | Effort::Requests(_) => format!(
            "START ONLY: the first {START} % of the scan at most, where all figures of the first \
             half and the whole are those of the start; "
        ),
    }
}

/// The time of a sequential read of the whole disk: the sweep of each track, and the way to the
/// next one's first sector, with a revolution more if the arm comes too late for it.
fn sequential(drive: &Profile) -> Duration {
    let Ok(whole) = Extent::new(Lba(0), drive.geometry.sectors()) else {
        return Duration::ZERO;
    };
    let mut before: Option<TrackExtent> = None;
    let mut time = Duration::ZERO;
    for run in drive.geometry.runs(whole) {
        if let Some(before) = before {
            let gap = drive
                .spindle
                .time_of(run.start - (before.start + before.sweep));
            let place = |run: &TrackExtent| Position {
                cylinder: run.cylinder,
                head: run.head,
            };
            let moved = drive.reposition(place(&before), place(&run), Direction::Read);
            time += gap;
            if gap < moved {
                time += drive.spindle.period();
            }
        }
        time += drive.spindle.time_of(run.sweep);
        before = Some(run);
    }
    time
}

impl TrialLoad {
    fn workload(self, seed: u64) -> Result<Workload, Failure> {
        let flags = Overrides {
            seed: Some(seed),
            ..Overrides::default()
        };
        match self {
            TrialLoad::Oltp => load(
                "oltp",
                &Overrides {
                    think_ms: Some(0.0),
                    ..flags
                },
            ),
            TrialLoad::SmallFiles => load(
                "small-files",
                &Overrides {
                    tasks: Some(PENDING),
                    ..flags
                },
            ),
        }
    }
}

/// Pending requests (section 5.1).
const PENDING: u32 = 10;

/// Hundredths of a quick scan. A choice: a few seconds in total.
const START: u32 = 5;
