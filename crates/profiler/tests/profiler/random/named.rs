//! What random drives have shown to be wrong, each as small as it could be made.

use drive::firmware::{LookAhead, WriteBack};
use drive::geometry::zoned::{HeadOrder, Sparing};
use drive::random::{
    BandReturn, RandomArm, RandomDrive, RandomFaults, RandomFirmware, RandomLayout, RandomZone,
    TrackOrder,
};

use super::judge::Judged;

/// A drive of some zones without anything irregular.
pub(crate) fn plain(surfaces: u32, order: TrackOrder, zones: &[RandomZone]) -> RandomDrive {
    RandomDrive {
        seed: 1,
        rpm: 7_200,
        layout: RandomLayout {
            surfaces,
            order,
            zones: zones.to_vec(),
            densities: vec![64; 12],
            slips: Vec::new(),
            remaps: Vec::new(),
        },
        arm: RandomArm {
            head_switch_us: 500,
            settle_us: 1_400,
            stroke_us: 9_000,
            jag_us: 0,
            write_settle_us: 300,
        },
        firmware: RandomFirmware {
            overhead_us: 300,
            bus_mb_s: 80,
            segments: 4,
            look_ahead: LookAhead::Track,
            write_back: WriteBack::None,
            zero_latency: false,
        },
        faults: RandomFaults {
            seek_noise_us: 60,
            electronics_us: 20,
            spindle_ppm: 0,
            drift_ppm: 0,
            retries_per_million: 0,
            grown: Vec::new(),
        },
    }
}

pub(crate) fn zone(
    cylinders: u32,
    sectors: u32,
    track_skew: u32,
    cylinder_skew: u32,
) -> RandomZone {
    RandomZone {
        cylinders,
        sectors,
        track_skew,
        cylinder_skew,
    }
}

/// Everything is found, and found right.
fn check(plan: &RandomDrive) {
    let judged = Judged::of(plan);
    let complaints = judged.complaints();
    assert!(complaints.is_empty(), "{complaints:?} {judged:?}");
    assert!(judged.is_known() && judged.exact >= 1.0, "{judged:?}");
    assert_eq!(judged.surfaces.0, judged.surfaces.1, "{judged:?}");
    assert!(judged.distances > 0.99, "{judged:?}");
}

/// The skew from the shorter first track of a cylinder to the second is another than the others: it is
/// not that to another cylinder.
#[test]
fn spare_sectors_before_the_blocks_of_cylinders() {
    for surfaces in [3, 8] {
        let order = TrackOrder::Cylinders(HeadOrder::Ascending, Sparing::CylinderFront, 9);
        check(&plain(surfaces, order, &[zone(150, 129, 130, 298)]));
    }
}

/// Only the time from track to track tells where cylinders begin.
#[test]
fn skews_that_are_all_alike() {
    let order = TrackOrder::Cylinders(HeadOrder::Ascending, Sparing::None, 0);
    check(&plain(5, order, &[zone(200, 180, 250, 250)]));
}

/// The last track of the first zone ends where the first of the second begins, up to a sector: which of
/// the two a block is on, only the length of the second tells.
#[test]
fn zones_that_end_where_the_next_begins() {
    let order = TrackOrder::Cylinders(HeadOrder::AlternatingByParity, Sparing::None, 0);
    for seed in 0..4 {
        let mut plan = plain(
            10,
            order,
            &[zone(128, 65, 279, 342), zone(60, 63, 297, 233)],
        );
        plan.seed = seed;
        plan.faults.electronics_us = 0;
        plan.faults.seek_noise_us = 0;
        check(&plan);
    }
}

/// A serpentine all of whose rows have another length is not recognised: then nobody may believe the
/// seek table, whose distances are none.
#[test]
fn seeks_over_cylinders_that_were_not_found() {
    let zones: Vec<RandomZone> = (0u32..9)
        .map(|n| zone(45 + n * n % 7 * 13, 400 - 20 * n, 150 + 20 * n, 134))
        .collect();
    let mut plan = plain(10, TrackOrder::Bands(1_000, BandReturn::Same), &zones);
    plan.arm.head_switch_us = 1_900;
    plan.arm.settle_us = 2_800;
    let judged = Judged::of(&plan);
    assert!(judged.ways < 0.9, "the drive is no longer hard: {judged:?}");
    assert!(judged.arm < 0.75 && judged.layout < 0.75, "{judged:?}");
    assert!(judged.complaints().is_empty(), "{judged:?}");
}
