//! `headtime bench schedulers`: our order beside the kernel's, on the same emulated drive.
//!
//! ```text
//!   fio -> /dev/loop0 [none | mq-deadline | bfq] -> FUSE -> headtime serve, the drive's own queue
//!   fio -> /dev/loop1 [none]                     -> FUSE -> headtime serve, our policy
//! ```
//!
//! A kernel's scheduler has only what the device below has not taken yet to choose from. So each is
//! measured twice: with all that the loop device takes, and with four requests at the device, which
//! is the least that Linux allows.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use server::control::protocol::Ask;
use server::control::{Scan, Sink, Steer};
use server::status::Lateness;

use super::loop_device::{Depth, LEAST, LOSETUP, LoopDevice};
use super::rig::{self, FIO, Load, Service, median};
use crate::output::{Exit, print};

/// How to call it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The emulated drive: a name from `headtime drives`
    #[arg(long, value_name = "NAME", default_value = "quantum-atlas-10k")]
    drive: String,
    /// Our policy
    #[arg(long, default_value = "sptf")]
    policy: String,
    /// What is believed of the drive instead of the truth: a file of `headtime profile`
    #[arg(long, value_name = "FILE")]
    belief: Option<PathBuf>,
    /// How many times as slow as the drive everything is. The kernel's own times are not stretched
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    time_scale: f64,
    /// The speed of the drive's bus, so that it carries what the medium reads
    #[arg(long, value_name = "MB_S", default_value_t = 80.0)]
    bus_mb_s: f64,
    /// The standard deviation of a seek's duration
    #[arg(long, value_name = "US", default_value_t = 0.0)]
    seek_noise_us: f64,
    /// By how much a scan may lengthen the requests of the foreground
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    impact_percent: f64,
    /// Requests that wait for an answer at a time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=128))]
    depth: u32,
    /// How long each turn is
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// How often each has its turn
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime bench schedulers
  headtime bench schedulers --drive modern-20tb --rounds 1 --json

It needs root: FUSE, loop devices and their schedulers. 14 turns a round.";

/// Who orders, and before how deep a device.
#[derive(Clone, Copy)]
enum Contestant {
    Ours,
    Kernel { name: &'static str, device: Depth },
}

const KERNEL: [&str; 3] = ["none", "mq-deadline", "bfq"];

/// One of them, measured: medians of the rounds.
#[derive(Debug, Serialize)]
struct Measured {
    name: String,
    iops: f64,
    mean_ms: f64,
    p99_ms: f64,
    /// The same with a scan beside it: ours in free time, theirs as sequential reads of 256 KiB of
    /// the idle class.
    with_scan_iops: f64,
    with_scan_p99_ms: f64,
    /// The foreground that the scan cost, in percent.
    lost_percent: f64,
    scan_mb_per_s: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    drive: String,
    /// `noisy` where the belief is the truth but for the noise, `in-firmware` without noise,
    /// `external` where it was profiled.
    mode: &'static str,
    time_scale: f64,
    seek_noise_us: f64,
    depth: u32,
    measured: Vec<Measured>,
    /// Ours by the best of theirs, as Linux sets a loop device up.
    times_the_best: f64,
    /// Ours by the best of theirs with the least depth of the device.
    times_the_best_of_least_depth: f64,
    /// How late our drive's completions were.
    lateness: Option<Lateness>,
}

/// Runs the command.
///
/// # Errors
/// If it may not make devices, or a program is missing or does not run.
pub fn run(arguments: &Arguments) -> Result<(), Exit> {
    rig::need(&[FIO, LOSETUP])?;
    let folder = tempfile::tempdir().map_err(Exit::failed)?;
    let bare = Side::start("bare", "drive", arguments, folder.path())?;
    let ours = Side::start("ours", &arguments.policy, arguments, folder.path())?;
    let mut contestants = vec![Contestant::Ours];
    for device in [Depth::Loop, Depth::Least] {
        contestants.extend(KERNEL.map(|name| Contestant::Kernel { name, device }));
    }
    let mut turns: Vec<Vec<Turn>> = contestants.iter().map(|_| Vec::new()).collect();
    for round in 0..arguments.rounds {
        for (contestant, turns) in contestants.iter().zip(&mut turns) {
            let turn = match *contestant {
                Contestant::Ours => ours.our_turn(arguments, round, folder.path())?,
                Contestant::Kernel { name, device } => {
                    bare.device.schedule(name, device)?;
                    bare.their_turn(arguments, round, folder.path())?
                }
            };
            turns.push(turn);
        }
    }
    let report = report(arguments, &contestants, &turns, ours.lateness()?);
    print(&match arguments.json {
        true => serde_json::to_string_pretty(&report).map_err(Exit::failed)? + "\n",
        false => table(&report),
    })
}

/// A service with one volume, and the block device over it.
struct Side {
    /// Before the service: it is detached first.
    device: LoopDevice,
    service: Service,
}

/// The foreground alone and with a scan beside it, and the scan's rate in MB/s.
struct Turn {
    alone: Load,
    beside: Load,
    scan_mb_per_s: f64,
}

impl Side {
    fn start(name: &str, policy: &str, arguments: &Arguments, folder: &Path) -> Result<Self, Exit> {
        let mount = folder.join(name);
        fs::create_dir(&mount).map_err(Exit::failed)?;
        let file = mount.join("volume");
        let service = Service::start(name, &config(name, policy, arguments, folder), folder)?;
        if !file.exists() {
            let problem = format!("{}: expected a volume over FUSE there", file.display());
            return Err(Exit::failed(problem));
        }
        let device = LoopDevice::attach(&file)?;
        Ok(Side { device, service })
    }

