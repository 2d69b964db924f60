//! Small random drives, and random sets of wanted blocks.

use std::collections::BTreeSet;
use std::sync::Arc;

use block::{Duration, Extent, Lba, Sectors};
use drive::firmware::{BufferRules, Bus, Overheads, QueueOrder, QueueRules};
use drive::geometry::indexed::{self, GroupDescription, GroupRun, TrackRun};
use drive::geometry::zoned::{Description, HeadOrder, Sparing, ZoneDescription};
use drive::geometry::{Geometry, remap::Remap};
use drive::seek::{SeekCurve, SeekTable};
use drive::{Angle, Profile, Provenance, Spindle, catalog};
use proptest::prelude::*;

/// Whether blocks may have been moved to spare sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    None,
    Some,
}

pub fn extent(start: u64, blocks: u64) -> Extent {
    Extent::new(Lba(start), Sectors(blocks)).expect("an extent")
}

prop_compose! {
    fn zone(sparing: Sparing, surfaces: u32, moved: Moved)(
        gap in 0u32..2,
        cylinders in 1u32..7,
        sectors_per_track in 4u32..20,
        spares in 0u32..4,
        unmapped in 0u32..7,
        start in 0u64..40,
        track_skew in 0u64..20,
        cylinder_skew in 0u64..20,
        slips in proptest::collection::btree_set(0u32..800, 0..6),
        remaps in proptest::collection::btree_map(0u32..800, 0u32..800, 0..5),
    ) -> (u32, u32, ZoneDescription) {
        let all = cylinders * surfaces * sectors_per_track;
        let limit = if sparing == Sparing::Tracks { all / sectors_per_track } else { all };
        let remaps = if moved == Moved::None { Default::default() } else { remaps };
        (gap, cylinders, ZoneDescription {
            sectors_per_track,
            spares,
            unmapped,
            start: Angle::fraction(start, 40),
            track_skew: Angle::fraction(track_skew, sectors_per_track.into()),
            cylinder_skew: Angle::fraction(cylinder_skew, sectors_per_track.into()),
            slips: slips.into_iter().filter(|slip| *slip < limit).collect(),
            remaps: remaps.into_iter().collect(),
            ..ZoneDescription::default()
        })
    }
}

fn zoned(moved: Moved) -> impl Strategy<Value = Geometry> {
    let orders = [
        HeadOrder::Ascending,
        HeadOrder::AlternatingInZone,
        HeadOrder::AlternatingByParity,
    ];
    let sparings = [
        Sparing::None,
        Sparing::Tracks,
        Sparing::CylinderEnd,
        Sparing::TrackEnd,
        Sparing::CylinderFrontSlipToZoneEnd,
        Sparing::DiskEnd,
        Sparing::ZoneEnd,
    ];
    (
        proptest::sample::select(sparings.to_vec()),
        proptest::sample::select(orders.to_vec()),
        1u32..5,
    )
        .prop_flat_map(move |(sparing, head_order, surfaces)| {
            proptest::collection::vec(zone(sparing, surfaces, moved), 1..4).prop_map(move |zones| {
                let mut next = 0;
                let placed = zones.into_iter().map(|(gap, cylinders, zone)| {
                    let first_cylinder = next + gap;
                    next = first_cylinder + cylinders;
                    ZoneDescription {
                        first_cylinder,
                        last_cylinder: next - 1,
                        ..zone
                    }
                });
                let zones: Vec<_> = placed.collect();
                Description {
                    surfaces,
                    cylinders: next,
                    blocks: 1,
                    head_order,
                    sparing,
                    range_cylinders: 1,
                    zones,
                }
            })
        })
        .prop_filter_map("not a layout", filled)
}

/// Adds the remaps that can be: each from a block to the last sectors without one.
fn moved(mut description: Description) -> Geometry {
    for zone in 0..description.zones.len() {
        let described = &mut description.zones[zone];
        let froms = std::mem::take(&mut described.remaps);
        let tracks =
            (described.last_cylinder - described.first_cylinder + 1) * description.surfaces;
        let places = tracks * described.sectors_per_track;
        let mut to = places;
        for (from, _) in froms {
            while to > 0 && to + 64 > places {
                to -= 1;
                description.zones[zone].remaps.push((from % places, to));
                if Geometry::zoned(&description).is_ok() {
                    break;
                }
                description.zones[zone].remaps.pop();
            }
        }
    }
    Geometry::zoned(&description).expect("it was a layout before")
}

/// The layout with as many blocks as it holds, found by trying.
fn filled(mut description: Description) -> Option<Geometry> {
    let remaps: Vec<_> = description
        .zones
        .iter_mut()
        .map(|zone| std::mem::take(&mut zone.remaps))
        .collect();
    Geometry::zoned(&description).ok()?;
    let (mut low, mut high) = (1, 20 * 4 * 30 * 2);
    while low + 1 < high {
        description.blocks = (low + high) / 2;
        if Geometry::zoned(&description).is_ok() {
            low = description.blocks;
        } else {
            high = description.blocks;
        }
    }
    description.blocks = low;
    for (zone, remaps) in description.zones.iter_mut().zip(remaps) {
        zone.remaps = remaps;
    }
    Some(moved(description))
}

