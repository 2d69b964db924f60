//! `headtime bench preemption`: urgent small reads beside a greedy reader of large blocks, with and
//! without preemption, and under the kernel's schedulers with their priorities.
//!
//! ```text
//!   fio urgent -> NBD export, foreground      -.
//!   fio bulk   -> NBD export, best-effort-6   -+-> headtime serve [with | without preemption]
//!
//!   fio urgent, bulk with io priorities -> /dev/loop0 [mq-deadline | bfq] -> FUSE -> headtime serve,
//!                                                                     the drive's own queue
//! ```
//!
//! All times are the drive's: with a time scale of 4 fio's are divided by four, and it is asked for a
//! quarter of the rate.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::loop_device::{Depth, LEAST, LOSETUP, LoopDevice};
use super::rig::{self, FIO, Service};
use crate::output::{Exit, print};

/// How to call it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The emulated drives: names from `headtime drives`
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "modern-20tb"
    )]
    drive: Vec<String>,
    /// How many times as slow as the drive everything is. The kernel's own times are not stretched
    #[arg(long, value_name = "S,...", value_delimiter = ',', default_value = "1", value_parser = scale)]
    time_scale: Vec<f64>,
    /// Our policy
    #[arg(long, default_value = "sptf")]
    policy: String,
    /// What is believed of the drive instead of the truth: a file of `headtime profile`
    #[arg(long, value_name = "FILE")]
    belief: Option<PathBuf>,
    /// The standard deviation of a seek's duration, which nobody believes
    #[arg(long, value_name = "US", default_value_t = 0.0)]
    seek_noise_us: f64,
    /// The speed of the drive's bus, if not that of the system on which the drive was measured
    #[arg(long, value_name = "MB_S")]
    bus_mb_s: Option<f64>,
    /// Urgent reads of 4 KiB a second, at a constant rate
    #[arg(long, value_name = "HZ", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rate: u32,
    /// Reads of 1 MiB that wait for an answer at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=128))]
    depth: u32,
    /// How long each turn is, in seconds of the drive's time
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// A line of `[drive.preemption]` for the turn with it; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    preemption: Vec<String>,
    /// Without the kernel's schedulers: it then needs neither root nor loop devices
    #[arg(long)]
    only_ours: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime bench preemption
  headtime bench preemption --drive modern-20tb,quantum-atlas-10k --time-scale 1,4 --seconds 120
  headtime bench preemption --only-ours --preemption 'chunk = \"64 KiB\"'

It needs root: FUSE, loop devices and their schedulers. 10 turns for each drive and time scale. Images are
sparse, in /dev/shm if there is one. fio holds its next urgent read back while one is under way for
longer than the time between two: of such a contestant fewer reads are counted than were due.";

fn scale(text: &str) -> Result<f64, String> {
    let scale: f64 = text.parse().map_err(|error| format!("{error}"))?;
    match scale {
        0.001..=1000.0 => Ok(scale),
        _ => Err("expected 0.001 to 1000".to_owned()),
    }
}

/// Who orders, and with which means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contestant {
    /// Our policy: classes, and larger requests in parts that step aside.
    Preemption,
    /// Our policy: classes alone.
    Classes,
    /// A scheduler of the kernel's before a device so deep.
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

/// One of them, measured.
#[derive(Debug, Serialize)]
struct Measured {
    name: String,
    #[serde(flatten)]
    turn: Turn,
}

/// The urgent reads' response and the bulk's rate, in the drive's time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Turn {
    requests: u64,
    /// How many were due.
    due: u64,
    mean_ms: f64,
    p50_ms: f64,
    p99_ms: f64,
    p999_ms: f64,
    max_ms: f64,
    bulk_mb_per_s: f64,
}

/// A drive at a time scale.
#[derive(Debug, Serialize)]
struct Scene {
    drive: String,
    /// `noisy` where the belief is the truth but for the noise, `in-firmware` without noise,
    /// `external` where it was profiled.
    mode: &'static str,
    time_scale: f64,
    rate: u32,
    depth: u32,
    seconds: u32,
    measured: Vec<Measured>,
}