    fn our_turn(&self, arguments: &Arguments, round: u32, folder: &Path) -> Result<Turn, Exit> {
        let foreground = self.foreground(arguments, round);
        let alone = only(rig::fio(&foreground, folder)?)?;
        let order = Scan {
            volume: "volume".to_owned(),
            priority: 0,
            deadline_s: None,
            sink: Sink::Checksum,
            state: None,
        };
        let begun = self.service.ask(&Ask::Scan(order))?;
        let task = begun["task"].as_u64().unwrap_or(0);
        let before = self.scanned(task)?;
        let beside = only(rig::fio(&foreground, folder)?)?;
        let bytes = self.scanned(task)? - before;
        self.service.ask(&Ask::Steer {
            task,
            action: Steer::Abort,
        })?;
        Ok(Turn {
            alone,
            beside,
            scan_mb_per_s: bytes as f64 / 1e6 / f64::from(arguments.seconds),
        })
    }

    /// Bytes that a scan has read.
    fn scanned(&self, task: u64) -> Result<u64, Exit> {
        let drives = self.service.status()?.drives;
        let mut tasks = drives.into_iter().flat_map(|drive| drive.tasks);
        let task = tasks.find(|other| other.id == task);
        task.map(|task| task.done_bytes)
            .ok_or_else(|| Exit::failed("the scan is gone"))
    }

    fn their_turn(&self, arguments: &Arguments, round: u32, folder: &Path) -> Result<Turn, Exit> {
        let mut words = self.foreground(arguments, round);
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
            return Err(Exit::failed("fio did not tell of its two jobs"));
        };
        Ok(Turn {
            alone,
            beside,
            scan_mb_per_s: scan.mb_per_s,
        })
    }

    /// Two reads to one write, 4 KiB, anywhere: the synthetic load of the literature.
    fn foreground(&self, arguments: &Arguments, round: u32) -> Vec<String> {
        vec![
            format!("--filename={}", self.device.path.display()),
            "--ioengine=libaio".to_owned(),
            "--direct=1".to_owned(),
            "--time_based".to_owned(),
            format!("--runtime={}", arguments.seconds),
            "--name=foreground".to_owned(),
            "--rw=randrw".to_owned(),
            "--rwmixread=67".to_owned(),
            "--bs=4k".to_owned(),
            format!("--iodepth={}", arguments.depth),
            // The same requests for all in a round.
            format!("--randseed={}", round + 1),
        ]
    }

    fn lateness(&self) -> Result<Option<Lateness>, Exit> {
        let drives = self.service.status()?.drives;
        Ok(drives.first().and_then(|drive| drive.lateness))
    }
}

fn only(loads: Vec<(String, Load)>) -> Result<Load, Exit> {
    match loads[..] {
        [(_, load)] => Ok(load),
        _ => Err(Exit::failed("fio did not tell of its one job")),
    }
}

