//! The figures of a drive that a data sheet would have.

use drive::Profile;
use serde::Serialize;

/// A drive's row in the list.
#[derive(Debug, Serialize)]
pub struct DriveSummary {
    name: String,
    model: String,
    /// `null` if unknown.
    year: Option<u16>,
    provenance: &'static str,
    /// Whether some constants were fitted to a measured trace.
    fitted: bool,
    capacity_bytes: u64,
    blocks: u64,
    block_bytes: u32,
    physical_block_bytes: u32,
    actuators: u8,
    rpm: f64,
    surfaces: u32,
    cylinders: u32,
    tracks: u64,
    seek: Seek,
    media_rate_mb_s: MediaRate,
}

/// Seek times in milliseconds.
#[derive(Debug, Serialize)]
pub struct Seek {
    single_ms: f64,
    mean_ms: f64,
    full_ms: f64,
}

/// Rate of sectors under the head, in 10^6 bytes per second, without switches.
#[derive(Debug, Serialize)]
pub struct MediaRate {
    outer: f64,
    inner: f64,
}

/// Number of blocks, evenly spread over the drive, between which the mean seek is computed.
const MEAN_SAMPLES: u64 = 256;

impl DriveSummary {
    /// The two lines above the table, in the columns of [`Self::row`].
    pub const HEADINGS: [&'static str; 2] = [
        "                                            sur-                          seek 1/mean/full  outer/inner",
        "drive                     capacity    rpm  faces cylinders     tracks                   ms         MB/s  provenance",
    ];

    /// The figures of a profile.
    pub fn of(profile: &Profile) -> Self {
        let geometry = &profile.geometry;
        let read = |distance| profile.seek.read().time(distance).as_millis_f64();
        let tracks = geometry.zones();
        let sectors = tracks.iter().map(|zone| zone.sectors_per_track);
        let period = profile.spindle.period_ps() as f64 * 1e-12;
        let rate = |sectors: Option<u32>| {
            let bytes = f64::from(sectors.unwrap_or(0)) * f64::from(profile.block_bytes);
            round(bytes / period / 1e6, 10.0)
        };
        DriveSummary {
            name: profile.name.clone(),
            model: profile.model.clone(),
            year: profile.year,
            provenance: profile.provenance.name(),
            fitted: profile.is_fitted(),
            capacity_bytes: profile.capacity_bytes(),
            blocks: geometry.sectors().0,
            block_bytes: profile.block_bytes,
            physical_block_bytes: profile.physical_block_bytes,
            actuators: profile.actuators,
            rpm: round(profile.rpm(), 100.0),
            surfaces: geometry.surfaces(),
            cylinders: geometry.cylinders(),
            tracks: geometry.tracks(),
            seek: Seek {
                single_ms: round(read(1), 1000.0),
                mean_ms: round(mean_seek(profile), 1000.0),
                full_ms: round(read(geometry.cylinders() - 1), 1000.0),
            },
            media_rate_mb_s: MediaRate {
                outer: rate(sectors.clone().max()),
                inner: rate(sectors.min()),
            },
        }
    }

    /// A line of the table.
    pub fn row(&self) -> String {
        let Seek {
            single_ms,
            mean_ms,
            full_ms,
        } = self.seek;
        let seek = format!("{single_ms:.2}/{mean_ms:.2}/{full_ms:.2}");
        let MediaRate { outer, inner } = self.media_rate_mb_s;
        let rate = match outer {
            _ if outer < 10.0 => format!("{outer:.1}/{inner:.1}"),
            _ => format!("{outer:.0}/{inner:.0}"),
        };
        format!(
            "{:<24} {:>9} {:>6.0} {:>5} {:>9} {:>10}  {seek:>19}  {rate:>11}  {}{}",
            self.name,
            bytes(self.capacity_bytes),
            self.rpm,
            self.surfaces,
            self.cylinders,
            self.tracks,
            self.provenance,
            if self.fitted { ", fitted" } else { "" },
        )
    }
}

/// The mean seek between two random blocks.
fn mean_seek(profile: &Profile) -> f64 {
    let blocks = u128::from(profile.geometry.sectors().0);
    let cylinders: Vec<u32> = (0..MEAN_SAMPLES)
        .filter_map(|sample| {
            let share = 2 * u128::from(sample) + 1;
            let lba = blocks * share / (2 * u128::from(MEAN_SAMPLES));
            profile.geometry.locate(block::Lba(lba as u64))
        })
        .map(|place| place.cylinder)
        .collect();
    let mut sum = 0.0;
    for from in &cylinders {
        for to in &cylinders {
            sum += profile.seek.read().time(from.abs_diff(*to)).as_millis_f64();
        }
    }
    sum / (cylinders.len() * cylinders.len()) as f64
}

/// Rounds to a multiple of a fraction, so that every machine prints the same figure.
fn round(value: f64, fraction: f64) -> f64 {
    (value * fraction).round() / fraction
}

/// A capacity as the vendors write it.
pub fn bytes(count: u64) -> String {
    let count = count as f64;
    match count {
        _ if count >= 1e12 => format!("{:.2} TB", count / 1e12),
        _ if count >= 1e11 => format!("{:.0} GB", count / 1e9),
        _ => format!("{:.2} GB", count / 1e9),
    }
}
