//! The rate of a scrub beside that of a scan under the same live load, and the CPU time of checksums.

use std::sync::Arc;
use std::time::Duration;

use server::checksums::CHUNK;
use server::checksums::cover::{Cover, pieces};
use server::checksums::record::Record;
use server::control::Scan;
use server::control::protocol::{Ask, DriveTasks};
use server::status::{Task, TaskState};
use simulator::workload::{BuiltInWorkload, Overrides, Workload};

use super::{VOLUME, temporary, wait, whole_volume};
use crate::bench::care::CareBench;
use crate::bench::rig::ServeProcess;
use crate::demonstration::load::{NbdLoad, Until};
use crate::{Failure, Progress, cpu_time, named};

/// The rates of a drive that is never idle.
pub struct Rates {
    /// Beside a scrub.
    pub scrub: Rate,
    /// Beside a scan.
    pub scan: Rate,
    /// The foreground's mean response time alone, in milliseconds.
    pub alone_mean_ms: f64,
}

/// A background task beside the load.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    /// Megabytes a second that were read for the task.
    pub mb_s: f64,
    /// The foreground's mean response time, in milliseconds.
    pub mean_ms: f64,
}

/// Bandwidth of Ultra2 SCSI, the bus of the freeblock paper's drive.
pub const BUS_MB_S: f64 = 80.0;

/// The standard deviation of seek times, which no belief has: ../shared/specs/scheduling.md, 7.
pub const SEEK_NOISE_US: u32 = 60;

/// How much faster than the drive the emulation builds checksums: as fast as the machine. A choice.
const BUILDING: f64 = 0.001;

/// The load of the freeblock paper, and its ten requests (Lumb et al., FAST 2002, 5.1).
const LOAD: &str = "oltp";
/// The same load's requests at once.
pub const PENDING: usize = 10;

/// Measures the load alone, beside a scan and beside a scrub, each on a fresh service with the same requests.
///
/// # Errors
/// If a service or the load fails.
pub fn measure(bench: &CareBench, seconds: u64, progress: &dyn Progress) -> Result<Rates, Failure> {
    let folder = temporary()?;
    let truth = named::drive(&bench.drive)?;
    let blocks = truth.geometry.sectors().0;
    let image = std::fs::File::create(folder.path().join("disk.img"));
    let sized = image.and_then(|image| image.set_len(blocks * u64::from(truth.block_bytes)));
    sized.map_err(Failure::failed)?;
    progress.begin("scrub: building the checksums of the whole drive");
    let service = ServeProcess::start("rates", &configuration(bench, BUILDING), folder.path())?;
    service.ask(&Ask::Scrub(whole_volume()))?;
    wait(&service)?;
    drop(service);
    let trial = Trial {
        bench,
        folder: folder.path(),
        block_bytes: truth.block_bytes,
        blocks,
        seconds,
    };
    progress.begin("scrub: the load alone");
    let alone = trial.beside(None)?;
    progress.begin("scrub: the load beside a scan");
    let scan = trial.beside(Some(&Ask::Scan(Scan::whole(VOLUME))))?;
    progress.begin("scrub: the load beside a scrub");
    let scrub = trial.beside(Some(&Ask::Scrub(whole_volume())))?;
    Ok(Rates {
        scrub,
        scan,
        alone_mean_ms: alone.mean_ms,
    })
}

/// A drive and a load.
struct Trial<'a> {
    bench: &'a CareBench,
    folder: &'a std::path::Path,
    block_bytes: u32,
    blocks: u64,
    seconds: u64,
}

impl Trial<'_> {
    fn beside(&self, task: Option<&Ask>) -> Result<Rate, Failure> {
        let service = ServeProcess::start("rates", &configuration(self.bench, 1.0), self.folder)?;
        let load = NbdLoad {
            socket: self.folder.join("rates.nbd"),
            workload: workload(self.bench.seed)?,
            block_bytes: self.block_bytes,
            blocks: self.blocks,
            pending: PENDING,
            until: Until::Passed(Duration::from_secs(self.seconds)),
            scale: 1.0,
            stop: Arc::default(),
            counts: Arc::default(),
        };
        if let Some(ask) = task {
            service.ask(ask)?;
        }
        let stretch = load.run()?;
        let (count, sum) = (
            stretch.ends.len(),
            stretch.ends.iter().map(|end| end.1).sum::<f64>(),
        );
        Ok(Rate {
            mb_s: read_bytes(&service)? as f64 / 1e6 / stretch.seconds,
            mean_ms: sum / count.max(1) as f64,
        })
    }
}

/// Bytes that the active task has read.
fn read_bytes(service: &ServeProcess) -> Result<u64, Failure> {
    let drives: Vec<DriveTasks> =
        serde_json::from_value(service.ask(&Ask::Tasks)?).map_err(Failure::failed)?;
    let tasks = drives.into_iter().flat_map(|drive| drive.tasks);
    let is_active = |task: &Task| task.state == TaskState::Active;
    Ok(tasks.filter(is_active).map(|task| task.done_bytes).sum())
}

/// The load, always active.
///
/// # Errors
/// If it is not built in.
pub fn workload(seed: u64) -> Result<Workload, Failure> {
    let load = BuiltInWorkload::find(LOAD)
        .ok_or_else(|| Failure::failed(format!("{LOAD} is not built in")))?;
    let always_active = Overrides {
        seed: Some(seed),
        think_ms: Some(0.0),
        ..Overrides::default()
    };
    let load = load.workload().and_then(|load| load.with(&always_active));
    load.map_err(Failure::failed)
}

fn configuration(bench: &CareBench, time_scale: f64) -> String {
    let (drive, policy) = (&bench.drive, &bench.policy);
    let impact = f64::from(bench.impact_ppm) / 1e4;
    format!(
        r#"
[[drive]]
name = "disk"
policy = "{policy}"
belief = "emulated"
impact_percent = {impact}
[drive.back_end]
kind = "emulated"
drive = "{drive}"
image = "disk.img"
time_scale = {time_scale}
look_ahead = true
write_cache = false
bus_mb_s = {BUS_MB_S}
seek_noise_us = {SEEK_NOISE_US}
[[drive.volume]]
name = "{VOLUME}"
checksums = "disk.sums"
[[drive.export]]
name = "{VOLUME}"
volume = "{VOLUME}"
class = "foreground"
[[nbd]]
unix = "rates.nbd"
[control]
socket = "rates.control"
"#
    )
}

/// Chunks of the measurement of checksums: 512 MiB, some tenths of a second. A choice.
const CHUNKS: u64 = 8192;

/// The rate for which the CPU time is stated: issue 22.
const AT_MB_S: f64 = 200.0;

/// The CPU time of checksums at 200 MB/s, in per cent of a core: pages of a chunk and its record.
pub fn checksum_cpu_percent() -> f64 {
    let bytes: Vec<u8> = (0..CHUNK).map(|byte| (byte * 31 % 251) as u8).collect();
    let begun = cpu_time();
    let mut cover = Cover::default();
    for chunk in 0..CHUNKS {
        cover.clear();
        for (_, piece) in pieces(chunk * CHUNK, &bytes) {
            cover.put(piece, CHUNK);
        }
        std::hint::black_box(Record::of(&cover.changes(CHUNK).sums));
    }
    let used = (cpu_time() - begun).as_secs_f64();
    let megabytes = (CHUNKS * CHUNK) as f64 / 1e6;
    used / megabytes * AT_MB_S * 100.0
}
