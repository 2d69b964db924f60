//! `headtime bench players`: streams beside a greedy reader, live: with our guarantees, and at best effort
//! under the kernel's schedulers, with and without real-time io priority.
//!
//! ```text
//!   headtime play, one for each stream --.
//!   fio, reads one file again and again -+-> ext4 -> /dev/loop0 [none | mq-deadline | bfq]
//!                                              -> FUSE -> headtime serve [guarantees | the drive's own queue]
//! ```
//!
//! All times are the drive's: with a time scale of 4 rates are a quarter, and delays are divided by
//! four. A witness sleeps beside them; how often it woke too late says what the machine itself did.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use drive::catalog;
use serde::Serialize;
use serde_json::Value;

use super::loop_device::{Depth, LOSETUP, LoopDevice};
use super::rig::{self, Core, FIO, Needed, Service};
use crate::output::{Exit, print};
use films::{Mounted, called, film};

mod films;

/// How to call it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The emulated drive: a name from `headtime drives`
    #[arg(long, value_name = "NAME", default_value = "modern-20tb")]
    drive: String,
    /// How many times as slow as the drive everything is. The kernel's own times are not stretched
    #[arg(long, value_name = "S", default_value_t = 4.0)]
    time_scale: f64,
    /// How many streams of 1 MB/s play
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=16))]
    streams: u32,
    /// Memory of each stream, in kB
    #[arg(long, value_name = "KB", default_value_t = 1064)]
    memory_kb: u64,
    /// The elevator of our service
    #[arg(long, default_value = "c-look")]
    policy: String,
    /// How long each turn is, in seconds of the drive's time
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=90))]
    seconds: u32,
    /// Without the kernel's schedulers
    #[arg(long)]
    only_ours: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime bench players
  headtime bench players --time-scale 2 --seconds 10 --only-ours

It needs root: FUSE, loop devices and their schedulers, mounts. 7 turns. The image is sparse, in /dev/shm if
there is one.";

/// Who serves the streams, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contestant {
    /// Our guarantees.
    Ours,
    /// A scheduler of the kernel's, best effort.
    Kernel(&'static str, Priority),
}

/// The io priority of the players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Priority {
    /// As everybody's.
    Usual,
    /// Real time, the most urgent (`ionice -c 1 -n 0`).
    RealTime,
}

const KERNEL: [Contestant; 6] = [
    Contestant::Kernel("none", Priority::Usual),
    Contestant::Kernel("mq-deadline", Priority::Usual),
    Contestant::Kernel("bfq", Priority::Usual),
    Contestant::Kernel("none", Priority::RealTime),
    Contestant::Kernel("mq-deadline", Priority::RealTime),
    Contestant::Kernel("bfq", Priority::RealTime),
];

/// One of them, measured, in the drive's time.
#[derive(Debug, PartialEq, Serialize)]
struct Turn {
    name: String,
    /// Reads of all players.
    reads: u64,
    /// Those that took more than 8 ms.
    late: u64,
    p99_ms: f64,
    longest_ms: f64,
    /// Reads that this machine began more than a millisecond of its own time too late.
    begun_late: u64,
    /// What was left to the reader.
    background_mb_s: f64,
    /// How often the witness woke more than 2 ms too late, and how late at most, in this machine's time.
    stalls: u64,
    longest_stall_ms: f64,
}

/// Runs the command.
///
/// # Errors
/// If it may not make devices or mount, or a program is missing or does not run.
pub fn run(arguments: &Arguments) -> Result<(), Exit> {
    rig::need(&[FIO, LOSETUP, MKFS, IONICE])?;
    if !(0.1..=100.0).contains(&arguments.time_scale) {
        return Err(Exit::input("--time-scale: expected 0.1 to 100"));
    }
    let memory = Path::new("/dev/shm");
    let folder = match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    };
    let folder = folder.map_err(Exit::failed)?;
    let place = Place {
        arguments,
        folder: folder.path(),
    };
    place.films()?;
    let mut turns = vec![place.turn(Contestant::Ours)?];
    if !arguments.only_ours {
        for contestant in KERNEL {
            turns.push(place.turn(contestant)?);
        }
    }
    print(&match arguments.json {
        true => serde_json::to_string_pretty(&turns).map_err(Exit::failed)? + "\n",
        false => table(arguments, &turns),
    })
}

