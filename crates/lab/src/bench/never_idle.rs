//! The load of benchmarks beside which a disk is never idle: that of the freeblock paper.

use drive::Profile;
use simulator::workload::{BuiltInWorkload, Overrides, Synthetic};

use crate::Failure;

/// OLTP without think times, ten requests always active (Lumb et al., FAST 2002, 5.1).
const LOAD: &str = "oltp";

/// The load on a drive; without a seed, that of the built-in load.
///
/// # Errors
/// If it does not fit on the drive.
pub(super) fn load(seed: Option<u64>, drive: &Profile) -> Result<Synthetic, Failure> {
    let load = BuiltInWorkload::find(LOAD)
        .ok_or_else(|| Failure::failed(format!("{LOAD} is not built in")))?;
    let always_active = Overrides {
        seed,
        think_ms: Some(0.0),
        ..Overrides::default()
    };
    let load = load.workload().and_then(|load| load.with(&always_active));
    let load = load.map_err(Failure::failed)?;
    let capacity = drive.geometry.sectors().0;
    Synthetic::new(&load, drive.block_bytes, capacity).map_err(Failure::failed)
}
