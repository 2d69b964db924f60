//! The findings as figures and drawings.

use crate::plot::{self, Curve};
use profiler::findings::MapPiece;
use profiler::{Findings, belief};
use serde::Serialize;

use super::found::{FoundDrive, ProfilingEnd};
use crate::{Failure, drive_drawing};

/// The figures of a profiled drive.
#[derive(Debug, Serialize)]
pub struct ProfileFigures {
    /// The drive.
    pub drive: String,
    /// Whether no question was left.
    pub finished: bool,
    /// The drive's time.
    pub drive_seconds: f64,
    /// The number of the profiler's commands.
    pub commands: u64,
    /// The drive's size in blocks.
    pub blocks: u64,
    /// The period of a revolution, in ps.
    pub period_ps: Option<u64>,
    /// The variation of the period between sightings, in ppm.
    pub wander_ppm: f64,
    /// The number of blocks whose tracks are known.
    pub known_blocks: u64,
    /// The zones.
    pub zones: Vec<FoundZone>,
    /// The number of surfaces.
    pub surfaces: Option<u32>,
    /// The number of cylinders.
    pub cylinders: Option<u32>,
    /// The time of a head switch.
    pub head_switch_ms: Option<f64>,
    /// The additional settling time of writes.
    pub write_settle_ms: Option<f64>,
    /// The seek table.
    pub seeks: Vec<FoundSeek>,
    /// The smallest sequential read that keeps the full rate.
    pub chunk_least_blocks: Option<u32>,
    /// The largest sequential read that keeps the full rate.
    pub chunk_most_blocks: Option<u32>,
    /// Throughput by the size of reads.
    pub chunk: Vec<ChunkRate>,
    /// The parts that were not found, with the reasons.
    pub failed: Vec<String>,
    /// The confidence of each part: the share of fresh measurements that it predicts.
    pub confidence: std::collections::BTreeMap<&'static str, f64>,
}

/// Adjacent tracks with the same numbers of sectors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundZone {
    /// The first block.
    pub first_block: u64,
    /// The number of blocks.
    pub blocks: u64,
    /// The number of tracks.
    pub tracks: u64,
    /// The different numbers of sectors per track, ascending.
    pub sectors_per_track: Vec<u32>,
}

/// The seek times over a distance.
#[derive(Debug, Serialize)]
pub struct FoundSeek {
    /// The distance in cylinders.
    pub cylinders: u32,
    /// The mean time.
    pub ms: f64,
    /// The standard deviation.
    pub deviation_us: f64,
    /// The mean time inwards.
    pub inward_ms: f64,
    /// The mean time outwards.
    pub outward_ms: f64,
}

/// The throughput of sequential reads of one size.
#[derive(Debug, Serialize)]
pub struct ChunkRate {
    /// The size in blocks.
    pub blocks: u32,
    /// The throughput.
    pub mb_s: f64,
}

/// The figures of a drive.
///
/// # Errors
/// If the findings contradict each other.
pub fn figures(found: &FoundDrive) -> Result<ProfileFigures, Failure> {
    found.profile()?;
    let findings = &found.findings;
    let layout = findings.layout.as_ref().map(|layout| &layout.description);
    let arm = findings.arm.as_ref();
    let firmware = findings.firmware.as_ref();
    let chunk = firmware.and_then(|firmware| firmware.chunk.as_ref());
    let shares = belief::shares(findings, &found.device);
    Ok(ProfileFigures {
        drive: found.name.clone(),
        finished: found.ended == ProfilingEnd::Finished,
        drive_seconds: found.at.as_secs_f64(),
        commands: found.probes,
        blocks: found.device.blocks,
        period_ps: Some(findings.spindle.period_ps).filter(|period| *period > 0),
        wander_ppm: findings.spindle.wander_ppm,
        known_blocks: findings.map.known(),
        zones: zones(findings),
        surfaces: layout.map(|layout| layout.surfaces),
        cylinders: layout.map(|layout| layout.cylinders),
        head_switch_ms: arm.map(|arm| arm.head_switch.as_millis_f64()),
        write_settle_ms: arm.map(|arm| arm.write_settle_nanos as f64 / 1e6),
        seeks: seeks(findings),
        chunk_least_blocks: chunk.map(|chunk| chunk.least),
        chunk_most_blocks: chunk.and_then(|chunk| chunk.most),
        chunk: rates(findings, found.device.block_bytes),
        failed: findings
            .progress
            .failed
            .iter()
            .map(|(step, why)| format!("{}: {why}", step.name()))
            .collect(),
        confidence: shares
            .into_iter()
            .map(|(part, share)| (part.name(), share))
            .collect(),
    })
}

fn seeks(findings: &Findings) -> Vec<FoundSeek> {
    let points = findings.arm.iter().flat_map(|arm| &arm.read);
    let seek = points.map(|point| FoundSeek {
        cylinders: point.distance,
        ms: point.mean.as_millis_f64(),
        deviation_us: point.deviation.as_millis_f64() * 1e3,
        inward_ms: point.inward.as_millis_f64(),
        outward_ms: point.outward.as_millis_f64(),
    });
    seek.collect()
}

