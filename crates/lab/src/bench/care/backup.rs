//! Backups: images of a volume under a verify load, each compared with the moments that the load allows, with kills
//! of the service in the middle of some.
//!
//! ```text
//!   fill -> [load | headtime backup: kill, restart, again | compare] x images
//! ```

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::{env, fs};

use serde::{Deserialize, Serialize};
use server::control::protocol::{Ask, BitmapChange};
use tempfile::TempDir;

use super::scrub::temporary;
use super::{CareBench, CareFigures, CareLength};
use crate::bench::rig::ServeProcess;
use crate::dice::SplitMix;
use crate::{Failure, Label, Progress, named};

mod load;
mod moments;

use load::DiaryLoad;
use moments::{Diary, UNIT};

/// What only this case measures.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BackupFigures {
    /// Bytes of the volume.
    pub volume_bytes: u64,
    /// Images that were completed, and of those incremental ones.
    pub images: u64,
    /// See `images`.
    pub incremental: u64,
    /// SIGKILLs of the service in the middle of a backup.
    pub kills: u64,
    /// Bytes that incremental backups without a kill before them read, in per cent of those that were written
    /// since the image before.
    pub read_of_changed_percent: f64,
    /// The highest of one image.
    pub highest_read_of_changed_percent: f64,
}

/// The sizes of the runs.
struct Sizes {
    units: u64,
    images: u64,
    /// Of so many images one is interrupted by a kill.
    kill_every: u64,
    /// Requests of the load between images.
    requests: u64,
}

/// The 200 images of long runs are the issue's. The rest are choices.
impl Sizes {
    fn of(length: CareLength) -> Self {
        match length {
            CareLength::Short => Sizes {
                units: 256,
                images: 6,
                kill_every: 2,
                requests: 100,
            },
            CareLength::Long => Sizes {
                units: 1024,
                images: 200,
                kill_every: 2,
                requests: 300,
            },
        }
    }
}

/// The drive: the smallest one, because nothing of it is timed.
const DRIVE: &str = "dec-rz26";

/// How much faster than the drive the emulation runs. A choice.
const TIME_SCALE: f64 = 0.01;

/// Requests of the load from one look at the backup to the next. A choice.
const LOOK_EVERY: u64 = 8;

/// The volume, and its dirty bitmap.
const VOLUME: &str = "disk";
const BITMAP: &str = "daily";

/// Measures the case.
pub(super) fn measure(bench: &CareBench, progress: &dyn Progress) -> Result<CareFigures, Failure> {
    let sizes = Sizes::of(bench.length);
    let mut trial = Trial::new(bench, &sizes)?;
    progress.begin("backup: filling the volume");
    let mut service = trial.begin()?;
    service.ask(&Ask::ChangeBitmap {
        volume: VOLUME.to_owned(),
        name: BITMAP.to_owned(),
        change: BitmapChange::Add,
    })?;
    trial.with_load(|load| {
        let units = load.diary().units();
        (0..units).try_for_each(|unit| load.write(unit))?;
        load.settle()
    })?;
    for image in 0..sizes.images {
        progress.begin(&format!("backup: image {} of {}", image + 1, sizes.images));
        trial.with_load(|load| load.exercise(sizes.requests).and_then(|()| load.settle()))?;
        if image % sizes.kill_every == sizes.kill_every - 1 {
            service = trial.interrupted(service)?;
        }
        trial.image()?;
    }
    drop(service);
    let totals = trial.totals;
    let percent = |(read, changed): (u64, u64)| read as f64 / changed.max(1) as f64 * 100.0;
    Ok(CareFigures {
        injected: sizes.images,
        found: totals.equal,
        repaired: totals.completed,
        wrong_bytes: totals.wrong_bytes,
        budget_percent: f64::from(bench.impact_ppm) / 1e4,
        backup: Some(BackupFigures {
            volume_bytes: sizes.units * UNIT,
            images: sizes.images,
            incremental: totals.incremental,
            kills: totals.kills,
            read_of_changed_percent: percent(totals.read_and_changed),
            highest_read_of_changed_percent: totals.highest_percent,
        }),
        ..CareFigures::of("backup", Label::InFirmware)
    })
}

/// The counts of all images.
#[derive(Debug, Default)]
struct Totals {
    /// Images that are the volume at a moment.
    equal: u64,
    /// Those of them that came after an interrupted one.
    completed: u64,
    incremental: u64,
    kills: u64,
    wrong_bytes: u64,
    /// Bytes that incremental backups read, and that were written since the image before.
    read_and_changed: (u64, u64),
    highest_percent: f64,
}

/// A volume under a verify load.
struct Trial {
    policy: String,
    diary: Diary,
    dice: SplitMix,
    folder: TempDir,
    /// A moment after that of the last image, and whether a kill came since.
    last: Option<u64>,
    was_killed: Killed,
    totals: Totals,
}

/// Whether the service was killed since the last image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Killed {
    Yes,
    No,
}

/// What a backup says of itself.
#[derive(Debug, Deserialize)]
struct Report {
    kind: String,
    read_bytes: u64,
}

