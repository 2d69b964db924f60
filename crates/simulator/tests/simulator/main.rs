//! Whole runs in virtual time, and the figures that they report.

mod busy_atlas;
mod caching;
mod ledger;
mod mirror;
mod policies;
mod preemption;
mod run;
mod streams;
mod two_actuators;
