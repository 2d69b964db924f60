//! A disk of this machine, from its configuration to what carries its commands out.
//!
//! ```text
//!   path -> node -> what the kernel says -> claim -> who the drive is -> its switches -> back end
//! ```

use std::fmt::Display;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use drive::Profile;
use tracing::{info, warn};

use super::Parts;
use crate::clock::TimeScale;
use crate::config::{self, Way};
use crate::disk::back_end::disk::LocalDisk;
use crate::disk::back_end::disk::claim::{Node, claim, node};
use crate::disk::back_end::disk::sysfs::{DiskProperties, MOST_BYTES, Refused, Writes};
use crate::disk::back_end::scsi::passthrough::Passthrough;
use crate::disk::back_end::scsi::record::{self, RecordError};
use crate::disk::back_end::scsi::switched::{Switched, UnclaimedDrive, WantedSwitches};
use crate::disk::back_end::scsi::{Kind, Rotation, ScsiDrive, Zones};
use crate::disk::back_end::{BackEnd, Shape};

/// A disk that nobody else uses.
struct Claimed {
    properties: DiskProperties,
    file: Option<File>,
    /// None if it takes no SCSI commands.
    drive: Option<ScsiDrive>,
}

/// Where the kernel's file systems of devices are.
const SYSTEM: &str = "/sys";

/// What is served, ready to begin.
///
/// # Errors
/// Why the disk is refused, and what was expected.
pub(super) fn parts(
    config: &config::Device,
    belief: Option<Arc<Profile>>,
) -> Result<Parts, String> {
    let named = |why: &dyn Display| format!("{}: {why}", config.path.display());
    let claimed = claimed(config).map_err(|refused| named(&refused))?;
    if let Some(belief) = &belief {
        fits(belief, &claimed.properties).map_err(|why| named(&why))?;
    }
    tell(config, &claimed, belief.as_deref());
    let wanted = WantedSwitches {
        write_cache: config.write_cache,
        look_ahead: config.look_ahead,
    };
    let Claimed {
        properties,
        file,
        drive,
    } = claimed;
    let drive = drive.map(recorded).transpose();
    let drive = drive.map_err(|locked| named(&locked))?;
    let drive = drive.map(|drive| drive.begin(wanted));
    let belief = belief.map(|belief| match &drive {
        Some(drive) => Arc::new(as_switched(&belief, drive)),
        None => belief,
    });
    let shape = shape(&properties, config.way, belief.is_some());
    let made = back_end(config, shape, properties.most_bytes, file, drive);
    let back_end = made.map_err(|error| named(&error))?;
    Ok(Parts {
        mirror: None,
        back_end: Box::new(move || Ok(back_end)),
        belief,
        blocks: shape.blocks,
        block_bytes: shape.block_bytes,
        scale: TimeScale::REAL,
        kind: "device",
        is_rotational: properties.rotational || shape.rotational,
    })
}

/// A drive whose turned switches are recorded, so that the next start can put them back. What a killed
/// service has left turned is put back, and said.
fn recorded(drive: ScsiDrive) -> Result<Switched, RecordError> {
    match Switched::claim(drive, &record::folder(), &record::this_boot()) {
        Ok((switched, reports)) => {
            let drive = switched.drive().path().display();
            for report in reports {
                warn!(%drive, "an earlier run was killed: {report}");
            }
            Ok(switched)
        }
        Err(unclaimed) => match *unclaimed {
            UnclaimedDrive {
                error: locked @ RecordError::Locked(_),
                ..
            } => Err(locked),
            UnclaimedDrive { drive, error } => {
                warn!("{error}; a killed service would leave the drive's switches turned");
                Ok(Switched::unrecorded(drive))
            }
        },
    }
}

fn back_end(
    config: &config::Device,
    shape: Shape,
    most_bytes: usize,
    file: Option<File>,
    drive: Option<Arc<Switched>>,
) -> std::io::Result<Box<dyn BackEnd + Send>> {
    match (config.way, drive, file) {
        (Way::Scsi, Some(drive), file) => {
            let drive = Passthrough::new(drive, shape, most_bytes, file)?;
            Ok(Box::new(drive))
        }
        (_, drive, Some(file)) => {
            let disk = LocalDisk::new(file, &config.path, shape, drive, most_bytes)?;
            Ok(Box::new(disk))
        }
        (_, _, None) => Err(std::io::ErrorKind::Unsupported.into()),
    }
}

