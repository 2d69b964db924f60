//! Headtime for Python: simulations, miss-ratio curves and validations as Arrow tables.
//!
//! ```text
//!   arguments --> lab's settings --run on a thread of its own, without the GIL--> lab's figures
//!                                                                                    |
//!     polars, pandas, pyarrow <--C stream-- Table <-- Result: tables, JSON, SVG <----'
//! ```
//!
//! JSON and files are those of the command line, byte for byte.

mod curves;
mod drives;
mod interrupt;
mod policy;
mod prefetcher;
mod profiling;
mod replacement;
mod results;
mod service;
mod simulation;
mod sweeps;
mod system;
mod table;
mod traces;
mod validation;

use pyo3::prelude::*;

/// Headtime: hard disks and caches in virtual time, with results as Arrow tables.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::curves::cache_curve;
    #[pymodule_export]
    use crate::drives::Drive;
    #[pymodule_export]
    use crate::policy::{Pending, PolicyView};
    #[pymodule_export]
    use crate::prefetcher::SeenRequest;
    #[pymodule_export]
    use crate::profiling::{Profiled, profile};
    #[pymodule_export]
    use crate::results::Results;
    #[pymodule_export]
    use crate::service::{Client, Refused, Stream};
    #[pymodule_export]
    use crate::simulation::simulate;
    #[pymodule_export]
    use crate::sweeps::{merge_shards, run_shard};
    #[pymodule_export]
    use crate::system::System;
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::traces::Trace;
    #[pymodule_export]
    use crate::validation::validate;
}
