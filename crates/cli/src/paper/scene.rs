//! The drives of the papers, as their authors had them: the truth, what is believed of it, and a
//! load on it.
//!
//! In-firmware, the belief is the truth. External, the belief is the published profile, and the
//! truth has what was fitted to measurements and seeks that are not always as long: the scheduler
//! knows of neither.

use std::fmt;
use std::sync::Arc;

use block::Duration;
use drive::firmware::WriteBack;
use drive::imperfection::Imperfections;
use drive::{Profile, VirtualDrive, catalog};
use engine::{Engine, Limits};
use scheduler::PolicyEntry;
use scheduler::policy::Depth;
use simulator::ledger::{Ledger, Report};
use simulator::run::{self, Options};
use simulator::workload::{Synthetic, Workload};

use super::finding::Mode;
use crate::output::Failure;

/// A drive of the papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Quantum Atlas 10K.
    Atlas10k(HeadSwitch),
    /// Seagate Cheetah 18LP, the 9 GB one.
    Cheetah18lp,
}

/// Whose time for a head switch the Atlas 10K has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadSwitch {
    /// The paper's Table 1: 0.8 ms.
    Paper,
    /// What was extracted from a drive: 0.176 ms.
    Extracted,
}

/// A drive and what is believed of it.
#[derive(Clone, Debug)]
pub struct Scene {
    mode: Mode,
    truth: Arc<Profile>,
    belief: Arc<Profile>,
    seek_noise: Duration,
}

/// A load, and how it is served.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The load.
    pub load: &'a Workload,
    /// By its name.
    pub policy: &'a str,
    /// How many of its requests.
    pub requests: u64,
}

impl Scene {
    /// Of a scheduler that knows the drive as it is.
    ///
    /// # Errors
    /// If the drive is not shipped.
    pub fn in_firmware(model: Model) -> Result<Scene, Failure> {
        let truth = Arc::new(model.profile()?);
        Ok(Scene {
            mode: Mode::InFirmware,
            belief: Arc::clone(&truth),
            truth,
            seek_noise: Duration::ZERO,
        })
    }

    /// Of a scheduler that knows what was published of the drive, whose seeks have a standard
    /// deviation of `seek_noise`.
    ///
    /// # Errors
    /// If the drive is not shipped.
    pub fn external(model: Model, seek_noise: Duration) -> Result<Scene, Failure> {
        let truth = model.profile()?;
        Ok(Scene {
            mode: Mode::External,
            belief: Arc::new(model.as_in_paper(truth.published())),
            truth: Arc::new(truth),
            seek_noise,
        })
    }

    /// What is believed of the drive.
    pub fn belief(&self) -> &Arc<Profile> {
        &self.belief
    }

    /// In-firmware or external.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The drive.
    pub fn drive(&self) -> VirtualDrive {
        let imperfections = Imperfections {
            seek_noise: self.seek_noise,
            ..Imperfections::default()
        };
        VirtualDrive::imperfect(Arc::clone(&self.truth), imperfections, SEED)
    }

    /// The load on the drive.
    ///
    /// # Errors
    /// If it does not fit on it.
    pub fn begin(&self, load: &Workload) -> Result<Synthetic, Failure> {
        let capacity = self.truth.geometry.sectors().0;
        Synthetic::new(load, self.truth.block_bytes, capacity).map_err(Failure::failed)
    }

    /// Serves a load.
    ///
    /// # Errors
    /// If there is no such policy, or the load does not fit on the drive.
    pub fn run(&self, asked: &Asked<'_>) -> Result<Report, Failure> {
        let policy = scheduler::policy::find(asked.policy).map_err(Failure::failed)?;
        let mut load = self.begin(asked.load)?;
        let mut engine = self.engine(policy);
        let mut drive = self.drive();
        let mut ledger = Ledger::new(self.truth.block_bytes, self.truth.actuators);
        let options = Options {
            requests: Some(asked.requests),
            ..Options::default()
        };
        let ran = run::run(
            &mut engine,
            &mut drive,
            &mut load,
            &options,
            &mut ledger,
            &mut (),
        )
        .map_err(Failure::failed)?;
        Ok(ledger.report(&ran))
    }

