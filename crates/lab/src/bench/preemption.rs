//! Urgent small reads beside a greedy reader of large blocks: with preemption, without, and under
//! the kernel's schedulers with their priorities.
//!
//! ```text
//!   fio urgent -> NBD export, foreground      -.
//!   fio bulk   -> NBD export, best-effort-6   -+-> headtime serve [with | without preemption]
//!
//!   fio urgent, bulk with io priorities -> /dev/loop0 [mq-deadline | bfq] -> FUSE -> headtime serve,
//!                                                                     the drive's own queue
//! ```
//!
//! All times are the drive's: with a time scale of 4, fio's times are divided by four, and fio runs
//! at a quarter of the rate.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::loop_device::{Depth, LEAST, LOSETUP, LoopDevice};
use super::rig::{self, FIO, ServeProcess};
use crate::{Failure, Label};

/// The settings of the benchmark.
#[derive(Clone, Debug)]
pub struct PreemptionBench {
    /// The emulated drives: names from `headtime drives`.
    pub drive: Vec<String>,
    /// The slow-downs of the emulated drive. The kernel's own times are not scaled.
    pub time_scale: Vec<f64>,
    /// Our policy.
    pub policy: String,
    /// The scheduler's belief instead of the truth: a file from `headtime profile`.
    pub belief: Option<PathBuf>,
    /// The standard deviation of seek times, which no belief contains.
    pub seek_noise_us: f64,
    /// The bandwidth of the drive's bus. Default: that of the system on which the drive was
    /// measured.
    pub bus_mb_s: Option<f64>,
    /// Urgent reads of 4 KiB per second, at a constant rate.
    pub rate: u32,
    /// Outstanding reads of 1 MiB.
    pub depth: u32,
    /// The length of each turn, in seconds of the drive's time.
    pub seconds: u32,
    /// Lines of `[drive.preemption]` for the turn with preemption.
    pub preemption: Vec<String>,
    /// Whether the kernel's schedulers are skipped. Root and loop devices are then not needed.
    pub only_ours: bool,
}

/// A scheduler and its means of priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PreemptionContestant {
    /// Our policy with classes and preemptible parts.
    Preemption,
    /// Our policy with classes alone.
    Classes,
    /// A scheduler of the kernel before a device of this depth.
    Kernel {
        name: &'static str,
        device: Depth,
        priorities: Priorities,
    },
}

/// The io priorities of the urgent and of the bulk reads (`ionice`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Priorities {
    /// Real-time 0, and idle.
    Classes,
    /// Best-effort 0, and best-effort 7.
    Levels,
}

const KERNEL: [&str; 2] = ["mq-deadline", "bfq"];

/// The figures of one contestant.
#[derive(Debug, Serialize)]
pub struct PreemptionFigures {
    /// The contestant.
    pub name: String,
    #[serde(flatten)]
    /// Its figures.
    pub turn: PreemptionTurn,
}

/// The urgent reads' latency and the bulk reads' rate, in the drive's time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PreemptionTurn {
    /// The number of completed urgent reads.
    pub requests: u64,
    /// The number of urgent reads that were due.
    pub due: u64,
    /// Their mean latency.
    pub mean_ms: f64,
    /// Their median latency.
    pub p50_ms: f64,
    /// The 99th percentile of the latency.
    pub p99_ms: f64,
    /// The 99.9th percentile of the latency.
    pub p999_ms: f64,
    /// The longest latency.
    pub max_ms: f64,
    /// The rate of the bulk reads, in megabytes per second.
    pub bulk_mb_per_s: f64,
}

/// The contestants on one drive at one time scale.
#[derive(Debug, Serialize)]
pub struct PreemptionScene {
    /// The emulated drive.
    pub drive: String,
    /// The label of our scheduler's belief.
    pub mode: Label,
    /// The slow-down of the drive.
    pub time_scale: f64,
    /// Urgent reads per second.
    pub rate: u32,
    /// Outstanding bulk reads.
    pub depth: u32,
    /// The length of a turn, in seconds of the drive.
    pub seconds: u32,
    /// The contestants; our two are first.
    pub measured: Vec<PreemptionFigures>,
}

