//! A mirror, from its configuration to its two legs.
//!
//! ```text
//!   superblocks of both legs --assemble--> states --recorded--> back ends of the legs in use --> one back end
//! ```

use std::path::Path;
use std::sync::Arc;

use drive::Profile;
use engine::ReadRule;
use tracing::{info, warn};

use super::emulation::{profile, truth};
use super::{Parts, doubted, of_back_end};
use crate::clock::TimeScale;
use crate::config::{self, BackEnd as Kind, Belief};
use crate::disk::back_end::BackEnd;
use crate::disk::back_end::mirror::{Leg, Mirror, MirrorEvent, MirrorObserver};
use crate::mirror::assembly::{Assembly, assemble};
use crate::mirror::storage;
use crate::mirror::superblock::{LegRecord, Superblock, id_text};
use crate::tasks::sink::hooks::{HookEvent, Hooks};

/// What an engine of a mirror needs besides.
pub(super) struct MirrorParts {
    /// The belief of the second leg, if there is one of both.
    pub(super) second: Option<Arc<Profile>>,
    pub(super) read: ReadRule,
}

/// The back end of both legs.
///
/// # Errors
/// Why the mirror does not begin, and what was expected.
pub(super) fn parts(mirror: &config::Mirror, drive: &str, hooks: &Hooks) -> Result<Parts, String> {
    let [one, other] = &mirror.legs;
    let paths = [path(one)?, path(other)?];
    let beliefs = [belief(one)?, belief(other)?];
    let (assembly, legs) = claimed(mirror, paths)?;
    let superblock = assembly.superblock;
    tell(&superblock, assembly.marks.marked());
    storage::begin(paths, &assembly)?;
    let names = paths.map(|path| path.display().to_string());
    let hooked = hooked(drive, hooks.clone());
    for (name, _) in names
        .iter()
        .zip(superblock.states)
        .filter(|(_, state)| *state == LegRecord::Out)
    {
        hooked(MirrorEvent::LegOut(name.clone()));
    }
    let like = legs.iter().flatten();
    let like: Vec<(u32, TimeScale)> = like.map(|leg| (leg.block_bytes, leg.scale)).collect();
    let Some(&(block_bytes, scale)) = like.first() else {
        return Err("no leg is in use".to_owned());
    };
    if like.iter().any(|other| *other != (block_bytes, scale)) {
        return Err("the legs differ in their blocks or time scales: expected the same".to_owned());
    }
    let [first, second] = beliefs;
    let rebuild = mirror.rebuild;
    let back_end = move || {
        let mut each = Vec::new();
        for (leg, name) in legs.into_iter().zip(names) {
            let back_end = leg.map(|leg| (leg.back_end)()).transpose()?;
            each.push(Leg { back_end, name });
        }
        let [one, other] = <[Leg; 2]>::try_from(each)
            .map_err(|_| std::io::Error::other("a mirror has two legs"))?;
        let mirror = Mirror::new([one, other], assembly)?;
        let mirror = mirror.with_rebuild(rebuild).observed_by(hooked);
        Ok(Box::new(mirror) as Box<dyn BackEnd>)
    };
    Ok(Parts {
        blocks: (superblock.data_offset + superblock.data_bytes) / u64::from(block_bytes),
        block_bytes,
        is_rotational: first.is_some(),
        belief: first,
        back_end: Box::new(back_end),
        scale,
        kind: "mirror",
        mirror: Some(MirrorParts {
            second,
            read: mirror.read,
        }),
    })
}

/// The legs in use, which no other service has any more, and what they are found with then.
///
/// The last writes of a service that was killed may reach a leg until it is claimed. So the superblocks and the marks are
/// read again, and which legs are in use may have changed.
fn claimed(
    mirror: &config::Mirror,
    paths: [&Path; 2],
) -> Result<(Assembly, Vec<Option<Parts>>), String> {
    let found = || assemble(paths.map(storage::look), mirror.degraded);
    let mut states = found()?.superblock.states;
    loop {
        let mut legs = Vec::new();
        for (leg, state) in mirror.legs.iter().zip(states) {
            legs.push(match state {
                LegRecord::Out => None,
                _ => Some(opened(leg)?),
            });
        }
        let assembly = found()?;
        if assembly.superblock.states == states {
            return Ok((assembly, legs));
        }
        states = assembly.superblock.states;
    }
}

