//! A disk that nobody has described, end to end: adopted, served with what was found, loaded and scanned.
//!
//! ```text
//!   truth: headtime serve, an emulated drive --NBD | FUSE, loop device--> path
//!   path --> headtime adopt --> headtime serve, what it wrote    --> fio, scan: free_mb_s
//!        \-----------------> headtime serve, the drive's profile --> fio, scan: free_mb_s_known
//! ```
//!
//! Each is a process of its own. The second and the third are told the path, and nothing else.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{env, fs};

use serde::Serialize;
use server::control::Scan;
use server::control::protocol::Ask;
use server::tasks::Steer;

use super::loop_device::{LOSETUP, LoopDevice};
use super::rig::{self, FIO, FioLoad, ServeProcess};
use crate::{Failure, named};

/// The settings of the benchmark.
#[derive(Clone, Debug)]
pub struct AdoptBench {
    /// The emulated drives: names from `headtime drives`, or profile files.
    pub drives: Vec<String>,
    /// The paths to each.
    pub vias: Vec<Via>,
    /// The time of each adoption.
    pub minutes: f64,
    /// The length of each load, alone and beside the scan, in seconds.
    pub seconds: u32,
    /// Outstanding requests of the load.
    pub depth: u32,
    /// The standard deviation of seek times.
    pub seek_noise_us: f64,
}

/// How a drive is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Via {
    /// Over NBD, on a unix socket.
    Nbd,
    /// Over a file of a FUSE mount, and a loop device on it.
    FuseLoop,
}

impl Via {
    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Via::Nbd => "nbd",
            Via::FuseLoop => "fuse-loop",
        }
    }
}

/// The figures of one drive over one path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AdoptBenchFigures {
    /// The drive.
    pub drive: String,
    /// The path.
    pub via: Via,
    /// Background reads with what was adopted, in MB/s; 0 if it is not usable.
    pub free_mb_s: f64,
    /// The same with the drive's own profile as belief.
    pub free_mb_s_known: f64,
    /// The first as a share of the second.
    pub share_percent: f64,
    /// The loss of the foreground's throughput beside the scan with what was adopted.
    pub foreground_loss_percent: f64,
    /// The impact budget.
    pub budget_percent: f64,
    /// The time of the adoption.
    pub seconds: f64,
    /// The reason for which the adoption failed, if it did.
    pub reason: Option<String>,
}

/// The default budget of a service.
const BUDGET_PERCENT: f64 = 2.0;

impl AdoptBench {
    /// Runs all drives over all paths, and reports each as soon as it ends.
    ///
    /// # Errors
    /// If a program is missing or does not run, or `report` fails. A failed adoption is a result.
    pub fn run<E: From<Failure>>(
        &self,
        mut report: impl FnMut(&AdoptBenchFigures) -> Result<(), E>,
    ) -> Result<(), E> {
        let programs = match self.vias.contains(&Via::FuseLoop) {
            true => &[FIO, LOSETUP][..],
            false => &[FIO][..],
        };
        rig::need(programs)?;
        for drive in &self.drives {
            let profile = named::drive(drive)?;
            has_room(profile.geometry.sectors().0 * u64::from(profile.block_bytes))?;
        }
        for drive in &self.drives {
            for &via in &self.vias {
                report(&self.one(drive, via)?)?;
            }
        }
        Ok(())
    }

