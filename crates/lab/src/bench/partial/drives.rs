//! Invented drives whose surfaces differ in density.

use std::sync::Arc;

use block::Duration;
use drive::firmware::{AfterPrevious, Bus, LookAhead, WriteBack};
use drive::geometry::indexed::{Description, GroupDescription, GroupRun, TrackRun};
use drive::seek::{SeekCurve, SeekTable};
use drive::{Angle, Geometry, Profile, Provenance, Spindle, catalog};

use crate::Failure;
use crate::dice::SplitMix;

mod irregular;

/// Whose electronics the invented drives have.
const ELECTRONICS: &str = "quantum-atlas-10k";

/// The drive of a seed: 2 to 10 surfaces that differ by up to 8 % in density, 3 to 8 zones, tracks in
/// serpentines of 16 to 200 cylinders. The ranges are choices, after the layouts of ../shared/drives.
///
/// # Errors
/// If the drive is no layout.
pub fn invented(seed: u64) -> Result<Arc<Profile>, Failure> {
    let mut dice = SplitMix::new(seed);
    let name = format!("invented-{seed}");
    drive(name, &mut dice, |dice| {
        let surfaces = dice.between(2, 10) as u32;
        layout(dice, surfaces)
    })
}

/// The drive of a seed with so many surfaces, whose serpentines are irregular (see [`irregular`]).
///
/// # Errors
/// If the drive is no layout.
pub fn uneven(surfaces: u32, seed: u64) -> Result<Arc<Profile>, Failure> {
    // Other seeds for each number of surfaces.
    let mut dice = SplitMix::new(seed << 8 | u64::from(surfaces));
    let name = format!("uneven-{surfaces}-{seed}");
    drive(name, &mut dice, |dice| irregular::layout(dice, surfaces))
}

fn drive(
    name: String,
    dice: &mut SplitMix,
    layout: impl FnOnce(&mut SplitMix) -> Description,
) -> Result<Arc<Profile>, Failure> {
    let entry = catalog::find(ELECTRONICS).map_err(Failure::failed)?;
    let mut profile = entry.profile().map_err(Failure::failed)?.published();
    profile.name = name;
    profile.provenance = Provenance::Invented;
    let rpm = [5_400, 7_200, 10_000, 15_000][dice.below(4) as usize];
    profile.spindle = Spindle::from_period_ps(60_000_000_000_000 / rpm);
    let layout = Geometry::indexed(&layout(dice));
    let layout = layout.map_err(|error| Failure::failed(format!("{error:?}")))?;
    profile.geometry = Arc::new(layout);
    profile.head_switch = Duration::from_micros(dice.between(400, 1_200));
    profile.write_settle_nanos = dice.between(100, 500) as i64 * 1_000;
    profile.seek = seek(profile.geometry.cylinders(), dice)?;
    profile.seek_deviation = None;
    let after = |us: u64| AfterPrevious {
        read: Duration::from_micros(us),
        write: Duration::from_micros(us),
    };
    profile.overheads.read_miss = after(dice.between(80, 300));
    profile.overheads.write_miss = after(dice.between(80, 300));
    // 160 MB/s: faster than every zone.
    let block = Duration::from_nanos(u64::from(profile.block_bytes) * 1_000 / 160);
    profile.bus = Bus {
        read_block: block,
        write_block: block,
    };
    profile.buffer.look_ahead = LookAhead::None;
    profile.buffer.write_back = WriteBack::None;
    Ok(Arc::new(profile))
}

fn layout(dice: &mut SplitMix, surfaces: u32) -> Description {
    // In thousandths of the densest.
    let densities: Vec<u64> = (0..surfaces).map(|_| dice.between(920, 1_000)).collect();
    let zones = dice.between(3, 8);
    let mut sectors = dice.between(400, 900);
    let (mut cylinder, mut blocks) = (0, 0);
    let (mut groups, mut bands) = (Vec::new(), Vec::new());
    for _ in 0..zones {
        let band = dice.between(16, 200) as u32;
        let repeats = (dice.between(1_000, 3_000) as u32 / band).max(1);
        let skew = Angle::fraction(dice.between(30, 250), 1_000);
        bands.push(GroupRun {
            group: groups.len() as u32,
            cylinder,
            start: Angle::from_raw(dice.number()),
            repeats,
            cylinders: band,
            step: Angle::from_raw(dice.number()),
        });
        let mut start = Angle::ZERO;
        let mut tracks = Vec::new();
        for (head, density) in densities.iter().enumerate() {
            let sectors = (sectors * density / 1_000) as u32;
            let is_back = head % 2 == 1;
            tracks.push(TrackRun {
                cylinder: if is_back { band - 1 } else { 0 },
                head: head as u32,
                sectors,
                start,
                tracks: if is_back { -(band as i32) } else { band as i32 },
                step: skew,
                blocks: sectors,
            });
            start = start + skew.times(u64::from(band));
            blocks += u64::from(sectors) * u64::from(band) * u64::from(repeats);
        }
        groups.push(GroupDescription::Tracks(tracks));
        cylinder += band * repeats;
        sectors = sectors * dice.between(80, 95) / 100;
    }
    groups.push(GroupDescription::Groups(bands));
    Description {
        surfaces,
        cylinders: cylinder,
        blocks,
        groups,
        ..Description::default()
    }
}

/// An arm between a root and a line, as arms are.
fn seek(cylinders: u32, dice: &mut SplitMix) -> Result<SeekCurve, Failure> {
    let (settle, stroke) = (dice.between(600, 1_500), dice.between(6_000, 14_000));
    let mut points = Vec::new();
    let mut distance = 1;
    while distance < cylinders {
        let far = f64::from(distance - 1) / f64::from(cylinders - 1);
        let more = stroke as f64 * (0.6 * far.sqrt() + 0.4 * far);
        let nanos = settle * 1_000 + (more * 1e3) as u64;
        points.push((distance, Duration::from_nanos(nanos)));
        distance += (distance / 8).max(1);
    }
    let table = || SeekTable::new(points.clone(), cylinders).map_err(Failure::failed);
    Ok(SeekCurve::new(table()?, table()?))
}
