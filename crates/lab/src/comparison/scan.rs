//! The settings of a background scan, and their task.

pub mod figures;
pub mod whole;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use block::{Duration, Extent, Instant, Lba, Sectors};
use document::quantity::Unit;
use drive::Profile;
use drive::firmware::QueueOrder;
use engine::Rules;
use scheduler::NamedPolicy;
use scheduler::freeblock::{Caution, Goal, SameTrackRule, WantedBlocks};
use scheduler::policy::Depth;
use simulator::run::AfterLoad;
use simulator::scenario::Background;

use crate::Failure;

pub use figures::ScanFigures;

/// The settings of a background scan.
#[derive(Clone, Debug, Default)]
pub struct ScanSettings {
    /// The blocks of the scan: all, or ranges such as 0..1000,5000..6000.
    pub scan: Option<String>,
    /// A file with the remaining blocks of an earlier scan.
    pub scan_from: Option<PathBuf>,
    /// The file for the remaining blocks.
    pub scan_left: Option<PathBuf>,
    /// The progress of the scan, in percent, at which the load ends.
    pub scan_until: Option<u32>,
    /// The scan's behaviour when the load ends first.
    pub after_load: Option<AfterLoad>,
    /// The time added to predicted seeks, in ms; or `learned` from errors and the impact budget.
    pub guard: Option<String>,
    /// The distance from a whole revolution within which gaps are left alone (fixed guard only).
    pub near_miss_us: Option<f64>,
    /// The permitted increase of the mean response time. Default: 1 %.
    pub impact_percent: Option<f64>,
    /// Whether free reads may use the tracks of foreground commands, and two on a track. Default: if the
    /// believed drive has no look-ahead.
    pub same_track: Option<SameTrackRule>,
    /// The ranking of plans. Default: blocks.
    pub goal: Option<Goal>,
    /// The largest number of stops in one gap. Default: 1.
    pub stops: Option<u8>,
    /// The share of head time that the scan may spend. Default: 0.
    pub paid_percent: Option<f64>,
    /// The idle time before the scan reads by itself, or `never`. Default: 10 ms.
    pub idle_ms: Option<String>,
    /// The deadline in seconds. Head time is spent only if the scan would be late.
    pub deadline: Option<f64>,
}

/// The setting for all blocks.
pub const ALL: &str = "all";

/// Longest guard: a revolution of the slowest spindle.
const LONGEST_GUARD_MS: f64 = 60.0;

/// Longest idle time, an hour. A choice.
const LONGEST_IDLE_MS: f64 = 3_600_000.0;

/// Latest deadline: a century, the longest run.
const LATEST_SECONDS: f64 = 3.2e9;

/// A scan with valid settings.
#[derive(Clone, Debug)]
pub struct ScanPlan {
    background: Background,
    keeps_left: bool,
}

impl ScanSettings {
    /// Whether there is a scan.
    pub fn is_given(&self) -> bool {
        self.scan.is_some() || self.scan_from.is_some()
    }

    /// Resolves the scan; `None` without one.
    ///
    /// # Errors
    /// The flag with an invalid value, and the expected value.
    pub fn plan(&self, belief: &Arc<Profile>) -> Result<Option<ScanPlan>, Failure> {
        if !self.is_given() {
            return self.unused();
        }
        Ok(Some(ScanPlan {
            background: Background {
                rules: self.rules(belief)?,
                wanted: self.wanted(belief)?,
                deadline: self.deadline.map(instant).transpose()?,
                hundredths: self.scan_until.unwrap_or(100),
                after_load: self.after_load.unwrap_or(AfterLoad::Stop),
            },
            keeps_left: self.scan_left.is_some(),
        }))
    }

