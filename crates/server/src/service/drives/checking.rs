//! The checksums of a drive's volumes: their regions, before the loop starts.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use tracing::info;

use super::Parts;
use crate::checksums::PAGE;
use crate::checksums::keeper::Trimmed;
use crate::checksums::region::{Identity, Region, bytes_for};
use crate::config;
use crate::disk::back_end::BackEnd;
use crate::disk::back_end::checked::{Checked, CheckedVolume};
use crate::exclusive;

/// Puts the checksums of the volumes before their back end.
///
/// # Errors
/// If a region is of another volume, or cannot be made.
pub(super) fn checked(
    config: &config::DriveConfig,
    volumes: &[(config::Volume, u64)],
    parts: Parts,
) -> Result<Parts, String> {
    let mut all = Vec::new();
    for (volume, length) in volumes {
        if let Some(file) = &volume.checksums {
            let opened = open(config, &parts, volume, *length, file);
            all.push(opened.map_err(|problem| format!("{}: {problem}", file.display()))?);
        }
    }
    if all.is_empty() {
        return Ok(parts);
    }
    if parts
        .belief
        .as_ref()
        .is_some_and(|belief| belief.actuators > 1)
    {
        return Err(
            "checksums of a volume need a drive whose flush covers all of it: expected one actuator".to_owned(),
        );
    }
    let make = parts.back_end;
    let back_end = move || {
        let checked = Checked::new(make()?, all)?;
        Ok(Box::new(checked) as Box<dyn BackEnd>)
    };
    Ok(Parts {
        back_end: Box::new(back_end),
        ..parts
    })
}

fn open(
    config: &config::DriveConfig,
    parts: &Parts,
    volume: &config::Volume,
    length: u64,
    path: &Path,
) -> Result<CheckedVolume, String> {
    if !volume.offset.is_multiple_of(PAGE) {
        // A drive may tear a whole sector of 4 KiB, which then has bytes of two pages.
        return Err(format!(
            "volume {} begins at byte {}: checksums need a multiple of {PAGE}, expected another `offset`",
            volume.name, volume.offset
        ));
    }
    let identity = Identity {
        drive: config.name.clone(),
        volume: volume.name.clone(),
        block_bytes: parts.block_bytes,
        offset: volume.offset,
        capacity: parts.blocks * u64::from(parts.block_bytes),
    };
    let file = claimed(path, exclusive::PATIENCE).map_err(|error| error.to_string())?;
    let is_unfinished = Region::is_unfinished(&file).map_err(|error| error.to_string())?;
    let (region, intents) = match is_unfinished {
        true => {
            info!(
                volume = volume.name,
                bytes = bytes_for(length),
                "its checksums begin with the first scrub"
            );
            let number = std::hash::RandomState::new().build_hasher().finish();
            let region = Region::create(file, identity, length, number);
            (region.map_err(|error| error.to_string())?, Vec::new())
        }
        false => Region::open(file, &identity, length).map_err(|error| error.to_string())?,
    };
    if !intents.is_empty() {
        info!(
            volume = volume.name,
            chunks = intents.len(),
            "writes were interrupted: their pages are doubted until the next scrub"
        );
    }
    Ok(CheckedVolume {
        name: volume.name.clone(),
        offset: volume.offset,
        region,
        intents,
        trimmed: match &config.back_end {
            // A hole in a file reads as zeroes.
            config::BackEnd::File { .. } | config::BackEnd::Emulated(_) => Trimmed::Fixed,
            _ => Trimmed::Undefined,
        },
    })
}

/// The file, made if it is not there, which no other process uses. It waits so long for one that ends.
pub(super) fn claimed(path: &Path, patience: Duration) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600);
    let file = options.open(path)?;
    exclusive::claim(&file, path, patience)?;
    Ok(file)
}
