//! The p99 of a reader beside programs that give way by I/O priority: with classification, and with the kernel's
//! schedulers on the same emulated disk.
//!
//! ```text
//!   fio: random reads of a file --------------.
//!   btrfs scrub | ionice -c3 tar | rsync -n7 -+-> btrfs -> /dev/loop0 [scheduler] -> FUSE -> headtime serve
//! ```
//!
//! | arm | loop device | service |
//! |---|---|---|
//! | `headtime` | no scheduler | our policy, classes by I/O priority, preemption |
//! | `classes` | no scheduler | our policy, classes by I/O priority |
//! | `unclassified` | no scheduler | our policy, one class |
//! | `mq-deadline`, `bfq` | that scheduler, four requests at the device | the drive's own queue |
//!
//! All arms serve the same image, one after the other, and mount it anew for each turn, so that nothing is cached. The
//! reader's first seconds do not count: it reads the file system's own blocks then.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde::Serialize;
use server::status::Status;

use super::file_system::{MountedFileSystem, called, filled_file, sparse_image};
use super::loop_device::{Depth, LOSETUP, LoopDevice};
use super::rig::{self, FIO, FioLoad, Needed, ServeProcess, median};
use crate::{Failure, Progress, named};

/// The settings of the benchmark.
#[derive(Clone, Debug)]
pub struct PrioritiesBench {
    /// The emulated drive: a name from `headtime drives`.
    pub drive: String,
    /// Our policy.
    pub policy: String,
    /// The slow-down of the emulated drive. The kernel's own times are not scaled.
    pub time_scale: f64,
    /// The bandwidth of the drive's bus, which must carry what the medium reads.
    pub bus_mb_s: f64,
    /// Outstanding requests of the reader.
    pub depth: u32,
    /// The time that the reader thinks before each request, in milliseconds; zero: it is never idle.
    pub think_ms: u32,
    /// The length of each turn, in seconds.
    pub seconds: u32,
    /// Turns of each arm and program.
    pub rounds: u32,
    /// The arms, by name.
    pub arms: Vec<String>,
}

/// The figures of one program beside the reader in one arm: medians of the rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PriorityFigures {
    /// The arm.
    pub arm: String,
    /// The program beside the reader.
    pub program: &'static str,
    /// The reader's 99th percentile alone, in milliseconds.
    pub alone_p99_ms: f64,
    /// The same beside the program.
    pub beside_p99_ms: f64,
    /// The second over the first, in each round.
    pub p99_ratio: f64,
    /// The reader's requests a second alone.
    pub alone_iops: f64,
    /// The same beside the program.
    pub beside_iops: f64,
    /// What the program read from the device, in megabytes a second.
    pub program_mb_s: f64,
}

/// The figures of all arms, which ran in turn on one machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PrioritiesReport {
    /// The emulated drive.
    pub drive: String,
    /// The slow-down of the drive.
    pub time_scale: f64,
    /// Outstanding requests of the reader.
    pub depth: u32,
    /// The time that the reader thinks, in milliseconds.
    pub think_ms: u32,
    /// Each program in each arm.
    pub measured: Vec<PriorityFigures>,
}

/// An arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arm {
    Headtime,
    Classes,
    Unclassified,
    Kernel(&'static str),
}

/// The names of the arms.
pub const ARMS: [&str; 5] = ["headtime", "classes", "unclassified", "mq-deadline", "bfq"];

/// A program beside the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Scrub,
    Tar,
    Rsync,
}

const PROGRAMS: [Program; 3] = [Program::Scrub, Program::Tar, Program::Rsync];

/// One turn of the reader alone, and one beside each program.
struct PriorityTurn {
    alone: FioLoad,
    beside: Vec<(FioLoad, f64)>,
}

impl PrioritiesBench {
    /// Measures all arms in turn.
    ///
    /// # Errors
    /// If devices cannot be created, or a program is missing or does not run.
    pub fn run(&self, progress: &dyn Progress) -> Result<PrioritiesReport, Failure> {
        rig::need(&NEEDED)?;
        let arms: Vec<Arm> = self
            .arms
            .iter()
            .map(|name| Arm::named(name))
            .collect::<Result<_, _>>()?;
        let folder = tempfile::tempdir().map_err(Failure::failed)?;
        let image = folder.path().join("drive.img");
        progress.begin("files");
        self.fill(&image, folder.path())?;
        let mut turns: Vec<Vec<PriorityTurn>> = arms.iter().map(|_| Vec::new()).collect();
        for round in 0..self.rounds {
            for (arm, turns) in arms.iter().zip(&mut turns) {
                progress.begin(&format!("{}, round {}", arm.name(), round + 1));
                turns.push(self.turn(*arm, round, folder.path())?);
            }
        }
        forget_scrubs();
        let measured = arms.iter().zip(&turns);
        Ok(PrioritiesReport {
            drive: self.drive.clone(),
            time_scale: self.time_scale,
            depth: self.depth,
            think_ms: self.think_ms,
            measured: measured
                .flat_map(|(arm, turns)| figures(*arm, turns))
                .collect(),
        })
    }