/// Makes the superblocks of a mirror on the legs of a drive.
///
/// # Errors
/// If the drive is no mirror, a leg is of one, or cannot be written.
pub(in crate::service) fn create(config: &config::DriveConfig) -> Result<Superblock, String> {
    let Kind::Mirror(mirror) = &config.back_end else {
        return Err(format!(
            "drive {} is no mirror: expected one whose back end is of kind \"mirror\"",
            config.name
        ));
    };
    let [one, other] = &mirror.legs;
    let mut lengths = [0; 2];
    for (length, leg) in lengths.iter_mut().zip(&mirror.legs) {
        // This makes the files of emulated drives, and refuses a disk that is in use.
        let parts = opened(leg)?;
        *length = parts.blocks * u64::from(parts.block_bytes);
    }
    storage::create([path(one)?, path(other)?], lengths)
}

/// The paths of the legs of a drive.
///
/// # Errors
/// If the drive is no mirror.
pub(in crate::service) fn paths(config: &config::DriveConfig) -> Result<[&Path; 2], String> {
    match &config.back_end {
        Kind::Mirror(mirror) => Ok([path(&mirror.legs[0])?, path(&mirror.legs[1])?]),
        _ => Err(format!(
            "drive {} is no mirror: expected one whose back end is of kind \"mirror\"",
            config.name
        )),
    }
}

fn path(leg: &config::Leg) -> Result<&Path, String> {
    leg.path()
        .ok_or_else(|| "a leg without a path: expected a file or a device".to_owned())
}

fn opened(leg: &config::Leg) -> Result<Parts, String> {
    of_back_end(&leg.back_end, &leg.belief, belief(leg)?)
}

/// What is believed of a leg, whether it is there or not.
fn belief(leg: &config::Leg) -> Result<Option<Arc<Profile>>, String> {
    let belief = match (&leg.belief, &leg.back_end) {
        (Belief::Nothing, _) => return Ok(None),
        (Belief::Emulated, Kind::Emulated(emulated)) => truth(emulated)?,
        (Belief::Emulated, _) => return Ok(None),
        (Belief::Profile(model), _) => profile(model)?,
    };
    doubted(&belief, leg.belief_unchecked)?;
    Ok(Some(Arc::new(belief)))
}

/// Runs hooks for what happens to the mirror.
fn hooked(drive: &str, hooks: Hooks) -> MirrorObserver {
    let name = format!("mirror {drive}");
    Box::new(move |event| {
        let result = match event {
            MirrorEvent::InSync(leg) => Ok(format!("{leg} has all data: the legs are in sync")),
            MirrorEvent::LegOut(leg) => Err(format!("{leg} is out: the other leg serves alone")),
            MirrorEvent::Broken => {
                Err("the last leg fails: writes fail until the service is begun again".to_owned())
            }
        };
        hooks.run_for(HookEvent {
            task: None,
            name: name.clone(),
            result,
        });
    })
}

fn tell(superblock: &Superblock, marked: u64) {
    let mirror = id_text(&superblock.mirror);
    for (leg, state) in superblock.states.iter().enumerate() {
        match state {
            LegRecord::InSync => info!(mirror, leg, "the leg is in sync"),
            LegRecord::Doubtful | LegRecord::Filling => info!(
                mirror,
                leg,
                bytes = marked * superblock.region_bytes,
                "the leg is {}: marked regions are copied to it",
                state.name()
            ),
            LegRecord::Out => warn!(
                mirror,
                leg,
                "the leg is out: the other one serves alone (`headtime mirror attach` fills it)"
            ),
        }
    }
}