    fn one(&self, drive: &str, via: Via) -> Result<AdoptBenchFigures, Failure> {
        let folder = tempfile::tempdir().map_err(Failure::failed)?;
        let folder = folder.path();
        let belief = folder.join("known.toml");
        fs::write(&belief, named::drive_text(drive)?).map_err(Failure::failed)?;
        let block_bytes = named::drive(drive)?.block_bytes;
        let truth = ServedTruth::start(self.seek_noise_us, (&belief, block_bytes), via, folder)?;
        let begun = Instant::now();
        let adopted = self.adopt(&truth.path, folder)?;
        let mut figures = AdoptBenchFigures {
            drive: drive.to_owned(),
            via,
            free_mb_s: 0.0,
            free_mb_s_known: 0.0,
            share_percent: 0.0,
            foreground_loss_percent: 0.0,
            budget_percent: BUDGET_PERCENT,
            seconds: begun.elapsed().as_secs_f64(),
            reason: adopted.as_ref().err().cloned(),
        };
        if let Ok(configuration) = &adopted {
            let turn = self.turn("adopted", configuration, folder)?;
            figures.free_mb_s = turn.scan_mb_per_s;
            figures.foreground_loss_percent = turn.loss_percent();
        }
        let known = match &adopted {
            Ok(written) => with_own_profile(written, &belief),
            Err(_) => configuration(&truth.path, via, &belief),
        };
        figures.free_mb_s_known = self.turn("known", &known, folder)?.scan_mb_per_s;
        figures.share_percent = share_percent(figures.free_mb_s, figures.free_mb_s_known);
        Ok(figures)
    }

    /// Adopts a path; the answer is the configuration that was written, or why there is none.
    fn adopt(&self, path: &str, folder: &Path) -> Result<Result<String, String>, Failure> {
        let mut command = Command::new(env::current_exe().map_err(Failure::failed)?);
        let minutes = self.minutes.to_string();
        command.args(["adopt", path, "--minutes", &minutes, "-o", ADOPTED]);
        command.current_dir(folder).stdin(Stdio::null());
        let ended = command.output().map_err(Failure::failed)?;
        if ended.status.success() {
            let written = fs::read_to_string(folder.join("adopted-serve.toml"));
            return written.map(Ok).map_err(Failure::failed);
        }
        let said = String::from_utf8_lossy(&ended.stderr);
        let line = said.lines().next_back().unwrap_or("no reason");
        Ok(Err(line.trim_start_matches("error: ").to_owned()))
    }

    /// Serves a configuration, and loads it alone and beside a scan.
    fn turn(&self, name: &str, configuration: &str, folder: &Path) -> Result<ScanTurn, Failure> {
        let stem = "adopted";
        // The sockets have the names that the adoption gave them.
        let service = ServeProcess::with_control(
            &format!("{name}-service"),
            configuration,
            &folder.join(format!("{stem}.control")),
            folder,
        )?;
        let socket = folder.join(format!("{stem}.nbd"));
        let load = self.load(&socket);
        let alone = only(rig::fio(&load, folder)?)?;
        let begun = service.ask(&Ask::Scan(Scan::whole("disk")));
        // Without a usable belief there are no background tasks, and nothing is free.
        let Ok(begun) = begun else {
            return Ok(ScanTurn {
                alone,
                beside: alone,
                scan_mb_per_s: 0.0,
            });
        };
        let task = begun["task"].as_u64().unwrap_or(0);
        let before = scanned(&service, task)?;
        let beside = only(rig::fio(&load, folder)?)?;
        let bytes = scanned(&service, task)? - before;
        service.ask(&Ask::Steer {
            task,
            action: Steer::Abort,
        })?;
        Ok(ScanTurn {
            alone,
            beside,
            scan_mb_per_s: bytes as f64 / 1e6 / f64::from(self.seconds),
        })
    }

    /// The foreground: random requests of 4 KiB, two reads to one write.
    fn load(&self, socket: &Path) -> Vec<String> {
        vec![
            "--ioengine=nbd".to_owned(),
            format!("--uri=nbd+unix:///disk?socket={}", socket.display()),
            "--time_based".to_owned(),
            format!("--runtime={}", self.seconds),
            "--name=foreground".to_owned(),
            "--rw=randrw".to_owned(),
            "--rwmixread=67".to_owned(),
            "--bs=4k".to_owned(),
            format!("--iodepth={}", self.depth),
        ]
    }
}

/// Checks that the temporary folder takes the image of a drive, before an hour of others is measured.
fn has_room(bytes: u64) -> Result<(), Failure> {
    let image = tempfile::tempfile().map_err(Failure::failed)?;
    image.set_len(bytes).map_err(|error| {
        let folder = env::temp_dir();
        Failure::failed(format!(
            "{}: an image of {bytes} bytes: {error}: expected a folder in TMPDIR whose file system has such files: \
             XFS or tmpfs (ext4 ends at 16 TiB)",
            folder.display()
        ))
    })
}