    /// Puts a btrfs with files for all programs on the image, without the delays of a drive.
    fn fill(&self, image: &Path, folder: &Path) -> Result<(), Failure> {
        let drive = named::drive(&self.drive)?;
        let capacity = drive.capacity_bytes();
        if capacity < VOLUME_BYTES {
            return Err(Failure::input(format!(
                "--drive {}: {capacity} bytes: expected at least {VOLUME_BYTES}",
                self.drive
            )));
        }
        sparse_image(image, capacity)?;
        // The file system is as large as the volume: the rest of the drive is not formatted.
        let mut make = Command::new(MKFS.program);
        make.args(["-q", "-f", "-U", UUID, "-b", &VOLUME_BYTES.to_string()]);
        called(make.arg(image))?;
        let at = folder.join("filled");
        let inside = format!("loop,sizelimit={VOLUME_BYTES}");
        let mounted = MountedFileSystem::at(&at, image, &inside)?;
        filled_file(&mounted.at.join(READ), FILE_BYTES)?;
        for program in ["tar", "rsync"] {
            let files = mounted.at.join(program);
            fs::create_dir(&files).map_err(Failure::failed)?;
            for number in 0..FILES {
                filled_file(&files.join(number.to_string()), FILE_BYTES / FILES)?;
            }
        }
        Ok(())
    }

    /// One arm: the reader alone, then beside each program.
    fn turn(&self, arm: Arm, round: u32, folder: &Path) -> Result<PriorityTurn, Failure> {
        let name = arm.name();
        let mount = folder.join(name);
        fs::create_dir_all(&mount).map_err(Failure::failed)?;
        let mut service = ServeProcess::start(name, &self.config(arm, folder), folder)?;
        let device = LoopDevice::attach(&mount.join(VOLUME))?;
        if let Arm::Kernel(scheduler) = arm {
            device.schedule(scheduler, Depth::Least)?;
        }
        if matches!(arm, Arm::Headtime | Arm::Classes) {
            service.wait_until(is_watched)?;
        }
        let place = folder.join("mounted");
        let alone = {
            let mounted = MountedFileSystem::at(&place, &device.path, OPTIONS)?;
            self.read(&mounted.at, round, folder)?
        };
        let mut beside = Vec::new();
        for program in PROGRAMS {
            let mounted = MountedFileSystem::at(&place, &device.path, OPTIONS)?;
            let target = folder.join("copied");
            let running = RunningProgram::begin(program, &mounted.at, &target)?;
            let (before, begun) = (sectors_read(&device.path)?, Instant::now());
            let load = self.read(&mounted.at, round, folder)?;
            let sectors = sectors_read(&device.path)? - before;
            let per_second = sectors as f64 * 512.0 / begun.elapsed().as_secs_f64();
            drop(running);
            let mb_s = (per_second - load.iops * 4096.0).max(0.0) / 1e6;
            beside.push((load, mb_s));
            drop(mounted);
            // What was copied is not needed, and may not be there.
            let _ = fs::remove_dir_all(&target);
        }
        Ok(PriorityTurn { alone, beside })
    }

    /// The reader.
    fn read(&self, mounted: &Path, round: u32, folder: &Path) -> Result<FioLoad, Failure> {
        let mut words = vec![
            format!("--filename={}", mounted.join(READ).display()),
            "--ioengine=libaio".to_owned(),
            "--direct=1".to_owned(),
            "--time_based".to_owned(),
            format!("--runtime={}", self.seconds),
            format!("--ramp_time={RAMP_S}"),
            // Best effort, whatever the priority of this process makes of it.
            "--prioclass=2".to_owned(),
            "--prio=4".to_owned(),
            "--name=reader".to_owned(),
            "--rw=randread".to_owned(),
            "--bs=4k".to_owned(),
            format!("--iodepth={}", self.depth),
            format!("--size={FILE_BYTES}"),
            "--norandommap".to_owned(),
            // All arms of a round serve the same requests.
            format!("--randseed={}", round + 1),
        ];
        if self.think_ms > 0 {
            words.push(format!("--thinktime={}ms", self.think_ms));
        }
        let loads = rig::fio(&words, folder)?;
        match loads[..] {
            [(_, load)] => Ok(load),
            _ => Err(Failure::failed("fio did not tell of its one job")),
        }
    }

