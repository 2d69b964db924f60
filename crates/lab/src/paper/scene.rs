//! The drives of the papers, as their authors had them: truth, belief, and loads.
//!
//! In-firmware, the belief is the truth. External, the belief is the profiler's finding from the
//! timings of the truth, whose seeks are noisy.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use block::{Duration, Switch};
use drive::firmware::{LookAhead, QueueOrder, WriteBack};
use drive::imperfection::{AheadTrigger, Chance, HeldLookAhead};
use drive::{Imperfections, Profile, VirtualDrive, catalog};
use engine::Limits;
use simulator::caching::ExternalBelief;
use simulator::ledger::RunReport;
use simulator::run::{Options, Watch};
use simulator::scenario::Scenario;
use simulator::workload::{BuiltInWorkload, Overrides, Synthetic, Workload};

use crate::profiled;
use crate::{Failure, Label};

mod arm;

/// A drive with its noise.
type ProfiledKey = (Model, Noise);

/// The beliefs that were profiled so far.
static PROFILED: Mutex<Vec<(ProfiledKey, Arc<Profile>)>> = Mutex::new(Vec::new());

/// A drive of the papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Quantum Atlas 10K.
    Atlas10k(AtlasTruth),
    /// Seagate Cheetah 18LP, the 9 GB one.
    Cheetah18lp,
    /// Seagate Cheetah 9LP as shipped, the drive of PFC.
    Cheetah9lp,
    /// Seagate ST318437LW, with its write cache.
    St318437lw,
    /// The same with other writes.
    St318437lwWriting(WriteTruth),
    /// Western Digital WD400BB, an IDE drive of the time of Virtual IO.
    CaviarWd400bb,
    /// A drive of 20 TB, which no paper uses. Its skew leaves 21 us beyond a switch of tracks.
    Modern20tb,
    /// The same with a switch of tracks that is so much shorter that the skew leaves 120 us.
    Modern20tbWideMargin,
}

/// The origins of the Atlas 10K's seek and head switch times. The paper's Table 1 and the drive from
/// which the shipped profile was extracted disagree about both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtlasTruth {
    /// Both as extracted: head switch 0.176 ms, mean seek 5.6 ms.
    Extracted,
    /// Both as in Table 1: head switch 0.8 ms, mean seek 5.0 ms. The difference of the seeks is an
    /// overhead of the electronics.
    Table1,
    /// The mean seek of Table 1, and the extracted head switch.
    Table1Seek,
    /// The head switch of Table 1, and the extracted seeks: the drive of our own goals.
    Table1Switch,
}

/// Parts of a hypothesis about the writes of the ST318437LW.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteTruth {
    /// Whether a forced chunk behind a cached one loses a revolution.
    pub loses_revolution: Switch,
    /// Whether a write settles as a read does, in no additional time.
    pub settles_at_once: Switch,
}

/// A drive and the belief about it.
#[derive(Clone, Debug)]
pub struct PaperScene {
    model: Model,
    mode: Label,
    truth: Arc<Profile>,
    belief: Arc<Profile>,
    noise: Noise,
}

/// The noise of seek times, and the error of their predictions. Nothing else of the truth is noisy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Noise {
    /// The standard deviation of seek times.
    pub sigma: Duration,
    /// The mean by which a belief other than the truth predicts seeks too short.
    pub bias: Duration,
    /// The probability and the delay of seeks that settle late.
    pub late: Chance,
    /// The look-ahead that the drive finishes behind a read before the next command.
    pub held: HeldLookAhead,
}

