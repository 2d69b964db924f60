//! The profiles of random drives.

use std::sync::Arc;

use block::{Duration, Lba};

use super::{
    BandReturn, RandomArm, RandomDrive, RandomFirmware, RandomLayout, RandomZone, TrackOrder,
};
use crate::firmware::{AfterPrevious, Bus, LookAhead, WriteBack};
use crate::geometry::indexed::{self, GroupDescription, GroupRun, TrackRun};
use crate::geometry::zoned::{self, HeadOrder, Sparing, ZoneDescription};
use crate::imperfection::Chance;
use crate::profile::LayoutDescription;
use crate::seek::{SeekCurve, SeekTable};
use crate::{Angle, Geometry, Imperfections, Profile, Provenance, Spindle, catalog};

/// Whose rarer rules random drives have.
const BASE: &str = "hp-c2247a";

impl RandomDrive {
    /// Its profile, which is called `random`; none if its zones do not hold what it says they do.
    pub fn profile(&self) -> Option<Arc<Profile>> {
        let mut profile = catalog::find(BASE).ok()?.profile().ok()?.published();
        profile.name = "random".to_owned();
        profile.model = "a random drive".to_owned();
        profile.provenance = Provenance::Invented;
        profile.year = None;
        profile.source = None;
        profile.spindle = Spindle::from_period_ps(60_000_000_000_000 / u64::from(self.rpm));
        let geometry = match self.description()? {
            LayoutDescription::Zoned(zones) => Geometry::zoned(&zones),
            LayoutDescription::Indexed(groups) => Geometry::indexed(&groups),
        };
        profile.geometry = Arc::new(geometry.ok()?);
        self.arm.set(self.seed, &mut profile);
        self.firmware.set(&mut profile);
        Some(Arc::new(profile))
    }

    /// Where its blocks are.
    pub(super) fn description(&self) -> Option<LayoutDescription> {
        Some(match self.layout.order {
            TrackOrder::Cylinders(heads, sparing, spares) => {
                LayoutDescription::Zoned(self.layout.zoned(heads, sparing, spares)?)
            }
            TrackOrder::Bands(band, back) => {
                LayoutDescription::Indexed(self.layout.bands(band, back))
            }
        })
    }

    /// What the drive of so many blocks does that no belief knows.
    pub fn imperfections(&self, blocks: u64) -> Imperfections {
        let faults = &self.faults;
        let micros = |us: u32| Duration::from_micros(u64::from(us));
        let grown = faults.grown.iter().map(|at| Lba(share(*at, blocks)));
        Imperfections {
            seek_noise: micros(faults.seek_noise_us),
            overhead_noise: micros(faults.electronics_us),
            spindle_ppm: faults.spindle_ppm,
            spindle_drift_ppm: faults.drift_ppm,
            media_retry: Chance {
                per_million: faults.retries_per_million,
                costs: micros(700),
            },
            grown_defects: grown.collect(),
            ..Imperfections::default()
        }
    }
}

/// So many millionths of something.
fn share(millionths: u32, of: u64) -> u64 {
    u64::from(millionths) * of / 1_000_000
}

/// An angle of whole sectors.
fn skew(permille: u32, sectors: u32) -> Angle {
    let whole = u64::from(permille) * u64::from(sectors) / 1_000;
    Angle::fraction(whole, u64::from(sectors))
}

impl RandomLayout {
    fn zoned(
        &self,
        head_order: HeadOrder,
        sparing: Sparing,
        spares: u32,
    ) -> Option<zoned::Description> {
        let mut next = 0;
        let mut zones = Vec::new();
        for zone in &self.zones {
            zones.push(self.zone(zone, next, sparing, spares));
            next += zone.cylinders;
        }
        let mut description = zoned::Description {
            surfaces: self.surfaces,
            cylinders: next,
            blocks: 1,
            head_order,
            sparing,
            range_cylinders: 1,
            zones,
        };
        // As many blocks as it holds: by halving.
        let all = self
            .zones
            .iter()
            .map(|zone| u64::from(zone.cylinders * zone.sectors))
            .sum::<u64>();
        let (mut fits, mut fails) = (1, all * u64::from(self.surfaces) + 1);
        Geometry::zoned(&description).ok()?;
        while fits + 1 < fails {
            description.blocks = fits + (fails - fits) / 2;
            match Geometry::zoned(&description) {
                Ok(_) => fits = description.blocks,
                Err(_) => fails = description.blocks,
            }
        }
        description.blocks = fits;
        Some(description)
    }

    /// A zone from a cylinder on.
    fn zone(
        &self,
        zone: &RandomZone,
        first_cylinder: u32,
        sparing: Sparing,
        spares: u32,
    ) -> ZoneDescription {
        let places = match sparing {
            Sparing::Tracks => zone.cylinders * self.surfaces,
            _ => zone.cylinders * self.surfaces * zone.sectors,
        };
        let mut slips: Vec<u32> = self
            .slips
            .iter()
            .map(|slip| share(slip.0, places.into()) as u32)
            .collect();
        slips.sort_unstable();
        slips.dedup();
        let spares = match sparing {
            Sparing::None => 0,
            // As many as there are slips at least.
            _ => spares + (slips.len() + self.remaps.len()) as u32,
        };
        // Into the last place, which is a spare one where spares are at an end.
        let remaps = self.remaps.iter().enumerate().map(|(nth, at)| {
            (
                share(*at, u64::from(places) * 9 / 10) as u32,
                places - 1 - nth as u32,
            )
        });
        let ends_in_spares = matches!(sparing, Sparing::ZoneEnd | Sparing::CylinderEnd);
        let mut remaps: Vec<(u32, u32)> = remaps.filter(|_| ends_in_spares).collect();
        remaps.sort_unstable();
        remaps.dedup_by_key(|remap| remap.0);
        ZoneDescription {
            first_cylinder,
            last_cylinder: first_cylinder + zone.cylinders - 1,
            sectors_per_track: zone.sectors,
            track_skew: skew(zone.track_skew, zone.sectors),
            cylinder_skew: skew(zone.cylinder_skew, zone.sectors),
            spares,
            slips: if sparing == Sparing::None {
                Vec::new()
            } else {
                slips
            },
            remaps,
            ..ZoneDescription::default()
        }
    }

