//! Our policy and the kernel's schedulers on the same emulated drive.
//!
//! ```text
//!   fio -> /dev/loop0 [none | mq-deadline | bfq] -> FUSE -> headtime serve, the drive's own queue
//!   fio -> /dev/loop1 [none]                     -> FUSE -> headtime serve, our policy
//! ```
//!
//! A scheduler of the kernel chooses only among requests that the device has not accepted. So each
//! is measured twice: with the default depth of a loop device, and with the smallest depth of
//! Linux, four.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use server::control::Scan;
use server::control::protocol::Ask;
use server::status::Lateness;
use server::tasks::Steer;

use super::loop_device::{Depth, LEAST, LOSETUP, LoopDevice};
use super::rig::{self, FIO, FioLoad, ServeProcess, median};
use crate::{Failure, Label};

/// The settings of the benchmark.
#[derive(Clone, Debug)]
pub struct SchedulersBench {
    /// The emulated drive: a name from `headtime drives`.
    pub drive: String,
    /// Our policy.
    pub policy: String,
    /// The scheduler's belief instead of the truth: a file from `headtime profile`.
    pub belief: Option<PathBuf>,
    /// The slow-down of the emulated drive. The kernel's own times are not scaled.
    pub time_scale: f64,
    /// The bandwidth of the drive's bus, which must carry what the medium reads.
    pub bus_mb_s: f64,
    /// The standard deviation of seek times.
    pub seek_noise_us: f64,
    /// The impact budget of the scan, in percent.
    pub impact_percent: f64,
    /// Outstanding requests.
    pub depth: u32,
    /// The length of each turn, in seconds.
    pub seconds: u32,
    /// Turns of each scheduler.
    pub rounds: u32,
}

/// A scheduler, and the depth of the device behind it.
#[derive(Clone, Copy)]
enum SchedulerUnderTest {
    Ours,
    Kernel { name: &'static str, device: Depth },
}

const KERNEL: [&str; 3] = ["none", "mq-deadline", "bfq"];

/// The figures of one scheduler: medians of the rounds.
#[derive(Debug, Serialize)]
pub struct SchedulerFigures {
    /// The scheduler.
    pub name: String,
    /// Requests per second.
    pub iops: f64,
    /// Their mean latency, in ms.
    pub mean_ms: f64,
    /// The 99th percentile of the reads' latency.
    pub p99_ms: f64,
    /// Requests per second beside a scan: ours in free blocks, the kernel's as sequential reads of
    /// 256 KiB in the idle class.
    pub with_scan_iops: f64,
    /// The 99th percentile of the latency beside the scan.
    pub with_scan_p99_ms: f64,
    /// The loss of foreground throughput by the scan, in percent.
    pub lost_percent: f64,
    /// The rate of the scan, in megabytes per second.
    pub scan_mb_per_s: f64,
}

/// Our policy beside the kernel's schedulers.
#[derive(Debug, Serialize)]
pub struct SchedulersReport {
    /// The emulated drive.
    pub drive: String,
    /// The label of our scheduler's belief.
    pub mode: Label,
    /// The slow-down of the drive.
    pub time_scale: f64,
    /// The standard deviation of seek times.
    pub seek_noise_us: f64,
    /// Outstanding requests.
    pub depth: u32,
    /// The schedulers; ours is the first.
    pub measured: Vec<SchedulerFigures>,
    /// Our throughput over the best of the kernel's, with the default depth of a loop device.
    pub times_the_best: f64,
    /// Our throughput over the best of the kernel's, with the smallest depth.
    pub times_the_best_of_least_depth: f64,
    /// The lateness of our drive's completions.
    pub lateness: Option<Lateness>,
}

impl SchedulersBench {
    /// Measures all schedulers in turn.
    ///
    /// # Errors
    /// If devices cannot be created, or a program is missing or does not run.
    pub fn run(&self) -> Result<SchedulersReport, Failure> {
        rig::need(&[FIO, LOSETUP])?;
        let folder = tempfile::tempdir().map_err(Failure::failed)?;
        let bare = ServedDevice::start("bare", "drive", self, folder.path())?;
        let ours = ServedDevice::start("ours", &self.policy, self, folder.path())?;
        let mut contestants = vec![SchedulerUnderTest::Ours];
        for device in [Depth::Loop, Depth::Least] {
            contestants.extend(KERNEL.map(|name| SchedulerUnderTest::Kernel { name, device }));
        }
        let mut turns: Vec<Vec<SchedulerTurn>> = contestants.iter().map(|_| Vec::new()).collect();
        for round in 0..self.rounds {
            for (contestant, turns) in contestants.iter().zip(&mut turns) {
                let turn = match *contestant {
                    SchedulerUnderTest::Ours => ours.our_turn(self, round, folder.path())?,
                    SchedulerUnderTest::Kernel { name, device } => {
                        bare.device.schedule(name, device)?;
                        bare.their_turn(self, round, folder.path())?
                    }
                };
                turns.push(turn);
            }
        }
        Ok(report(self, &contestants, &turns, ours.lateness()?))
    }
}

/// A service with one volume, and the block device over it.
struct ServedDevice {
    /// Declared before the service, so that the device is detached first.
    device: LoopDevice,
    service: ServeProcess,
}

/// The foreground alone and beside a scan, and the scan's rate in MB/s.
struct SchedulerTurn {
    alone: FioLoad,
    beside: FioLoad,
    scan_mb_per_s: f64,
}

impl ServedDevice {
    fn start(
        name: &str,
        policy: &str,
        settings: &SchedulersBench,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let mount = folder.join(name);
        fs::create_dir(&mount).map_err(Failure::failed)?;
        let file = mount.join("volume");
        let service = ServeProcess::start(name, &config(name, policy, settings, folder), folder)?;
        if !file.exists() {
            let problem = format!("{}: expected a volume over FUSE there", file.display());
            return Err(Failure::failed(problem));
        }
        let device = LoopDevice::attach(&file)?;
        Ok(ServedDevice { device, service })
    }

