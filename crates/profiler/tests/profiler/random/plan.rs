//! Random drives, as few numbers.

use drive::firmware::{LookAhead, WriteBack};
use drive::geometry::zoned::{HeadOrder, Sparing};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// A drive.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What decides noise and jags.
    pub seed: u64,
    pub rpm: u32,
    pub layout: TrackLayout,
    pub arm: ArmPlan,
    pub firmware: FirmwarePlan,
    pub faults: Faults,
}

/// Where blocks are.
#[derive(Clone, Debug)]
pub struct TrackLayout {
    pub surfaces: u32,
    pub order: Continuity,
    pub zones: Vec<Zone>,
    /// Sectors of each surface, in parts of 64 of the zone's: serpentines only.
    pub densities: Vec<u32>,
    /// Slipped places, in millionths of the zone's or the drive's, and how many there.
    pub slips: Vec<(u32, u32)>,
    /// Blocks remapped in the factory, in millionths of a zone: drives of zones with spares only.
    pub remaps: Vec<u32>,
}

/// In which order tracks are filled.
#[derive(Clone, Copy, Debug)]
pub enum Continuity {
    /// Cylinder by cylinder, with spares of a kind, so many of each unit.
    Cylinders(HeadOrder, Sparing, u32),
    /// Surface by surface in bands of so many cylinders, there and back, or each in the same
    /// direction.
    Bands(u32, Return),
}

/// How an arm comes back for the next band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    Alternating,
    Same,
}

#[derive(Clone, Copy, Debug)]
pub struct Zone {
    pub cylinders: u32,
    pub sectors: u32,
    /// In thousandths of a revolution, rounded to sectors.
    pub track_skew: u32,
    pub cylinder_skew: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct ArmPlan {
    pub head_switch_us: u32,
    /// To the next cylinder.
    pub settle_us: u32,
    /// More than that over the whole disk.
    pub stroke_us: u32,
    /// By how much points of the table are off a smooth curve, at most.
    pub jag_us: u32,
    pub write_settle_us: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct FirmwarePlan {
    pub overhead_us: u32,
    pub bus_mb_s: u32,
    pub segments: u32,
    pub look_ahead: LookAhead,
    pub write_back: WriteBack,
    pub zero_latency: bool,
}

#[derive(Clone, Debug)]
pub struct Faults {
    pub seek_noise_us: u32,
    pub electronics_us: u32,
    pub spindle_ppm: i32,
    pub drift_ppm: u32,
    pub retries_per_million: u32,
    /// Blocks remapped in the field, in millionths of the drive.
    pub grown: Vec<u32>,
}

/// Every kind of drive.
pub fn plans() -> impl Strategy<Value = Plan> {
    (
        any::<u64>(),
        select(vec![
            3_600u32, 4_500, 5_400, 5_900, 7_200, 10_000, 12_345, 15_000,
        ]),
        layouts(),
        arms(),
        firmware(),
        faults(),
    )
        .prop_map(|(seed, rpm, layout, arm, firmware, faults)| Plan {
            seed,
            rpm,
            layout,
            arm,
            firmware,
            faults,
        })
        .prop_filter("zones hold what is said", |plan| plan.profile().is_some())
}

fn orders() -> impl Strategy<Value = Continuity> {
    let heads = vec![
        HeadOrder::Ascending,
        HeadOrder::AlternatingInZone,
        HeadOrder::AlternatingByParity,
    ];
    let sparing = vec![
        Sparing::None,
        Sparing::Tracks,
        Sparing::TrackEnd,
        Sparing::CylinderEnd,
        Sparing::CylinderFront,
        Sparing::CylinderEndSlipToZoneEnd,
        Sparing::ZoneEnd,
        Sparing::ZoneEndSlipToZoneEnd,
    ];
    let returns = vec![Return::Alternating, Return::Same];
    prop_oneof![
        3 => (select(heads), select(sparing), 1u32..9)
            .prop_map(|(order, sparing, spares)| Continuity::Cylinders(order, sparing, spares)),
        2 => (prop_oneof![4 => 8u32..64, 1 => 64u32..1500], select(returns))
            .prop_map(|(band, back)| Continuity::Bands(band, back)),
    ]
}

fn layouts() -> impl Strategy<Value = TrackLayout> {
    let zone = (40u32..700, 0u32..1_000, (30u32..400, 30u32..400));
    (
        (1u32..13, orders()),
        (64u32..900, vec(zone, 1..13)),
        vec(prop_oneof![2 => Just(64u32), 1 => 52u32..64], 12),
        vec(
            (0u32..1_000_000, prop_oneof![3 => 1u32..4, 1 => 20u32..400]),
            0..6,
        ),
        vec(0u32..1_000_000, 0..4),
    )
        .prop_map(
            |((surfaces, order), (outer, zones), densities, slips, remaps)| {
                let mut sectors = outer;
                // Most serpentines have whole rows in their zones.
                let whole = match order {
                    Continuity::Bands(band, _) if slips.len() != 1 => band,
                    _ => 1,
                };
                let zones = zones
                    .into_iter()
                    .map(|(cylinders, less, (track, cylinder))| {
                        let zone = Zone {
                            cylinders: (cylinders / surfaces.div_ceil(4)).next_multiple_of(whole),
                            sectors,
                            track_skew: track,
                            cylinder_skew: cylinder,
                        };
                        // Zones inwards have up to a tenth fewer sectors each.
                        sectors -= (sectors * less / 10_000).max(1);
                        zone
                    });
                TrackLayout {
                    surfaces,
                    order,
                    zones: zones.collect(),
                    densities,
                    slips,
                    remaps,
                }
            },
        )
}

fn arms() -> impl Strategy<Value = ArmPlan> {
    (
        300u32..2_000,
        0u32..1_500,
        4_000u32..18_000,
        prop_oneof![Just(0u32), 0u32..400],
        0u32..800,
    )
        .prop_map(
            |(head_switch_us, more, stroke_us, jag_us, write_settle_us)| ArmPlan {
                head_switch_us,
                settle_us: head_switch_us + more,
                stroke_us,
                jag_us,
                write_settle_us,
            },
        )
}

fn firmware() -> impl Strategy<Value = FirmwarePlan> {
    let ahead = vec![
        LookAhead::None,
        LookAhead::Segment,
        LookAhead::Track,
        LookAhead::Cylinder,
        LookAhead::TrackIfSequential,
    ];
    let back = vec![WriteBack::None, WriteBack::Append, WriteBack::All];
    (
        50u32..900,
        4u32..300,
        0u32..17,
        select(ahead),
        select(back),
        any::<bool>(),
    )
        .prop_map(
            |(overhead_us, bus_mb_s, segments, look_ahead, write_back, zero_latency)| {
                FirmwarePlan {
                    overhead_us,
                    bus_mb_s,
                    segments,
                    look_ahead,
                    write_back,
                    zero_latency,
                }
            },
        )
}

fn faults() -> impl Strategy<Value = Faults> {
    (
        0u32..151,
        0u32..40,
        -3_000i32..3_000,
        prop_oneof![3 => Just(0u32), 1 => 0u32..40],
        prop_oneof![3 => Just(0u32), 1 => 0u32..10_000],
        vec(0u32..1_000_000, 0..30),
    )
        .prop_map(
            |(
                seek_noise_us,
                electronics_us,
                spindle_ppm,
                drift_ppm,
                retries_per_million,
                grown,
            )| Faults {
                seek_noise_us,
                electronics_us,
                spindle_ppm,
                drift_ppm,
                retries_per_million,
                grown,
            },
        )
}
