//! Small random layouts against a naive enumeration of every sector.

use std::collections::BTreeSet;

use block::Lba;
use drive::Angle;
use drive::geometry::Geometry;
use drive::geometry::indexed::{self, GroupDescription, GroupRun, TrackRun};
use drive::geometry::zoned::{Description, HeadOrder, Sparing, ZoneDescription};
use proptest::prelude::*;

use crate::oracle;

/// Cylinder, head, sector.
type Sector = (u32, u32, u32);

/// Every way of sparing.
pub const SPARINGS: [Sparing; 11] = [
    Sparing::None,
    Sparing::Tracks,
    Sparing::CylinderEnd,
    Sparing::TrackEnd,
    Sparing::CylinderEndSlipToZoneEnd,
    Sparing::CylinderFront,
    Sparing::CylinderFrontSlipToZoneEnd,
    Sparing::DiskEnd,
    Sparing::RangeEnd,
    Sparing::ZoneEnd,
    Sparing::ZoneEndSlipToZoneEnd,
];

/// The positions of a zone that hold blocks, in their order, before remapping.
fn positions(drive: &Description, zone: &ZoneDescription) -> Vec<u32> {
    let cylinders = zone.last_cylinder - zone.first_cylinder + 1;
    let per_track = zone.sectors_per_track;
    let per_cylinder = per_track * drive.surfaces;
    let all = per_cylinder * cylinders;
    let spares = zone.spares as usize;
    let slips: BTreeSet<u32> = zone.slips.iter().copied().collect();
    let good = |range: std::ops::Range<u32>| -> Vec<u32> {
        range.filter(|position| !slips.contains(position)).collect()
    };
    // Fills parts of `size` sectors one by one; each keeps `spares` of its good sectors.
    let parts = |size: u32| {
        let mut held = Vec::new();
        for begin in (0..all).step_by(size as usize) {
            let end = (begin + size).min(all);
            let good = good(begin..end);
            let keep = (size as usize - spares).min(good.len());
            match drive.sparing {
                Sparing::CylinderFront => held.extend(&good[good.len() - keep..]),
                _ => held.extend(&good[..keep]),
            }
        }
        held
    };
    let across = |front: bool| {
        let mut held: Vec<u32> = good(0..all)
            .into_iter()
            .filter(|position| {
                let offset = position % per_cylinder;
                if front {
                    offset >= zone.spares
                } else {
                    offset < per_cylinder - zone.spares
                }
            })
            .collect();
        held.truncate((all - zone.spares * cylinders) as usize - slips.len());
        held
    };
    let mut held = match drive.sparing {
        Sparing::None | Sparing::DiskEnd => good(0..all),
        Sparing::Tracks => {
            let mut held: Vec<u32> = (0..all)
                .filter(|position| !slips.contains(&(position / per_track)))
                .collect();
            held.truncate(all as usize - spares * per_track as usize);
            held
        }
        Sparing::TrackEnd => parts(per_track),
        Sparing::CylinderEnd | Sparing::CylinderFront => parts(per_cylinder),
        Sparing::RangeEnd => parts(per_cylinder * drive.range_cylinders),
        Sparing::CylinderEndSlipToZoneEnd => across(false),
        Sparing::CylinderFrontSlipToZoneEnd => across(true),
        Sparing::ZoneEnd | Sparing::ZoneEndSlipToZoneEnd => {
            let mut held = good(0..all);
            let slipped = match drive.sparing {
                Sparing::ZoneEnd => 0,
                _ => slips.len(),
            };
            held.truncate(all as usize - spares - slipped);
            held
        }
    };
    held.drain(..zone.unmapped as usize);
    held
}

/// Every block's sector, by counting.
fn enumerate(drive: &Description) -> Vec<Sector> {
    let mut sectors = Vec::new();
    for zone in &drive.zones {
        for mut position in positions(drive, zone) {
            let per = match drive.sparing {
                Sparing::Tracks => zone.sectors_per_track,
                _ => 1,
            };
            if let Some((_, to)) = zone.remaps.iter().find(|(from, _)| *from == position / per) {
                position = to * per + position % per;
            }
            let track = position / zone.sectors_per_track;
            let (cylinder, turn) = (track / drive.surfaces, track % drive.surfaces);
            let odd = match drive.head_order {
                HeadOrder::Ascending => 0,
                HeadOrder::AlternatingInZone => cylinder % 2,
                HeadOrder::AlternatingByParity => (zone.first_cylinder + cylinder) % 2,
            };
            let head = if odd == 1 {
                drive.surfaces - 1 - turn
            } else {
                turn
            };
            let sector = position % zone.sectors_per_track;
            sectors.push((zone.first_cylinder + cylinder, head, sector));
        }
    }
    sectors
}

