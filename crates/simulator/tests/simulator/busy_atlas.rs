//! Whole runs on the freeblock paper's system: what a scan costs beside its load, and a belief that is
//! kept true.

mod scenario;
mod slow_bus;
mod system;
mod tracking;
