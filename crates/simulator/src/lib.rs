//! Runs engines in virtual time: traces, workloads, mirrors, caches in levels, reports.

pub mod caching;
pub mod driver;
pub mod ledger;
pub mod load;
pub mod mirror;
pub mod playing;
pub mod replay;
pub mod requests_file;
pub mod run;
pub mod scenario;
pub mod streaming;
pub mod trace;
pub mod workload;