    fn config(&self, arm: Arm, folder: &Path) -> String {
        let name = arm.name();
        let place = |end: &str| folder.join(format!("{name}.{end}")).display().to_string();
        let policy = match arm {
            Arm::Headtime | Arm::Classes | Arm::Unclassified => self.policy.as_str(),
            Arm::Kernel(_) => "drive",
        };
        let classify = match arm {
            Arm::Headtime | Arm::Classes => "classify = \"ioprio\"",
            Arm::Unclassified | Arm::Kernel(_) => "",
        };
        let preemption = match arm {
            Arm::Headtime => "[drive.preemption]",
            Arm::Classes | Arm::Unclassified | Arm::Kernel(_) => "",
        };
        format!(
            "[[drive]]\nname = \"{name}\"\npolicy = \"{policy}\"\n[drive.back_end]\nkind = \"emulated\"\n\
             drive = \"{drive}\"\nimage = \"{image}\"\ntime_scale = {scale}\nbus_mb_s = {bus}\n\
             write_cache = false\n{preemption}\n[[drive.volume]]\nname = \"{VOLUME}\"\nsize = {VOLUME_BYTES}\n\
             [[drive.export]]\nname = \"{VOLUME}\"\nvolume = \"{VOLUME}\"\n{classify}\n\
             [[nbd]]\nunix = \"{nbd}\"\n[fuse]\nmount = \"{mount}\"\n[control]\nsocket = \"{control}\"\n",
            drive = self.drive,
            image = folder.join("drive.img").display(),
            scale = self.time_scale,
            bus = self.bus_mb_s,
            nbd = place("nbd"),
            mount = folder.join(name).display(),
            control = place("control"),
        )
    }
}

impl Arm {
    fn named(name: &str) -> Result<Arm, Failure> {
        match name {
            "headtime" => Ok(Arm::Headtime),
            "classes" => Ok(Arm::Classes),
            "unclassified" => Ok(Arm::Unclassified),
            "mq-deadline" => Ok(Arm::Kernel("mq-deadline")),
            "bfq" => Ok(Arm::Kernel("bfq")),
            other => Err(Failure::unknown("arm", other, &ARMS)),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Arm::Headtime => "headtime",
            Arm::Classes => "classes",
            Arm::Unclassified => "unclassified",
            Arm::Kernel(name) => name,
        }
    }
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Program::Scrub => "btrfs scrub",
            Program::Tar => "ionice -c3 tar",
            Program::Rsync => "ionice -c2 -n7 rsync",
        }
    }
}

/// A program that runs until it is dropped.
struct RunningProgram {
    child: Child,
    program: Program,
    mounted: PathBuf,
}