/// What is the same for all turns.
struct Place<'a> {
    arguments: &'a Arguments,
    folder: &'a Path,
}

impl Place<'_> {
    fn image(&self) -> PathBuf {
        self.folder.join("drive.img")
    }

    /// An image of the drive with a file system and the files on it, made without the drive's delays.
    fn films(&self) -> Result<(), Exit> {
        let entry = catalog::find(&self.arguments.drive).map_err(Exit::failed)?;
        let profile = entry.profile().map_err(Exit::failed)?;
        let bytes = profile.geometry.sectors().0 * u64::from(profile.block_bytes);
        let image = self.image();
        let made = File::create(&image).and_then(|file| file.set_len(bytes));
        made.map_err(Exit::failed)?;
        let lazy = format!("lazy_itable_init=1,lazy_journal_init=1,nodiscard,offset={OFFSET}");
        called(
            Command::new(MKFS.program)
                .args(["-q", "-F", "-b", "4096", "-E", &lazy])
                .arg(&image)
                .arg((VOLUME / 4096).to_string()),
        )?;
        let inside = format!("loop,offset={OFFSET},sizelimit={VOLUME}");
        let mounted = Mounted::at(&self.folder.join("made"), &image, &inside)?;
        for stream in 0..self.arguments.streams {
            film(&mounted.at.join(format!("film-{stream}")), FILM)?;
        }
        film(&mounted.at.join("other"), OTHER)
    }

    fn turn(&self, contestant: Contestant) -> Result<Turn, Exit> {
        let service = Service::start("turn", &self.config(contestant), self.folder)?;
        let device = LoopDevice::attach(&self.folder.join("turn").join("volume"))?;
        let scheduler = match contestant {
            Contestant::Ours => "none",
            Contestant::Kernel(name, _) => name,
        };
        device.schedule(scheduler, Depth::Loop)?;
        let mounted = Mounted::at(&self.folder.join("mounted"), &device.path, "ro,noload")?;
        let is_over = AtomicBool::new(false);
        let (played, read, stalls) = thread::scope(|scope| {
            let witness = scope.spawn(|| witness(&is_over));
            let reader = scope.spawn(|| self.reader(&mounted.at.join("other")));
            let played = self.play(contestant, &mounted.at);
            let read = reader.join().map_err(|_| Exit::failed("the reader"));
            is_over.store(true, Ordering::Relaxed);
            let stalls = witness.join().map_err(|_| Exit::failed("the witness"));
            (played, read, stalls)
        });
        let (played, read, stalls) = (played?, read??, stalls?);
        drop(mounted);
        drop(device);
        drop(service);
        self.told(contestant, &played, read, stalls)
    }

    /// What was measured, in the drive's time.
    fn told(
        &self,
        contestant: Contestant,
        played: &[Value],
        read: f64,
        (stalls, longest): (u64, Duration),
    ) -> Result<Turn, Exit> {
        let scale = self.arguments.time_scale;
        let all = |key: &str| -> Result<Vec<u64>, Exit> {
            let of = |told: &Value| {
                let missing = || Exit::failed(format!("headtime play said nothing of {key}"));
                told[key].as_u64().ok_or_else(missing)
            };
            played.iter().map(of).collect()
        };
        let ms = |key: &str| -> Result<f64, Exit> {
            let most = all(key)?.into_iter().max().unwrap_or_default();
            Ok(most as f64 / 1e3 / scale)
        };
        Ok(Turn {
            name: contestant.name(),
            reads: all("count")?.iter().sum(),
            late: all("late")?.iter().sum(),
            p99_ms: ms("p99_us")?,
            longest_ms: ms("longest_us")?,
            begun_late: all("stalls")?.iter().sum(),
            background_mb_s: read * scale / 1e6,
            stalls,
            longest_stall_ms: longest.as_secs_f64() * 1e3,
        })
    }

    /// All players, each a process of its own; what they say.
    fn play(&self, contestant: Contestant, files: &Path) -> Result<Vec<Value>, Exit> {
        let players = (0..self.arguments.streams).map(|stream| {
            let mut command = self.player(contestant, &files.join(format!("film-{stream}")));
            let child = command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn();
            child.map_err(Exit::failed)
        });
        // All of them begin before the first is waited for.
        let players: Vec<_> = players.collect::<Result<_, _>>()?;
        let ended = players.into_iter().map(|player| {
            let output = player.wait_with_output().map_err(Exit::failed)?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                return Err(Exit::failed(format!("headtime play: {}", said.trim())));
            }
            serde_json::from_slice(&output.stdout).map_err(Exit::failed)
        });
        ended.collect()
    }

    fn player(&self, contestant: Contestant, file: &Path) -> Command {
        let Arguments {
            time_scale: scale, ..
        } = *self.arguments;
        let me = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("headtime"));
        let mut command = match contestant {
            Contestant::Kernel(_, Priority::RealTime) => {
                let mut command = rig::on(Core::Client, IONICE.program);
                command.args(["--class", "1", "--classdata", "0"]).arg(me);
                command
            }
            _ => rig::on(Core::Client, me),
        };
        command
            .arg("play")
            .arg(file)
            .args(["--rate", &format!("{}", (RATE / scale) as u64)])
            .args(["--seconds", &format!("{}", self.wall())])
            .args(["--late-ms", &format!("{}", LATE_MS * scale)])
            .arg("--json");
        match contestant {
            Contestant::Ours => {
                let memory = self.arguments.memory_kb * 1024;
                command.args(["--buffer", "64Ki", "--memory", &memory.to_string()]);
                command
                    .arg("--socket")
                    .arg(self.folder.join("turn.control"));
            }
            Contestant::Kernel(..) => {
                command.arg("--best-effort");
            }
        }
        command
    }

    /// The greedy reader; bytes in a second of this machine's time.
    fn reader(&self, file: &Path) -> Result<f64, Exit> {
        let words = [
            "--name=other".to_owned(),
            format!("--filename={}", file.display()),
            "--readonly".to_owned(),
            "--rw=read".to_owned(),
            "--bs=128k".to_owned(),
            "--ioengine=libaio".to_owned(),
            "--direct=1".to_owned(),
            // One under way and one read ahead.
            "--iodepth=2".to_owned(),
            "--time_based".to_owned(),
            format!("--runtime={}", self.wall().ceil()),
        ];
        let told = rig::fio_json(&words, self.folder)?;
        let rate = told["jobs"][0]["read"]["bw_bytes"].as_f64();
        rate.ok_or_else(|| Exit::failed("fio did not tell of its job: expected fio 3"))
    }

    /// How long a turn is on this machine, in seconds.
    fn wall(&self) -> f64 {
        f64::from(self.arguments.seconds) * self.arguments.time_scale
    }

    fn config(&self, contestant: Contestant) -> String {
        let (policy, promise) = match contestant {
            Contestant::Ours => (
                self.arguments.policy.as_str(),
                "[drive.streams]\nforeground_percent = 0\n",
            ),
            Contestant::Kernel(..) => ("drive", ""),
        };
        format!(
            r#"
[[drive]]
name = "turn"
policy = "{policy}"
belief = "emulated"
volume = [{{ name = "volume", offset = {OFFSET}, size = {VOLUME} }}]
export = [{{ name = "volume", volume = "volume" }}]

[drive.back_end]
kind = "emulated"
drive = "{drive}"
image = "{image}"
time_scale = {scale}
write_cache = false

{promise}
[fuse]
mount = "{mount}"

[control]
socket = "{control}"
"#,
            drive = self.arguments.drive,
            image = self.image().display(),
            scale = self.arguments.time_scale,
            mount = self.mount().display(),
            control = self.folder.join("turn.control").display(),
        )
    }

    /// Where volumes are files; it has to be there.
    fn mount(&self) -> PathBuf {
        let mount = self.folder.join("turn");
        // Of an earlier turn, or not to be made: then the service says so.
        let _ = fs::create_dir(&mount);
        mount
    }
}

