//! A drive of the configuration as a run in virtual time has it: the parts of an emulation without its image.

use std::path::PathBuf;
use std::sync::Arc;

use drive::{Imperfections, Profile};
use engine::ReadRule;

use super::emulation::{profile, truth};
use super::sizes::volumes;
use crate::config::{self, BackEnd, Belief, DriveConfig, DriveModel};

/// The parts of a drive.
#[derive(Clone, Debug)]
pub struct VirtualParts {
    /// The profile of the simulated drive, with the switches and the bus of the configuration.
    pub truth: Arc<Profile>,
    /// Deviations of the drive from its profile.
    pub imperfections: Imperfections,
    /// The seed of its random events.
    pub seed: u64,
    /// The belief of the scheduler.
    pub belief: VirtualBelief,
    /// Two such drives are a mirror, whose reads are served under this rule.
    pub mirror: Option<ReadRule>,
    /// The volumes, with the first byte on the drive, and their lengths in bytes.
    pub volumes: Vec<(config::Volume, u64)>,
}

/// The belief about a simulated drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VirtualBelief {
    /// None: no background task, and no stream.
    Nothing,
    /// The profile of the simulated drive.
    Truth,
    /// The profile in a file.
    File(PathBuf),
}

/// The parts of a drive in virtual time. A disk of this machine is simulated by the belief about it.
///
/// # Errors
/// If nothing says how long its commands take, or a profile cannot be read.
pub fn in_virtual_time(config: &DriveConfig) -> Result<VirtualParts, String> {
    let named = |problem: String| format!("drive {}: {problem}", config.name);
    let (back_end, belief, mirror) = match &config.back_end {
        BackEnd::Mirror(mirror) => {
            let [first, second] = &mirror.legs;
            let models = [model(&first.back_end), model(&second.back_end)];
            if models[0].is_none() || models[0] != models[1] {
                return Err(named(
                    "a mirror in virtual time: expected two legs of kind \"emulated\" with one model".to_owned(),
                ));
            }
            (&first.back_end, &first.belief, Some(mirror.read))
        }
        other => (other, &config.belief, None),
    };
    let parts = match (back_end, belief) {
        (BackEnd::Emulated(emulated), belief) => VirtualParts {
            truth: Arc::new(truth(emulated).map_err(named)?),
            imperfections: emulated.imperfections.clone(),
            seed: emulated.seed,
            belief: believed(&emulated.drive, belief).map_err(named)?,
            mirror,
            volumes: Vec::new(),
        },
        (other, Belief::Profile(model)) => {
            let profile = profile(model).map_err(named)?;
            VirtualParts {
                truth: Arc::new(match other {
                    BackEnd::Device(device) => {
                        profile.switched(device.look_ahead, device.write_cache)
                    }
                    _ => profile,
                }),
                imperfections: Imperfections::default(),
                seed: 1,
                belief: VirtualBelief::Truth,
                mirror,
                volumes: Vec::new(),
            }
        }
        _ => {
            return Err(named(
                "nothing says how long its commands take: expected a back end of kind \"emulated\", or a profile as \
                 belief"
                    .to_owned(),
            ));
        }
    };
    let volumes = volumes(config, parts.truth.capacity_bytes()).map_err(named)?;
    Ok(VirtualParts { volumes, ..parts })
}

fn model(back_end: &BackEnd) -> Option<&DriveModel> {
    match back_end {
        BackEnd::Emulated(emulated) => Some(&emulated.drive),
        _ => None,
    }
}

/// The belief about an emulated drive.
fn believed(drive: &DriveModel, belief: &Belief) -> Result<VirtualBelief, String> {
    match belief {
        Belief::Nothing => Ok(VirtualBelief::Nothing),
        Belief::Emulated => Ok(VirtualBelief::Truth),
        Belief::Profile(model) if model == drive => Ok(VirtualBelief::Truth),
        Belief::Profile(DriveModel::File(path)) => Ok(VirtualBelief::File(path.clone())),
        Belief::Profile(DriveModel::Shipped(name)) => Err(format!(
            "belief \"{name}\" of another model: expected \"emulated\", or a profile that ends with .toml"
        )),
    }
}
