//! Caches in levels over a disk, in virtual time: the system model of the PFC paper.
//!
//! ```text
//!   clients        L1, L1, ..      a cache and a prefetcher for each client
//!                     |  messages: missing blocks with what is fetched along; prefetches by themselves
//!                   link           start and a time for each page, once for each reply
//!                     |
//!                coordinator
//!                    L2            one for all clients; more levels below it in the same way
//!                     |  runs of blocks
//!                I/O scheduler     merges neighbours up to 128 sectors, one-way elevator; or our engine
//!                     |
//!                    disk          a virtual drive, one command at a time; or as the engine likes
//! ```
//!
//! `shared/specs/cache-and-pfc.md`, 9; Zhang, Lee, Ma, Zhou, ICDCS 2008, 4.1. Nothing here reads a
//! clock or opens a file. A load supplies requests, and [`run()`] advances from event to event and
//! returns a report.

pub mod cases;
pub mod disk;
mod elevator;
mod engine_disk;
pub mod figures;
mod jobs;
pub mod load;
mod lowest;
mod merging;
mod node;
pub mod report;
mod run;
pub mod setup;
pub mod synthetic;
mod system;
#[cfg(test)]
mod tests;
pub mod traced;
mod wishes;

pub use load::{ArrivalTiming, CacheArrival, CacheLoad};
pub use report::{CachingReport, LevelReport, Slack};
pub use run::run;
pub use setup::{
    BadSetup, CacheSpec, CachingSetup, EngineScheduling, ExternalBelief, FileEnds, Link,
    LowerLevel, Readmore, Scheduler, Writes,
};
pub use system::System;
