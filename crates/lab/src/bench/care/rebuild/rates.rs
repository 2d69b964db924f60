//! The rate of a rebuild beside OLTP, against a scan of the survivor beside the same load.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use server::control::Scan;
use server::control::protocol::{Ask, DriveTasks};
use server::status::{Rebuild, Task, TaskState};
use tempfile::TempDir;

use super::mirror;
use super::pair::{Missing, Pair};
use crate::bench::busy::BeliefSource;
use crate::bench::care::CareBench;
use crate::bench::care::scrub::rates::{BUS_MB_S, PENDING, SEEK_NOISE_US, workload};
use crate::bench::care::scrub::temporary;
use crate::bench::rig::ServeProcess;
use crate::demonstration::load::{NbdLoad, Until};
use crate::{Failure, Label, Progress, named, profiled};

/// The rates of a pair whose survivor is never idle.
pub struct Rates {
    /// The load alone on the survivor.
    pub alone: Rate,
    /// Beside a scan of the survivor.
    pub scan: Rate,
    /// Beside a rebuild.
    pub rebuild: Rate,
    /// The relation between belief and truth.
    pub label: Label,
}

/// What went on beside the load.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    /// Megabytes a second of the task, or that were copied from gaps.
    pub free_mb_s: f64,
    /// Megabytes a second that were copied past the engine.
    pub paid_mb_s: f64,
    /// The share of the time that these took, in per cent.
    pub paid_percent: f64,
    /// The foreground's mean response time, in milliseconds.
    pub mean_ms: f64,
}

/// What is run beside the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    Scan,
    Rebuild,
}

/// Measures the load alone, beside a scan of the survivor and beside a rebuild, each on fresh drives with the same
/// requests.
///
/// # Errors
/// If profiling, a service or the load fails.
pub fn measure(bench: &CareBench, seconds: u64, progress: &dyn Progress) -> Result<Rates, Failure> {
    let belief = match bench.belief {
        BeliefSource::Truth => None,
        BeliefSource::Profiled => {
            progress.begin(&format!("rebuild: profiling {}", bench.drive));
            Some(found(bench)?)
        }
    };
    let beside = |what: Beside| beside(bench, belief.as_deref(), (what, seconds));
    progress.begin("rebuild: the load on the survivor");
    let alone = beside(Beside::Nothing)?;
    progress.begin("rebuild: the load beside a scan of the survivor");
    let scan = beside(Beside::Scan)?;
    progress.begin("rebuild: the load beside the rebuild");
    let rebuild = beside(Beside::Rebuild)?;
    Ok(Rates {
        alone,
        scan,
        rebuild,
        label: match belief {
            None => Label::InFirmware.with_noise(),
            Some(_) => Label::External,
        },
    })
}

/// The profile that the profiler finds of the drive.
fn found(bench: &CareBench) -> Result<String, Failure> {
    let imperfections = drive::Imperfections {
        seek_noise: block::Duration::from_micros(u64::from(SEEK_NOISE_US)),
        ..drive::Imperfections::default()
    };
    let truth = Arc::new(named::drive(&bench.drive)?);
    profiled::text(&truth, &imperfections, !bench.seed)
}

fn beside(
    bench: &CareBench,
    belief: Option<&str>,
    (what, seconds): (Beside, u64),
) -> Result<Rate, Failure> {
    let folder = temporary()?;
    let pair = pair(bench, belief, &folder)?;
    let missing = match what {
        Beside::Rebuild => Missing::Refused,
        Beside::Nothing | Beside::Scan => {
            fs::remove_file(pair.leg(1)).map_err(Failure::failed)?;
            Missing::Allowed
        }
    };
    let service = ServeProcess::start("pair", &pair.configuration(1.0, missing), folder.path())?;
    let truth = named::drive(&bench.drive)?;
    let load = NbdLoad {
        socket: folder.path().join("pair.nbd"),
        workload: workload(bench.seed)?,
        block_bytes: truth.block_bytes,
        blocks: pair.data_bytes() / u64::from(truth.block_bytes),
        pending: PENDING,
        until: Until::Passed(Duration::from_secs(seconds)),
        scale: 1.0,
        stop: Arc::default(),
        counts: Arc::default(),
    };
    if what == Beside::Scan {
        service.ask(&Ask::Scan(Scan::whole("all")))?;
    }
    // What went before the load does not count.
    let before = copied(&service, what)?;
    let stretch = load.run()?;
    let after = copied(&service, what)?;
    let sum: f64 = stretch.ends.iter().map(|end| end.1).sum();
    let a_second = |bytes: u64| bytes as f64 / 1e6 / stretch.seconds;
    Ok(Rate {
        free_mb_s: a_second(after.free - before.free),
        paid_mb_s: a_second(after.paid - before.paid),
        paid_percent: after.paid_percent,
        mean_ms: sum / stretch.ends.len().max(1) as f64,
    })
}

/// The bytes that went until now.
#[derive(Clone, Copy, Debug, Default)]
struct Copied {
    free: u64,
    paid: u64,
    paid_percent: f64,
}

fn copied(service: &ServeProcess, what: Beside) -> Result<Copied, Failure> {
    match what {
        Beside::Nothing => Ok(Copied::default()),
        Beside::Scan => Ok(Copied {
            free: scanned(service)?,
            ..Copied::default()
        }),
        Beside::Rebuild => {
            let Some(Rebuild {
                gap_bytes,
                paid_bytes,
                paid_percent,
                ..
            }) = mirror(service)?.rebuild
            else {
                return Err(Failure::failed("no leg is being filled beside the load"));
            };
            Ok(Copied {
                free: gap_bytes,
                paid: paid_bytes,
                paid_percent,
            })
        }
    }
}

/// Bytes that the active task has read.
fn scanned(service: &ServeProcess) -> Result<u64, Failure> {
    let drives: Vec<DriveTasks> =
        serde_json::from_value(service.ask(&Ask::Tasks)?).map_err(Failure::failed)?;
    let tasks = drives.into_iter().flat_map(|drive| drive.tasks);
    let is_active = |task: &Task| task.state == TaskState::Active;
    let mut active = tasks.filter(is_active).map(|task| task.done_bytes);
    active
        .next()
        .ok_or_else(|| Failure::failed("no scan is under way beside the load"))
}

/// A new pair as the published experiment has its drive.
fn pair(bench: &CareBench, belief: Option<&str>, folder: &TempDir) -> Result<Pair, Failure> {
    let mut pair = Pair::new(&bench.drive, &bench.policy, folder.path())?;
    let impact = f64::from(bench.impact_ppm) / 1e4;
    pair.of_drive = format!("impact_percent = {impact}\n");
    pair.of_back_end = format!(
        "look_ahead = true\nwrite_cache = false\nbus_mb_s = {BUS_MB_S}\nseek_noise_us = {SEEK_NOISE_US}\n"
    );
    if let Some(text) = belief {
        fs::write(folder.path().join("belief.toml"), text).map_err(Failure::failed)?;
        pair.belief = "\"belief.toml\"".to_owned();
    }
    Ok(pair)
}