/// Runs the command.
///
/// # Errors
/// If it may not make devices, or a program is missing or does not run.
pub fn run(arguments: &Arguments) -> Result<(), Exit> {
    match arguments.only_ours {
        true => rig::need(&[FIO])?,
        false => rig::need(&[FIO, LOSETUP])?,
    }
    let mut scenes = Vec::new();
    for drive in &arguments.drive {
        for &scale in &arguments.time_scale {
            scenes.push(scene(arguments, drive, scale)?);
        }
    }
    print(&match arguments.json {
        true => serde_json::to_string_pretty(&scenes).map_err(Exit::failed)? + "\n",
        false => scenes.iter().map(table).collect::<Vec<_>>().join("\n"),
    })
}

fn scene(arguments: &Arguments, drive: &str, scale: f64) -> Result<Scene, Exit> {
    let folder = match Path::new(MEMORY).is_dir() {
        true => tempfile::tempdir_in(MEMORY),
        false => tempfile::tempdir(),
    };
    let folder = folder.map_err(Exit::failed)?;
    let place = Place {
        arguments,
        drive,
        scale,
        folder: folder.path(),
    };
    let mut measured = Vec::new();
    for contestant in [Contestant::Preemption, Contestant::Classes] {
        measured.push(place.ours(contestant)?);
    }
    if !arguments.only_ours {
        measured.extend(place.theirs()?);
    }
    Ok(Scene {
        drive: drive.to_owned(),
        mode: match (&arguments.belief, arguments.seek_noise_us > 0.0) {
            (Some(_), _) => "external",
            (None, true) => "noisy",
            (None, false) => "in-firmware",
        },
        time_scale: scale,
        rate: arguments.rate,
        depth: arguments.depth,
        seconds: arguments.seconds,
        measured,
    })
}

/// Where an image may have more bytes than a disk's file system allows: 20 TB are too many for ext4.
const MEMORY: &str = "/dev/shm";

/// What is the same for all turns.
struct Place<'a> {
    arguments: &'a Arguments,
    drive: &'a str,
    scale: f64,
    folder: &'a Path,
}