/// Throughput by the size of reads.
fn rates(findings: &Findings, block_bytes: u32) -> Vec<ChunkRate> {
    let chunk = findings.firmware.iter().filter_map(|f| f.chunk.as_ref());
    let rate = chunk.flat_map(|chunk| &chunk.curve).map(|tried| ChunkRate {
        blocks: tried.blocks,
        mb_s: tried.rate * f64::from(block_bytes) / 1e6,
    });
    rate.collect()
}

/// Parts of the map whose tracks have the same numbers of sectors.
fn zones(findings: &Findings) -> Vec<FoundZone> {
    let mut zones: Vec<FoundZone> = Vec::new();
    for piece in &findings.map.pieces {
        let sectors_per_track = sectors(piece);
        let (first_block, blocks) = (piece.first.0, piece.blocks());
        match zones.last_mut() {
            Some(last)
                if last.first_block + last.blocks == first_block
                    && last.sectors_per_track == sectors_per_track =>
            {
                last.blocks += blocks;
                last.tracks += piece.tracks();
            }
            _ => zones.push(FoundZone {
                first_block,
                blocks,
                tracks: piece.tracks(),
                sectors_per_track,
            }),
        }
    }
    zones
}

/// The different numbers of sectors of a piece's tracks.
fn sectors(piece: &MapPiece) -> Vec<u32> {
    let mut sectors: Vec<u32> = piece.cycle.iter().map(|band| band.sectors).collect();
    sectors.sort_unstable();
    sectors.dedup();
    sectors
}

/// The drawings: file names and contents. Missing findings have no drawing.
///
/// # Errors
/// If the findings contradict each other.
pub fn drawings(found: &FoundDrive) -> Result<Vec<(&'static str, String)>, Failure> {
    let figures = figures(found)?;
    let name = &found.name;
    let mut drawings = Vec::new();
    if !figures.seeks.is_empty() {
        drawings.push(("seek.svg", seek_plot(name, &figures.seeks)));
    }
    if !figures.zones.is_empty() {
        drawings.push(("zones.svg", zone_plot(name, &figures.zones)));
        drawings.push((
            "tracks.svg",
            drive_drawing::track_map(&found.profile()?).map_err(Failure::failed)?,
        ));
    }
    if !figures.chunk.is_empty() {
        let points = |rate: &ChunkRate| {
            let kilobytes = f64::from(rate.blocks) * f64::from(found.device.block_bytes) / 1e3;
            (kilobytes, rate.mb_s)
        };
        let curve = Curve {
            name: "sequential".to_owned(),
            points: figures.chunk.iter().map(points).collect(),
        };
        let title = format!("{name}: throughput over the size of reads");
        let drawing = plot::lines(&title, "KB a read", "MB/s", &[curve]);
        drawings.push(("chunk.svg", drawing));
    }
    Ok(drawings)
}

fn seek_plot(name: &str, seeks: &[FoundSeek]) -> String {
    let curve = |name: &str, of: fn(&FoundSeek) -> f64| Curve {
        name: name.to_owned(),
        points: seeks
            .iter()
            .map(|seek| (f64::from(seek.cylinders), of(seek)))
            .collect(),
    };
    let curves = [
        curve("mean", |seek| seek.ms),
        curve("+ spread", |seek| seek.ms + seek.deviation_us / 1e3),
        curve("- spread", |seek| seek.ms - seek.deviation_us / 1e3),
    ];
    let title = format!("{name}: seeks as profiled, with their standard deviation");
    plot::lines(&title, "cylinders", "ms", &curves)
}

fn zone_plot(name: &str, zones: &[FoundZone]) -> String {
    let ends = |zone: &FoundZone| {
        let sectors =
            zone.sectors_per_track.iter().sum::<u32>() as f64 / zone.sectors_per_track.len() as f64;
        let last = zone.first_block + zone.blocks - 1;
        [(zone.first_block as f64, sectors), (last as f64, sectors)]
    };
    let curve = Curve {
        name: "sectors".to_owned(),
        points: zones.iter().flat_map(ends).collect(),
    };
    let title = format!("{name}: sectors on a track as profiled");
    plot::lines(&title, "block", "sectors", &[curve])
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::Lba;
    use drive::Angle;
    use profiler::findings::{Band, TrackMap};

    fn piece(first: u64, sectors: &[u32], repeats: u32) -> MapPiece {
        let band = |&sectors: &u32| Band {
            tracks: 2,
            blocks: 10,
            sectors,
            start: Angle::ZERO,
            skew: Angle::ZERO,
        };
        MapPiece {
            first: Lba(first),
            angle: Angle::ZERO,
            cycle: sectors.iter().map(band).collect(),
            repeats,
            step: Angle::ZERO,
        }
    }

    #[test]
    fn like_pieces_that_touch_are_one_zone() {
        let pieces = vec![
            piece(0, &[12], 3),
            piece(60, &[12], 1),
            piece(80, &[11, 12], 1),
            piece(200, &[12, 11], 1),
        ];
        let findings = Findings {
            map: TrackMap {
                pieces,
                ..TrackMap::default()
            },
            ..Findings::default()
        };
        let zones = zones(&findings);
        let seen: Vec<_> = zones
            .iter()
            .map(|z| (z.first_block, z.blocks, z.tracks))
            .collect();
        assert_eq!(seen, [(0, 80, 8), (80, 40, 4), (200, 40, 4)]);
        assert_eq!(zones[2].sectors_per_track, [11, 12]);
    }
}
