//! Mirrors of a configuration while no service uses them.

use super::drives::mirrored;
use crate::config::{Config, DriveConfig};
use crate::mirror::storage;
use crate::mirror::superblock::Superblock;

/// Makes a mirror of the legs of a drive. What is on them is overwritten.
///
/// # Errors
/// If there is no such mirror, or a leg is in use, of a mirror, or cannot be written.
pub fn create(config: &Config, drive: &str) -> Result<Superblock, String> {
    mirrored::create(named(config, drive)?)
}

/// Lets a leg that is out be filled from the next start on.
///
/// # Errors
/// If there is no such mirror, or the leg is not out.
pub fn attach(config: &Config, drive: &str, leg: usize) -> Result<Superblock, String> {
    storage::attach(mirrored::paths(named(config, drive)?)?, leg)
}

fn named<'c>(config: &'c Config, name: &str) -> Result<&'c DriveConfig, String> {
    let mut drives = config.drives.iter();
    drives.find(|drive| drive.name == name).ok_or_else(|| {
        let names: Vec<&str> = config.drives.iter().map(|drive| &*drive.name).collect();
        format!("no drive {name}: expected one of {}", names.join(", "))
    })
}
