//! Whole runs on the freeblock paper's system: what a scan costs beside its load, and a belief that is
//! kept true.

mod scenario;
mod system;
mod tracking;
