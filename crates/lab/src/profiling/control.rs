//! Cache control of a SCSI disk for the time of probing: who has it, what it can do, and what was turned.
//!
//! ```text
//!   claim: the disk itself? --> record, put back what a killed run left
//!     -> begin: FUA or VERIFY reach the medium? --> look-ahead off, write cache off
//!     -> ... probing ...
//!     -> restore, also on an error
//! ```

use std::path::{Path, PathBuf};

use block::{Instant, Switch};
use profiler::{Offers, WritePermission};
use server::disk::back_end::disk::claim::{Node, node};
use server::disk::back_end::disk::sysfs::{DiskProperties, MOST_BYTES};
use server::disk::back_end::scsi::cache_switch::CacheSwitch;
use server::disk::back_end::scsi::probed::{MediumRead, ProbedDrive};
use server::disk::back_end::scsi::record::{self, RecordError};
use server::disk::back_end::scsi::{Kind, Rotation, ScsiDrive, Zones};

use crate::Failure;

/// The folder of the kernel's files about devices.
const SYSTEM: &str = "/sys";

/// The disk of a node for SCSI commands (`/dev/sg0`), and any other path as it is.
///
/// # Errors
/// If the kernel has made no disk of the node.
pub fn disk_of(path: &Path) -> Result<PathBuf, Failure> {
    match node(path, Path::new(SYSTEM)) {
        Ok(Node::Generic(Some(name))) => Ok(Path::new("/dev").join(name)),
        Ok(Node::Generic(None)) => Err(Failure::input(format!(
            "{}: the kernel has made no disk of it: expected one with blocks, such as /dev/sdb",
            path.display()
        ))),
        _ => Ok(path.to_owned()),
    }
}

/// A SCSI disk, and what there is to say of it.
#[derive(Debug, Default)]
pub struct ClaimedDrive {
    /// The drive, if its switches may be turned.
    pub drive: Option<ProbedDrive>,
    /// Sentences for the user.
    pub said: Vec<String>,
}

/// Takes the switches of a SCSI disk of `bytes` bytes, and puts back what a killed run has left. `None` for
/// other paths, and for partitions.
///
/// # Errors
/// If another process has the switches.
pub fn claim(
    path: &Path,
    bytes: u64,
    writes: WritePermission,
) -> Result<Option<ClaimedDrive>, Failure> {
    let drive = match writes {
        WritePermission::Forbidden => ScsiDrive::open_to_read(path),
        WritePermission::Allowed => ScsiDrive::open(path),
    };
    // Other disks (NVMe, virtual ones, loop devices) take no SCSI commands. A partition passes on those of
    // its disk, where its blocks have other numbers.
    let drive = drive.ok().filter(|drive| {
        let capacity = drive.capacity();
        capacity.blocks * u64::from(capacity.block_bytes) == bytes
    });
    let Some(drive) = drive else {
        return Ok(None);
    };
    let mut said = properties(&drive);
    let block = u64::from(drive.capacity().block_bytes);
    let of_drive = drive.most_blocks().ok().flatten();
    let of_drive = of_drive.map_or(u64::MAX, |blocks| u64::from(blocks) * block);
    let most = most_bytes(path).min(usize::try_from(of_drive).unwrap_or(usize::MAX));
    match ProbedDrive::claim(drive, &record::folder(), &record::this_boot(), most) {
        Ok((drive, reports)) => {
            for report in reports {
                said.push(format!("an earlier run was killed: {report}"));
            }
            Ok(Some(ClaimedDrive {
                drive: Some(drive),
                said,
            }))
        }
        Err(locked @ RecordError::Locked(_)) => {
            Err(Failure::failed(format!("{}: {locked}", path.display())))
        }
        Err(error) => {
            said.push(format!(
                "its switches stay as they are, because they could not be recorded: {error}"
            ));
            Ok(Some(ClaimedDrive { drive: None, said }))
        }
    }
}

/// What a drive states of itself that matters to its times.
fn properties(drive: &ScsiDrive) -> Vec<String> {
    let mut said = Vec::new();
    match drive.rotation() {
        Ok(Rotation::PerMinute(rate)) => said.push(format!("it states {rate} rpm")),
        Ok(Rotation::Solid) => said.push("it states that it does not rotate".to_owned()),
        _ => {}
    }
    let ranges = drive.positioning_ranges().unwrap_or_default();
    if ranges.len() > 1 {
        let firsts: Vec<String> = ranges.iter().map(|range| range.first.to_string()).collect();
        said.push(format!(
            "it has {} actuators, each for blocks of its own (from {} on): `headtime profile --device` profiles \
             each, and `headtime adopt` profiles them as one arm, which is wrong between these ranges",
            ranges.len(),
            firsts.join(", ")
        ));
    }
    let zones = match (drive.identity().kind, drive.zones()) {
        (Kind::Zoned, _) => Some("host-managed"),
        (_, Ok(Zones::HostAware)) => Some("host-aware"),
        (_, Ok(Zones::DriveManaged)) => Some("drive-managed"),
        _ => None,
    };
    if let Some(model) = zones {
        said.push(format!(
            "it is zoned ({model}): it can be profiled, and `headtime serve` takes no zones that it must keep"
        ));
    }
    said
}

/// The longest command that the kernel passes on.
fn most_bytes(path: &Path) -> usize {
    match node(path, Path::new(SYSTEM)) {
        Ok(Node::Disk(folder)) => DiskProperties::read(&folder)
            .map_or(MOST_BYTES as usize, |properties| properties.most_bytes),
        _ => MOST_BYTES as usize,
    }
}

/// Begins to probe: finds out what the drive offers, and turns its switches off if it offers enough. The
/// sentences say which.
pub fn begin(
    drive: &ProbedDrive,
    writes: WritePermission,
    clock: &dyn Fn() -> Instant,
) -> (Offers, Vec<String>) {
    let Some(way) = drive.find_medium_read(clock) else {
        let said = "neither FUA nor VERIFY makes it read from the medium: it is profiled by reads alone, \
                    with its switches as they are";
        return (Offers::Nothing, vec![said.to_owned()]);
    };
    let mut said = vec![match way {
        MediumRead::Fua => "reads with FUA come from the medium".to_owned(),
        MediumRead::Verify => "VERIFY reads from the medium".to_owned(),
    }];
    let mut off = vec![CacheSwitch::LookAhead];
    if writes == WritePermission::Forbidden {
        off.push(CacheSwitch::WriteCache);
    }
    for switch in off {
        let before = drive.drive().switch(switch);
        match (before, drive.turn_off(switch)) {
            (Ok(Switch::On), Ok(())) => {
                said.push(format!("the {switch} is off while it is probed"))
            }
            (_, Ok(())) => {}
            (_, Err(failed)) => said.push(format!("the {switch} stays as it is: {failed}")),
        }
    }
    (Offers::CacheControl, said)
}
