//! Any bytes as the state of a scan: one that is written and read again as the same, or one error
//! with a message.

#![no_main]

use block::Sectors;
use drive::Geometry;
use drive::geometry::zoned::{Description, ZoneDescription};
use libfuzzer_sys::fuzz_target;
use server::tasks::scan_file::ScanProgress;

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
    match ScanProgress::decode(&geometry, bytes) {
        Err(error) => assert!(error.to_string().contains("expected")),
        Ok((progress, left)) => {
            assert!(Sectors(left.left()) <= geometry.sectors());
            let mut written = Vec::new();
            let encoded = progress.encode(&left, &mut written);
            encoded.expect("memory takes everything");
            let again = ScanProgress::decode(&geometry, &written[..]);
            let (same, rest) = again.expect("what was written");
            assert_eq!(same, progress);
            assert!(rest.extents().eq(left.extents()));
        }
    }
});