/// A load under a policy.
#[derive(Clone, Copy, Debug)]
pub struct PolicyRunSpec<'a> {
    /// The load.
    pub load: &'a Workload,
    /// The name of the policy.
    pub policy: &'a str,
    /// The number of requests.
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
            model,
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

    /// The profiled belief. Equal drives are profiled once.
    fn profiled(&self) -> Result<Arc<Profile>, Failure> {
        let key = (self.model, self.noise);
        let mut found = PROFILED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, belief)) = found.iter().find(|(other, _)| *other == key) {
            return Ok(Arc::clone(belief));
        }
        let belief = profiled::belief(&self.truth, &self.imperfections(), PROFILING_SEED)?;
        let belief = Arc::new(arm::with_shorter_seeks(&belief, self.noise.bias)?);
        found.push((key, Arc::clone(&belief)));
        Ok(belief)
    }

    /// Of a scheduler that knows the drive as it is, but for the noise of its seeks.
    ///
    /// # Errors
    /// If the drive is not shipped.
    pub fn noisy(model: Model, noise: Noise) -> Result<PaperScene, Failure> {
        let known = PaperScene::in_firmware(model)?;
        let mode = match noise == Noise::default() {
            true => known.mode,
            false => known.mode.with_noise(),
        };
        let belief = Arc::new(arm::with_shorter_seeks(&known.truth, noise.bias)?);
        Ok(PaperScene {
            mode,
            belief: match noise.bias {
                Duration::ZERO => known.belief,
                _ => belief,
            },
            noise,
            ..known
        })
    }

    /// The scene after the host has switched look-ahead off.
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

    /// The drive as it is.
    pub fn truth(&self) -> &Arc<Profile> {
        &self.truth
    }

    /// The belief.
    pub fn belief(&self) -> &Arc<Profile> {
        &self.belief
    }

    /// The belief of an external engine, and the drive's imperfections.
    pub fn outside(&self) -> Arc<ExternalBelief> {
        Arc::new(ExternalBelief {
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
    pub fn run(
        &self,
        asked: &PolicyRunSpec<'_>,
        watch: &mut dyn Watch,
    ) -> Result<RunReport, Failure> {
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
            mirror: None,
        })
    }

    fn imperfections(&self) -> Imperfections {
        let waits = match self.model {
            Model::St318437lwWriting(WriteTruth {
                loses_revolution: Switch::On,
                ..
            }) => LATE_WRITE,
            _ => Duration::ZERO,
        };
        Imperfections {
            seek_noise: self.noise.sigma,
            settle_retry: self.noise.late,
            durable_behind_cached: waits,
            held_look_ahead: self.noise.held,
            ..Imperfections::default()
        }
    }
}

impl Model {
    /// The drive of the paper's system: the shipped profile with the paper's values.
    fn profile(self) -> Result<Profile, Failure> {
        let entry = catalog::find(self.name()).map_err(Failure::failed)?;
        let profile = match self {
            Model::Modern20tbWideMargin => {
                let mut text = entry.text().to_owned();
                for (shipped, shorter) in SHORTER_SWITCH {
                    text = text.replace(shipped, shorter);
                }
                Profile::parse(&text, entry.name)
            }
            _ => entry.profile(),
        };
        self.as_in_paper(profile.map_err(Failure::failed)?)
    }

    /// The name among the shipped drives.
    pub fn name(self) -> &'static str {
        match self {
            Model::Atlas10k(_) => "quantum-atlas-10k",
            Model::Cheetah18lp => "seagate-cheetah-18lp",
            Model::Cheetah9lp => "seagate-cheetah-9lp",
            Model::St318437lw | Model::St318437lwWriting(_) => "seagate-st318437lw",
            Model::CaviarWd400bb => "wd-caviar-wd400bb",
            Model::Modern20tb | Model::Modern20tbWideMargin => "modern-20tb",
        }
    }

    /// Replaces bus, cache, queue, head switch and seeks by the paper's. The drives of PFC, Virtual
    /// IO and of today have theirs in their profiles.
    fn as_in_paper(self, mut profile: Profile) -> Result<Profile, Failure> {
        match self {
            Model::Cheetah9lp
            | Model::St318437lw
            | Model::CaviarWd400bb
            | Model::Modern20tb
            | Model::Modern20tbWideMargin => return Ok(profile),
            Model::St318437lwWriting(writing) => {
                if writing.settles_at_once == Switch::On {
                    profile.write_settle_nanos = 0;
                }
                return Ok(profile);
            }
            Model::Atlas10k(_) | Model::Cheetah18lp => {}
        }
        profile.bus.read_block = BUS_BLOCK;
        profile.bus.write_block = BUS_BLOCK;
        profile.buffer.write_back = WriteBack::None;
        profile.queue.order = QueueOrder::Sptf;
        if let Model::Atlas10k(truth) = self {
            let (seek, switch) = truth.of_table_1();
            if switch == Switch::On {
                profile.head_switch = HEAD_SWITCH;
            }
            if seek == Switch::On {
                profile = arm::with_mean_seek(&profile, MEAN_SEEK)?;
            }
        }
        Ok(profile)
    }
}

