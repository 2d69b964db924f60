//! Blocks of nested patterns that were moved to sectors without blocks.

use block::Lba;
use drive::geometry::indexed::{self, GroupDescription, TrackRun};
use drive::geometry::remap::Remap;
use drive::{Angle, Geometry};

#[test]
fn indexed_blocks_can_be_remapped_to_slipped_sectors() {
    let drive = indexed::Description {
        surfaces: 1,
        cylinders: 2,
        blocks: 18,
        groups: vec![GroupDescription::Tracks(vec![TrackRun {
            cylinder: 0,
            head: 0,
            sectors: 10,
            start: Angle::ZERO,
            tracks: 2,
            step: Angle::ZERO,
            blocks: 10,
        }])],
        slips: vec![(18, 2)],
        remaps: vec![Remap {
            first: 4,
            blocks: 2,
            cylinder: 1,
            head: 0,
            sector: 8,
        }],
    };
    let geometry = Geometry::indexed(&drive).expect("a layout");
    assert_eq!(geometry.lba_at(1, 0, 9), Some(Lba(5)));
    assert_eq!(geometry.lba_at(0, 0, 5), None);
    let extent = block::Extent::new(Lba(0), block::Sectors(18)).expect("an extent");
    let runs: Vec<_> = geometry
        .runs(extent)
        .map(|run| (run.first.0, run.blocks, run.cylinder))
        .collect();
    assert_eq!(runs, [(0, 4, 0), (4, 2, 1), (6, 4, 0), (10, 8, 1)]);
    let onto_a_block = Remap {
        sector: 7,
        ..drive.remaps[0]
    };
    let error = Geometry::indexed(&indexed::Description {
        remaps: vec![onto_a_block],
        ..drive
    })
    .expect_err("a sector that is in use");
    assert_eq!(error.key, "remaps");
}

#[test]
fn spares_of_a_track_take_remapped_blocks() {
    let run = TrackRun {
        cylinder: 0,
        head: 0,
        sectors: 10,
        start: Angle::ZERO,
        tracks: 2,
        step: Angle::ZERO,
        blocks: 8,
    };
    let drive = indexed::Description {
        surfaces: 1,
        cylinders: 2,
        blocks: 16,
        groups: vec![GroupDescription::Tracks(vec![run])],
        slips: Vec::new(),
        remaps: vec![Remap {
            first: 3,
            blocks: 1,
            cylinder: 1,
            head: 0,
            sector: 9,
        }],
    };
    let geometry = Geometry::indexed(&drive).expect("a layout");
    assert_eq!(geometry.lba_at(1, 0, 9), Some(Lba(3)));
    assert_eq!(geometry.lba_at(0, 0, 8), None);
    let place = geometry.locate(Lba(8)).expect("a block");
    assert_eq!((place.cylinder, place.sector), (1, 0));
    assert_eq!(place.sectors_per_track, 10);
    for (blocks, reason) in [(0, "0 blocks"), (11, "11 blocks on a track of 10")] {
        let groups = vec![GroupDescription::Tracks(vec![TrackRun { blocks, ..run }])];
        let wrong = indexed::Description {
            groups,
            ..drive.clone()
        };
        let error = Geometry::indexed(&wrong).expect_err("a track with other blocks");
        assert_eq!((error.key, error.entry), ("tracks", Some(0)));
        assert!(error.reason.contains(reason), "{}", error.reason);
    }
}