/// The foreground alone and beside a scan, and the scan's rate.
struct ScanTurn {
    alone: FioLoad,
    beside: FioLoad,
    scan_mb_per_s: f64,
}

impl ScanTurn {
    fn loss_percent(&self) -> f64 {
        (1.0 - self.beside.iops / self.alone.iops) * 100.0
    }
}

/// The share of a rate in the known one, in percent; 0 without a known one.
fn share_percent(found: f64, known: f64) -> f64 {
    match known > 0.0 {
        true => found / known * 100.0,
        false => 0.0,
    }
}

/// An emulated drive as a process, and the path to it.
pub(super) struct ServedTruth {
    /// Declared before the service, so that the device is detached first.
    _device: Option<LoopDevice>,
    _service: ServeProcess,
    /// The address with which it is opened.
    pub(super) path: String,
}

impl ServedTruth {
    pub(super) fn start(
        seek_noise_us: f64,
        (drive, block_bytes): (&Path, u32),
        via: Via,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let mount = folder.join("mount");
        fs::create_dir(&mount).map_err(Failure::failed)?;
        let socket = folder.join("truth.nbd");
        let control = folder.join("truth.control");
        let config = truth(seek_noise_us, drive, via, folder);
        let service = ServeProcess::with_control("truth", &config, &control, folder)?;
        let (device, path) = match via {
            Via::Nbd => (
                None,
                format!("nbd+unix:///truth?socket={}", socket.display()),
            ),
            Via::FuseLoop => {
                // A disk of 4096-byte blocks has them here, too: `losetup` would have made 512 of them.
                let device = LoopDevice::attach_with_blocks(&mount.join("truth"), block_bytes)?;
                let path = device.path.display().to_string();
                (Some(device), path)
            }
        };
        Ok(ServedTruth {
            _device: device,
            _service: service,
            path,
        })
    }
}

/// The configuration of an emulated drive with look-ahead and seek noise.
fn truth(seek_noise_us: f64, drive: &Path, via: Via, folder: &Path) -> String {
    let quoted = |path: PathBuf| format!("{:?}", path.display().to_string());
    let mount = match via {
        Via::Nbd => String::new(),
        Via::FuseLoop => format!("[fuse]\nmount = {}\n", quoted(folder.join("mount"))),
    };
    format!(
        r#"
[[drive]]
name = "truth"
policy = "drive"
volume = [{{ name = "truth" }}]
export = [{{ name = "truth", volume = "truth" }}]

[drive.back_end]
kind = "emulated"
drive = {drive}
image = {image}
seek_noise_us = {noise}
look_ahead = true
write_cache = false

[[nbd]]
unix = {nbd}

{mount}
[control]
socket = {control}
"#,
        drive = quoted(drive.to_owned()),
        image = quoted(folder.join("truth.img")),
        noise = seek_noise_us,
        nbd = quoted(folder.join("truth.nbd")),
        control = quoted(folder.join("truth.control")),
    )
}

/// What an adoption has written, with the drive's own profile: all else that it found is the setup of both.
fn with_own_profile(written: &str, belief: &Path) -> String {
    let found = format!("belief = {ADOPTED:?}");
    let own = format!("belief = {:?}", belief.display().to_string());
    written.replacen(&found, &own, 1)
}

/// The profile that an adoption writes.
const ADOPTED: &str = "adopted.toml";

/// The configuration that `headtime adopt` writes, with the drive's own profile.
fn configuration(path: &str, via: Via, belief: &Path) -> String {
    let back_end = match via {
        Via::Nbd => format!("kind = \"nbd\"\nuri = {path:?}"),
        Via::FuseLoop => format!("kind = \"device\"\npath = {path:?}\nconfirm = {path:?}"),
    };
    format!(
        r#"
[[drive]]
name = "disk"
belief = {:?}
volume = [{{ name = "disk" }}]
export = [{{ name = "disk", volume = "disk" }}]

[drive.back_end]
{back_end}

[[nbd]]
unix = "adopted.nbd"

[control]
socket = "adopted.control"
"#,
        belief.display().to_string(),
    )
}

