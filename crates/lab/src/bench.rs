//! Benchmarks of the simulator and of the service.
//!
//! Each benchmark runs all of its candidates on this machine in one run. Quote the ratios.

pub mod adopt;
pub mod beside;
pub mod busy;
pub mod caches;
pub mod care;
pub mod classify;
pub mod densities;
pub mod fail_slow;
pub mod impact;
pub mod jitter;
pub mod partial;
pub mod peers;
pub mod players;
pub mod preemption;
pub mod priorities;
pub mod schedulers;
pub mod serve;
pub mod sets;
pub mod simulate;
pub mod soak;
pub mod streams;

mod file_system;
mod loop_device;
mod memory_group;
mod never_idle;
mod rig;

pub use loop_device::LEAST;
