//! Runs engines in virtual time: traces, workloads, validation, reports.

pub mod ledger;
pub mod run;
pub mod trace;