impl AtlasTruth {
    /// Whether the mean seek, and whether the head switch is that of Table 1.
    fn of_table_1(self) -> (Switch, Switch) {
        match self {
            AtlasTruth::Extracted => (Switch::Off, Switch::Off),
            AtlasTruth::Table1 => (Switch::On, Switch::On),
            AtlasTruth::Table1Seek => (Switch::On, Switch::Off),
            AtlasTruth::Table1Switch => (Switch::Off, Switch::On),
        }
    }
}

impl fmt::Display for PaperScene {
    /// The circumstances of a figure.
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
            "{}, head switch {}, mean seek {}, bus {:.0} MB/s, write cache {cache}, look-ahead {ahead}, ",
            self.truth.name,
            self.truth.head_switch,
            arm::mean_seek(&self.truth),
            f64::from(self.truth.block_bytes) * 1e3 / bus,
        )?;
        match self.mode {
            Label::InFirmware => write!(f, "belief = truth"),
            Label::External => write!(f, "belief profiled, seek noise {}", self.noise),
            Label::Noisy => write!(f, "belief = truth, but seek noise {}", self.noise),
            Label::Assumed => write!(f, "belief assumed, seek noise {}", self.noise),
        }
    }
}

impl Noise {
    /// Noise with this standard deviation, and without late seeks.
    pub const fn sigma(sigma: Duration) -> Noise {
        Noise {
            sigma,
            bias: Duration::ZERO,
            late: Chance {
                per_million: 0,
                costs: Duration::ZERO,
            },
            held: NOT_HELD,
        }
    }
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sigma {}", self.sigma)?;
        if self.bias > Duration::ZERO {
            write!(f, " and predictions {} short", self.bias)?;
        }
        if self.held.blocks > 0 {
            write!(f, " and look-ahead that is finished first")?;
        }
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
    let built_in = BuiltInWorkload::find(name);
    let built_in = built_in.ok_or_else(|| Failure::failed(format!("no load is called {name}")))?;
    let load = built_in.workload().and_then(|load| load.with(flags));
    load.map_err(Failure::failed)
}

/// A drive that leaves its look-ahead for the next command.
pub const NOT_HELD: HeldLookAhead = HeldLookAhead {
    blocks: 0,
    after: AheadTrigger::SameTrack,
};

/// One block over Ultra2 SCSI, 80 MB/s, the bus of both drives. The Atlas 10K's profile has the bus
/// of its validation, 5 MB/s. That the paper's hosts drove their buses at full speed is a choice.
const BUS_BLOCK: Duration = Duration::from_nanos(6_400);

/// Head switch of the Atlas 10K (Lumb et al., FAST 2002, Table 1).
const HEAD_SWITCH: Duration = Duration::from_micros(800);

/// Mean seek of the Atlas 10K (Lumb et al., FAST 2002, Table 1).
const MEAN_SEEK: Duration = Duration::from_millis(5);

/// The switch of tracks that leaves 120 us of the skew of 0.52 ms, as the profile's texts.
const SHORTER_SWITCH: [(&str, &str); 2] = [
    ("head_switch_ms = 0.5\n", "head_switch_ms = 0.401\n"),
    ("[1, 0.5]", "[1, 0.401]"),
];

/// The wait that loses a revolution: longer than a sector takes, 11 to 19 us, and shorter than a
/// revolution. Any such wait does.
const LATE_WRITE: Duration = Duration::from_micros(50);

/// The seed of the noise. A choice.
const SEED: u64 = 1;

/// The seed of the noise during profiling. A choice: another one.
const PROFILING_SEED: u64 = 2;
