//! Streams beside a greedy reader on a live service: guaranteed, and at best effort under the
//! kernel's schedulers with and without real-time io priority.
//!
//! ```text
//!   headtime play, one for each stream --.
//!   fio, reads one file again and again -+-> ext4 -> /dev/loop0 [none | mq-deadline | bfq]
//!                                              -> FUSE -> headtime serve [guarantees | the drive's own queue]
//! ```
//!
//! All times are the drive's: with a time scale of 4, rates are a quarter, and delays are divided
//! by four. A witness thread sleeps beside the streams; its late wake-ups measure the stalls of the
//! machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use drive::catalog;
use serde::Serialize;
use serde_json::Value;

use super::file_system::{Area, MKFS, MountedFileSystem, filled_file, sparse_image};
use super::loop_device::{Depth, LOSETUP, LoopDevice};
use super::rig::{self, Core, FIO, Needed, ServeProcess};
use crate::Failure;

/// The settings of the benchmark.
#[derive(Clone, Debug)]
pub struct PlayersBench {
    /// The emulated drive: a name from `headtime drives`.
    pub drive: String,
    /// The slow-down of the emulated drive. The kernel's own times are not scaled.
    pub time_scale: f64,
    /// The number of streams of 1 MB/s.
    pub streams: u32,
    /// Memory of each stream, in kB.
    pub memory_kb: u64,
    /// The policy of our service.
    pub policy: String,
    /// The length of each turn, in seconds of the drive's time.
    pub seconds: u32,
    /// Whether the kernel's schedulers are skipped.
    pub only_ours: bool,
}

/// The service of the streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamService {
    /// Our guarantees.
    Ours,
    /// A scheduler of the kernel, at best effort.
    Kernel(&'static str, Priority),
}

/// The io priority of the players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Priority {
    /// The default priority.
    Usual,
    /// Real time, the most urgent (`ionice -c 1 -n 0`).
    RealTime,
}

const KERNEL: [StreamService; 6] = [
    StreamService::Kernel("none", Priority::Usual),
    StreamService::Kernel("mq-deadline", Priority::Usual),
    StreamService::Kernel("bfq", Priority::Usual),
    StreamService::Kernel("none", Priority::RealTime),
    StreamService::Kernel("mq-deadline", Priority::RealTime),
    StreamService::Kernel("bfq", Priority::RealTime),
];

/// The figures of one turn, in the drive's time.
#[derive(Debug, PartialEq, Serialize)]
pub struct PlayersTurn {
    /// The contestant.
    pub name: String,
    /// The reads of all players.
    pub reads: u64,
    /// The number of reads that took more than 8 ms.
    pub late: u64,
    /// The 99th percentile of the reads' delays.
    pub p99_ms: f64,
    /// The longest delay.
    pub longest_ms: f64,
    /// The number of reads that began more than a millisecond late on this machine.
    pub begun_late: u64,
    /// The rate of the greedy reader.
    pub background_mb_s: f64,
    /// The number of wake-ups of the witness that were more than 2 ms late, in this machine's time.
    pub stalls: u64,
    /// The longest lateness of the witness.
    pub longest_stall_ms: f64,
}

impl PlayersBench {
    /// Plays the streams under all contestants in turn.
    ///
    /// # Errors
    /// If devices cannot be created or mounted, or a program is missing or does not run.
    pub fn run(&self) -> Result<Vec<PlayersTurn>, Failure> {
        rig::need(&[FIO, LOSETUP, MKFS, IONICE])?;
        if !(0.1..=100.0).contains(&self.time_scale) {
            return Err(Failure::input("--time-scale: expected 0.1 to 100"));
        }
        let memory = Path::new("/dev/shm");
        let folder = match memory.is_dir() {
            true => tempfile::tempdir_in(memory),
            false => tempfile::tempdir(),
        };
        let folder = folder.map_err(Failure::failed)?;
        let rig = PlayersRig {
            settings: self,
            folder: folder.path(),
        };
        rig.films()?;
        let mut turns = vec![rig.turn(StreamService::Ours)?];
        if !self.only_ours {
            for contestant in KERNEL {
                turns.push(rig.turn(contestant)?);
            }
        }
        Ok(turns)
    }
}

/// The parts that all turns share.
struct PlayersRig<'a> {
    settings: &'a PlayersBench,
    folder: &'a Path,
}