    /// A scheduler outside of the drive has two commands at it, as in the paper; the drive's own
    /// has all.
    pub fn engine(&self, policy: &PolicyEntry) -> Engine {
        let limits = Limits {
            commands_at_drive: match policy.depth {
                Depth::JustInTime => OUTSTANDING,
                Depth::DriveQueue => self.truth.queue.depth as usize,
            },
            ..Limits::default()
        };
        Engine::new(Arc::clone(&self.belief), (policy.new)(), limits)
    }
}

impl Model {
    /// The drive of the paper's system: its shipped profile, with what the paper says otherwise.
    fn profile(self) -> Result<Profile, Failure> {
        let entry = catalog::find(self.name()).map_err(Failure::failed)?;
        Ok(self.as_in_paper(entry.profile().map_err(Failure::failed)?))
    }

    /// Its name among the shipped drives.
    pub fn name(self) -> &'static str {
        match self {
            Model::Atlas10k(_) => "quantum-atlas-10k",
            Model::Cheetah18lp => "seagate-cheetah-18lp",
        }
    }

    fn as_in_paper(self, mut profile: Profile) -> Profile {
        profile.bus.read_block = BUS_BLOCK;
        profile.bus.write_block = BUS_BLOCK;
        profile.buffer.write_back = WriteBack::None;
        if self == Model::Atlas10k(HeadSwitch::Paper) {
            profile.head_switch = HEAD_SWITCH;
        }
        profile
    }
}

impl fmt::Display for Scene {
    /// What a reader of a figure has to know of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, head switch {} ms, bus 80 MB/s, write cache off, ",
            self.truth.name,
            self.truth.head_switch.as_millis_f64(),
        )?;
        match self.mode {
            Mode::InFirmware => write!(f, "belief = truth"),
            Mode::External => write!(
                f,
                "belief as published, seek noise sigma {} ms",
                self.seek_noise.as_millis_f64()
            ),
        }
    }
}

/// A load whose requests are always there, so many of them: two reads to one write, as in the
/// paper's OLTP.
///
/// # Errors
/// If `size` or `placement` are not what a load's file has there.
pub fn never_idle(depth: u32, size: &str, placement: &str) -> Result<Workload, Failure> {
    load(depth, 0.6667, size, placement)
}

/// The same with reads alone.
///
/// # Errors
/// As [`never_idle`].
pub fn never_idle_reads(depth: u32, size: &str, placement: &str) -> Result<Workload, Failure> {
    load(depth, 1.0, size, placement)
}

fn load(depth: u32, reads: f64, size: &str, placement: &str) -> Result<Workload, Failure> {
    let text = format!(
        "name = \"paper\"\nseed = {SEED}\nread_fraction = {reads}\n\
         [arrivals]\nmodel = \"closed\"\ntasks = {depth}\n\
         [size]\n{size}\n[placement]\n{placement}\nalign_kib = 4\n"
    );
    Workload::parse("paper", &text).map_err(Failure::failed)
}

/// One block over a bus of 80 MB/s, Ultra2 SCSI: both drives had it. The times in the Atlas 10K's
/// profile are those of the system on which it was validated, 5 MB/s. That the paper's hosts drove
/// their buses at full speed is a choice.
const BUS_BLOCK: Duration = Duration::from_nanos(6_400);

/// Lumb et al., FAST 2002, Table 1, of the Atlas 10K.
const HEAD_SWITCH: Duration = Duration::from_micros(800);

/// Commands at the drive: Lumb et al., FAST 2002, 4.1.
const OUTSTANDING: usize = 2;

/// The seed of loads and noise. A choice.
const SEED: u64 = 1;
