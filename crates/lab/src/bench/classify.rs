//! Classification by I/O priority, live: how many requests get the right class, and what it costs.
//!
//! ```text
//!   fio, best effort: reads the first half --.
//!   fio, idle: reads the second half --------+-> /dev/loop0 -> FUSE -> headtime serve
//!                                            '-> /dev/ublkb0 ------------'
//! ```
//!
//! Each program has a half of the volume for itself, so the bytes of a request tell its program. The first turn
//! judges classes: a capture has each request of the engine with its class. The other turns measure the cost, with
//! and without the classification in alternation. A rule gives all requests of these turns the class of the
//! export, so that both services schedule alike.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use block::{Class, Request};
use engine::Input;
use serde::Serialize;
use serde_json::Value;
use server::capture::{CaptureReader, Event};
use server::status::{Classified, Status};

use super::loop_device::{LOSETUP, LoopDevice};
use super::rig::{self, FIO, ServeProcess, median};
use crate::Failure;

/// The settings of the benchmark.
#[derive(Clone, Debug)]
pub struct ClassifyBench {
    /// `memory`, or an emulated drive: a name from `headtime drives`.
    pub drive: String,
    /// The slow-down of an emulated drive.
    pub time_scale: f64,
    /// The length of the turn that judges classes, in seconds.
    pub seconds: u32,
    /// The length of each turn that measures the cost, in seconds.
    pub round_seconds: u32,
    /// Turns with the classification, and as many without it.
    pub rounds: u32,
}

/// The figures of one door.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassifyFigures {
    /// The front end: `fuse` or `ublk`.
    pub door: &'static str,
    /// The number of judged requests.
    pub requests: u64,
    /// The share of these that had the class of their program.
    pub right_percent: f64,
    /// Requests whose event was not there when they arrived.
    pub late_events: u64,
    /// The additional CPU time of the service and its clients at the same rate of requests, in percent of one
    /// processor: the median of the rounds.
    pub cpu_percent: f64,
    /// Requests a second with the classification over those without it: the median of the rounds.
    pub iops_ratio: f64,
}

/// The figures of the doors of this machine.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassifyReport {
    /// The figures by door.
    pub doors: Vec<ClassifyFigures>,
    /// The doors that this machine does not have, and why.
    pub skipped: Vec<String>,
}

/// A front end with a block device of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Fuse,
    Ublk,
}

/// The classification of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arm {
    /// By the default of I/O priorities, with a capture.
    Judged,
    /// By a rule that gives all requests one class.
    With,
    /// None.
    Without,
}

impl ClassifyBench {
    /// Measures all doors of this machine.
    ///
    /// # Errors
    /// If devices cannot be created, or a program is missing or does not run.
    pub fn run(&self) -> Result<ClassifyReport, Failure> {
        rig::need(&[FIO, LOSETUP])?;
        let mut report = ClassifyReport {
            doors: Vec::new(),
            skipped: Vec::new(),
        };
        for door in [Door::Fuse, Door::Ublk] {
            match door.missing() {
                Some(reason) => report.skipped.push(reason),
                None => report.doors.push(self.door(door)?),
            }
        }
        Ok(report)
    }

    fn door(&self, door: Door) -> Result<ClassifyFigures, Failure> {
        let folder = tempfile::tempdir().map_err(Failure::failed)?;
        let judged = self.judge(door, folder.path())?;
        let with = ServedDoor::start(self, door, Arm::With, folder.path())?;
        let without = ServedDoor::start(self, door, Arm::Without, folder.path())?;
        let (mut ratios, mut costs) = (Vec::new(), Vec::new());
        for round in 0..self.rounds {
            // Neither arm is always the first.
            let (one, other) = match round % 2 {
                0 => {
                    let one = with.turn(self, Arm::With, round)?;
                    (one, without.turn(self, Arm::Without, round)?)
                }
                _ => {
                    let other = without.turn(self, Arm::Without, round)?;
                    (with.turn(self, Arm::With, round)?, other)
                }
            };
            ratios.push(one.iops / other.iops);
            costs
                .push((one.cpu_s / one.requests - other.cpu_s / other.requests) * one.iops * 100.0);
        }
        Ok(ClassifyFigures {
            door: door.name(),
            requests: judged.requests,
            right_percent: judged.right as f64 / judged.requests.max(1) as f64 * 100.0,
            late_events: judged.late_events,
            cpu_percent: median(costs),
            iops_ratio: median(ratios),
        })
    }

    /// Judges the classes of one turn by its capture.
    fn judge(&self, door: Door, folder: &Path) -> Result<Judged, Failure> {
        let served = ServedDoor::start(self, door, Arm::Judged, folder)?;
        served.turn(self, Arm::Judged, 0)?;
        let late_events = served.classified()?.unmatched_total;
        // The capture is whole when the service has ended.
        drop(served);
        let name = Arm::Judged.name();
        let file = File::open(folder.join(format!("{name}.capture"))).map_err(Failure::failed)?;
        let mut reader =
            CaptureReader::open(std::io::BufReader::new(file)).map_err(Failure::failed)?;
        let belief = reader.setting().belief.profile().map_err(Failure::failed)?;
        let block = u64::from(belief.block_bytes);
        let mut judged = Judged {
            late_events,
            ..Judged::default()
        };
        while let Some((_, event)) = reader.next_event().map_err(Failure::failed)? {
            if let Event::Input(_, Input::Submit(request), _) = event {
                judged.judge(&request, block);
            }
        }
        Ok(judged)
    }