impl Contestant {
    fn name(self) -> String {
        match self {
            Contestant::Ours => "our guarantees".to_owned(),
            Contestant::Kernel(name, Priority::Usual) => format!("{name}, best effort"),
            Contestant::Kernel(name, Priority::RealTime) => {
                format!("{name}, real-time io priority")
            }
        }
    }
}

/// Sleeps and wakes until it is over: how often it woke too late, and how late at most.
fn witness(is_over: &AtomicBool) -> (u64, Duration) {
    let (mut stalls, mut longest) = (0, Duration::ZERO);
    while !is_over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        thread::sleep(NAP);
        let late = begun.elapsed().saturating_sub(NAP);
        longest = longest.max(late);
        stalls += u64::from(late > STALL);
    }
    (stalls, longest)
}

fn table(arguments: &Arguments, turns: &[Turn]) -> String {
    let mut text = format!(
        "{}, time scale {}, in-firmware; {} players of 1 MB/s beside a greedy reader, {} s each\n\
         times are the drive's; stalls are this machine's own, in its own time\n\n",
        arguments.drive, arguments.time_scale, arguments.streams, arguments.seconds
    );
    text += &format!(
        "{:<38} {:>6} {:>6} {:>8} {:>11} {:>11} {:>11} {:>7} {:>11}\n",
        "",
        "reads",
        "> 8 ms",
        "p99 ms",
        "longest ms",
        "left MB/s",
        "begun late",
        "stalls",
        "longest ms"
    );
    for turn in turns {
        text += &format!(
            "{:<38} {:>6} {:>6} {:>8.1} {:>11.1} {:>11.2} {:>11} {:>7} {:>11.1}\n",
            turn.name,
            turn.reads,
            turn.late,
            turn.p99_ms,
            turn.longest_ms,
            turn.background_mb_s,
            turn.begun_late,
            turn.stalls,
            turn.longest_stall_ms,
        );
    }
    text
}