impl Place<'_> {
    /// Both loads over NBD.
    fn ours(&self, contestant: Contestant) -> Result<Measured, Exit> {
        let name = match contestant {
            Contestant::Preemption => "with",
            Contestant::Classes | Contestant::Kernel { .. } => "without",
        };
        let config = self.config(name, contestant)?;
        let service = Service::start(name, &config, self.folder)?;
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
        Ok(Measured {
            name: self.name(contestant),
            turn,
        })
    }

    /// Both loads on a block device, one scheduler after the other.
    fn theirs(&self) -> Result<Vec<Measured>, Exit> {
        let mount = self.folder.join("bare");
        fs::create_dir(&mount).map_err(Exit::failed)?;
        let bare = Contestant::Kernel {
            name: "none",
            device: Depth::Loop,
            priorities: Priorities::Classes,
        };
        let service = Service::start("bare", &self.config("bare", bare)?, self.folder)?;
        // Before the service: it is detached first.
        let (device, _service) = (LoopDevice::attach(&mount.join("urgent"))?, service);
        let mut measured = Vec::new();
        for depth in [Depth::Loop, Depth::Least] {
            for name in KERNEL {
                device.schedule(name, depth)?;
                for priorities in [Priorities::Classes, Priorities::Levels] {
                    let words = self.with_priorities(&device, priorities);
                    let contestant = Contestant::Kernel {
                        name,
                        device: depth,
                        priorities,
                    };
                    measured.push(Measured {
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
        let runtime = (f64::from(self.arguments.seconds) * self.scale).max(1.0);
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
        // In bytes, so that a fraction of a request a second can be said.
        let rate = f64::from(self.arguments.rate) * URGENT_BYTES / self.scale;
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
            format!("--iodepth={}", self.arguments.depth),
        ]
    }

    /// What fio says of both, in the drive's time.
    fn turn(&self, told: &Value) -> Result<Turn, Exit> {
        let turn = turn(told, self.scale).ok_or_else(|| {
            Exit::failed("fio did not tell of its jobs urgent and bulk: expected fio 3")
        })?;
        let wall = (f64::from(self.arguments.seconds) * self.scale)
            .max(1.0)
            .ceil();
        Ok(Turn {
            due: (wall / self.scale * f64::from(self.arguments.rate)) as u64,
            ..turn
        })
    }

    fn name(&self, contestant: Contestant) -> String {
        let policy = &self.arguments.policy;
        match contestant {
            Contestant::Preemption => format!("headtime {policy}, preemption"),
            Contestant::Classes => format!("headtime {policy}"),
            Contestant::Kernel {
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

    fn config(&self, name: &str, contestant: Contestant) -> Result<String, Exit> {
        let place = |end: &str| self.folder.join(format!("{name}{end}"));
        let (policy, preemption, fuse) = match contestant {
            Contestant::Preemption => {
                let lines = self.arguments.preemption.join("\n");
                (self.arguments.policy.as_str(), Some(lines), false)
            }
            Contestant::Classes => (self.arguments.policy.as_str(), None, false),
            Contestant::Kernel { .. } => ("drive", None, true),
        };
        let belief = match &self.arguments.belief {
            Some(file) => fs::canonicalize(file)
                .map_err(|error| Exit::input(format!("{}: {error}", file.display())))?
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
            noise = self.arguments.seek_noise_us,
        );
        if let Some(mb_s) = self.arguments.bus_mb_s {
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

/// Bytes of an urgent read.
const URGENT_BYTES: f64 = 4096.0;

/// The two jobs of fio, whose times are `scale` times the drive's.
fn turn(told: &Value, scale: f64) -> Option<Turn> {
    let jobs = told["jobs"].as_array()?;
    let job = |name: &str| jobs.iter().find(|job| job["jobname"] == name);
    let (urgent, bulk) = (&job("urgent")?["read"], &job("bulk")?["read"]);
    let latency = &urgent["lat_ns"];
    let ms = |ns: &Value| Some(ns.as_f64()? / scale / 1e6);
    let max_ms = ms(&latency["max"])?;
    // Percentiles are the upper ends of steps.
    let percentile = |name: &str| Some(ms(&latency["percentile"][name])?.min(max_ms));
    Some(Turn {
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

fn table(scene: &Scene) -> String {
    let mut text = format!(
        "{}, time scale {}, {}; urgent 4 KiB reads at {} Hz beside {} of 1 MiB, {} s each\n\n",
        scene.drive, scene.time_scale, scene.mode, scene.rate, scene.depth, scene.seconds
    );
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{:<48} {:>8} {:>7} {:>8} {:>8} {:>8} {:>9}  urgent reads, due",
        "", "mean ms", "p50", "p99", "p99.9", "max", "bulk MB/s"
    );
    for Measured { name, turn } in &scene.measured {
        let _ = writeln!(
            text,
            "{name:<48} {:>8.1} {:>7.1} {:>8.1} {:>8.1} {:>8.1} {:>9.1}  {}, {}",
            turn.mean_ms,
            turn.p50_ms,
            turn.p99_ms,
            turn.p999_ms,
            turn.max_ms,
            turn.bulk_mb_per_s,
            turn.requests,
            turn.due
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_jobs_of_fio_are_in_the_time_of_the_drive() {
        let told = json!({"jobs": [
            {"jobname": "urgent", "read": {"total_ios": 300, "lat_ns": {
                "mean": 40e6, "max": 200_000_000,
                "percentile": {"50.000000": 36_000_000, "99.000000": 120_000_000,
                               "99.900000": 201_000_000}}}},
            {"jobname": "bulk", "read": {"bw_bytes": 10_000_000}}
        ]});
        let expected = Turn {
            requests: 300,
            due: 0,
            mean_ms: 10.0,
            p50_ms: 9.0,
            p99_ms: 30.0,
            p999_ms: 50.0,
            max_ms: 50.0,
            bulk_mb_per_s: 40.0,
        };
        assert_eq!(turn(&told, 4.0), Some(expected));
        assert_eq!(turn(&json!({"jobs": []}), 1.0), None);
    }
}
