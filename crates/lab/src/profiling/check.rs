//! Compares the findings with the truth.

use block::{Duration, Instant, Lba};
use drive::geometry::Geometry;
use drive::{Angle, Profile};
use profiler::belief;
use profiler::clock::apart;
use serde::Serialize;

use super::found::FoundDrive;
use crate::Failure;

mod head_times;

pub use head_times::HeadTimeErrors;

/// The figures of `--check --json`.
#[derive(Debug, Serialize)]
pub struct Checked {
    /// The drive.
    pub drive: String,
    /// How far predicted head times of random pairs of known blocks are off; null if none are known.
    pub head_time: Option<HeadTimeErrors>,
    /// The error of the period, in ppm.
    pub period_ppm: Option<f64>,
    /// The 95th percentile of the blocks' angle errors, in revolutions.
    pub angle_p95_rev: Option<f64>,
    /// The 99th percentile of the blocks' angle errors, in revolutions.
    pub angle_p99_rev: Option<f64>,
    /// The mean error of the seek table.
    pub seek_mean_error_us: Option<f64>,
    /// The share of zones that were found exactly.
    pub zones_exact: Option<f64>,
    /// The share of tracks that were found exactly.
    pub tracks_exact: Option<f64>,
    /// The share of blocks whose tracks are said to be known.
    pub known: f64,
    /// The share of those that are true: bounds and sectors of the track.
    pub known_true: Option<f64>,
    /// Whether spindle, map and seeks are sure enough for a service.
    pub usable: bool,
    /// The number of commands.
    pub commands: u64,
    /// The drive's time.
    pub drive_seconds: f64,
    /// The confidence of the least certain part.
    pub confidence: f64,
}

/// Sampled blocks. A choice: a share of 1 % of them is then exact to a fifth of it.
const BLOCKS: u64 = 2000;

/// Size in bytes above which only known parts of a drive are sampled. Drives of the 1990s, up to 18
/// GB, should be known completely within a budget. Drives from 2005 on, from 300 GB, need not be.
const LARGE: u64 = 100_000_000_000;

/// Time after the end for which a phase must hold. A choice: in service known blocks are read every
/// few milliseconds, and an idle drive is calibrated more often than that.
const AFTER: Duration = Duration::from_secs(10);

/// Compares findings and truth.
///
/// # Errors
/// If the findings contradict each other.
pub fn check(found: &FoundDrive, truth: &Profile) -> Result<Checked, Failure> {
    let believed = found.profile()?;
    let period = found.findings.spindle.period_ps;
    let period_ppm = period as f64 / truth.spindle.period_ps() as f64 * 1e6 - 1e6;
    let asked = asked(&believed, truth);
    let mut off = angles(found, &believed, truth, &asked);
    off.sort_by(f64::total_cmp);
    let quantile = |share: f64| {
        let place = (off.len() as f64 * share).ceil() as usize;
        off.get(place.saturating_sub(1)).copied()
    };
    let confidence = believed.confidence.as_ref().and_then(|c| c.least());
    let tracks = asked.iter().map(|lba| is_track(&believed, truth, *lba));
    Ok(Checked {
        drive: found.name.clone(),
        head_time: head_time(found, &believed, truth),
        period_ppm: (period > 0).then_some(period_ppm),
        angle_p95_rev: quantile(0.95),
        angle_p99_rev: quantile(0.99),
        seek_mean_error_us: found
            .findings
            .arm
            .as_ref()
            .map(|_| seek_error(&believed, truth)),
        zones_exact: zones(&believed, truth),
        tracks_exact: share(tracks),
        known: found.findings.map.known() as f64 / found.device.blocks as f64,
        known_true: share(known_tracks(&believed, truth)),
        usable: found.needs_belief().is_ok(),
        commands: found.probes,
        drive_seconds: found.at.as_secs_f64(),
        confidence: confidence.unwrap_or(0.0),
    })
}

/// How far predicted head times between random known blocks are off.
fn head_time(found: &FoundDrive, believed: &Profile, truth: &Profile) -> Option<HeadTimeErrors> {
    let live = belief::live(believed, found.findings.clock.as_ref()?);
    let pairs = head_times::pairs(&known_extents(believed));
    head_times::head_times(&live, truth, &pairs, found.at)
}

/// The share of true values; `None` without values.
fn share(each: impl Iterator<Item = bool>) -> Option<f64> {
    let (mut so, mut all) = (0u32, 0u32);
    for one in each {
        so += u32::from(one);
        all += 1;
    }
    (all > 0).then(|| f64::from(so) / f64::from(all))
}

/// Whether a block is sampled: on a large drive, if its track is known.
fn is_asked(believed: &Profile, truth: &Profile, lba: Lba) -> bool {
    let is_known = |confidence: &drive::Confidence| confidence.is_known(lba);
    truth.capacity_bytes() < LARGE || believed.confidence.as_ref().is_some_and(is_known)
}

/// Whether the tracks of random blocks are true, of those that are said to be known.
fn known_tracks(believed: &Profile, truth: &Profile) -> impl Iterator<Item = bool> {
    let asked = spread(&known_extents(believed));
    asked.into_iter().map(|lba| is_track(believed, truth, lba))
}