/// Looks at the disk and claims it.
fn claimed(config: &config::Device) -> Result<Claimed, Refused> {
    let system = Path::new(SYSTEM);
    let (disk, folder) = match (node(&config.path, system)?, config.way) {
        (Node::Disk(folder), _) => (Some(config.path.clone()), Some(folder)),
        (Node::Generic(Some(name)), Way::Scsi) => (
            Some(Path::new("/dev").join(&name)),
            Some(system.join("class/block").join(name)),
        ),
        (Node::Generic(None), Way::Scsi) => (None, None),
        (Node::Generic(name), Way::Kernel) => {
            let disk = name.map_or_else(String::new, |name| format!(", or its disk /dev/{name}"));
            return Err(Refused::Other(format!(
                "it takes SCSI commands only: expected passthrough = true{disk}"
            )));
        }
    };
    let properties = folder.as_deref().map(DiskProperties::read).transpose()?;
    let file = match (&disk, &folder, &properties) {
        (Some(disk), Some(folder), Some(properties)) => Some(claim(disk, folder, properties)?),
        _ => None,
    };
    let drive = match (ScsiDrive::open(&config.path), config.way) {
        (Ok(drive), _) => Some(drive),
        (Err(failed), Way::Scsi) => return Err(Refused::Other(failed.to_string())),
        (Err(failed), Way::Kernel) => {
            warn!(
                "{failed}; its caches stay as they are, and its errors come without their reasons"
            );
            None
        }
    };
    if let Some(drive) = &drive {
        is_plain(drive)?;
    }
    let properties = match (properties, &drive) {
        (Some(properties), _) => properties,
        (None, Some(drive)) => of_drive(drive)?,
        (None, None) => return Err(Refused::Missing),
    };
    Ok(Claimed {
        properties,
        file,
        drive,
    })
}

/// Whether the drive says that its blocks can be written in any order.
fn is_plain(drive: &ScsiDrive) -> Result<(), Refused> {
    let model = match (drive.identity().kind, drive.zones()) {
        (Kind::Zoned, _) => "host-managed",
        (Kind::Other(kind), _) => {
            let problem = format!("a SCSI device of kind {kind:#04x}: expected a disk");
            return Err(Refused::Other(problem));
        }
        (Kind::Nothing, _) => return Err(Refused::Missing),
        (Kind::Blocks, Ok(Zones::HostAware)) => "host-aware",
        (Kind::Blocks, Ok(Zones::DriveManaged)) => {
            warn!(
                drive = %drive.path().display(),
                "the drive has zones of its own (shingled): it moves what was written at times of \
                 its own, which nobody can predict"
            );
            return Ok(());
        }
        (Kind::Blocks, _) => return Ok(()),
    };
    let model = model.to_owned();
    Err(Refused::Zoned { model })
}

/// What there is if the kernel has made the drive no disk.
fn of_drive(drive: &ScsiDrive) -> Result<DiskProperties, Refused> {
    let capacity = drive.capacity();
    let block_bytes = capacity.block_bytes;
    if ![512, 4096].contains(&block_bytes) {
        let bytes = u64::from(block_bytes);
        return Err(Refused::BlockSize { bytes });
    }
    if drive.caching().is_ok_and(|page| page.is_read_only) {
        return Err(Refused::ReadOnly);
    }
    Ok(DiskProperties {
        bytes: capacity.blocks * u64::from(block_bytes),
        block_bytes,
        rotational: !matches!(drive.rotation(), Ok(Rotation::Solid)),
        trims: false,
        zeroes_fast: false,
        ranges: drive.positioning_ranges().unwrap_or_default(),
        most_bytes: MOST_BYTES as usize,
        access: Writes::Allowed,
    })
}

/// Whether it is the drive that is believed in.
fn fits(belief: &Profile, properties: &DiskProperties) -> Result<(), String> {
    let blocks = properties.bytes / u64::from(properties.block_bytes);
    let believed = belief.geometry.sectors().0;
    let missing = believed.checked_sub(blocks);
    let is_whole =
        missing.is_some_and(|missing| missing * u64::from(properties.block_bytes) < ROUNDED_BYTES);
    if let [first, _] = &properties.ranges[..]
        && belief.actuators == 2
        && belief.share_end(0) != first.blocks
    {
        return Err(format!(
            "its first actuator has {} blocks, and that of its profile {} has {}: expected the drive's own \
             profile (`headtime profile --device` finds it)",
            first.blocks,
            belief.model,
            belief.share_end(0)
        ));
    }
    if belief.block_bytes == properties.block_bytes && is_whole {
        return Ok(());
    }
    Err(format!(
        "{blocks} blocks of {} bytes, and its profile {} has {believed} of {}: expected the drive's \
         own profile (`headtime profile --device` finds it)",
        properties.block_bytes, belief.model, belief.block_bytes
    ))
}