impl PlayersRig<'_> {
    fn image(&self) -> PathBuf {
        self.folder.join("drive.img")
    }

    /// Creates an image of the drive with a file system and its files, without the drive's delays.
    fn films(&self) -> Result<(), Failure> {
        let entry = catalog::find(&self.settings.drive).map_err(Failure::failed)?;
        let profile = entry.profile().map_err(Failure::failed)?;
        let bytes = profile.geometry.sectors().0 * u64::from(profile.block_bytes);
        let image = self.image();
        sparse_image(&image, bytes)?;
        VOLUME.format(&image)?;
        let mounted = VOLUME.mount(&image, &self.folder.join("made"))?;
        for stream in 0..self.settings.streams {
            filled_file(&mounted.at.join(format!("film-{stream}")), FILM)?;
        }
        filled_file(&mounted.at.join("other"), OTHER)
    }

    fn turn(&self, contestant: StreamService) -> Result<PlayersTurn, Failure> {
        let service = ServeProcess::start("turn", &self.config(contestant), self.folder)?;
        let device = LoopDevice::attach(&self.folder.join("turn").join("volume"))?;
        let scheduler = match contestant {
            StreamService::Ours => "none",
            StreamService::Kernel(name, _) => name,
        };
        device.schedule(scheduler, Depth::Loop)?;
        let mounted =
            MountedFileSystem::at(&self.folder.join("mounted"), &device.path, "ro,noload")?;
        let is_over = AtomicBool::new(false);
        let (played, read, stalls) = thread::scope(|scope| {
            let witness = scope.spawn(|| witness(&is_over));
            let reader = scope.spawn(|| self.reader(&mounted.at.join("other")));
            let played = self.play(contestant, &mounted.at);
            let read = reader.join().map_err(|_| Failure::failed("the reader"));
            is_over.store(true, Ordering::Relaxed);
            let stalls = witness.join().map_err(|_| Failure::failed("the witness"));
            (played, read, stalls)
        });
        let (played, read, stalls) = (played?, read??, stalls?);
        drop(mounted);
        drop(device);
        drop(service);
        self.figures(contestant, &played, read, stalls)
    }

    /// Converts the output of all programs to figures in the drive's time.
    fn figures(
        &self,
        contestant: StreamService,
        played: &[Value],
        read: f64,
        (stalls, longest): (u64, Duration),
    ) -> Result<PlayersTurn, Failure> {
        let scale = self.settings.time_scale;
        let all = |key: &str| -> Result<Vec<u64>, Failure> {
            let of = |output: &Value| {
                let missing = || Failure::failed(format!("headtime play said nothing of {key}"));
                output[key].as_u64().ok_or_else(missing)
            };
            played.iter().map(of).collect()
        };
        let ms = |key: &str| -> Result<f64, Failure> {
            let most = all(key)?.into_iter().max().unwrap_or_default();
            Ok(most as f64 / 1e3 / scale)
        };
        Ok(PlayersTurn {
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

    /// Runs all players, each a process, and returns their outputs.
    fn play(&self, contestant: StreamService, files: &Path) -> Result<Vec<Value>, Failure> {
        let players = (0..self.settings.streams).map(|stream| {
            let mut command = self.player(contestant, &files.join(format!("film-{stream}")));
            let child = command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn();
            child.map_err(Failure::failed)
        });
        // All players start before the first is awaited.
        let players: Vec<_> = players.collect::<Result<_, _>>()?;
        let ended = players.into_iter().map(|player| {
            let output = player.wait_with_output().map_err(Failure::failed)?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                return Err(Failure::failed(format!("headtime play: {}", said.trim())));
            }
            serde_json::from_slice(&output.stdout).map_err(Failure::failed)
        });
        ended.collect()
    }

    fn player(&self, contestant: StreamService, file: &Path) -> Command {
        let PlayersBench {
            time_scale: scale, ..
        } = *self.settings;
        let me = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("headtime"));
        let mut command = match contestant {
            StreamService::Kernel(_, Priority::RealTime) => {
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
            StreamService::Ours => {
                let memory = self.settings.memory_kb * 1024;
                command.args(["--buffer", "64Ki", "--memory", &memory.to_string()]);
                command
                    .arg("--socket")
                    .arg(self.folder.join("turn.control"));
            }
            StreamService::Kernel(..) => {
                command.arg("--best-effort");
            }
        }
        command
    }

    /// Runs the greedy reader; returns its bytes per second of this machine's time.
    fn reader(&self, file: &Path) -> Result<f64, Failure> {
        let words = [
            "--name=other".to_owned(),
            format!("--filename={}", file.display()),
            "--readonly".to_owned(),
            "--rw=read".to_owned(),
            "--bs=128k".to_owned(),
            "--ioengine=libaio".to_owned(),
            "--direct=1".to_owned(),
            // One read in flight and one read ahead.
            "--iodepth=2".to_owned(),
            "--time_based".to_owned(),
            format!("--runtime={}", self.wall().ceil()),
        ];
        let output = rig::fio_json(&words, self.folder)?;
        let rate = output["jobs"][0]["read"]["bw_bytes"].as_f64();
        rate.ok_or_else(|| Failure::failed("fio did not tell of its job: expected fio 3"))
    }

    /// The length of a turn on this machine, in seconds.
    fn wall(&self) -> f64 {
        f64::from(self.settings.seconds) * self.settings.time_scale
    }

    fn config(&self, contestant: StreamService) -> String {
        let (policy, promise) = match contestant {
            StreamService::Ours => (
                self.settings.policy.as_str(),
                "[drive.streams]\nforeground_percent = 0\n",
            ),
            StreamService::Kernel(..) => ("drive", ""),
        };
        format!(
            r#"
[[drive]]
name = "turn"
policy = "{policy}"
belief = "emulated"
volume = [{{ name = "volume", offset = {offset}, size = {size} }}]
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
            offset = VOLUME.offset,
            size = VOLUME.bytes,
            drive = self.settings.drive,
            image = self.image().display(),
            scale = self.settings.time_scale,
            mount = self.mount().display(),
            control = self.folder.join("turn.control").display(),
        )
    }

    /// The folder of the volumes' files.
    fn mount(&self) -> PathBuf {
        let mount = self.folder.join("turn");
        // If the folder can be neither found nor created, the service reports it.
        let _ = fs::create_dir(&mount);
        mount
    }
}

impl StreamService {
    fn name(self) -> String {
        match self {
            StreamService::Ours => "our guarantees".to_owned(),
            StreamService::Kernel(name, Priority::Usual) => format!("{name}, best effort"),
            StreamService::Kernel(name, Priority::RealTime) => {
                format!("{name}, real-time io priority")
            }
        }
    }
}

/// Sleeps until the end; returns the number of late wake-ups and the longest lateness.
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

/// Rate of a stream, in bytes per second of the drive's time (ABISS, 4).
const RATE: f64 = 1e6;

/// Limit of a read's delay (ABISS, 4, Figure 18).
const LATE_MS: f64 = 8.0;

/// Sizes of the players' files, 105 MB, and of the reader's, 175 MB, in whole pages (ABISS, 4).
const FILM: u64 = 105_000_000 / 4096 * 4096;
const OTHER: u64 = 175_000_000 / 4096 * 4096;

/// The volume: more than the files of 16 players. Choices.
const VOLUME: Area = Area {
    offset: 1 << 20,
    bytes: 4 << 30,
};

/// Sleep of the witness, and the smallest stall: above the usual lateness of a timer. Choices.
const NAP: Duration = Duration::from_millis(1);
const STALL: Duration = Duration::from_millis(2);

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
        let settings = PlayersBench {
            drive: "d".to_owned(),
            time_scale: 4.0,
            streams: 2,
            memory_kb: 564,
            policy: "fcfs".to_owned(),
            seconds: 30,
            only_ours: true,
        };
        let place = PlayersRig {
            settings: &settings,
            folder: Path::new("/"),
        };
        let player = |longest| json!({"count": 10, "late": 1, "p99_us": 8_000, "longest_us": longest, "stalls": 2});
        let output = [player(40_000), player(20_000)];
        let stalls = (3, Duration::from_millis(5));
        let turn = place.figures(StreamService::Ours, &output, 1e6, stalls);
        let expected = PlayersTurn {
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
        let nothing = place.figures(StreamService::Ours, &[json!({})], 0.0, stalls);
        assert!(nothing.is_err());
    }
}