/// Random blocks. On a large and mostly unknown drive they come from the known part.
fn asked(believed: &Profile, truth: &Profile) -> Vec<Lba> {
    let whole = [(0, truth.geometry.sectors().0)];
    let known = known_extents(believed);
    let extents = match truth.capacity_bytes() < LARGE {
        true => &whole[..],
        false => &known,
    };
    spread(extents)
}

/// The known blocks: of each extent the first one, and how many.
fn known_extents(believed: &Profile) -> Vec<(u64, u64)> {
    let known = believed.confidence.as_ref().map_or(&[][..], |c| c.known());
    let known = known.iter();
    known
        .map(|extent| (extent.start().0, extent.length().0))
        .collect()
}

/// Random blocks of some extents, each its first block and its length.
fn spread(extents: &[(u64, u64)]) -> Vec<Lba> {
    // Knuth's multiplicative hashing. Any fixed sequence that the procedures do not use would do.
    let numbers = (0..BLOCKS).map(|number| (number + 1).wrapping_mul(0xD134_2543_DE82_EF95));
    numbers
        .filter_map(|number| placed(extents, number))
        .collect()
}

/// The block of some extents, each its first block and its length, with the part `number` / 2^64 of them
/// before it.
fn placed(extents: &[(u64, u64)], number: u64) -> Option<Lba> {
    let total: u64 = extents.iter().map(|(_, length)| length).sum();
    let mut left = ((u128::from(number) * u128::from(total)) >> 64) as u64;
    for &(first, length) in extents {
        if left < length {
            return Some(Lba(first + left));
        }
        left -= length;
    }
    None
}

/// The angle errors of blocks at some moment after the end, in revolutions, up to their common
/// constant.
fn angles(found: &FoundDrive, believed: &Profile, truth: &Profile, asked: &[Lba]) -> Vec<f64> {
    let Some(clock) = &found.findings.clock else {
        return Vec::new();
    };
    let live = belief::live(believed, clock);
    let off = |(number, lba): (usize, &Lba)| {
        let after = AFTER.as_nanos() * number as u64 / BLOCKS;
        let at = found.at + Duration::from_nanos(after);
        let predicted = wait(&live, *lba, at)?;
        Some(apart(wait(truth, *lba, at)?, predicted))
    };
    let mut off: Vec<f64> = asked.iter().enumerate().filter_map(off).collect();
    let constant = common(&off);
    for off in &mut off {
        *off = apart(turned(constant), turned(*off)).abs();
    }
    off
}

/// The rotation from the platter's position at a moment to a block.
fn wait(profile: &Profile, lba: Lba, at: Instant) -> Option<Angle> {
    let place = profile.geometry.locate(lba)?;
    Some(place.angle - profile.spindle.angle_at(at))
}

fn turned(revolutions: f64) -> Angle {
    Angle::from_revolutions(revolutions).unwrap_or_default()
}

/// The angle with the most others within 1 % of a revolution.
fn common(angles: &[f64]) -> f64 {
    let near = |one: f64| {
        let near = |other: &&f64| apart(turned(one), turned(**other)).abs() < 0.01;
        angles.iter().filter(near).count()
    };
    // A hundred candidates are enough to find one of the majority.
    let tried = angles.iter().copied().take(100);
    tried.max_by_key(|one| near(*one)).unwrap_or(0.0)
}

/// The mean error of the seek times of reads over the distances of the truth's table, in us, up to
/// the last cylinder. Some published tables continue beyond it.
fn seek_error(believed: &Profile, truth: &Profile) -> f64 {
    let cylinders = believed.geometry.cylinders();
    let reachable = |&(distance, _): &(u32, _)| distance < truth.geometry.cylinders();
    let points = truth.seek.read().points().filter(reachable);
    let (mut sum, mut count) = (0.0, 0.0);
    for (distance, is) in points {
        let found = believed.seek.read().time(distance.min(cylinders - 1));
        sum += (found.as_nanos() as f64 - is.as_nanos() as f64).abs() / 1e3;
        count += 1.0;
    }
    sum / count
}

/// The share of zones whose first block, last block and sectors per track were found; `None` if no
/// zone is known.
fn zones(believed: &Profile, truth: &Profile) -> Option<f64> {
    let blocks = truth.geometry.sectors().0;
    let zones = truth.geometry.zones();
    let ends = zones.iter().skip(1).map(|zone| zone.first.0);
    let ends = ends.chain([blocks]);
    let bounds = zones.iter().map(|zone| zone.first.0).zip(ends);
    let asked = bounds.filter(|&(first, end)| {
        is_asked(believed, truth, Lba(first)) && is_asked(believed, truth, Lba(end - 1))
    });
    share(asked.map(|(first, end)| {
        let begins = believed.geometry.track_of(Lba(first));
        let ends = believed.geometry.track_of(Lba(end - 1));
        begins.is_some_and(|track| track.first.0 == first)
            && ends.is_some_and(|track| track.last.0 == end - 1)
            && is_track(believed, truth, Lba(first))
            && is_track(believed, truth, Lba(end - 1))
    }))
}

/// Whether the bounds and the sectors of a block's track were found.
fn is_track(believed: &Profile, truth: &Profile, lba: Lba) -> bool {
    let track = |geometry: &Geometry| {
        let track = geometry.track_of(lba)?;
        Some((track.first, track.last, track.sectors))
    };
    let is = track(&truth.geometry);
    is.is_some() && is == track(&believed.geometry)
}
