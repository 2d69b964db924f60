//! Any bytes as a set of wanted blocks: a set that is written and read again as the same, or one
//! error with a message.

#![no_main]

use block::Sectors;
use drive::Geometry;
use drive::geometry::zoned::{Description, ZoneDescription};
use libfuzzer_sys::fuzz_target;
use scheduler::freeblock::WantedBlocks;

/// 240 blocks on 12 tracks.
fn geometry() -> Geometry {
    Geometry::zoned(&Description {
        surfaces: 2,
        cylinders: 6,
        blocks: 240,
        zones: vec![ZoneDescription {
            last_cylinder: 5,
            sectors_per_track: 20,
            ..ZoneDescription::default()
        }],
        ..Description::default()
    })
    .expect("a layout")
}

fuzz_target!(|bytes: &[u8]| {
    let geometry = geometry();
    match WantedBlocks::decode(&geometry, bytes) {
        Err(error) => assert!(error.to_string().contains("expected")),
        Ok(set) => {
            assert!(Sectors(set.left()) <= geometry.sectors());
            let mut written = Vec::new();
            set.encode(&mut written).expect("memory takes everything");
            let again = WantedBlocks::decode(&geometry, &written[..]).expect("what was written");
            assert!(set.extents().eq(again.extents()));
        }
    }
});
