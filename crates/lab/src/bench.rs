//! How fast it is, and beside what.
//!
//! Everything here is measured on this machine, in this run: the figures to quote are ratios.

pub mod caches;
pub mod players;
pub mod preemption;
pub mod schedulers;
pub mod serve;
pub mod simulate;
pub mod streams;

mod loop_device;
mod rig;

pub use loop_device::LEAST;
