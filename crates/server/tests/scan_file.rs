//! The state of a scan as a file: read as it was written, or refused.

use block::{Extent, Lba, Sectors};
use drive::Geometry;
use drive::geometry::zoned::{Description, ZoneDescription};
use proptest::prelude::*;
use scheduler::freeblock::WantedBlocks;
use server::tasks::scan_file::{Consumer, ScanFileError, ScanProgress};
use server::tasks::set_sum::SetSum;

/// As many blocks on tracks of 20.
fn geometry(cylinders: u32) -> Geometry {
    Geometry::zoned(&Description {
        surfaces: 2,
        cylinders,
        blocks: u64::from(cylinders) * 40,
        zones: vec![ZoneDescription {
            last_cylinder: cylinders - 1,
            sectors_per_track: 20,
            ..ZoneDescription::default()
        }],
        ..Description::default()
    })
    .expect("a layout")
}

fn progress() -> ScanProgress {
    let mut sum = SetSum::default();
    sum.add(512, &[7; 1024]);
    ScanProgress {
        drive: "disk".to_owned(),
        volume: "Bücher".to_owned(),
        offset: 4096,
        length: 40_960,
        block_bytes: 512,
        consumer: Consumer::Program,
        sum,
    }
}

fn wanted(geometry: &Geometry, extents: &[(u64, u64)]) -> WantedBlocks {
    let mut wanted = WantedBlocks::none(geometry);
    for &(start, length) in extents {
        let extent = Extent::new(Lba(start), Sectors(length)).expect("an extent");
        wanted.add(extent).expect("on the drive");
    }
    wanted
}

fn written(progress: &ScanProgress, left: &WantedBlocks) -> Vec<u8> {
    let mut bytes = Vec::new();
    let encoded = progress.encode(left, &mut bytes);
    encoded.expect("memory takes everything");
    bytes
}

fn again(bytes: &[u8]) -> Result<(ScanProgress, WantedBlocks), ScanFileError> {
    ScanProgress::decode(&geometry(6), bytes)
}

#[test]
fn it_is_read_as_it_was_written() {
    let left = wanted(&geometry(6), &[(9, 30), (100, 1)]);
    let (found, blocks) = again(&written(&progress(), &left)).expect("what was written");
    assert_eq!(found, progress());
    assert!(blocks.extents().eq(left.extents()));
}

#[test]
fn each_cut_and_each_changed_byte_is_found() {
    let bytes = written(&progress(), &wanted(&geometry(6), &[(9, 30), (100, 1)]));
    for length in 0..bytes.len() {
        let error = again(&bytes[..length]).expect_err("it is cut");
        assert!(error.to_string().contains("expected"), "{error}");
    }
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 0x10;
        let error = again(&changed).expect_err("it is changed");
        assert!(error.to_string().contains("expected"), "{error}");
    }
    let mut longer = bytes;
    longer.push(0);
    assert!(matches!(again(&longer), Err(ScanFileError::Longer)));
}

#[test]
fn that_of_another_drive_or_version_is_refused() {
    let left = wanted(&geometry(7), &[(9, 30)]);
    let error = again(&written(&progress(), &left)).expect_err("another drive");
    assert!(error.to_string().contains("240"), "{error}");
    let mut bytes = written(&progress(), &wanted(&geometry(6), &[(9, 30)]));
    bytes[8] = 2;
    assert!(matches!(again(&bytes), Err(ScanFileError::Version(2))));
}

proptest! {
    #[test]
    fn any_bytes_are_a_state_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let head = written(&progress(), &wanted(&geometry(6), &[(9, 30)]));
        for kept in [0, 8, 12, 30] {
            let bytes = [&head[..kept], &bytes[..]].concat();
            if let Err(error) = again(&bytes) {
                prop_assert!(error.to_string().contains("expected"), "{}", error);
            }
        }
    }
}
