//! The drives of the papers, as their authors had them: the truth, what is believed of it, and a
//! load on it.
//!
//! In-firmware, the belief is the truth. External, the belief is what the profiler has found from
//! the timings of the truth, whose seeks are not always as long.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use block::{Duration, Switch};
use drive::firmware::{LookAhead, QueueOrder, WriteBack};
use drive::imperfection::Chance;
use drive::{Imperfections, Profile, VirtualDrive, catalog};
use engine::Limits;
use simulator::caching::Outside;
use simulator::ledger::Report;
use simulator::run::{Options, Watch};
use simulator::scenario::Scenario;
use simulator::workload::{BuiltIn, Overrides, Synthetic, Workload};

use crate::profiled;
use crate::{Failure, Label};

/// A drive as far as the papers' differ: its name, its head switch, its noise.
type ProfiledKey = (String, Duration, Noise);

/// The beliefs that were found.
static PROFILED: Mutex<Vec<(ProfiledKey, Arc<Profile>)>> = Mutex::new(Vec::new());

/// A drive of the papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Quantum Atlas 10K.
    Atlas10k(HeadSwitch),
    /// Seagate Cheetah 18LP, the 9 GB one.
    Cheetah18lp,
    /// Seagate Cheetah 9LP, on which PFC was judged, as it is shipped.
    Cheetah9lp,
    /// Seagate ST318437LW, with its write cache.
    St318437lw,
    /// A drive of 20 TB, which is in no paper.
    Modern20tb,
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
pub struct PaperScene {
    mode: Label,
    truth: Arc<Profile>,
    belief: Arc<Profile>,
    noise: Noise,
}

/// How seeks differ from what they should take. Nothing else of the truth is noisy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Noise {
    /// The standard deviation of a seek's duration.
    pub sigma: Duration,
    /// Seeks that settle badly, and how much longer each of them takes.
    pub late: Chance,
}

/// A load, and how it is served.
#[derive(Clone, Copy, Debug)]
pub struct PolicyRunSpec<'a> {
    /// The load.
    pub load: &'a Workload,
    /// By its name.
    pub policy: &'a str,
    /// How many of its requests.
    pub requests: u64,
}

impl PaperScene {
    /// Of a scheduler that knows the drive as it is.
    ///
    /// # Errors
    /// If the drive is not shipped.
    pub fn in_firmware(model: Model) -> Result<PaperScene, Failure> {
        let truth = Arc::new(model.profile()?);
        Ok(PaperScene {
            mode: Label::InFirmware,
            belief: Arc::clone(&truth),
            truth,
            noise: Noise::default(),
        })
    }

    /// Of a scheduler that knows what its profiler has found from the drive's timings.
    ///
    /// # Errors
    /// If the drive is not shipped, or cannot be profiled.
    pub fn external(model: Model, noise: Noise) -> Result<PaperScene, Failure> {
        let known = PaperScene::noisy(model, noise)?;
        let belief = known.profiled()?;
        Ok(PaperScene {
            mode: Label::External,
            belief,
            ..known
        })
    }