/// The bytes that a scan has read.
fn scanned(service: &ServeProcess, task: u64) -> Result<u64, Failure> {
    let drives = service.status()?.drives;
    let mut tasks = drives.into_iter().flat_map(|drive| drive.tasks);
    let task = tasks.find(|other| other.id == task);
    task.map(|task| task.done_bytes)
        .ok_or_else(|| Failure::failed("the scan is gone"))
}

fn only(loads: Vec<(String, FioLoad)>) -> Result<FioLoad, Failure> {
    match loads[..] {
        [(_, load)] => Ok(load),
        _ => Err(Failure::failed("fio did not tell of its one job")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_whose_image_does_not_fit_is_refused_before_others_are_measured() {
        assert_eq!(has_room(1 << 20), Ok(()));
        let refused = has_room(u64::MAX).expect_err("no file is so long");
        assert!(refused.to_string().contains("TMPDIR"), "{refused}");
    }
    use server::config::{Config, Places};

    #[test]
    fn configurations_are_those_of_a_service() {
        let places = Places::of_this_user(Path::new("/tmp/x"));
        let bench = AdoptBench {
            drives: Vec::new(),
            vias: vec![Via::Nbd, Via::FuseLoop],
            minutes: 10.0,
            seconds: 30,
            depth: 16,
            seek_noise_us: 60.0,
        };
        for via in bench.vias.clone() {
            let texts = [
                truth(60.5, Path::new("/x/known.toml"), via, Path::new("/x")),
                configuration("/dev/loop0", via, Path::new("/x/known.toml")),
            ];
            for text in texts {
                // An address that is a path is no URI.
                let text = text.replace("uri = \"/dev/loop0\"", "uri = \"nbd://host/\"");
                let parsed = Config::parse("bench", &text, &places);
                assert!(parsed.is_ok(), "{:?}: {text}", parsed.err());
            }
        }
    }

    #[test]
    fn the_own_profile_is_served_as_the_adopted_one_is() {
        let written = "[[drive]]\nbelief = \"adopted.toml\"\n\ncpu_latency_us = 0\n";
        assert_eq!(
            with_own_profile(written, Path::new("/x/known.toml")),
            "[[drive]]\nbelief = \"/x/known.toml\"\n\ncpu_latency_us = 0\n"
        );
    }

    #[test]
    fn shares_and_keys_are_as_promised() {
        assert_eq!(share_percent(1.5, 3.0), 50.0);
        assert_eq!(share_percent(1.5, 0.0), 0.0);
        let figures = AdoptBenchFigures {
            drive: "a".to_owned(),
            via: Via::FuseLoop,
            free_mb_s: 0.0,
            free_mb_s_known: 2.0,
            share_percent: 0.0,
            foreground_loss_percent: 0.0,
            budget_percent: BUDGET_PERCENT,
            seconds: 600.0,
            reason: Some("why".to_owned()),
        };
        let json = serde_json::to_value(&figures).expect("JSON");
        let mut keys: Vec<&str> = json
            .as_object()
            .expect("an object")
            .keys()
            .map(String::as_str)
            .collect();
        keys.sort_unstable();
        let expected = [
            "budget_percent",
            "drive",
            "foreground_loss_percent",
            "free_mb_s",
            "free_mb_s_known",
            "reason",
            "seconds",
            "share_percent",
            "via",
        ];
        assert_eq!(keys, expected);
        assert_eq!(
            (&json["via"], &json["reason"]),
            (&"fuse-loop".into(), &"why".into())
        );
        let adopted = AdoptBenchFigures {
            reason: None,
            ..figures
        };
        let json = serde_json::to_value(&adopted).expect("JSON");
        assert!(json["reason"].is_null(), "{json}");
    }
}