    /// Flags of a scan without `--scan` are an error.
    fn unused(&self) -> Result<Option<ScanPlan>, Failure> {
        let given = [
            ("scan-left", self.scan_left.is_some()),
            ("scan-until", self.scan_until.is_some()),
            ("after-load", self.after_load.is_some()),
            ("guard", self.guard.is_some()),
            ("near-miss-us", self.near_miss_us.is_some()),
            ("impact-percent", self.impact_percent.is_some()),
            ("same-track", self.same_track.is_some()),
            ("goal", self.goal.is_some()),
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

    fn rules(&self, belief: &Profile) -> Result<Rules, Failure> {
        let paid = self.paid_percent.unwrap_or(0.0);
        let paid = number("paid-percent", paid, (0.0, 100.0), "a share of head time")?;
        let same_track = self.same_track.unwrap_or_default().on(belief);
        Ok(Rules {
            caution: self.caution()?,
            same_track,
            ranges: same_track.ranges(),
            goal: self.goal.unwrap_or(Goal::Blocks),
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
                // That of a service, so that a simulation forecasts what a service does.
                let usual = f64::from(server::config::IMPACT_PPM) / 1e4;
                let percent = self.impact_percent.unwrap_or(usual);
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

    fn wanted(&self, belief: &Arc<Profile>) -> Result<WantedBlocks, Failure> {
        if let Some(path) = &self.scan_from {
            let name = path.display();
            let file = std::fs::File::open(path)
                .map_err(|error| Failure::input(format!("{name}: {error}")))?;
            let wanted = WantedBlocks::decode(&belief.geometry, io::BufReader::new(file))
                .map_err(|error| Failure::input(format!("{name}: {error}")))?;
            return match wanted.left() {
                0 => Err(Failure::input(format!(
                    "{name}: everything was read: expected a file with blocks that are left"
                ))),
                _ => Ok(wanted),
            };
        }
        let text = self.scan.as_deref().unwrap_or(ALL);
        if text == ALL {
            return Ok(WantedBlocks::all(&belief.geometry));
        }
        let mut wanted = WantedBlocks::none(&belief.geometry);
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

/// A deadline as a moment after the beginning.
fn instant(seconds: f64) -> Result<Instant, Failure> {
    let range = (0.0, LATEST_SECONDS);
    let at = number("deadline", seconds, range, "seconds to come")?;
    match (at * 1e9) as u64 {
        0 => Err(Failure::input(format!(
            "--deadline {seconds}: it has passed when the scan begins: expected seconds to come"
        ))),
        nanos => Ok(Instant::from_nanos(nanos)),
    }
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
    let value = Unit::Milliseconds
        .read(text)
        .ok_or_else(|| Failure::input(format!("--{flag} {text}: expected {expected}")))?;
    let value = number(flag, value, range, expected)?;
    Ok(Duration::from_nanos((value * 1e6).round() as u64))
}

impl ScanPlan {
    /// A scan of these blocks, none of which are kept for later.
    pub fn of(background: Background) -> Self {
        ScanPlan {
            background,
            keeps_left: false,
        }
    }

    /// The background task of a run.
    pub fn background(&self) -> &Background {
        &self.background
    }

    /// Checks the scan against the number of commands at the drive.
    ///
    /// # Errors
    /// If free reads cannot be dispatched in time, or the drive would reorder them.
    pub fn check(
        &self,
        policy: NamedPolicy,
        drive: &Profile,
        commands: usize,
    ) -> Result<(), Failure> {
        let name = &drive.name;
        let is_reordered = drive.queue.order != QueueOrder::Fcfs;
        match (policy.depth(), commands) {
            (_, 0..=1) if drive.queue.depth <= 1 => Err(Failure::input(format!(
                "--scan on {name}: it holds one command at a time: expected one that holds 2"
            ))),
            (_, 0..=1) => Err(Failure::input(format!(
                "--depth {commands}: a scan's reads are given while another command is in \
                 service: expected at least 2"
            ))),
            (Depth::DriveQueue, 3..) if is_reordered => Err(Failure::input(format!(
                "--policy {}: {name} puts its queue in an order of its own, in which no read is \
                 free: expected --depth 2 or another policy with a scan",
                policy.name()
            ))),
            _ => Ok(()),
        }
    }

    /// Whether the result contains the remaining blocks.
    pub fn keeps_left(&self) -> bool {
        self.keeps_left
    }
}
