//! What a hard disk does and how long it takes: geometry, mechanics, firmware, faults.

pub mod angle;
mod buffer;
pub mod catalog;
pub mod firmware;
mod flow;
pub mod geometry;
pub mod host;
pub mod imperfection;
#[cfg(feature = "invented")]
pub mod invented;
pub mod mechanics;
pub mod profile;
pub mod random;
pub mod seek;
mod service;
pub mod virtual_drive;
pub mod zones;

pub use angle::{Angle, Spindle};
pub use geometry::Geometry;
pub use host::HostJitter;
pub use imperfection::Imperfections;
pub use mechanics::{Position, Positioning, SeekTarget};
pub use profile::confidence::{Certainty, Confidence, ProfilePart};
pub use profile::{Profile, Provenance};
pub use seek::{SeekCurve, SeekTable};
pub use virtual_drive::{Lost, VirtualDrive};
pub use zones::{Zone, ZoneAction, ZoneCondition, ZoneRefused};