impl PreemptionBench {
    /// Measures all contestants for each drive and time scale.
    ///
    /// # Errors
    /// If devices cannot be created, or a program is missing or does not run.
    pub fn run(&self) -> Result<Vec<PreemptionScene>, Failure> {
        match self.only_ours {
            true => rig::need(&[FIO])?,
            false => rig::need(&[FIO, LOSETUP])?,
        }
        let mut scenes = Vec::new();
        for drive in &self.drive {
            for &scale in &self.time_scale {
                scenes.push(scene(self, drive, scale)?);
            }
        }
        Ok(scenes)
    }
}

fn scene(settings: &PreemptionBench, drive: &str, scale: f64) -> Result<PreemptionScene, Failure> {
    let folder = match Path::new(MEMORY).is_dir() {
        true => tempfile::tempdir_in(MEMORY),
        false => tempfile::tempdir(),
    };
    let folder = folder.map_err(Failure::failed)?;
    let place = PreemptionRig {
        settings,
        drive,
        scale,
        folder: folder.path(),
    };
    let mut measured = Vec::new();
    for contestant in [
        PreemptionContestant::Preemption,
        PreemptionContestant::Classes,
    ] {
        measured.push(place.ours(contestant)?);
    }
    if !settings.only_ours {
        measured.extend(place.theirs()?);
    }
    Ok(PreemptionScene {
        drive: drive.to_owned(),
        mode: Label::of_emulation(settings.belief.as_deref(), settings.seek_noise_us),
        time_scale: scale,
        rate: settings.rate,
        depth: settings.depth,
        seconds: settings.seconds,
        measured,
    })
}

/// Folder of the images: ext4 does not hold files of 20 TB.
const MEMORY: &str = "/dev/shm";

/// The parts that all turns share.
struct PreemptionRig<'a> {
    settings: &'a PreemptionBench,
    drive: &'a str,
    scale: f64,
    folder: &'a Path,
}