    fn config(&self, door: Door, arm: Arm, folder: &Path) -> String {
        let name = arm.name();
        let place = |end: &str| folder.join(format!("{name}.{end}")).display().to_string();
        let back_end = match self.drive.as_str() {
            MEMORY => format!("kind = \"memory\"\nsize = {}", 2 * HALF),
            drive => format!(
                "kind = \"emulated\"\ndrive = \"{drive}\"\nimage = \"{}\"\ntime_scale = {}\nlook_ahead = false",
                place("img"),
                self.time_scale
            ),
        };
        let capture = match arm {
            Arm::Judged => format!("capture = \"{}\"", place("capture")),
            Arm::With | Arm::Without => String::new(),
        };
        let classify = match arm {
            Arm::Judged => "classify = \"ioprio\"",
            Arm::With => "classify = \"ioprio\"\n[[drive.export.rule]]\nclass = \"foreground\"",
            Arm::Without => "",
        };
        let front = match door {
            Door::Fuse => format!("[fuse]\nmount = \"{}\"", folder.join(name).display()),
            Door::Ublk => format!("[ublk]\nexports = [\"{VOLUME}\"]"),
        };
        format!(
            "[[drive]]\nname = \"{name}\"\n{capture}\n[drive.back_end]\n{back_end}\n\
             [[drive.volume]]\nname = \"{VOLUME}\"\nsize = {bytes}\n\
             [[drive.export]]\nname = \"{VOLUME}\"\nvolume = \"{VOLUME}\"\n{classify}\n\
             [[nbd]]\nunix = \"{nbd}\"\n{front}\n[control]\nsocket = \"{control}\"\n",
            bytes = 2 * HALF,
            nbd = place("nbd"),
            control = place("control"),
        )
    }
}

impl Door {
    fn name(self) -> &'static str {
        match self {
            Door::Fuse => "fuse",
            Door::Ublk => "ublk",
        }
    }

    /// The reason for which this machine does not have the door.
    fn missing(self) -> Option<String> {
        let devices: &[&str] = match self {
            Door::Fuse => &["/dev/fuse", "/dev/loop-control"],
            Door::Ublk => &["/dev/ublk-control"],
        };
        let missing = devices.iter().find(|device| !Path::new(device).exists())?;
        Some(format!("{}: no {missing}", self.name()))
    }
}

impl Arm {
    fn name(self) -> &'static str {
        match self {
            Arm::Judged => "judged",
            Arm::With => "with",
            Arm::Without => "without",
        }
    }
}

/// A service with one volume, and the block device over it.
struct ServedDoor {
    /// `/dev/loopN` or `/dev/ublkbN`.
    path: PathBuf,
    /// Declared before the service, so that the device is detached first.
    _device: Option<LoopDevice>,
    service: ServeProcess,
    folder: PathBuf,
}

/// The figures of one turn.
struct ClassifyTurn {
    iops: f64,
    requests: f64,
    /// CPU time of the service and of its clients.
    cpu_s: f64,
}

impl ServedDoor {
    fn start(
        settings: &ClassifyBench,
        door: Door,
        arm: Arm,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let name = arm.name();
        fs::create_dir(folder.join(name)).map_err(Failure::failed)?;
        let config = settings.config(door, arm, folder);
        let service = ServeProcess::start(name, &config, folder)?;
        let (path, device) = match door {
            Door::Fuse => {
                let device = LoopDevice::attach(&folder.join(name).join(VOLUME))?;
                (device.path.clone(), Some(device))
            }
            Door::Ublk => {
                let connections = service.status()?.connections;
                let mut ublk = connections.into_iter().filter(|one| one.front == "ublk");
                let missing = || Failure::failed("the service has no ublk device");
                (PathBuf::from(ublk.next().ok_or_else(missing)?.peer), None)
            }
        };
        let mut served = ServedDoor {
            path,
            _device: device,
            service,
            folder: folder.to_owned(),
        };
        if arm != Arm::Without {
            served.wait_for_events()?;
        }
        Ok(served)
    }

    /// Waits until the service reads the events of the device.
    fn wait_for_events(&mut self) -> Result<(), Failure> {
        let is_watched =
            |status: &Status| classified(status).is_some_and(|one| !one.devices.is_empty());
        self.service.wait_until(is_watched)
    }

    fn classified(&self) -> Result<Classified, Failure> {
        let status = self.service.status()?;
        classified(&status)
            .cloned()
            .ok_or_else(|| Failure::failed("the service told of no classified export"))
    }