    fn our_turn(
        &self,
        settings: &SchedulersBench,
        round: u32,
        folder: &Path,
    ) -> Result<SchedulerTurn, Failure> {
        let foreground = self.foreground(settings, round);
        let alone = only(rig::fio(&foreground, folder)?)?;
        let order = Scan::whole("volume");
        let begun = self.service.ask(&Ask::Scan(order))?;
        let task = begun["task"].as_u64().unwrap_or(0);
        let before = self.scanned(task)?;
        let beside = only(rig::fio(&foreground, folder)?)?;
        let bytes = self.scanned(task)? - before;
        self.service.ask(&Ask::Steer {
            task,
            action: Steer::Abort,
        })?;
        Ok(SchedulerTurn {
            alone,
            beside,
            scan_mb_per_s: bytes as f64 / 1e6 / f64::from(settings.seconds),
        })
    }

    /// The bytes that a scan has read.
    fn scanned(&self, task: u64) -> Result<u64, Failure> {
        let drives = self.service.status()?.drives;
        let mut tasks = drives.into_iter().flat_map(|drive| drive.tasks);
        let task = tasks.find(|other| other.id == task);
        task.map(|task| task.done_bytes)
            .ok_or_else(|| Failure::failed("the scan is gone"))
    }

    fn their_turn(
        &self,
        settings: &SchedulersBench,
        round: u32,
        folder: &Path,
    ) -> Result<SchedulerTurn, Failure> {
        let mut words = self.foreground(settings, round);
        let alone = only(rig::fio(&words, folder)?)?;
        words.extend(
            [
                "--name=scan",
                "--rw=read",
                "--bs=256k",
                "--iodepth=1",
                // IOPRIO_CLASS_IDLE, as `ionice --class 3`.
                "--prioclass=3",
            ]
            .map(str::to_owned),
        );
        let both = rig::fio(&words, folder)?;
        let [(_, beside), (_, scan)] = both[..] else {
            return Err(Failure::failed("fio did not tell of its two jobs"));
        };
        Ok(SchedulerTurn {
            alone,
            beside,
            scan_mb_per_s: scan.mb_per_s,
        })
    }

    /// The foreground: random requests of 4 KiB, two reads to one write.
    fn foreground(&self, settings: &SchedulersBench, round: u32) -> Vec<String> {
        vec![
            format!("--filename={}", self.device.path.display()),
            "--ioengine=libaio".to_owned(),
            "--direct=1".to_owned(),
            "--time_based".to_owned(),
            format!("--runtime={}", settings.seconds),
            "--name=foreground".to_owned(),
            "--rw=randrw".to_owned(),
            "--rwmixread=67".to_owned(),
            "--bs=4k".to_owned(),
            format!("--iodepth={}", settings.depth),
            // All schedulers of a round serve the same requests.
            format!("--randseed={}", round + 1),
        ]
    }