/// What a layout says, against the enumeration: every block, and every sector.
fn check(geometry: &Geometry, sectors: &[Sector], sectors_per_track: u32) {
    assert_eq!(geometry.sectors().0, sectors.len() as u64);
    for (lba, &(cylinder, head, sector)) in (0..).zip(sectors) {
        let place = geometry.locate(Lba(lba)).expect("a block");
        assert_eq!(
            (place.cylinder, place.head, place.sector),
            (cylinder, head, sector),
            "{lba}"
        );
    }
    let mut found = 0;
    for cylinder in 0..geometry.cylinders() {
        for head in 0..geometry.surfaces() {
            for sector in 0..sectors_per_track {
                let Some(Lba(lba)) = geometry.lba_at(cylinder, head, sector) else {
                    continue;
                };
                assert_eq!(sectors[lba as usize], (cylinder, head, sector));
                found += 1;
            }
        }
    }
    assert_eq!(found, sectors.len());
    let extent = block::Extent::new(Lba(0), geometry.sectors()).expect("a drive with blocks");
    let ours: Vec<_> = geometry.runs(extent).collect();
    let blocks: u64 = ours.iter().map(|run| u64::from(run.blocks)).sum();
    assert_eq!(blocks, sectors.len() as u64);
}

prop_compose! {
    fn zone(sparing: Sparing, surfaces: u32)(
        gap in 0u32..2,
        cylinders in 1u32..5,
        sectors_per_track in 4u32..9,
        spares in 0u32..4,
        unmapped in 0u32..7,
        track_skew in 0u64..9,
        cylinder_skew in 0u64..9,
        slips in proptest::collection::btree_set(0u32..400, 0..4),
    ) -> (u32, u32, ZoneDescription) {
        let all = cylinders * surfaces * sectors_per_track;
        let limit = if sparing == Sparing::Tracks { all / sectors_per_track } else { all };
        (gap, cylinders, ZoneDescription {
            sectors_per_track,
            spares,
            unmapped,
            track_skew: Angle::fraction(track_skew, sectors_per_track.into()),
            cylinder_skew: Angle::fraction(cylinder_skew, sectors_per_track.into()),
            slips: slips.into_iter().filter(|slip| *slip < limit).collect(),
            ..ZoneDescription::default()
        })
    }
}

