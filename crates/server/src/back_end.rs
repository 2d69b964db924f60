//! What carries commands out.

pub mod scsi;
