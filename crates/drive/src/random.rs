//! Random drives: zones, serpentines, spares, slips, arms and electronics that no real drive has.
//!
//! The profiler's procedures are tested on them. A drive is a few numbers, so that one on which a procedure fails can be
//! made simpler, or written to a profile file and emulated.

use std::ops::Range;

use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

use crate::firmware::{LookAhead, WriteBack};
use crate::geometry::zoned::{HeadOrder, Sparing};

mod text;
mod truth;

/// A random drive.
#[derive(Clone, Debug)]
pub struct RandomDrive {
    /// What decides noise and jags.
    pub seed: u64,
    /// Revolutions a minute.
    pub rpm: u32,
    /// Where blocks are.
    pub layout: RandomLayout,
    /// The arm.
    pub arm: RandomArm,
    /// Electronics and buffer.
    pub firmware: RandomFirmware,
    /// What no profile has.
    pub faults: RandomFaults,
}

/// Where blocks are.
#[derive(Clone, Debug)]
pub struct RandomLayout {
    /// The number of surfaces.
    pub surfaces: u32,
    /// The order of the tracks.
    pub order: TrackOrder,
    /// The zones from the outermost inwards.
    pub zones: Vec<RandomZone>,
    /// Sectors of each surface, in parts of 64 of the zone's: serpentines only.
    pub densities: Vec<u32>,
    /// Slipped places, in millionths of the zone's or the drive's, and how many there.
    pub slips: Vec<(u32, u32)>,
    /// Blocks remapped in the factory, in millionths of a zone: drives of zones with spares only.
    pub remaps: Vec<u32>,
}

/// In which order tracks are filled.
#[derive(Clone, Copy, Debug)]
pub enum TrackOrder {
    /// Cylinder by cylinder, with spares of a kind, so many of each unit.
    Cylinders(HeadOrder, Sparing, u32),
    /// Surface by surface in bands of so many cylinders, there and back, or each in the same
    /// direction.
    Bands(u32, BandReturn),
}

/// How an arm comes back for the next band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BandReturn {
    /// The next surface is filled backwards.
    Alternating,
    /// The arm goes back, and fills the next surface in the same direction.
    Same,
}

/// A zone.
#[derive(Clone, Copy, Debug)]
pub struct RandomZone {
    /// The number of cylinders.
    pub cylinders: u32,
    /// Sectors of a track.
    pub sectors: u32,
    /// From track to track of a cylinder, in thousandths of a revolution, rounded to sectors.
    pub track_skew: u32,
    /// The same to the next cylinder.
    pub cylinder_skew: u32,
}

/// An arm.
#[derive(Clone, Copy, Debug)]
pub struct RandomArm {
    /// To another surface.
    pub head_switch_us: u32,
    /// To the next cylinder.
    pub settle_us: u32,
    /// More than that over the whole disk.
    pub stroke_us: u32,
    /// By how much points of the table are off a smooth curve, at most.
    pub jag_us: u32,
    /// More before writes.
    pub write_settle_us: u32,
}

/// Electronics and buffer.
#[derive(Clone, Copy, Debug)]
pub struct RandomFirmware {
    /// Before each command.
    pub overhead_us: u32,
    /// The rate of the bus.
    pub bus_mb_s: u32,
    /// Segments of the buffer.
    pub segments: u32,
    /// How far the drive reads ahead.
    pub look_ahead: LookAhead,
    /// Which writes it acknowledges early.
    pub write_back: WriteBack,
    /// Whether a transfer begins with any of its blocks.
    pub zero_latency: bool,
}

/// What a drive does that no profile has.
#[derive(Clone, Debug)]
pub struct RandomFaults {
    /// The standard deviation of seeks.
    pub seek_noise_us: u32,
    /// The standard deviation of overheads.
    pub electronics_us: u32,
    /// How much slower the spindle is.
    pub spindle_ppm: i32,
    /// How far its speed wanders.
    pub drift_ppm: u32,
    /// Reads that need a second attempt.
    pub retries_per_million: u32,
    /// Blocks remapped in the field, in millionths of the drive.
    pub grown: Vec<u32>,
}

/// The speeds of random drives, in revolutions a minute.
pub const SPEEDS: [u32; 8] = [3_600, 4_500, 5_400, 5_900, 7_200, 10_000, 12_345, 15_000];

/// The orders of heads on a cylinder.
pub const HEADS: [HeadOrder; 3] = [
    HeadOrder::Ascending,
    HeadOrder::AlternatingInZone,
    HeadOrder::AlternatingByParity,
];

/// The kinds of spares.
pub const SPARINGS: [Sparing; 8] = [
    Sparing::None,
    Sparing::Tracks,
    Sparing::TrackEnd,
    Sparing::CylinderEnd,
    Sparing::CylinderFront,
    Sparing::CylinderEndSlipToZoneEnd,
    Sparing::ZoneEnd,
    Sparing::ZoneEndSlipToZoneEnd,
];

