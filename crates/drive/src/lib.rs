//! What a hard disk does and how long it takes: geometry, mechanics, firmware, faults.

pub mod angle;
pub mod firmware;
pub mod geometry;
pub mod mechanics;
pub mod profile;
pub mod seek;
pub mod virtual_drive;

pub use angle::{Angle, Spindle};
pub use mechanics::{Position, Positioning, Target};
pub use profile::{Profile, Provenance};
pub use virtual_drive::VirtualDrive;
