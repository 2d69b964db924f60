//! Every small zone with a few slips, in every way of sparing: each track is found and has its
//! blocks.

use drive::geometry::zoned::{Description, HeadOrder, Sparing, ZoneDescription};
use drive::{Angle, Geometry};

use crate::random_layouts::SPARINGS;

/// The layout of one zone of two cylinders, if it is one.
fn zone(
    sparing: Sparing,
    sectors: u32,
    (spares, unmapped): (u32, u32),
    slips: &[u32],
) -> Option<Geometry> {
    let of = |blocks| Description {
        surfaces: 2,
        cylinders: 2,
        blocks,
        head_order: HeadOrder::Ascending,
        sparing,
        range_cylinders: 1,
        zones: vec![ZoneDescription {
            first_cylinder: 0,
            last_cylinder: 1,
            sectors_per_track: sectors,
            start: Angle::ZERO,
            unmapped,
            track_skew: Angle::fraction(1, 7),
            cylinder_skew: Angle::fraction(2, 7),
            spares,
            slips: slips.to_vec(),
            remaps: Vec::new(),
        }],
    };
    // As many blocks as it holds.
    let most = u64::from(sectors) * 4;
    (1..=most)
        .rev()
        .find_map(|blocks| Geometry::zoned(&of(blocks)).ok())
}

#[test]
fn every_track_of_small_zones_with_slips_is_found() {
    let mut seen = 0;
    for sparing in SPARINGS {
        for (sectors, spares) in (3..6).flat_map(|n| (0..20).map(move |n2| (n, (n2 % 4, n2 / 4)))) {
            for (one, other) in (0..sectors * 4).flat_map(|a| (a..sectors * 4).map(move |b| (a, b)))
            {
                let slips = if one == other {
                    vec![one]
                } else {
                    vec![one, other]
                };
                let Some(geometry) = zone(sparing, sectors, spares, &slips) else {
                    continue;
                };
                seen += 1;
                let mut blocks = 0;
                for (cylinder, head) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let Some(track) = geometry.track_at(cylinder, head) else {
                        continue;
                    };
                    for lba in track.first.0..=track.last.0 {
                        let place = geometry.locate(block::Lba(lba)).expect("a block");
                        assert_eq!((place.cylinder, place.head), (cylinder, head));
                        blocks += 1;
                    }
                }
                assert_eq!(
                    blocks,
                    geometry.sectors().0,
                    "{sparing:?} {sectors} {spares:?} {slips:?}"
                );
            }
        }
    }
    assert!(seen > 1_000, "{seen}");
}

/// A slip behind the last block, because the sector after it is where another block was remapped to:
/// the tracks after the last block have none.
#[test]
fn a_slip_behind_the_last_block_is_behind_the_last_block() {
    let mut seen = 0;
    for from in 0..162 {
        let description = Description {
            surfaces: 3,
            cylinders: 6,
            blocks: 137,
            head_order: HeadOrder::Ascending,
            sparing: Sparing::CylinderFrontSlipToZoneEnd,
            range_cylinders: 0,
            zones: vec![ZoneDescription {
                first_cylinder: 0,
                last_cylinder: 5,
                sectors_per_track: 9,
                start: Angle::ZERO,
                unmapped: 4,
                track_skew: Angle::fraction(1, 9),
                cylinder_skew: Angle::fraction(2, 9),
                spares: 3,
                slips: vec![55, 82, 160],
                remaps: vec![(from, 161)],
            }],
        };
        let Ok(geometry) = Geometry::zoned(&description) else {
            continue;
        };
        seen += 1;
        let tracks = (0..6).flat_map(|cylinder| (0..3).map(move |head| (cylinder, head)));
        let found = tracks.filter_map(|(cylinder, head)| geometry.track_at(cylinder, head));
        let last = found.map(|track| track.last.0).max();
        assert_eq!(last, Some(136), "{from}");
    }
    assert!(seen > 100, "{seen}");
}