/// Paths round the size of a disk down by less than this: a loop device over FUSE to 4 KiB (seen on Linux
/// 6.18).
const ROUNDED_BYTES: u64 = 4096;

/// Says what is about to be served.
fn tell(config: &config::Device, claimed: &Claimed, belief: Option<&Profile>) {
    let device = config.path.display();
    let DiskProperties {
        bytes,
        block_bytes,
        rotational,
        ref ranges,
        ..
    } = claimed.properties;
    let actuators = ranges.len();
    if actuators > 1 && belief.is_some_and(|belief| belief.actuators == 1) {
        warn!(
            %device, actuators,
            "the drive has several arms, each for blocks of its own: with a profile of one actuator \
             they take turns (`headtime profile --device` profiles each)"
        );
    }
    let Some(drive) = &claimed.drive else {
        info!(%device, bytes, block_bytes, rotational, "the kernel's disk");
        return;
    };
    let (identity, capacity) = (drive.identity(), drive.capacity());
    let rotation = drive.rotation().unwrap_or(Rotation::Unknown);
    let page = drive.caching().ok();
    info!(
        %device,
        vendor = identity.vendor,
        product = identity.product,
        revision = identity.revision,
        serial = drive.serial().unwrap_or_default(),
        bytes,
        block_bytes,
        physical_bytes = capacity.physical_bytes,
        ?rotation,
        write_cache = ?page.as_ref().map(|page| page.write_cache()),
        look_ahead = ?page.as_ref().map(|page| page.look_ahead()),
        fua = ?page.as_ref().map(|page| page.knows_fua),
        "the drive"
    );
}

/// The drive as it is with its switches as they are now.
fn as_switched(belief: &Profile, drive: &Switched) -> Profile {
    match drive.drive().caching() {
        Ok(page) => belief.switched(page.look_ahead(), page.write_cache()),
        Err(_) => belief.clone(),
    }
}

fn shape(properties: &DiskProperties, way: Way, is_known: bool) -> Shape {
    let is_kernels = way == Way::Kernel;
    Shape {
        block_bytes: properties.block_bytes,
        blocks: properties.bytes / u64::from(properties.block_bytes),
        trims: properties.trims && is_kernels,
        zeroes_fast: properties.zeroes_fast && is_kernels,
        // Where the head is, is only known by a profile.
        rotational: is_known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::back_end::scsi::PositioningRange;

    #[test]
    fn a_belief_fits_its_disk_also_if_the_path_rounds_the_size_down() {
        let belief = drive::catalog::find("quantum-atlas-10k")
            .expect("a drive")
            .profile()
            .expect("a profile");
        let blocks = belief.geometry.sectors().0;
        let properties = |blocks: u64| DiskProperties {
            bytes: blocks * 512,
            block_bytes: 512,
            rotational: true,
            trims: false,
            zeroes_fast: false,
            ranges: Vec::new(),
            most_bytes: 1 << 20,
            access: Writes::Allowed,
        };
        for whole in [blocks, blocks - 2, blocks - 7] {
            assert_eq!(fits(&belief, &properties(whole)), Ok(()));
        }
        for other in [blocks - 8, blocks + 1, blocks / 2] {
            let refused = fits(&belief, &properties(other)).expect_err("another disk");
            assert!(refused.contains("the drive's own profile"), "{refused}");
        }
        let large = DiskProperties {
            block_bytes: 4096,
            ..properties(blocks)
        };
        assert!(fits(&belief, &large).is_err());
        // A belief of two actuators has the border of the disk.
        let mut two = belief.clone();
        two.actuators = 2;
        for (first, is_fit) in [(blocks / 2, true), (blocks / 3, false)] {
            let range = |first, blocks| PositioningRange { first, blocks };
            let disk = DiskProperties {
                ranges: vec![range(0, first), range(first, blocks - first)],
                ..properties(blocks)
            };
            assert_eq!(fits(&two, &disk).is_ok(), is_fit);
            assert_eq!(fits(&belief, &disk), Ok(()), "a belief of one arm");
        }
    }
}