impl Trial {
    fn new(bench: &CareBench, sizes: &Sizes) -> Result<Self, Failure> {
        let folder = temporary()?;
        let truth = named::drive(DRIVE)?;
        let bytes = truth.geometry.sectors().0 * u64::from(truth.block_bytes);
        let image = fs::File::create(folder.path().join("disk.img"));
        let sized = image.and_then(|image| image.set_len(bytes));
        sized.map_err(Failure::failed)?;
        fs::create_dir(folder.path().join("bitmaps")).map_err(Failure::failed)?;
        Ok(Trial {
            policy: bench.policy.clone(),
            diary: Diary::new(bench.seed, sizes.units),
            dice: SplitMix::new(bench.seed),
            folder,
            last: None,
            was_killed: Killed::No,
            totals: Totals::default(),
        })
    }

    /// Starts the service. Units that a kill may have left in part are written again.
    fn begin(&mut self) -> Result<ServeProcess, Failure> {
        let (policy, size) = (&self.policy, self.diary.units() * UNIT);
        let config = format!(
            r#"
[[drive]]
name = "disk"
policy = "{policy}"
belief = "emulated"
[drive.back_end]
kind = "emulated"
drive = "{DRIVE}"
image = "disk.img"
time_scale = {TIME_SCALE}
[[drive.volume]]
name = "{VOLUME}"
size = {size}
bitmaps = "bitmaps"
[[drive.export]]
name = "{VOLUME}"
volume = "{VOLUME}"
class = "foreground"
[[nbd]]
unix = "backup.nbd"
[control]
socket = "backup.control"
"#
        );
        let service = ServeProcess::start("backup", &config, self.folder.path())?;
        let in_doubt = self.diary.in_doubt();
        self.with_load(|load| {
            in_doubt.iter().try_for_each(|&unit| load.write(unit))?;
            load.flush()?;
            load.settle()
        })?;
        Ok(service)
    }

    /// Begins a backup under the load, kills the service in the middle of it, and starts it again.
    fn interrupted(&mut self, mut service: ServeProcess) -> Result<ServeProcess, Failure> {
        let mut backup = self.spawn()?;
        let requests = 1 + self.dice.below(LOOK_EVERY * 8);
        self.with_load(|load| {
            load.exercise(requests)?;
            service.server.kill()
        })?;
        // Without its service it fails.
        backup.wait().map_err(Failure::failed)?;
        self.totals.kills += 1;
        self.was_killed = Killed::Yes;
        self.begin()
    }

    /// Takes an image under the load, and judges it.
    fn image(&mut self) -> Result<(), Failure> {
        let begun = self.diary.now();
        let mut backup = self.spawn()?;
        self.with_load(|load| {
            while backup.try_wait()?.is_none() {
                load.exercise(LOOK_EVERY)?;
            }
            load.settle()
        })?;
        let output = backup.wait_with_output().map_err(Failure::failed)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Failure::failed(format!("a backup failed: {said}")));
        }
        let report: Report = serde_json::from_slice(&output.stdout).map_err(Failure::failed)?;
        let image = fs::read(self.target()).map_err(Failure::failed)?;
        let judged = self.diary.judge(&image, &(begun..self.diary.now() + 1));
        self.totals.wrong_bytes += judged.wrong_bytes;
        let is_equal = judged.wrong_bytes == 0 && !judged.moments.is_empty();
        self.totals.equal += u64::from(is_equal);
        let was_killed = std::mem::replace(&mut self.was_killed, Killed::No);
        self.totals.completed += u64::from(is_equal && was_killed == Killed::Yes);
        self.totals.incremental += u64::from(report.kind == "incremental");
        if let (Some(last), Killed::No, "incremental") = (self.last, was_killed, &*report.kind) {
            // What was certainly written between both moments.
            let between = last..judged.moments.start + 1;
            let changed = self.diary.changed(&between) * UNIT;
            self.totals.read_and_changed.0 += report.read_bytes;
            self.totals.read_and_changed.1 += changed;
            let percent = report.read_bytes as f64 / changed.max(1) as f64 * 100.0;
            self.totals.highest_percent = self.totals.highest_percent.max(percent);
        }
        self.last = Some(judged.moments.end);
        Ok(())
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("image.raw")
    }

    /// Runs `headtime backup`: a full one first, and incremental ones once there is an image.
    fn spawn(&self) -> Result<Child, Failure> {
        let mut command = Command::new(env::current_exe().map_err(Failure::failed)?);
        command
            .args(["backup", VOLUME, "--json", "--to"])
            .arg(self.target());
        match self.last {
            None => command.args(["--bitmap", BITMAP]),
            Some(_) => command.arg("--incremental"),
        };
        command
            .arg("--socket")
            .arg(self.folder.path().join("backup.control"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Failure::failed)
    }

    /// Connects a load to the service, and adds its counts.
    fn with_load(
        &mut self,
        run: impl FnOnce(&mut DiaryLoad<'_>) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        let socket = self.folder.path().join("backup.nbd");
        let load = DiaryLoad::connect(&socket, &mut self.diary, &mut self.dice);
        let mut load = load.map_err(Failure::failed)?;
        let ran = run(&mut load);
        self.totals.wrong_bytes += load.wrong_bytes;
        ran.map_err(|error| Failure::failed(format!("the verify load: {error}")))
    }
}
