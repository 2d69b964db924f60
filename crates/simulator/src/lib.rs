//! Runs engines in virtual time: traces, workloads, validation, claims, reports.

pub mod caching;
pub mod claims;
pub mod experiment;
pub mod fit;
pub mod ledger;
pub mod playing;
pub mod plot;
pub mod replay;
pub mod run;
pub mod scenario;
pub mod streaming;
pub mod trace;
pub mod validate;
pub mod workload;