impl PreemptionRig<'_> {
    /// Runs both loads over NBD.
    fn ours(&self, contestant: PreemptionContestant) -> Result<PreemptionFigures, Failure> {
        let name = match contestant {
            PreemptionContestant::Preemption => "with",
            PreemptionContestant::Classes | PreemptionContestant::Kernel { .. } => "without",
        };
        let config = self.config(name, contestant)?;
        let service = ServeProcess::start(name, &config, self.folder)?;
        let socket = self.folder.join(format!("{name}.nbd"));
        let uri = |export: &str| format!("--uri=nbd+unix:///{export}?socket={}", socket.display());
        let mut words = self.common("nbd");
        words.push("--name=urgent".to_owned());
        words.push(uri("urgent"));
        words.extend(self.urgent());
        words.push("--name=bulk".to_owned());
        words.push(uri("bulk"));
        words.extend(self.bulk());
        let turn = self.turn(&rig::fio_json(&words, self.folder)?)?;
        drop(service);
        Ok(PreemptionFigures {
            name: self.name(contestant),
            turn,
        })
    }

    /// Runs both loads on a block device, one scheduler after the other.
    fn theirs(&self) -> Result<Vec<PreemptionFigures>, Failure> {
        let mount = self.folder.join("bare");
        fs::create_dir(&mount).map_err(Failure::failed)?;
        let bare = PreemptionContestant::Kernel {
            name: "none",
            device: Depth::Loop,
            priorities: Priorities::Classes,
        };
        let service = ServeProcess::start("bare", &self.config("bare", bare)?, self.folder)?;
        // Declared before the service, so that the device is detached first.
        let (device, _service) = (LoopDevice::attach(&mount.join("urgent"))?, service);
        let mut measured = Vec::new();
        for depth in [Depth::Loop, Depth::Least] {
            for name in KERNEL {
                device.schedule(name, depth)?;
                for priorities in [Priorities::Classes, Priorities::Levels] {
                    let words = self.with_priorities(&device, priorities);
                    let contestant = PreemptionContestant::Kernel {
                        name,
                        device: depth,
                        priorities,
                    };
                    measured.push(PreemptionFigures {
                        name: self.name(contestant),
                        turn: self.turn(&rig::fio_json(&words, self.folder)?)?,
                    });
                }
            }
        }
        Ok(measured)
    }

    fn with_priorities(&self, device: &LoopDevice, priorities: Priorities) -> Vec<String> {
        let [urgent, bulk] = match priorities {
            // IOPRIO_CLASS_RT and IOPRIO_CLASS_IDLE, then twice IOPRIO_CLASS_BE.
            Priorities::Classes => [["--prioclass=1", "--prio=0"], ["--prioclass=3", "--prio=7"]],
            Priorities::Levels => [["--prioclass=2", "--prio=0"], ["--prioclass=2", "--prio=7"]],
        };
        let mut words = self.common("libaio");
        words.push("--direct=1".to_owned());
        words.push(format!("--filename={}", device.path.display()));
        words.push("--name=urgent".to_owned());
        words.extend(urgent.map(str::to_owned));
        words.extend(self.urgent());
        words.push("--name=bulk".to_owned());
        words.extend(bulk.map(str::to_owned));
        words.extend(self.bulk());
        words
    }

    fn common(&self, engine: &str) -> Vec<String> {
        let runtime = (f64::from(self.settings.seconds) * self.scale).max(1.0);
        let words = [
            format!("--ioengine={engine}"),
            "--time_based".to_owned(),
            format!("--runtime={}", runtime.ceil()),
            // A map of the blocks of 20 TB would take half a gigabyte.
            "--norandommap".to_owned(),
            "--random_generator=tausworthe64".to_owned(),
            "--randseed=1".to_owned(),
            "--lat_percentiles=1".to_owned(),
            "--percentile_list=50:99:99.9".to_owned(),
        ];
        words.to_vec()
    }

    fn urgent(&self) -> [String; 4] {
        // In bytes, so that fractions of a request per second are possible.
        let rate = f64::from(self.settings.rate) * URGENT_BYTES / self.scale;
        [
            "--rw=randread".to_owned(),
            format!("--bs={URGENT_BYTES}"),
            format!("--rate={}", rate.round().max(1.0)),
            "--iodepth=16".to_owned(),
        ]
    }

    fn bulk(&self) -> [String; 3] {
        [
            "--rw=randread".to_owned(),
            "--bs=1m".to_owned(),
            format!("--iodepth={}", self.settings.depth),
        ]
    }

    /// Converts fio's output to figures in the drive's time.
    fn turn(&self, output: &Value) -> Result<PreemptionTurn, Failure> {
        let turn = turn(output, self.scale).ok_or_else(|| {
            Failure::failed("fio did not tell of its jobs urgent and bulk: expected fio 3")
        })?;
        let wall = (f64::from(self.settings.seconds) * self.scale)
            .max(1.0)
            .ceil();
        Ok(PreemptionTurn {
            due: (wall / self.scale * f64::from(self.settings.rate)) as u64,
            ..turn
        })
    }

    fn name(&self, contestant: PreemptionContestant) -> String {
        let policy = &self.settings.policy;
        match contestant {
            PreemptionContestant::Preemption => format!("headtime {policy}, preemption"),
            PreemptionContestant::Classes => format!("headtime {policy}"),
            PreemptionContestant::Kernel {
                name,
                device,
                priorities,
            } => {
                let priorities = match priorities {
                    Priorities::Classes => "real-time, idle",
                    Priorities::Levels => "best-effort 0, 7",
                };
                match device {
                    Depth::Loop => format!("{name}: {priorities}"),
                    Depth::Least => format!("{name}: {priorities}; {LEAST} at the device"),
                }
            }
        }
    }

    fn config(&self, name: &str, contestant: PreemptionContestant) -> Result<String, Failure> {
        let place = |end: &str| self.folder.join(format!("{name}{end}"));
        let (policy, preemption, fuse) = match contestant {
            PreemptionContestant::Preemption => {
                let lines = self.settings.preemption.join("\n");
                (self.settings.policy.as_str(), Some(lines), false)
            }
            PreemptionContestant::Classes => (self.settings.policy.as_str(), None, false),
            PreemptionContestant::Kernel { .. } => ("drive", None, true),
        };
        let belief = match &self.settings.belief {
            Some(file) => fs::canonicalize(file)
                .map_err(|error| Failure::input(format!("{}: {error}", file.display())))?
                .display()
                .to_string(),
            None => "emulated".to_owned(),
        };
        let mut text = format!(
            r#"
[[drive]]
name = "{name}"
policy = "{policy}"
belief = "{belief}"
volume = [{{ name = "volume" }}]
export = [
  {{ name = "urgent", volume = "volume" }},
  {{ name = "bulk", volume = "volume", class = "best-effort-6" }},
]

[drive.back_end]
kind = "emulated"
drive = "{drive}"
image = "{image}"
time_scale = {scale}
seek_noise_us = {noise}
write_cache = false
"#,
            drive = self.drive,
            image = place(".img").display(),
            scale = self.scale,
            noise = self.settings.seek_noise_us,
        );
        if let Some(mb_s) = self.settings.bus_mb_s {
            let _ = writeln!(text, "bus_mb_s = {mb_s}");
        }
        if let Some(lines) = preemption {
            let _ = writeln!(text, "\n[drive.preemption]\n{lines}");
        }
        let _ = writeln!(text, "\n[[nbd]]\nunix = \"{}\"", place(".nbd").display());
        if fuse {
            let _ = writeln!(text, "\n[fuse]\nmount = \"{}\"", place("").display());
        }
        let control = place(".control");
        let _ = writeln!(text, "\n[control]\nsocket = \"{}\"", control.display());
        Ok(text)
    }
}