fn drive() -> impl Strategy<Value = Description> {
    let orders = [
        HeadOrder::Ascending,
        HeadOrder::AlternatingInZone,
        HeadOrder::AlternatingByParity,
    ];
    (
        proptest::sample::select(&SPARINGS[..]),
        proptest::sample::select(orders.to_vec()),
        1u32..4,
        1u32..3,
    )
        .prop_flat_map(|(sparing, head_order, surfaces, range_cylinders)| {
            proptest::collection::vec(zone(sparing, surfaces), 1..4).prop_map(move |zones| {
                let mut next = 0;
                let zones: Vec<_> = zones
                    .into_iter()
                    .map(|(gap, cylinders, zone)| {
                        let first_cylinder = next + gap;
                        next = first_cylinder + cylinders;
                        ZoneDescription {
                            first_cylinder,
                            last_cylinder: next - 1,
                            ..zone
                        }
                    })
                    .collect();
                Description {
                    surfaces,
                    cylinders: next,
                    blocks: 1,
                    head_order,
                    sparing,
                    range_cylinders,
                    zones,
                }
            })
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn zones_are_filled_as_by_counting(mut drive in drive()) {
        // Descriptions that are refused are not the subject; how many there are is another test.
        if Geometry::zoned(&drive).is_ok() {
            drive.blocks = enumerate(&drive).len() as u64;
            let geometry = Geometry::zoned(&drive).expect("as many blocks as were counted");
            check(&geometry, &enumerate(&drive), 9);
            for lba in 0..drive.blocks {
                oracle::check_block(&geometry, lba, 1 + lba % 13);
            }
            // One more than there are is refused, with the key.
            drive.blocks += 1;
            let error = Geometry::zoned(&drive).expect_err("too many blocks");
            prop_assert_eq!(error.key, "blocks");
        }
    }
}

/// The share of random descriptions that are layouts: were it small, the property above would
/// say little.
#[test]
fn most_random_descriptions_are_layouts() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut fine = 0;
    for _ in 0..500 {
        let drive = drive().new_tree(&mut runner).expect("a value").current();
        fine += usize::from(Geometry::zoned(&drive).is_ok());
    }
    assert!(fine > 200, "{fine} of 500");
}

#[test]
fn remapped_sectors_are_runs_of_their_own() {
    let mut drive = Description {
        surfaces: 2,
        cylinders: 2,
        blocks: 1,
        sparing: Sparing::ZoneEnd,
        zones: vec![ZoneDescription {
            last_cylinder: 1,
            sectors_per_track: 10,
            spares: 5,
            slips: vec![3],
            remaps: vec![(5, 38), (12, 39)],
            ..ZoneDescription::default()
        }],
        ..Description::default()
    };
    drive.blocks = enumerate(&drive).len() as u64;
    assert_eq!(drive.blocks, 35);
    let geometry = Geometry::zoned(&drive).expect("a layout");
    check(&geometry, &enumerate(&drive), 10);
    let extent = block::Extent::new(Lba(0), block::Sectors(20)).expect("an extent");
    let runs: Vec<_> = geometry
        .runs(extent)
        .map(|run| (run.first.0, run.blocks))
        .collect();
    // Block 4 is at position 5, block 11 at 12; the first track ends with block 8.
    assert_eq!(
        runs,
        [(0, 4), (4, 1), (5, 4), (9, 2), (11, 1), (12, 7), (19, 1)]
    );
    // The defect itself holds nothing now.
    assert_eq!(geometry.lba_at(0, 0, 5), None);
    assert_eq!(geometry.lba_at(1, 1, 8), Some(Lba(4)));
}

/// Every block's sector of nested groups, by walking through them.
fn walk(drive: &indexed::Description) -> Vec<Sector> {
    fn group(drive: &indexed::Description, index: usize, base: u32, places: &mut Vec<Sector>) {
        match &drive.groups[index] {
            GroupDescription::Tracks(runs) => {
                for run in runs {
                    for nth in 0..run.tracks.unsigned_abs() {
                        let cylinder = base
                            + if run.tracks < 0 {
                                run.cylinder - nth
                            } else {
                                run.cylinder + nth
                            };
                        places.extend((0..run.blocks).map(|sector| (cylinder, run.head, sector)));
                    }
                }
            }
            GroupDescription::Groups(runs) => {
                for run in runs {
                    for nth in 0..run.repeats {
                        let base = base + run.cylinder + nth * run.cylinders;
                        group(drive, run.group as usize, base, places);
                    }
                }
            }
        }
    }
    let mut places = Vec::new();
    group(drive, drive.groups.len() - 1, 0, &mut places);
    let slipped = |place: u64| {
        let mut slips = drive.slips.iter();
        slips.any(|&(first, count)| place >= first && place < first + u64::from(count))
    };
    (0..)
        .zip(places)
        .filter(|(place, _)| !slipped(*place))
        .map(|(_, sector)| sector)
        .collect()
}

/// A serpentine over two surfaces, repeated, then the same with other tracks.
fn serpentines() -> impl Strategy<Value = indexed::Description> {
    (
        1u32..5,
        2u32..9,
        2u32..9,
        1u32..4,
        1u32..4,
        proptest::array::uniform2(0u32..3),
        proptest::collection::btree_map(0u64..60, 1u32..4, 0..4),
    )
        .prop_map(|(tracks, outer, inner, repeats, more, spares, slips)| {
            let band = |sectors: u32| {
                let run = |cylinder, head, tracks: i32| TrackRun {
                    cylinder,
                    head,
                    sectors,
                    start: Angle::fraction(u64::from(head), 3),
                    tracks,
                    step: Angle::fraction(1, 7),
                    blocks: sectors - spares[head as usize].min(sectors - 1),
                };
                GroupDescription::Tracks(vec![
                    run(0, 0, tracks as i32),
                    run(tracks - 1, 1, -(tracks as i32)),
                ])
            };
            let run = |group, cylinder, repeats| GroupRun {
                group,
                cylinder,
                start: Angle::fraction(1, 5),
                repeats,
                cylinders: tracks,
                step: Angle::fraction(1, 11),
            };
            let mut end = 0;
            let slips = slips
                .into_iter()
                .filter(|&(place, count)| {
                    let fits = place >= end;
                    if fits {
                        end = place + u64::from(count);
                    }
                    fits
                })
                .collect();
            indexed::Description {
                surfaces: 2,
                cylinders: tracks * (repeats + more),
                blocks: 1,
                groups: vec![
                    band(outer),
                    band(inner),
                    GroupDescription::Groups(vec![
                        run(0, 0, repeats),
                        run(1, tracks * repeats, more),
                    ]),
                ],
                slips,
                remaps: Vec::new(),
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn groups_are_filled_as_by_walking(mut drive in serpentines()) {
        let total: u64 = {
            let slips = std::mem::take(&mut drive.slips);
            let total = walk(&drive).len() as u64;
            drive.slips = slips;
            total
        };
        drive.slips.retain(|&(place, count)| place + u64::from(count) < total);
        let sectors = walk(&drive);
        drive.blocks = sectors.len() as u64;
        let geometry = Geometry::indexed(&drive).expect("a layout");
        check(&geometry, &sectors, 9);
        for lba in 0..drive.blocks {
            oracle::check_block(&geometry, lba, 1 + lba % 13);
        }
        drive.blocks += 1;
        let error = Geometry::indexed(&drive).expect_err("too many blocks");
        prop_assert_eq!(error.key, "blocks");
    }
}
