//! Emulated drives, and the profiles of models.

use std::sync::Arc;

use drive::firmware::Bus;
use drive::imperfection::UnalignedWrites;
use drive::{Profile, VirtualDrive, catalog};
use headtime_client::private;

use super::Parts;
use crate::clock::TimeScale;
use crate::config::{self, DriveModel};
use crate::disk::back_end::BackEnd;
use crate::disk::back_end::emulated::Emulated;
use crate::disk::back_end::file::{Caching, Image};

/// What an emulated drive is.
pub(super) fn truth(emulated: &config::Emulated) -> Result<Profile, String> {
    let mut truth = profile(&emulated.drive)?.switched(emulated.look_ahead, emulated.write_cache);
    if let Some(mb_s) = emulated.bus_mb_s {
        truth.bus = Bus::at(mb_s, truth.block_bytes);
    }
    if emulated.imperfections.unaligned_writes == UnalignedWrites::ReadFirst {
        // A drive that reads first has larger sectors than blocks, and says so.
        truth.physical_block_bytes = SECTOR_BYTES;
    }
    Ok(truth)
}

/// The bytes of an emulated drive.
pub(in crate::service) fn emulated_bytes(emulated: &config::Emulated) -> Result<u64, String> {
    let truth = truth(emulated)?;
    Ok(truth.geometry.sectors().0 * u64::from(truth.block_bytes))
}

/// The parts of an emulated drive, with its truth as belief.
pub(super) fn emulation(emulated: &config::Emulated) -> Result<Parts, String> {
    let truth = truth(emulated)?;
    let imperfections = emulated.imperfections.clone();
    let truth = Arc::new(truth);
    let drive = VirtualDrive::imperfect(Arc::clone(&truth), imperfections, emulated.seed);
    let scale = TimeScale::new(emulated.time_scale)
        .ok_or_else(|| format!("time scale {}: expected 0.001 to 1000", emulated.time_scale))?;
    let blocks = truth.geometry.sectors().0;
    let path = &emulated.image;
    let made = path.parent().map_or(Ok(()), private::create_folder);
    let image = made
        .and_then(|()| Image::open_or_make(path, truth.block_bytes, blocks, Caching::Cached))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Parts {
        blocks,
        block_bytes: truth.block_bytes,
        belief: Some(truth),
        back_end: Box::new(move || Ok(Box::new(Emulated::new(drive, image)) as Box<dyn BackEnd>)),
        scale,
        kind: "emulated",
        is_rotational: true,
        mirror: None,
    })
}

/// The profile of a model.
///
/// # Errors
/// If it cannot be read.
pub(super) fn profile(model: &DriveModel) -> Result<Profile, String> {
    match model {
        DriveModel::Shipped(name) => {
            let entry = catalog::find(name).map_err(|error| error.to_string())?;
            entry.profile().map_err(|error| error.to_string())
        }
        DriveModel::File(path) => {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
            Profile::parse(&text, &name).map_err(|error| error.to_string())
        }
    }
}

/// The sectors of 512e drives in bytes.
const SECTOR_BYTES: u32 = 4096;
