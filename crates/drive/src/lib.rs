//! What a hard disk does and how long it takes: geometry, mechanics, firmware, faults.

pub mod angle;
pub mod catalog;
pub mod firmware;
pub mod geometry;
pub mod profile;
pub mod scsi;
pub mod seek;

pub use angle::{Angle, Spindle};
pub use geometry::Geometry;
pub use profile::{Profile, ProfileError, Provenance};