    fn bands(&self, band: u32, back: BandReturn) -> indexed::Description {
        let mut groups = Vec::new();
        let mut runs = Vec::new();
        let mut cylinder = 0;
        let mut places = 0;
        for zone in &self.zones {
            // The rest of a zone is a shorter band.
            let whole = zone.cylinders / band;
            for (tracks, repeats) in [(band, whole), (zone.cylinders % band, 1)] {
                if tracks == 0 || repeats == 0 {
                    continue;
                }
                let (group, filled) = self.row(zone, tracks, back);
                runs.push(GroupRun {
                    group: groups.len() as u32,
                    cylinder,
                    start: Angle::ZERO,
                    repeats,
                    cylinders: tracks,
                    step: skew(zone.cylinder_skew, zone.sectors),
                });
                groups.push(group);
                cylinder += tracks * repeats;
                places += filled * u64::from(repeats);
            }
        }
        groups.push(GroupDescription::Groups(runs));
        let mut slips: Vec<(u64, u32)> = Vec::new();
        let mut sorted = self.slips.clone();
        sorted.sort_unstable();
        for (at, count) in sorted {
            let at = share(at, places);
            let before = slips.last().map_or(0, |slip| slip.0 + u64::from(slip.1));
            if at >= before && at + u64::from(count) < places {
                slips.push((at, count));
            }
        }
        let slipped: u64 = slips.iter().map(|slip| u64::from(slip.1)).sum();
        indexed::Description {
            surfaces: self.surfaces,
            cylinders: cylinder,
            blocks: places - slipped,
            groups,
            slips,
            remaps: Vec::new(),
        }
    }

    /// All surfaces of some cylinders, and how many places they have.
    fn row(&self, zone: &RandomZone, tracks: u32, back: BandReturn) -> (GroupDescription, u64) {
        let mut start = Angle::ZERO;
        let mut places = 0;
        let mut runs = Vec::new();
        for head in 0..self.surfaces {
            let backward = back == BandReturn::Alternating && head % 2 == 1;
            let sectors = zone.sectors * self.densities[head as usize] / 64;
            let step = skew(zone.track_skew, sectors);
            runs.push(TrackRun {
                cylinder: if backward { tracks - 1 } else { 0 },
                head,
                sectors,
                start,
                tracks: if backward {
                    -(tracks as i32)
                } else {
                    tracks as i32
                },
                step,
                blocks: sectors,
            });
            start = start + step.times(u64::from(tracks - 1)) + skew(zone.cylinder_skew, sectors);
            places += u64::from(sectors) * u64::from(tracks);
        }
        (GroupDescription::Tracks(runs), places)
    }
}

impl RandomArm {
    fn set(&self, seed: u64, profile: &mut Profile) {
        let cylinders = profile.geometry.cylinders();
        let mut points = Vec::new();
        let mut distance = 1;
        let mut dice = seed;
        while distance < cylinders.max(2) {
            let far = f64::from(distance - 1) / f64::from(cylinders.max(3) - 2);
            // Between a root and a line, as arms are.
            let smooth = f64::from(self.stroke_us) * (0.6 * far.sqrt() + 0.4 * far);
            dice = dice
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let jag = (u64::from(self.jag_us) * (dice >> 40)) >> 24;
            let nanos = (smooth * 1e3) as u64 + (u64::from(self.settle_us) + jag) * 1_000;
            points.push((distance, Duration::from_nanos(nanos)));
            distance += (distance / 8).max(1);
        }
        let table = || SeekTable::new(points.clone(), cylinders).expect("ascending points");
        profile.seek = SeekCurve::new(table(), table());
        profile.head_switch = Duration::from_micros(u64::from(self.head_switch_us));
        profile.write_settle_nanos = i64::from(self.write_settle_us) * 1_000;
    }
}

impl RandomFirmware {
    fn set(&self, profile: &mut Profile) {
        let micros = |us: u32| Duration::from_micros(u64::from(us));
        let after = |us: u32| AfterPrevious {
            read: micros(us),
            write: micros(us + us / 8),
        };
        profile.overheads.read_hit = after(self.overhead_us / 2);
        profile.overheads.read_miss = after(self.overhead_us);
        profile.overheads.write_hit = after(self.overhead_us / 2);
        profile.overheads.write_miss = after(self.overhead_us + 60);
        let block =
            Duration::from_nanos(u64::from(profile.block_bytes) * 1_000 / u64::from(self.bus_mb_s));
        profile.bus = Bus {
            read_block: block,
            write_block: block,
        };
        let buffer = &mut profile.buffer;
        buffer.segments = self.segments;
        buffer.segment_blocks = if self.segments == 0 { 0 } else { 256 };
        buffer.write_segments = self.segments.min(1);
        buffer.look_ahead = self.look_ahead;
        buffer.write_back = self.write_back;
        if self.segments == 0 {
            buffer.look_ahead = LookAhead::None;
            buffer.write_back = WriteBack::None;
            buffer.look_ahead_on_hit = false;
            buffer.read_on_arrival = false;
        }
        buffer.zero_latency_read = self.zero_latency;
        buffer.zero_latency_write = self.zero_latency;
    }
}
