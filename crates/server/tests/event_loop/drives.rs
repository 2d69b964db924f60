//! The truths of emulated drives.

use std::sync::Arc;

use block::{Extent, Lba, Sectors};
use drive::{Profile, catalog};

/// A shipped drive of 2.1 million blocks.
pub fn shipped() -> Profile {
    let entry = catalog::find("dec-rz26").expect("it is shipped");
    entry.profile().expect("a profile")
}

/// The first blocks of the shipped drive, each half under an actuator of its own.
pub fn two_actuators(blocks: u64) -> Profile {
    let mut drive = shipped();
    let first = Extent::new(Lba(0), Sectors(blocks)).expect("at least one");
    drive.geometry = Arc::new(drive.geometry.share(first));
    drive.actuators = 2;
    drive
}

/// A small drive with blocks of 4096 bytes.
pub fn coarse() -> Profile {
    let fine = include_str!("../../../cli/tests/suites/small.toml");
    let coarse = fine.replace("block_bytes = 512", "block_bytes = 4096");
    Profile::parse(&coarse, "coarse.toml").expect("a profile")
}