impl RunningProgram {
    fn begin(program: Program, mounted: &Path, target: &Path) -> Result<Self, Failure> {
        let mut command = Command::new(match program {
            Program::Scrub => "btrfs",
            Program::Tar | Program::Rsync => "ionice",
        });
        match program {
            // It is idle by itself.
            Program::Scrub => command.args(["scrub", "start", "-B"]).arg(mounted),
            // To its standard output: tar reads nothing if it knows that it writes to /dev/null.
            Program::Tar => command
                .args(["-c3", "tar", "--create", "--directory"])
                .arg(mounted)
                .arg("tar"),
            Program::Rsync => command
                .args(["-c2", "-n7", "rsync", "--archive"])
                .arg(mounted.join("rsync"))
                .arg(target),
        };
        let output = match program {
            Program::Tar => Stdio::piped(),
            Program::Scrub | Program::Rsync => Stdio::null(),
        };
        let spawned = command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(Stdio::null())
            .spawn();
        let mut child = spawned.map_err(Failure::failed)?;
        if let Some(mut archive) = child.stdout.take() {
            // The thread ends with the program.
            std::thread::spawn(move || std::io::copy(&mut archive, &mut std::io::sink()));
        }
        Ok(RunningProgram {
            child,
            program,
            mounted: mounted.to_owned(),
        })
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        if self.program == Program::Scrub {
            // The kernel scrubs: the end of the command does not end it.
            let mut cancel = Command::new("btrfs");
            let cancel = cancel.args(["scrub", "cancel"]).arg(&self.mounted);
            let _ = cancel.stdout(Stdio::null()).stderr(Stdio::null()).status();
        } else {
            // It ends its own processes, so that the file system is free.
            let running = rustix::process::Pid::from_child(&self.child);
            let _ = rustix::process::kill_process(running, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

/// Removes what `btrfs scrub` notes of its runs.
fn forget_scrubs() {
    for kind in ["status", "progress"] {
        // There is none if the program has changed its ways.
        let _ = fs::remove_file(format!("/var/lib/btrfs/scrub.{kind}.{UUID}"));
    }
}

/// What was read from a block device so far, in sectors of 512 bytes (Documentation/block/stat).
fn sectors_read(device: &Path) -> Result<u64, Failure> {
    let name = device.file_name().unwrap_or_default();
    let path = Path::new("/sys/block").join(name).join("stat");
    let text = fs::read_to_string(&path).map_err(Failure::failed)?;
    let field = text.split_whitespace().nth(2);
    let sectors = field.and_then(|field| field.parse().ok());
    sectors.ok_or_else(|| Failure::failed(format!("{}: expected numbers", path.display())))
}

fn is_watched(status: &Status) -> bool {
    let mut exports = status.drives.iter().flat_map(|drive| &drive.classified);
    exports.any(|export| !export.devices.is_empty())
}

/// The medians of an arm.
fn figures(arm: Arm, turns: &[PriorityTurn]) -> Vec<PriorityFigures> {
    let one = |(place, program): (usize, &Program)| {
        let of = |figure: &dyn Fn(&PriorityTurn) -> f64| median(turns.iter().map(figure).collect());
        PriorityFigures {
            arm: arm.name().to_owned(),
            program: program.name(),
            alone_p99_ms: of(&|turn| turn.alone.p99_ms),
            beside_p99_ms: of(&|turn| turn.beside[place].0.p99_ms),
            p99_ratio: of(&|turn| turn.beside[place].0.p99_ms / turn.alone.p99_ms),
            alone_iops: of(&|turn| turn.alone.iops),
            beside_iops: of(&|turn| turn.beside[place].0.iops),
            program_mb_s: of(&|turn| turn.beside[place].1),
        }
    };
    PROGRAMS.iter().enumerate().map(one).collect()
}

/// The name of the volume and its export, and of the reader's file.
const VOLUME: &str = "volume";
const READ: &str = "read";

/// The volume. A choice: three times the files, and what btrfs needs; it fits the Atlas 10K.
const VOLUME_BYTES: u64 = 6 << 30;

/// The name of the file system. A choice, so that its notes can be found.
const UUID: &str = "0f1e2d3c-4b5a-4697-8899-aabbccddeeff";

/// Bytes of the reader's file, and of the files of each program. A choice: few programs read as much in
/// half a minute.
const FILE_BYTES: u64 = 1 << 30;

/// The reader's first seconds, which do not count. A choice.
const RAMP_S: u32 = 5;

/// Files of a program.
const FILES: u64 = 64;

/// Reads write no access times.
const OPTIONS: &str = "noatime";

const MKFS: Needed = Needed {
    program: "mkfs.btrfs",
    package: "btrfs-progs",
};

const NEEDED: [Needed; 6] = [
    FIO,
    LOSETUP,
    MKFS,
    Needed {
        program: "btrfs",
        package: "btrfs-progs",
    },
    Needed {
        program: "rsync",
        package: "rsync",
    },
    Needed {
        program: "ionice",
        package: "util-linux",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_one_round_and_the_median_of_all() {
        let load = |p99_ms: f64| FioLoad {
            iops: 100.0,
            requests: 3_000,
            mean_ms: 1.0,
            p99_ms,
            mb_per_s: 0.0,
        };
        let turn = |alone: f64, beside: [f64; 3]| PriorityTurn {
            alone: load(alone),
            beside: beside.map(|p99| (load(p99), 2.0)).to_vec(),
        };
        let turns = [
            turn(10.0, [11.0, 20.0, 10.0]),
            turn(20.0, [24.0, 40.0, 21.0]),
            turn(10.0, [30.0, 25.0, 11.0]),
        ];
        let found = figures(Arm::Kernel("bfq"), &turns);
        let ratios: Vec<f64> = found.iter().map(|one| one.p99_ratio).collect();
        assert_eq!(ratios, [1.2, 2.0, 1.05]);
        assert_eq!(found[1].alone_p99_ms, 10.0);
        assert_eq!(found[1].program, "ionice -c3 tar");
        for name in ARMS {
            assert_eq!(Arm::named(name).map(Arm::name).ok(), Some(name));
        }
        assert!(Arm::named("kyber").is_err());
    }
}
