//! The freeblock paper's system: an Atlas 10K on a fast bus, and a load that always has ten requests
//! pending.

use std::sync::Arc;

use block::{Duration, Switch};
use drive::firmware::Bus;
use drive::{Profile, catalog};
use simulator::workload::{BuiltInWorkload, Overrides, Synthetic};

/// The drive, look-ahead and write cache off.
pub fn atlas() -> Arc<Profile> {
    let shipped = catalog::find("quantum-atlas-10k").expect("a shipped drive");
    let profile = shipped.profile().expect("a valid profile");
    let mut profile = profile.switched(Switch::Off, Switch::Off);
    // Ultra2 Wide SCSI, as in the freeblock paper's system: the profile's own is another one's.
    let block = Duration::from_nanos(6_400);
    profile.bus = Bus {
        read_block: block,
        write_block: block,
    };
    Arc::new(profile)
}

/// OLTP on it without pauses.
pub fn oltp(profile: &Profile) -> Synthetic {
    oltp_of(profile, None)
}

/// The same by so many tasks, each with one request at a time.
pub fn oltp_of(profile: &Profile, tasks: Option<u32>) -> Synthetic {
    let busy = Overrides {
        think_ms: Some(0.0),
        tasks,
        ..Overrides::default()
    };
    let load = BuiltInWorkload::find("oltp")
        .expect("a built-in load")
        .workload();
    let load = load
        .and_then(|load| load.with(&busy))
        .expect("a valid load");
    let capacity = profile.geometry.sectors().0;
    Synthetic::new(&load, profile.block_bytes, capacity).expect("it fits")
}