    fn lateness(&self) -> Result<Option<Lateness>, Failure> {
        let drives = self.service.status()?.drives;
        Ok(drives.first().and_then(|drive| drive.lateness))
    }
}

fn only(loads: Vec<(String, FioLoad)>) -> Result<FioLoad, Failure> {
    match loads[..] {
        [(_, load)] => Ok(load),
        _ => Err(Failure::failed("fio did not tell of its one job")),
    }
}

fn config(name: &str, policy: &str, settings: &SchedulersBench, folder: &Path) -> String {
    let place = |end: &str| folder.join(format!("{name}{end}")).display().to_string();
    let belief = match &settings.belief {
        Some(file) => file.display().to_string(),
        None => "emulated".to_owned(),
    };
    format!(
        r#"
[[drive]]
name = "{name}"
policy = "{policy}"
belief = "{belief}"
impact_percent = {impact}
volume = [{{ name = "volume" }}]
export = [{{ name = "volume", volume = "volume" }}]

[drive.back_end]
kind = "emulated"
drive = "{drive}"
image = "{image}"
time_scale = {scale}
seek_noise_us = {noise}
bus_mb_s = {bus}
look_ahead = false
write_cache = false

[[nbd]]
unix = "{nbd}"

[fuse]
mount = "{mount}"

[control]
socket = "{control}"
"#,
        impact = settings.impact_percent,
        drive = settings.drive,
        scale = settings.time_scale,
        noise = settings.seek_noise_us,
        bus = settings.bus_mb_s,
        image = place(".img"),
        nbd = place(".nbd"),
        mount = place(""),
        control = place(".control"),
    )
}

fn report(
    settings: &SchedulersBench,
    contestants: &[SchedulerUnderTest],
    turns: &[Vec<SchedulerTurn>],
    lateness: Option<Lateness>,
) -> SchedulersReport {
    let measured: Vec<SchedulerFigures> = contestants
        .iter()
        .zip(turns)
        .map(|(contestant, turns)| {
            let of = |figure: fn(&SchedulerTurn) -> f64| median(turns.iter().map(figure).collect());
            SchedulerFigures {
                name: match *contestant {
                    SchedulerUnderTest::Ours => format!("headtime {}", settings.policy),
                    SchedulerUnderTest::Kernel { name, device } => match device {
                        Depth::Loop => name.to_owned(),
                        Depth::Least => format!("{name}, {LEAST} at the device"),
                    },
                },
                iops: of(|turn| turn.alone.iops),
                mean_ms: of(|turn| turn.alone.mean_ms),
                p99_ms: of(|turn| turn.alone.p99_ms),
                with_scan_iops: of(|turn| turn.beside.iops),
                with_scan_p99_ms: of(|turn| turn.beside.p99_ms),
                lost_percent: of(|turn| (1.0 - turn.beside.iops / turn.alone.iops) * 1e2),
                scan_mb_per_s: of(|turn| turn.scan_mb_per_s),
            }
        })
        .collect();
    let ours = measured.first().map_or(0.0, |ours| ours.iops);
    let times_best = |wanted: Depth| {
        let theirs = contestants.iter().zip(&measured);
        let of_depth = theirs.filter(|(contestant, _)| {
            matches!(contestant, SchedulerUnderTest::Kernel { device, .. } if *device == wanted)
        });
        ours / of_depth.map(|(_, line)| line.iops).fold(0.0, f64::max)
    };
    SchedulersReport {
        drive: settings.drive.clone(),
        mode: Label::of_emulation(settings.belief.as_deref(), settings.seek_noise_us),
        time_scale: settings.time_scale,
        seek_noise_us: settings.seek_noise_us,
        depth: settings.depth,
        times_the_best: times_best(Depth::Loop),
        times_the_best_of_least_depth: times_best(Depth::Least),
        measured,
        lateness,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_is_held_against_the_best_of_theirs() {
        let load = |iops: f64| FioLoad {
            iops,
            requests: 1,
            mean_ms: 1.0,
            p99_ms: 2.0,
            mb_per_s: 0.0,
        };
        let turn = |alone: f64, beside: f64| SchedulerTurn {
            alone: load(alone),
            beside: load(beside),
            scan_mb_per_s: 3.0,
        };
        let kernel = |name, device| SchedulerUnderTest::Kernel { name, device };
        let contestants = [
            SchedulerUnderTest::Ours,
            kernel("none", Depth::Loop),
            kernel("bfq", Depth::Least),
        ];
        let turns = [
            vec![turn(300.0, 297.0)],
            vec![turn(100.0, 50.0)],
            vec![turn(150.0, 75.0)],
        ];
        let settings = SchedulersBench {
            drive: "a-drive".to_owned(),
            policy: "sptf".to_owned(),
            belief: None,
            time_scale: 1.0,
            seek_noise_us: 60.0,
            bus_mb_s: 80.0,
            impact_percent: 1.0,
            depth: 16,
            seconds: 1,
            rounds: 1,
        };
        let report = report(&settings, &contestants, &turns, None);
        assert_eq!(report.times_the_best, 3.0);
        assert_eq!(report.times_the_best_of_least_depth, 2.0);
        assert_eq!(report.mode, Label::Noisy);
        let lost: Vec<f64> = report
            .measured
            .iter()
            .map(|line| line.lost_percent.round())
            .collect();
        assert_eq!(lost, [1.0, 50.0, 50.0]);
        assert_eq!(report.measured[2].name, "bfq, 4 at the device");
    }
}