/// ABISS, 4: the rate of a stream, in bytes a second of the drive's time.
const RATE: f64 = 1e6;

/// ABISS, 4, Figure 18: what no read exceeds.
const LATE_MS: f64 = 8.0;

/// ABISS, 4: files of 105 MB, and the reader's of 175 MB, in whole pages.
const FILM: usize = 105_000_000 / 4096 * 4096;
const OTHER: usize = 175_000_000 / 4096 * 4096;

/// Where the volume is and how long, in bytes: more than the files of 16 players. Choices.
const OFFSET: u64 = 1 << 20;
const VOLUME: u64 = 4 << 30;

/// How long the witness sleeps, and what is no ordinary lateness of a timer any more. Choices.
const NAP: Duration = Duration::from_millis(1);
const STALL: Duration = Duration::from_millis(2);

const MKFS: Needed = Needed {
    program: "mkfs.ext4",
    package: "e2fsprogs",
};

const IONICE: Needed = Needed {
    program: "ionice",
    package: "util-linux",
};

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_players_say_is_in_the_time_of_the_drive() {
        let arguments = Arguments {
            drive: "d".to_owned(),
            time_scale: 4.0,
            streams: 2,
            memory_kb: 564,
            policy: "fcfs".to_owned(),
            seconds: 30,
            only_ours: true,
            json: false,
        };
        let place = Place {
            arguments: &arguments,
            folder: Path::new("/"),
        };
        let player = |longest| json!({"count": 10, "late": 1, "p99_us": 8_000, "longest_us": longest, "stalls": 2});
        let told = [player(40_000), player(20_000)];
        let stalls = (3, Duration::from_millis(5));
        let turn = place.told(Contestant::Ours, &told, 1e6, stalls);
        let expected = Turn {
            name: "our guarantees".to_owned(),
            reads: 20,
            late: 2,
            p99_ms: 2.0,
            longest_ms: 10.0,
            begun_late: 4,
            background_mb_s: 4.0,
            stalls: 3,
            longest_stall_ms: 5.0,
        };
        assert_eq!(turn.ok(), Some(expected));
        let nothing = place.told(Contestant::Ours, &[json!({})], 0.0, stalls);
        assert!(nothing.is_err());
    }
}