/// Serpentines over two surfaces.
fn serpentines(moved: Moved) -> impl Strategy<Value = Geometry> {
    (
        2u32..7,
        4u32..20,
        4u32..20,
        1u32..4,
        1u32..4,
        0u64..30,
        0u64..3,
    )
        .prop_filter_map(
            "not a layout",
            move |(tracks, outer, inner, repeats, more, slip, remap)| {
                let band = |sectors| {
                    let run = |cylinder, head, tracks: i32| TrackRun {
                        cylinder,
                        head,
                        sectors,
                        start: Angle::fraction(u64::from(head), 3),
                        tracks,
                        step: Angle::fraction(1, 7),
                        blocks: sectors,
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
                let places = u64::from(2 * tracks * (outer * repeats + inner * more));
                let remaps = match moved {
                    Moved::None => Vec::new(),
                    Moved::Some => vec![Remap {
                        first: remap * 7,
                        blocks: 2,
                        cylinder: tracks * (repeats + more - 1),
                        head: 1,
                        sector: 1,
                    }],
                };
                let description = indexed::Description {
                    surfaces: 2,
                    cylinders: tracks * (repeats + more),
                    blocks: places - 3 - u64::from(inner),
                    groups: vec![
                        band(outer),
                        band(inner),
                        GroupDescription::Groups(vec![
                            run(0, 0, repeats),
                            run(1, tracks * repeats, more),
                        ]),
                    ],
                    slips: vec![(slip, 2)],
                    remaps,
                };
                Geometry::indexed(&description).ok()
            },
        )
}

/// Layouts of both kinds.
pub fn geometry(moved: Moved) -> impl Strategy<Value = Geometry> {
    prop_oneof![3 => zoned(moved), 1 => serpentines(moved)]
}

prop_compose! {
    /// Hundreds of cylinders with few sectors: the regions of the set are several.
    fn many_cylinders()(
        surfaces in 3u32..6,
        bands in proptest::collection::vec((60u32..300, 4u32..9), 2..4),
        skew in 0u64..9,
    ) -> Geometry {
        let mut next = 0;
        let zones = bands.into_iter().map(|(cylinders, sectors_per_track)| {
            let first_cylinder = next;
            next += cylinders;
            ZoneDescription {
                first_cylinder,
                last_cylinder: next - 1,
                sectors_per_track,
                track_skew: Angle::fraction(skew, 9),
                cylinder_skew: Angle::fraction(skew, 7),
                ..ZoneDescription::default()
            }
        });
        let zones: Vec<_> = zones.collect();
        let tracks = |zone: &ZoneDescription| {
            (zone.last_cylinder - zone.first_cylinder + 1) * surfaces * zone.sectors_per_track
        };
        Geometry::zoned(&Description {
            surfaces,
            cylinders: next,
            blocks: zones.iter().map(tracks).sum::<u32>().into(),
            zones,
            ..Description::default()
        })
        .expect("a layout")
    }
}

/// A small drive of few cylinders.
pub fn profile(moved: Moved) -> impl Strategy<Value = Arc<Profile>> {
    profile_of(geometry(moved), [1, 2, 5, 9])
}

/// A drive of many cylinders, where a search may leap.
pub fn wide_profile() -> impl Strategy<Value = Arc<Profile>> {
    profile_of(many_cylinders(), [1, 30, 200, 600])
}

prop_compose! {
    /// A drive whose seek times go up and down between these distances.
    fn profile_of(geometry: impl Strategy<Value = Geometry>, distances: [u32; 4])(
        geometry in geometry,
        revolution in 4_000_000u64..12_000_000,
        round in any::<bool>(),
        read in proptest::collection::vec(100u64..3_000, 4),
        write in proptest::collection::vec(100u64..3_000, 4),
        switch in 0u64..1_500,
        settle in -300i64..600,
    ) -> Arc<Profile> {
        let shipped = catalog::find("hp-c2247a").expect("a shipped drive");
        let mut profile = shipped.profile().expect("a valid profile");
        profile.name = "invented".to_owned();
        profile.provenance = Provenance::Invented;
        profile.block_bytes = 512;
        profile.actuators = 1;
        let period = if round { 6_000_000_000 } else { revolution * 1_000 + 7 };
        profile.spindle = Spindle::from_period_ps(period).with_phase(Angle::fraction(3, 17));
        let cylinders = geometry.cylinders();
        profile.seek = SeekCurve::new(
            seek(distances, read, cylinders),
            seek(distances, write, cylinders),
        );
        profile.head_switch = Duration::from_micros(switch);
        profile.write_settle_nanos = settle * 1_000;
        profile.geometry = Arc::new(geometry);
        profile.overheads = Overheads::default();
        profile.buffer = BufferRules::default();
        profile.bus = Bus::default();
        profile.queue = QueueRules { depth: 64, order: QueueOrder::Fcfs };
        Arc::new(profile)
    }
}

fn seek(distances: [u32; 4], micros: Vec<u64>, cylinders: u32) -> SeekTable {
    let points = distances.into_iter().zip(micros);
    let points = points.map(|(distance, micros)| (distance, Duration::from_micros(micros)));
    SeekTable::new(points.collect(), cylinders).expect("a seek table")
}

/// Some blocks of a drive of so many: all, none, most, few, or clusters.
pub fn blocks(blocks: u64) -> impl Strategy<Value = BTreeSet<u64>> {
    let share = prop_oneof![
        Just(0u32),
        Just(5),
        Just(30),
        Just(100),
        Just(500),
        Just(1000)
    ];
    let cluster = prop_oneof![4 => 1u64..12, 1 => 100u64..2_000];
    (share, cluster, any::<u64>()).prop_map(move |(permille, cluster, seed)| {
        let chosen = |block: &u64| {
            // Knuth's multiplicative hashing: any spread of the clusters will do.
            let mixed = (block / cluster + 1)
                .wrapping_mul(seed | 1)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (mixed >> 33) % 1000 < u64::from(permille)
        };
        (0..blocks).filter(chosen).collect()
    })
}
