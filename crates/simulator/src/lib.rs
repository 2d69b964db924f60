//! Runs engines in virtual time: traces, workloads, validation, reports.

pub mod fit;
pub mod trace;
pub mod validate;