/// The kinds of look-ahead.
pub const LOOK_AHEADS: [LookAhead; 5] = [
    LookAhead::None,
    LookAhead::Segment,
    LookAhead::Track,
    LookAhead::Cylinder,
    LookAhead::TrackIfSequential,
];

/// The kinds of write buffers.
pub const WRITE_BACKS: [WriteBack; 3] = [WriteBack::None, WriteBack::Append, WriteBack::All];

/// From which numbers random drives are drawn. All are choices; they hold the drives that we ship, but for the capacity.
pub mod ranges {
    use std::ops::Range;

    /// Surfaces.
    pub const SURFACES: Range<u32> = 1..13;
    /// Spares of a unit.
    pub const SPARES: Range<u32> = 1..9;
    /// Cylinders of a band: of most drives, and of others.
    pub const BANDS: [Range<u32>; 2] = [8..64, 64..1500];
    /// Zones.
    pub const ZONES: Range<usize> = 1..13;
    /// Sectors of the outermost tracks.
    pub const OUTER_SECTORS: Range<u32> = 64..900;
    /// Cylinders of a zone of a drive of few surfaces.
    pub const CYLINDERS: Range<u32> = 40..700;
    /// By how much a zone has fewer sectors than the one before, in ten-thousandths.
    pub const FEWER_SECTORS: Range<u32> = 0..1_000;
    /// Skews, in thousandths of a revolution.
    pub const SKEWS: Range<u32> = 30..400;
    /// The density of a surface that is not the usual one, 64.
    pub const DENSITIES: Range<u32> = 52..64;
    /// Places, in millionths.
    pub const PLACES: Range<u32> = 0..1_000_000;
    /// Slipped sectors at a place: of most, and of others.
    pub const SLIPPED: [Range<u32>; 2] = [1..4, 20..400];
    /// Places with slips, remaps of the factory, and of the field.
    pub const DEFECTS: [Range<usize>; 3] = [0..6, 0..4, 0..30];
    /// Microseconds of a head switch, and of the next cylinder besides.
    pub const SWITCH: [Range<u32>; 2] = [300..2_000, 0..1_500];
    /// Microseconds of the whole stroke besides.
    pub const STROKE: Range<u32> = 4_000..18_000;
    /// Microseconds that points are off a smooth curve, on half of the drives.
    pub const JAGS: Range<u32> = 0..400;
    /// Microseconds that writes settle.
    pub const WRITE_SETTLE: Range<u32> = 0..800;
    /// Microseconds of an overhead.
    pub const OVERHEAD: Range<u32> = 50..900;
    /// MB/s of the bus.
    pub const BUS: Range<u32> = 4..300;
    /// Segments of the buffer.
    pub const SEGMENTS: Range<u32> = 0..17;
    /// Microseconds of seek noise, and of overheads' noise.
    pub const NOISE: [Range<u32>; 2] = [0..151, 0..40];
    /// Parts per million that the spindle is off.
    pub const SPINDLE: Range<i32> = -3_000..3_000;
    /// Parts per million that a quarter of the spindles wanders.
    pub const DRIFT: Range<u32> = 0..40;
    /// Second attempts of a million reads, on a quarter of the drives.
    pub const RETRIES: Range<u32> = 0..10_000;
}

impl RandomDrive {
    /// The drive of a seed.
    pub fn draw(seed: u64) -> Self {
        let mut dice = Dice(Pcg64Mcg::seed_from_u64(seed));
        loop {
            let drive = RandomDrive {
                seed: dice.0.next_u64(),
                rpm: dice.of(&SPEEDS),
                layout: RandomLayout::draw(&mut dice),
                arm: RandomArm::draw(&mut dice),
                firmware: RandomFirmware::draw(&mut dice),
                faults: RandomFaults::draw(&mut dice),
            };
            // Zones hold what is said.
            if drive.profile().is_some() {
                return drive;
            }
        }
    }
}

/// A zone as it is drawn: its cylinders, by how many ten-thousandths it has fewer sectors than the one before, and its
/// skews from track to track and to the next cylinder.
pub type ZoneNumbers = (u32, u32, (u32, u32));

impl RandomLayout {
    fn draw(dice: &mut Dice) -> Self {
        let surfaces = dice.within(ranges::SURFACES);
        let order = match dice.one_of(5) < 3 {
            true => {
                let (heads, sparing) = (dice.of(&HEADS), dice.of(&SPARINGS));
                TrackOrder::Cylinders(heads, sparing, dice.within(ranges::SPARES))
            }
            false => {
                let band = dice.mostly(&ranges::BANDS, 5);
                let back = dice.of(&[BandReturn::Alternating, BandReturn::Same]);
                TrackOrder::Bands(band, back)
            }
        };
        let outer = dice.within(ranges::OUTER_SECTORS);
        let zones = dice.many(ranges::ZONES, |dice| {
            let cylinders = dice.within(ranges::CYLINDERS);
            let fewer = dice.within(ranges::FEWER_SECTORS);
            let skews = [dice.within(ranges::SKEWS), dice.within(ranges::SKEWS)];
            (cylinders, fewer, (skews[0], skews[1]))
        });
        let density = |dice: &mut Dice| match dice.one_of(3) {
            0 => dice.within(ranges::DENSITIES),
            _ => 64,
        };
        let densities = (1..ranges::SURFACES.end).map(|_| density(dice)).collect();
        let [slips, remaps, _] = ranges::DEFECTS;
        let slips = dice.many(slips, |dice| {
            (
                dice.within(ranges::PLACES),
                dice.mostly(&ranges::SLIPPED, 4),
            )
        });
        let remaps = dice.many(remaps, |dice| dice.within(ranges::PLACES));
        RandomLayout::of((surfaces, order), (outer, zones), densities, slips, remaps)
    }