    /// Both programs beside each other.
    fn turn(
        &self,
        settings: &ClassifyBench,
        arm: Arm,
        round: u32,
    ) -> Result<ClassifyTurn, Failure> {
        let before = self.service.server.cpu_time()?;
        let output = rig::fio_json(&self.programs(settings, arm, round), &self.folder)?;
        let service = self.service.server.cpu_time()?.saturating_sub(before);
        let jobs = output["jobs"].as_array().filter(|jobs| jobs.len() == 2);
        let jobs = jobs.ok_or_else(|| Failure::failed("fio did not tell of its two jobs"))?;
        let sum = |of: fn(&Value) -> Option<f64>| {
            let each: Option<Vec<f64>> = jobs.iter().map(of).collect();
            let each = each.ok_or_else(|| Failure::failed("fio did not tell all: expected fio 3"));
            Ok::<f64, Failure>(each?.iter().sum())
        };
        let clients = sum(|job| {
            let percent = job["usr_cpu"].as_f64()? + job["sys_cpu"].as_f64()?;
            Some(percent / 100.0 * job["read"]["runtime"].as_f64()? / 1e3)
        })?;
        Ok(ClassifyTurn {
            iops: sum(|job| job["read"]["iops"].as_f64())?,
            requests: sum(|job| job["read"]["total_ios"].as_f64())?,
            cpu_s: service.as_secs_f64() + clients,
        })
    }

    fn programs(&self, settings: &ClassifyBench, arm: Arm, round: u32) -> Vec<String> {
        let job = |name: &str, class: u32, offset: u64, more: &[&str]| {
            let mut words = vec![
                format!("--name={name}"),
                format!("--prioclass={class}"),
                format!("--offset={}", offset + MARGIN),
                format!("--size={}", HALF - 2 * MARGIN),
            ];
            words.extend(more.iter().map(|&word| word.to_owned()));
            words
        };
        let seconds = match arm {
            Arm::Judged => settings.seconds,
            Arm::With | Arm::Without => settings.round_seconds,
        };
        let mut words = vec![
            format!("--filename={}", self.path.display()),
            "--ioengine=libaio".to_owned(),
            "--direct=1".to_owned(),
            "--time_based".to_owned(),
            format!("--runtime={seconds}"),
            "--rw=randread".to_owned(),
            // One that FUSE splits is among them.
            "--bssplit=4k/80:64k/15:2m/5".to_owned(),
            "--norandommap".to_owned(),
            // Both arms of a round serve the same requests.
            format!("--randseed={}", round + 1),
        ];
        // The foreground thinks, so that the background gets its turns.
        words.extend(job(
            "usual",
            2,
            0,
            &["--prio=4", "--iodepth=4", "--thinktime=5ms"],
        ));
        words.extend(job("idle", 3, HALF, &["--iodepth=4"]));
        words
    }
}

fn classified(status: &Status) -> Option<&Classified> {
    status.drives.first()?.classified.first()
}

/// The requests of a capture by their classes.
#[derive(Debug, Default, PartialEq)]
struct Judged {
    requests: u64,
    right: u64,
    late_events: u64,
}

impl Judged {
    /// Judges a request by its half of the volume. Bytes near the ends of the halves are read by no program: the
    /// kernel looks there for partitions.
    fn judge(&mut self, request: &Request, block_bytes: u64) {
        let start = request.extent.start().0 * block_bytes;
        let within = start % HALF;
        if !(MARGIN..HALF - MARGIN).contains(&within) {
            return;
        }
        let expected = match start < HALF {
            true => Class::BestEffort(0),
            false => Class::Background,
        };
        self.requests += 1;
        self.right += u64::from(request.class == expected);
    }
}

/// The name of the volume and its export.
const VOLUME: &str = "volume";

/// The value of `drive` for memory.
pub const MEMORY: &str = "memory";

/// Bytes of the half of a program. A choice: any drive of the catalog has them twice.
const HALF: u64 = 256 << 20;

/// Bytes at the begin and the end of a half that no program reads. A choice: file systems and partition tables
/// have their headers in the first and last MiB.
const MARGIN: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use block::{Direction, Durability, Extent, Lba, Owner, RequestId, Sectors};

    use super::*;

    #[test]
    fn the_half_of_a_request_tells_its_program() {
        let request = |start: u64, class| Request {
            id: RequestId(1),
            direction: Direction::Read,
            extent: Extent::new(Lba(start / 512), Sectors(8)).expect("blocks"),
            class,
            durability: Durability::Volatile,
            owner: Owner::NOBODY,
        };
        let mut judged = Judged::default();
        for (start, class) in [
            (MARGIN, Class::BestEffort(0)),
            (HALF - MARGIN - 4096, Class::Background),
            (HALF + MARGIN, Class::Background),
            (HALF + MARGIN, Class::BestEffort(0)),
            (2 * HALF - MARGIN, Class::BestEffort(0)),
            (0, Class::Background),
        ] {
            judged.judge(&request(start, class), 512);
        }
        assert_eq!((judged.requests, judged.right), (4, 2));
    }
}
