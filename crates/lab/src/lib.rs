//! Publishes figures: papers' claims, experiments, benchmarks, validation of drive models, fits.
//!
//! A caller passes settings. A measurement reports its [`Progress`], and returns a typed table that
//! serialises. The command line prints and draws the table.

pub mod adoption;
pub mod amount;
pub mod bench;
pub mod cache_curve;
pub mod cached_drive;
pub mod claims;
pub mod commands_table;
pub mod comparison;
pub mod demonstration;
pub mod drive_drawing;
pub mod experiment;
pub mod fit;
pub mod lent;
pub mod named;
pub mod nbd_client;
pub mod paper;
pub mod plot;
pub mod profiled;
pub mod profiling;
pub mod requests_table;
pub mod stream_plan;
pub mod system;
pub mod table;
pub mod text_file;
pub mod trace_events;
pub mod validate;

mod cpu_time;
mod dice;
mod failure;
mod label;
mod progress;

pub use cpu_time::cpu_time;
pub use failure::Failure;
pub use label::Label;
pub use progress::Progress;