fn config(name: &str, policy: &str, arguments: &Arguments, folder: &Path) -> String {
    let place = |end: &str| folder.join(format!("{name}{end}")).display().to_string();
    let belief = match &arguments.belief {
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
        impact = arguments.impact_percent,
        drive = arguments.drive,
        scale = arguments.time_scale,
        noise = arguments.seek_noise_us,
        bus = arguments.bus_mb_s,
        image = place(".img"),
        nbd = place(".nbd"),
        mount = place(""),
        control = place(".control"),
    )
}

fn report(
    arguments: &Arguments,
    contestants: &[Contestant],
    turns: &[Vec<Turn>],
    lateness: Option<Lateness>,
) -> Report {
    let measured: Vec<Measured> = contestants
        .iter()
        .zip(turns)
        .map(|(contestant, turns)| {
            let of = |figure: fn(&Turn) -> f64| median(turns.iter().map(figure).collect());
            Measured {
                name: match *contestant {
                    Contestant::Ours => format!("headtime {}", arguments.policy),
                    Contestant::Kernel { name, device } => match device {
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
            matches!(contestant, Contestant::Kernel { device, .. } if *device == wanted)
        });
        ours / of_depth.map(|(_, line)| line.iops).fold(0.0, f64::max)
    };
    Report {
        drive: arguments.drive.clone(),
        mode: match (&arguments.belief, arguments.seek_noise_us > 0.0) {
            (Some(_), _) => "external",
            (None, true) => "noisy",
            (None, false) => "in-firmware",
        },
        time_scale: arguments.time_scale,
        seek_noise_us: arguments.seek_noise_us,
        depth: arguments.depth,
        times_the_best: times_best(Depth::Loop),
        times_the_best_of_least_depth: times_best(Depth::Least),
        measured,
        lateness,
    }
}

fn table(report: &Report) -> String {
    let mut text = format!(
        "{}, time scale {}, seeks {} us less steady than believed, {}; depth {}\n\n",
        report.drive, report.time_scale, report.seek_noise_us, report.mode, report.depth
    );
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{:<32} {:>8} {:>8} {:>8} {:>10} {:>8} {:>7} {:>10}",
        "", "IOPS", "mean ms", "p99 ms", "with scan", "p99 ms", "lost", "scan MB/s"
    );
    for line in &report.measured {
        let _ = writeln!(
            text,
            "{:<32} {:>8.1} {:>8.1} {:>8.1} {:>10.1} {:>8.1} {:>6.1}% {:>10.2}",
            line.name,
            line.iops,
            line.mean_ms,
            line.p99_ms,
            line.with_scan_iops,
            line.with_scan_p99_ms,
            line.lost_percent,
            line.scan_mb_per_s
        );
    }
    let _ = writeln!(
        text,
        "\nours / the best of theirs: {:.2} as Linux sets a loop device up, {:.2} with {LEAST} at the \
         device (the goal is 1.3 or more)",
        report.times_the_best, report.times_the_best_of_least_depth
    );
    if let Some(Lateness {
        p50_us,
        p99_us,
        max_us,
    }) = report.lateness
    {
        let _ = writeln!(
            text,
            "our drive's completions were late by {p50_us:.0} us (p50), {p99_us:.0} (p99), {max_us:.0} (the latest)"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_is_held_against_the_best_of_theirs() {
        let load = |iops: f64| Load {
            iops,
            requests: 1,
            mean_ms: 1.0,
            p99_ms: 2.0,
            mb_per_s: 0.0,
        };
        let turn = |alone: f64, beside: f64| Turn {
            alone: load(alone),
            beside: load(beside),
            scan_mb_per_s: 3.0,
        };
        let kernel = |name, device| Contestant::Kernel { name, device };
        let contestants = [
            Contestant::Ours,
            kernel("none", Depth::Loop),
            kernel("bfq", Depth::Least),
        ];
        let turns = [
            vec![turn(300.0, 297.0)],
            vec![turn(100.0, 50.0)],
            vec![turn(150.0, 75.0)],
        ];
        let arguments = Arguments {
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
            json: false,
        };
        let report = report(&arguments, &contestants, &turns, None);
        assert_eq!(report.times_the_best, 3.0);
        assert_eq!(report.times_the_best_of_least_depth, 2.0);
        assert_eq!(report.mode, "noisy");
        let lost: Vec<f64> = report
            .measured
            .iter()
            .map(|line| line.lost_percent.round())
            .collect();
        assert_eq!(lost, [1.0, 50.0, 50.0]);
        assert!(table(&report).contains("bfq, 4 at the device"));
    }
}
