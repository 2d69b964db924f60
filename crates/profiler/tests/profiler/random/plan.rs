//! Random drives, drawn so that proptest can make them simpler.

use drive::random::{
    BandReturn, HEADS, LOOK_AHEADS, RandomArm, RandomDrive, RandomFaults, RandomFirmware,
    RandomLayout, SPARINGS, SPEEDS, TrackOrder, WRITE_BACKS, ranges,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Every kind of drive.
pub fn plans() -> impl Strategy<Value = RandomDrive> {
    (
        any::<u64>(),
        select(SPEEDS.to_vec()),
        layouts(),
        arms(),
        firmware(),
        faults(),
    )
        .prop_map(|(seed, rpm, layout, arm, firmware, faults)| RandomDrive {
            seed,
            rpm,
            layout,
            arm,
            firmware,
            faults,
        })
        .prop_filter("zones hold what is said", |plan| plan.profile().is_some())
}

fn orders() -> impl Strategy<Value = TrackOrder> {
    let returns = vec![BandReturn::Alternating, BandReturn::Same];
    let [usual, wide] = ranges::BANDS;
    let heads = (select(HEADS.to_vec()), select(SPARINGS.to_vec()));
    prop_oneof![
        3 => (heads, ranges::SPARES)
            .prop_map(|((order, sparing), spares)| TrackOrder::Cylinders(order, sparing, spares)),
        2 => (prop_oneof![4 => usual, 1 => wide], select(returns))
            .prop_map(|(band, back)| TrackOrder::Bands(band, back)),
    ]
}

fn layouts() -> impl Strategy<Value = RandomLayout> {
    let skews = (ranges::SKEWS, ranges::SKEWS);
    let zone = (ranges::CYLINDERS, ranges::FEWER_SECTORS, skews);
    let [few, many] = ranges::SLIPPED;
    let [slips, remaps, _] = ranges::DEFECTS;
    (
        (ranges::SURFACES, orders()),
        (ranges::OUTER_SECTORS, vec(zone, ranges::ZONES)),
        vec(prop_oneof![2 => Just(64u32), 1 => ranges::DENSITIES], 12),
        vec((ranges::PLACES, prop_oneof![3 => few, 1 => many]), slips),
        vec(ranges::PLACES, remaps),
    )
        .prop_map(|(order, zones, densities, slips, remaps)| {
            RandomLayout::of(order, zones, densities, slips, remaps)
        })
}

fn arms() -> impl Strategy<Value = RandomArm> {
    let [switch, more] = ranges::SWITCH;
    (
        switch,
        more,
        ranges::STROKE,
        prop_oneof![Just(0u32), ranges::JAGS],
        ranges::WRITE_SETTLE,
    )
        .prop_map(
            |(head_switch_us, more, stroke_us, jag_us, write_settle_us)| RandomArm {
                head_switch_us,
                settle_us: head_switch_us + more,
                stroke_us,
                jag_us,
                write_settle_us,
            },
        )
}

fn firmware() -> impl Strategy<Value = RandomFirmware> {
    (
        ranges::OVERHEAD,
        ranges::BUS,
        ranges::SEGMENTS,
        select(LOOK_AHEADS.to_vec()),
        select(WRITE_BACKS.to_vec()),
        any::<bool>(),
    )
        .prop_map(
            |(overhead_us, bus_mb_s, segments, look_ahead, write_back, zero_latency)| {
                RandomFirmware {
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

fn faults() -> impl Strategy<Value = RandomFaults> {
    let [seek, electronics] = ranges::NOISE;
    let [_, _, grown] = ranges::DEFECTS;
    (
        seek,
        electronics,
        ranges::SPINDLE,
        prop_oneof![3 => Just(0u32), 1 => ranges::DRIFT],
        prop_oneof![3 => Just(0u32), 1 => ranges::RETRIES],
        vec(ranges::PLACES, grown),
    )
        .prop_map(
            |(
                seek_noise_us,
                electronics_us,
                spindle_ppm,
                drift_ppm,
                retries_per_million,
                grown,
            )| RandomFaults {
                seek_noise_us,
                electronics_us,
                spindle_ppm,
                drift_ppm,
                retries_per_million,
                grown,
            },
        )
}
