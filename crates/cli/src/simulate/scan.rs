//! The flags of a background scan, and what it comes to beside the same load without it.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use block::{Duration, Extent, Instant, Lba, Sectors};
use clap::{Args, ValueEnum};
use drive::Profile;
use engine::Rules;
use scheduler::background::State;
use scheduler::freeblock::plan::MOST_STOPS;
use scheduler::freeblock::{Caution, Ranges, SameTrack, Wanted};
use serde::Serialize;
use simulator::ledger::Report;
use simulator::run::AfterLoad;
use simulator::scenario::{Background, Played, Scanned};

use crate::output::{Failure, NewFile, grouped};

/// A scan in the background.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "A scan in the background")]
pub struct ScanArguments {
    /// Read all blocks in the background, or those given, such as 0..1000,5000..6000
    #[arg(long, value_name = "BLOCKS", num_args = 0..=1, default_missing_value = ALL)]
    pub scan: Option<String>,
    /// Go on with the blocks that a file says are left
    #[arg(long, value_name = "FILE", conflicts_with = "scan")]
    pub scan_from: Option<PathBuf>,
    /// Write which blocks are left into a file, to go on with later
    #[arg(long, value_name = "FILE")]
    pub scan_left: Option<PathBuf>,
    /// The load ends when so much of the scan is done
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub scan_until: Option<u32>,
    /// What happens when the load ends first
    #[arg(long, value_enum, value_name = "stop|finish")]
    pub after_load: Option<After>,
    /// Added to predicted seeks, in ms; or `learned`, from errors and the impact budget
    #[arg(long, value_name = "MS|learned")]
    pub guard: Option<String>,
    /// Gaps so near to a whole revolution are left alone (fixed guard only)
    #[arg(long, value_name = "US")]
    pub near_miss_us: Option<f64>,
    /// How much longer requests may take on average for the scan's sake; otherwise 1
    #[arg(long, value_name = "PERCENT")]
    pub impact_percent: Option<f64>,
    /// Free reads on the tracks of the foreground's commands, and two a track
    #[arg(long)]
    pub same_track: bool,
    /// Free reads on one way; otherwise 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=MOST_STOPS as i64))]
    pub stops: Option<u8>,
    /// The share of head time that may be spent on the scan; otherwise 0
    #[arg(long, value_name = "PERCENT")]
    pub paid_percent: Option<f64>,
    /// Read by itself when no request has been there for so long, or `never`; otherwise 10
    #[arg(long, value_name = "MS|never")]
    pub idle_ms: Option<String>,
    /// When the scan should be done: head time is paid only if it would otherwise be late
    #[arg(long, value_name = "S")]
    pub deadline: Option<f64>,
}

/// What happens when the load ends and the scan has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum After {
    /// The run is over
    Stop,
    /// It goes on in idle time
    Finish,
}

/// What `--scan` alone means.
const ALL: &str = "all";

/// The longest guard: a revolution of the slowest spindle.
const LONGEST_GUARD_MS: f64 = 60.0;

/// The longest wait for idleness, an hour. A choice.
const LONGEST_IDLE_MS: f64 = 3_600_000.0;

/// The latest deadline, a century: as far as a run can last.
const LATEST_SECONDS: f64 = 3.2e9;

/// A scan, every value found to make sense.
#[derive(Clone, Debug)]
pub struct ScanPlan {
    background: Background,
    left: Option<PathBuf>,
}

/// What a scan came to.
#[derive(Clone, Debug, Serialize)]
pub struct ScanFigures {
    free_mb_s: f64,
    idle_mb_s: f64,
    paid_mb_s: f64,
    foreground_mean_ms: f64,
    foreground_p99_ms: f64,
    baseline: Baseline,
    /// Of the mean response time, in percent; negative if the load was faster.
    foreground_loss_percent: f64,
    state: &'static str,
    wanted_blocks: u64,
    left_blocks: u64,
    /// MB/s by free blocks until 1 %, 50 % and all of the scan were read, where it came so far.
    free_mb_s_by_part: Parts,
    guard: GuardFigures,
    gaps: GapFigures,
    /// Moments at which another hundredth was read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    progress: Vec<Moment>,
}