    /// The layout of these numbers: surfaces and the order of tracks, sectors of the outermost tracks and zones, and
    /// densities, slips and remaps as the fields have them.
    pub fn of(
        (surfaces, order): (u32, TrackOrder),
        (outer, zones): (u32, Vec<ZoneNumbers>),
        densities: Vec<u32>,
        slips: Vec<(u32, u32)>,
        remaps: Vec<u32>,
    ) -> Self {
        let mut sectors = outer;
        // Most serpentines have whole rows in their zones.
        let whole = match order {
            TrackOrder::Bands(band, _) if slips.len() != 1 => band,
            _ => 1,
        };
        let zones = zones
            .into_iter()
            .map(|(cylinders, fewer, (track, cylinder))| {
                let zone = RandomZone {
                    cylinders: (cylinders / surfaces.div_ceil(4)).next_multiple_of(whole),
                    sectors,
                    track_skew: track,
                    cylinder_skew: cylinder,
                };
                // Zones inwards have up to a tenth fewer sectors each.
                sectors -= (sectors * fewer / 10_000).max(1);
                zone
            });
        RandomLayout {
            surfaces,
            order,
            zones: zones.collect(),
            densities,
            slips,
            remaps,
        }
    }
}

impl RandomArm {
    fn draw(dice: &mut Dice) -> Self {
        let [switch, more] = ranges::SWITCH;
        let head_switch_us = dice.within(switch);
        RandomArm {
            head_switch_us,
            settle_us: head_switch_us + dice.within(more),
            stroke_us: dice.within(ranges::STROKE),
            jag_us: dice.seldom(ranges::JAGS, 2),
            write_settle_us: dice.within(ranges::WRITE_SETTLE),
        }
    }
}

impl RandomFirmware {
    fn draw(dice: &mut Dice) -> Self {
        RandomFirmware {
            overhead_us: dice.within(ranges::OVERHEAD),
            bus_mb_s: dice.within(ranges::BUS),
            segments: dice.within(ranges::SEGMENTS),
            look_ahead: dice.of(&LOOK_AHEADS),
            write_back: dice.of(&WRITE_BACKS),
            zero_latency: dice.one_of(2) == 0,
        }
    }
}

impl RandomFaults {
    fn draw(dice: &mut Dice) -> Self {
        let [seek, electronics] = ranges::NOISE;
        let spindle = ranges::SPINDLE;
        let [_, _, grown] = ranges::DEFECTS;
        RandomFaults {
            seek_noise_us: dice.within(seek),
            electronics_us: dice.within(electronics),
            spindle_ppm: spindle.start + dice.one_of(spindle.end.abs_diff(spindle.start)) as i32,
            drift_ppm: dice.seldom(ranges::DRIFT, 4),
            retries_per_million: dice.seldom(ranges::RETRIES, 4),
            grown: dice.many(grown, |dice| dice.within(ranges::PLACES)),
        }
    }
}

/// Draws numbers, the same on every machine.
struct Dice(Pcg64Mcg);

impl Dice {
    /// One of the numbers below `below`.
    fn one_of(&mut self, below: u32) -> u32 {
        ((u128::from(self.0.next_u64()) * u128::from(below)) >> 64) as u32
    }

    fn within(&mut self, range: Range<u32>) -> u32 {
        range.start + self.one_of(range.end - range.start)
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.one_of(all.len() as u32) as usize]
    }

    /// A number of the first range, and once in `of` times of the second.
    fn mostly(&mut self, [usual, other]: &[Range<u32>; 2], of: u32) -> u32 {
        match self.one_of(of) {
            0 => self.within(other.clone()),
            _ => self.within(usual.clone()),
        }
    }

    /// A number of a range once in `of` times, and zero otherwise.
    fn seldom(&mut self, range: Range<u32>, of: u32) -> u32 {
        match self.one_of(of) {
            0 => self.within(range),
            _ => 0,
        }
    }

    fn many<T>(&mut self, counts: Range<usize>, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.within(counts.start as u32..counts.end as u32);
        (0..count).map(|_| one(self)).collect()
    }
}

#[cfg(test)]
mod tests;
