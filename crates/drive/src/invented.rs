//! A small invented drive, for the tests of the crates above: its profile, and a drive that is simpler
//! than [`VirtualDrive`](crate::VirtualDrive).

use std::sync::Arc;

use crate::firmware::{AfterPrevious, BufferRules, Bus, Overheads, QueueOrder, QueueRules};
use crate::geometry::{Geometry, zoned};
use crate::seek::{SeekCurve, SeekTable};
use crate::{Angle, Profile, Provenance, Spindle, catalog};
use block::Duration;

mod simple;

pub use simple::{COMPLETION, SimpleDrive};

/// Cylinders of the drive: few, so that ties are frequent.
pub const CYLINDERS: u32 = 40;

/// The profile: two surfaces, two zones, and a seek table that falls before it rises, as measured ones
/// do. Every number that times depend on is set here.
///
/// # Panics
/// If the profile is not valid, which the tests would show.
pub fn profile() -> Profile {
    let shipped = catalog::find("hp-c2247a").expect("a shipped drive");
    let mut profile = shipped.profile().expect("a valid profile");
    profile.name = "invented".to_owned();
    profile.provenance = Provenance::Invented;
    profile.block_bytes = 512;
    profile.actuators = 1;
    profile.spindle = Spindle::from_period_ps(6_000_000_000);
    profile.seek = SeekCurve::new(seek([900, 700, 1100, 4000]), seek([1000, 900, 1300, 4500]));
    profile.head_switch = Duration::from_micros(800);
    profile.write_settle_nanos = 200_000;
    profile.geometry = Arc::new(geometry());
    profile.overheads = Overheads {
        read_miss: after(100, 130),
        write_miss: after(250, 210),
        ..Overheads::default()
    };
    profile.buffer = BufferRules::default();
    profile.bus = Bus::default();
    profile.queue = QueueRules {
        depth: 64,
        order: QueueOrder::Fcfs,
    };
    profile
}

fn after(read: u64, write: u64) -> AfterPrevious {
    AfterPrevious {
        read: Duration::from_micros(read),
        write: Duration::from_micros(write),
    }
}

fn seek(micros: [u64; 4]) -> SeekTable {
    let distances = [1, 3, 5, 30];
    let points = distances.into_iter().zip(micros.map(Duration::from_micros));
    SeekTable::new(points.collect(), CYLINDERS).expect("a valid seek table")
}

fn geometry() -> Geometry {
    let zone = |first_cylinder, last_cylinder, sectors_per_track: u32| zoned::ZoneDescription {
        first_cylinder,
        last_cylinder,
        sectors_per_track,
        track_skew: Angle::fraction(1, 5),
        cylinder_skew: Angle::fraction(1, 4),
        ..zoned::ZoneDescription::default()
    };
    Geometry::zoned(&zoned::Description {
        surfaces: 2,
        cylinders: CYLINDERS,
        blocks: 2 * 20 * (40 + 30),
        zones: vec![zone(0, 19, 40), zone(20, 39, 30)],
        ..zoned::Description::default()
    })
    .expect("a valid layout")
}