    /// What is found of the drive; of the same one it is looked for only once.
    fn profiled(&self) -> Result<Arc<Profile>, Failure> {
        let key = (self.truth.name.clone(), self.truth.head_switch, self.noise);
        let mut found = PROFILED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, belief)) = found.iter().find(|(other, _)| *other == key) {
            return Ok(Arc::clone(belief));
        }
        let belief = profiled::belief(&self.truth, &self.imperfections(), PROFILING_SEED)?;
        let belief = Arc::new(belief);
        found.push((key, Arc::clone(&belief)));
        Ok(belief)
    }

    /// Of a scheduler that knows the drive as it is, but for the noise of its seeks.
    ///
    /// # Errors
    /// If the drive is not shipped.
    pub fn noisy(model: Model, noise: Noise) -> Result<PaperScene, Failure> {
        let known = PaperScene::in_firmware(model)?;
        Ok(PaperScene { noise, ..known })
    }

    /// The same after the host has switched look-ahead off.
    pub fn without_look_ahead(self) -> PaperScene {
        let off = |profile: &Profile| Arc::new(profile.switched(Switch::Off, Switch::On));
        let truth = off(&self.truth);
        let belief = match Arc::ptr_eq(&self.belief, &self.truth) {
            true => Arc::clone(&truth),
            false => off(&self.belief),
        };
        PaperScene {
            truth,
            belief,
            ..self
        }
    }

    /// What is believed of the drive.
    pub fn belief(&self) -> &Arc<Profile> {
        &self.belief
    }

    /// What an engine has that stands outside the drive: its belief, and what it cannot know.
    pub fn outside(&self) -> Arc<Outside> {
        Arc::new(Outside {
            belief: Arc::clone(&self.belief),
            imperfections: self.imperfections(),
            seed: SEED,
        })
    }

    /// The drive.
    pub fn drive(&self) -> VirtualDrive {
        VirtualDrive::imperfect(Arc::clone(&self.truth), self.imperfections(), SEED)
    }

    /// The load on the drive.
    ///
    /// # Errors
    /// If it does not fit on it.
    pub fn begin(&self, load: &Workload) -> Result<Synthetic, Failure> {
        let capacity = self.truth.geometry.sectors().0;
        Synthetic::new(load, self.truth.block_bytes, capacity).map_err(Failure::failed)
    }

    /// Serves a load. A policy has two commands at the drive, as in the paper; the drive's own
    /// queue has all.
    ///
    /// # Errors
    /// If there is no such policy, or the load does not fit on the drive.
    pub fn run(&self, asked: &PolicyRunSpec<'_>, watch: &mut dyn Watch) -> Result<Report, Failure> {
        let scenario = self.scenario(asked.policy)?;
        let options = Options {
            requests: Some(asked.requests),
            ..Options::default()
        };
        let mut load = self.begin(asked.load)?;
        let played = scenario.play(&mut load, &options, watch);
        let played = played.map_err(Failure::failed)?;
        Ok(played.ledger.report(&played.ran))
    }

    /// The scene under a policy, without background.
    ///
    /// # Errors
    /// If there is no such policy.
    pub fn scenario(&self, policy: &str) -> Result<Scenario, Failure> {
        let policy = scheduler::policy::find(policy).map_err(Failure::failed)?;
        Ok(Scenario {
            belief: Arc::clone(&self.belief),
            truth: Arc::clone(&self.truth),
            imperfections: self.imperfections(),
            seed: SEED,
            limits: Limits::suited_to(policy, &self.belief),
            policy,
            preemption: None,
            background: None,
        })
    }

    fn imperfections(&self) -> Imperfections {
        Imperfections {
            seek_noise: self.noise.sigma,
            settle_retry: self.noise.late,
            ..Imperfections::default()
        }
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
            Model::Cheetah9lp => "seagate-cheetah-9lp",
            Model::St318437lw => "seagate-st318437lw",
            Model::Modern20tb => "modern-20tb",
        }
    }

    /// The drives of PFC, of Virtual IO and of today have a bus and a write cache in their profiles.
    fn as_in_paper(self, mut profile: Profile) -> Profile {
        if matches!(
            self,
            Model::Cheetah9lp | Model::St318437lw | Model::Modern20tb
        ) {
            return profile;
        }
        profile.bus.read_block = BUS_BLOCK;
        profile.bus.write_block = BUS_BLOCK;
        profile.buffer.write_back = WriteBack::None;
        profile.queue.order = QueueOrder::Sptf;
        if self == Model::Atlas10k(HeadSwitch::Paper) {
            profile.head_switch = HEAD_SWITCH;
        }
        profile
    }
}

impl fmt::Display for PaperScene {
    /// What a reader of a figure has to know of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ahead = match self.truth.buffer.look_ahead {
            LookAhead::None => "off",
            _ => "on",
        };
        let cache = match self.truth.buffer.write_back {
            WriteBack::None => "off",
            _ => "on",
        };
        let bus = self.truth.bus.read_block.as_nanos() as f64;
        write!(
            f,
            "{}, head switch {}, bus {:.0} MB/s, write cache {cache}, look-ahead {ahead}, ",
            self.truth.name,
            self.truth.head_switch,
            f64::from(self.truth.block_bytes) * 1e3 / bus,
        )?;
        match self.mode {
            Label::InFirmware => write!(f, "belief = truth"),
            Label::External => write!(f, "belief profiled, seek noise {}", self.noise),
            label => write!(f, "{}", label.name()),
        }
    }
}

impl Noise {
    /// Of a standard deviation, and nothing besides.
    pub const fn sigma(sigma: Duration) -> Noise {
        Noise {
            sigma,
            late: Chance {
                per_million: 0,
                costs: Duration::ZERO,
            },
        }
    }
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sigma {}", self.sigma)?;
        let Chance { per_million, costs } = self.late;
        match per_million {
            0 => Ok(()),
            _ => {
                let percent = f64::from(per_million) / 1e4;
                write!(f, " and {percent} % of the seeks {costs} late")
            }
        }
    }
}

/// A built-in load with some of its values replaced.
///
/// # Errors
/// If there is none of this name, or the values make no sense.
pub fn load(name: &str, flags: &Overrides) -> Result<Workload, Failure> {
    let built_in = BuiltIn::find(name);
    let built_in = built_in.ok_or_else(|| Failure::failed(format!("no load is called {name}")))?;
    let load = built_in.workload().and_then(|load| load.with(flags));
    load.map_err(Failure::failed)
}

/// One block over a bus of 80 MB/s, Ultra2 SCSI: both drives had it. The times in the Atlas 10K's
/// profile are those of the system on which it was validated, 5 MB/s. That the paper's hosts drove
/// their buses at full speed is a choice.
const BUS_BLOCK: Duration = Duration::from_nanos(6_400);

/// Lumb et al., FAST 2002, Table 1, of the Atlas 10K.
const HEAD_SWITCH: Duration = Duration::from_micros(800);

/// The seed of the noise. A choice.
const SEED: u64 = 1;

/// The seed of the noise while the drive is profiled. A choice: another one.
const PROFILING_SEED: u64 = 2;