/// Size of an urgent read, in bytes.
const URGENT_BYTES: f64 = 4096.0;

/// The figures of fio's two jobs, whose times are `scale` times the drive's.
fn turn(output: &Value, scale: f64) -> Option<PreemptionTurn> {
    let jobs = output["jobs"].as_array()?;
    let job = |name: &str| jobs.iter().find(|job| job["jobname"] == name);
    let (urgent, bulk) = (&job("urgent")?["read"], &job("bulk")?["read"]);
    let latency = &urgent["lat_ns"];
    let ms = |ns: &Value| Some(ns.as_f64()? / scale / 1e6);
    let max_ms = ms(&latency["max"])?;
    // Percentiles are the upper ends of histogram steps.
    let percentile = |name: &str| Some(ms(&latency["percentile"][name])?.min(max_ms));
    Some(PreemptionTurn {
        requests: urgent["total_ios"].as_u64()?,
        due: 0,
        mean_ms: ms(&latency["mean"])?,
        p50_ms: percentile("50.000000")?,
        p99_ms: percentile("99.000000")?,
        p999_ms: percentile("99.900000")?,
        max_ms,
        bulk_mb_per_s: bulk["bw_bytes"].as_f64()? * scale / 1e6,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_jobs_of_fio_are_in_the_time_of_the_drive() {
        let output = json!({"jobs": [
            {"jobname": "urgent", "read": {"total_ios": 300, "lat_ns": {
                "mean": 40e6, "max": 200_000_000,
                "percentile": {"50.000000": 36_000_000, "99.000000": 120_000_000,
                               "99.900000": 201_000_000}}}},
            {"jobname": "bulk", "read": {"bw_bytes": 10_000_000}}
        ]});
        let expected = PreemptionTurn {
            requests: 300,
            due: 0,
            mean_ms: 10.0,
            p50_ms: 9.0,
            p99_ms: 30.0,
            p999_ms: 50.0,
            max_ms: 50.0,
            bulk_mb_per_s: 40.0,
        };
        assert_eq!(turn(&output, 4.0), Some(expected));
        assert_eq!(turn(&json!({"jobs": []}), 1.0), None);
    }
}