/// The same load without the scan.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Baseline {
    foreground_mean_ms: f64,
    foreground_p99_ms: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Parts {
    start: Option<f64>,
    first_half: Option<f64>,
    whole: Option<f64>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct GuardFigures {
    rule: &'static str,
    impact_budget_percent: Option<f64>,
    /// Of reads after short and long seeks, then of writes.
    guards_us: [f64; 4],
    measured_impact_percent: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct GapFigures {
    seen: u64,
    mean_latency_ms: f64,
    near_miss: u64,
    not_worth_it: u64,
    merged: u64,
    detours: u64,
    on_source_track: u64,
    on_destination_track: u64,
    mispredicted: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Moment {
    percent: u32,
    seconds: f64,
}

impl ScanArguments {
    /// The scan that is meant, if one is.
    ///
    /// # Errors
    /// The flag whose value makes no sense, and what was expected.
    pub fn plan(&self, belief: &Arc<Profile>) -> Result<Option<ScanPlan>, Failure> {
        if self.scan.is_none() && self.scan_from.is_none() {
            return self.unused();
        }
        if belief.actuators > 1 {
            let name = &belief.name;
            return Err(Failure::input(format!(
                "--scan on {name}: a drive of two actuators: expected one of a single one"
            )));
        }
        let deadline = self.deadline.map(|seconds| {
            let at = number(
                "deadline",
                seconds,
                (0.0, LATEST_SECONDS),
                "seconds to come",
            )?;
            match at > 0.0 {
                true => Ok(Instant::from_nanos((at * 1e9) as u64)),
                false => Err(Failure::input(format!(
                    "--deadline {seconds}: it has passed when the scan begins: expected seconds \
                     to come"
                ))),
            }
        });
        Ok(Some(ScanPlan {
            background: Background {
                rules: self.rules()?,
                wanted: self.wanted(belief)?,
                deadline: deadline.transpose()?,
                hundredths: self.scan_until.unwrap_or(100),
                after_load: match self.after_load {
                    Some(After::Finish) => AfterLoad::Finish,
                    Some(After::Stop) | None => AfterLoad::Stop,
                },
            },
            left: self.scan_left.clone(),
        }))
    }

    /// Flags of a scan without one are a mistake.
    fn unused(&self) -> Result<Option<ScanPlan>, Failure> {
        let given = [
            ("scan-left", self.scan_left.is_some()),
            ("scan-until", self.scan_until.is_some()),
            ("after-load", self.after_load.is_some()),
            ("guard", self.guard.is_some()),
            ("near-miss-us", self.near_miss_us.is_some()),
            ("impact-percent", self.impact_percent.is_some()),
            ("same-track", self.same_track),
            ("stops", self.stops.is_some()),
            ("paid-percent", self.paid_percent.is_some()),
            ("idle-ms", self.idle_ms.is_some()),
            ("deadline", self.deadline.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(Failure::input(format!(
                "--{flag}: nothing is scanned: expected --scan, too"
            ))),
            None => Ok(None),
        }
    }

    fn rules(&self) -> Result<Rules, Failure> {
        let paid = self.paid_percent.unwrap_or(0.0);
        let paid = number("paid-percent", paid, (0.0, 100.0), "a share of head time")?;
        let (same_track, ranges) = match self.same_track {
            true => (SameTrack::Allowed, Ranges::Two),
            false => (SameTrack::Never, Ranges::One),
        };
        Ok(Rules {
            caution: self.caution()?,
            same_track,
            ranges,
            stops: self.stops.unwrap_or(Rules::default().stops),
            idle_after: match self.idle_ms.as_deref() {
                None => Rules::default().idle_after,
                Some("never") => None,
                Some(text) => {
                    let range = (0.0, LONGEST_IDLE_MS);
                    let expected = "milliseconds, or never";
                    Some(millis("idle-ms", text, range, expected)?)
                }
            },
            paid_ppm: (paid * 1e4).round() as u32,
            ..Rules::default()
        })
    }

    fn caution(&self) -> Result<Caution, Failure> {
        match self.guard.as_deref() {
            None | Some("learned") => {
                if self.near_miss_us.is_some() {
                    let problem = "--near-miss-us: a learned guard finds out itself: expected a \
                                   fixed --guard, too";
                    return Err(Failure::input(problem));
                }
                let percent = self.impact_percent.unwrap_or(1.0);
                let expected = "a share of the mean response time";
                let percent = number("impact-percent", percent, (0.001, 100.0), expected)?;
                Ok(Caution::Learned {
                    impact_ppm: (percent * 1e4).round() as u32,
                })
            }
            Some(text) => {
                if self.impact_percent.is_some() {
                    let problem = "--impact-percent: a fixed guard keeps to no budget: expected \
                                   --guard learned";
                    return Err(Failure::input(problem));
                }
                let range = (0.0, LONGEST_GUARD_MS);
                let near = self.near_miss_us.unwrap_or(0.0);
                let near = number("near-miss-us", near, (0.0, 60_000.0), "microseconds")?;
                Ok(Caution::Fixed {
                    guard: millis("guard", text, range, "milliseconds, or learned")?,
                    near_miss: Duration::from_nanos((near * 1e3).round() as u64),
                })
            }
        }
    }

    fn wanted(&self, belief: &Arc<Profile>) -> Result<Wanted, Failure> {
        if let Some(path) = &self.scan_from {
            let name = path.display();
            let file = std::fs::File::open(path)
                .map_err(|error| Failure::input(format!("{name}: {error}")))?;
            return Wanted::decode(&belief.geometry, std::io::BufReader::new(file))
                .map_err(|error| Failure::input(format!("{name}: {error}")));
        }
        let text = self.scan.as_deref().unwrap_or(ALL);
        if text == ALL {
            return Ok(Wanted::all(&belief.geometry));
        }
        let mut wanted = Wanted::none(&belief.geometry);
        for part in text.split(',') {
            let extent = extent(part).ok_or_else(|| {
                Failure::input(format!(
                    "--scan {part}: expected FIRST..END, two block numbers, the second larger"
                ))
            })?;
            wanted
                .add(extent)
                .map_err(|error| Failure::input(format!("--scan {part}: {error}")))?;
        }
        Ok(wanted)
    }
}

fn extent(text: &str) -> Option<Extent> {
    let (first, end) = text.split_once("..")?;
    let (first, end): (u64, u64) = (first.trim().parse().ok()?, end.trim().parse().ok()?);
    Extent::new(Lba(first), Sectors(end.checked_sub(first)?)).ok()
}

fn number(
    flag: &str,
    value: f64,
    (least, most): (f64, f64),
    expected: &str,
) -> Result<f64, Failure> {
    match (least..=most).contains(&value) {
        true => Ok(value),
        false => Err(Failure::input(format!(
            "--{flag} {value}: expected {expected}, {least} to {most}"
        ))),
    }
}

fn millis(flag: &str, text: &str, range: (f64, f64), expected: &str) -> Result<Duration, Failure> {
    let value: f64 = text
        .parse()
        .map_err(|_| Failure::input(format!("--{flag} {text}: expected {expected}")))?;
    let value = number(flag, value, range, expected)?;
    Ok(Duration::from_nanos((value * 1e6).round() as u64))
}

impl ScanPlan {
    /// The task of a run.
    pub fn background(&self) -> &Background {
        &self.background
    }

    /// Writes down which blocks are left, if that is wanted.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn keep(&self, scanned: &Scanned) -> Result<(), Failure> {
        let Some(path) = &self.left else {
            return Ok(());
        };
        let mut file = NewFile::begin(path)?;
        scanned
            .left
            .encode(&mut file)
            .map_err(|error| file.failed(&error))?;
        file.finish()
    }

    /// The file that is written, if one is.
    pub fn file(&self) -> Option<&std::path::Path> {
        self.left.as_deref()
    }
}

impl ScanFigures {
    /// The figures of a scan beside those of the same load without it.
    pub fn new(
        plan: &ScanPlan,
        block_bytes: u32,
        with: &Report,
        scanned: &Scanned,
        without: &Played,
    ) -> Self {
        let report = without.ledger.report(&without.ran);
        let of = |report: &Report| {
            let response = report.all.response.as_ref();
            response.map_or((0.0, 0.0), |response| (response.mean_ms, response.p99_ms))
        };
        let ((mean, p99), (mean_alone, p99_alone)) = (of(with), of(&report));
        let [free, idle, paid] = scanned.rates(101, block_bytes).map(thousandth);
        let part = |hundredths| {
            scanned.reached(hundredths)?;
            Some(thousandth(scanned.rates(hundredths, block_bytes)[0]))
        };
        let progress = &scanned.progress;
        ScanFigures {
            free_mb_s: free,
            idle_mb_s: idle,
            paid_mb_s: paid,
            foreground_mean_ms: mean,
            foreground_p99_ms: p99,
            baseline: Baseline {
                foreground_mean_ms: mean_alone,
                foreground_p99_ms: p99_alone,
            },
            foreground_loss_percent: match mean_alone > 0.0 {
                true => thousandth((mean / mean_alone - 1.0) * 100.0),
                false => 0.0,
            },
            state: match progress.state {
                State::Active => "active",
                State::Suspended => "suspended",
                State::Finished => "finished",
                State::Aborted => "aborted",
            },
            wanted_blocks: progress.asked.0,
            left_blocks: progress.left.0,
            free_mb_s_by_part: Parts {
                start: part(1),
                first_half: part(50),
                whole: part(100),
            },
            guard: guard_figures(plan, scanned),
            gaps: gap_figures(scanned),
            progress: moments(scanned),
        }
    }

    /// The figures as lines for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let line = |text: &mut String, name: &str, what: String| {
            let _ = writeln!(text, "  {name:16}{what}");
        };
        let read = self.wanted_blocks - self.left_blocks;
        let share = read as f64 / self.wanted_blocks.max(1) as f64 * 100.0;
        line(
            &mut text,
            "scan",
            format!(
                "{} of {} blocks read ({share:.1} %), {}",
                grouped(read),
                grouped(self.wanted_blocks),
                self.state
            ),
        );
        line(
            &mut text,
            "MB/s",
            format!(
                "free {:.2}, idle {:.2}, paid {:.2}",
                self.free_mb_s, self.idle_mb_s, self.paid_mb_s
            ),
        );
        let parts = &self.free_mb_s_by_part;
        let parts = [
            ("at the start", parts.start),
            ("first half", parts.first_half),
            ("whole", parts.whole),
        ];
        let parts = parts
            .iter()
            .filter_map(|(name, rate)| Some(format!("{name} {:.2}", (*rate)?)));
        let parts: Vec<String> = parts.collect();
        if !parts.is_empty() {
            line(&mut text, "free by part", parts.join(", "));
        }
        line(
            &mut text,
            "foreground",
            format!(
                "mean {:.2} ms (without the scan {:.2}: {:+.2} %), p99 {:.1} ms ({:.1})",
                self.foreground_mean_ms,
                self.baseline.foreground_mean_ms,
                self.foreground_loss_percent,
                self.foreground_p99_ms,
                self.baseline.foreground_p99_ms
            ),
        );
        let [short, long, short_write, long_write] = self.guard.guards_us;
        line(
            &mut text,
            "guard",
            format!(
                "{}; reads {short:.0} and {long:.0} us after short and long seeks, writes \
                 {short_write:.0} and {long_write:.0}",
                self.guard.rule
            ),
        );
        let gaps = &self.gaps;
        line(
            &mut text,
            "gaps",
            format!(
                "{}, {:.2} ms on average; {} merged, {} detours, {} on the source's track, {} on \
                 the destination's; {} near misses, {} not worth it, {} mispredicted",
                grouped(gaps.seen),
                gaps.mean_latency_ms,
                grouped(gaps.merged),
                grouped(gaps.detours),
                grouped(gaps.on_source_track),
                grouped(gaps.on_destination_track),
                grouped(gaps.near_miss),
                grouped(gaps.not_worth_it),
                grouped(gaps.mispredicted)
            ),
        );
        for moment in &self.progress {
            if SHOWN.contains(&moment.percent) {
                let (percent, days) = (moment.percent, moment.seconds / 86_400.0);
                let what = format!("{percent} % after {:.0} s ({days:.3} days)", moment.seconds);
                line(&mut text, "", what);
            }
        }
        text
    }
}

/// The hundredths that are printed.
const SHOWN: [u32; 6] = [50, 80, 90, 95, 99, 100];

fn guard_figures(plan: &ScanPlan, scanned: &Scanned) -> GuardFigures {
    let (rule, budget) = match plan.background.rules.caution {
        Caution::Fixed { .. } => ("fixed", None),
        Caution::Learned { impact_ppm } => ("learned", Some(f64::from(impact_ppm) / 1e4)),
    };
    GuardFigures {
        rule,
        impact_budget_percent: budget,
        guards_us: scanned.guards.map(|guard| guard.as_nanos() as f64 / 1e3),
        measured_impact_percent: thousandth(scanned.impact * 100.0),
    }
}

fn gap_figures(scanned: &Scanned) -> GapFigures {
    let gaps = &scanned.gaps;
    let [merged, detours, on_source_track, on_destination_track] = gaps.planned;
    GapFigures {
        seen: gaps.seen,
        mean_latency_ms: thousandth(gaps.latency.as_millis_f64() / gaps.seen.max(1) as f64),
        near_miss: gaps.near_miss,
        not_worth_it: gaps.unworthy,
        merged,
        detours,
        on_source_track,
        on_destination_track,
        mispredicted: gaps.mispredicted,
    }
}

fn moments(scanned: &Scanned) -> Vec<Moment> {
    let moment = |point: &simulator::run::Point| Moment {
        percent: point.hundredths,
        seconds: thousandth(point.at.as_secs_f64()),
    };
    scanned.points.iter().map(moment).collect()
}

/// To three decimals: what a run's own noise leaves.
fn thousandth(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
