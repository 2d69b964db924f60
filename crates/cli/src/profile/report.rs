//! What was found, for people, for programs and as drawings.

use std::fmt::Write as _;

use lab::plot::{self, Curve};
use profiler::findings::MapPiece;
use profiler::{Findings, belief};
use serde::Serialize;

use super::found::{Ended, Found};
use super::progress::known;
use crate::drives;
use crate::output::{Exit, grouped};

/// The figures of `--json`.
#[derive(Debug, Serialize)]
pub struct Figures {
    drive: String,
    finished: bool,
    drive_seconds: f64,
    commands: u64,
    blocks: u64,
    period_ps: Option<u64>,
    wander_ppm: f64,
    known_blocks: u64,
    zones: Vec<Zone>,
    surfaces: Option<u32>,
    cylinders: Option<u32>,
    head_switch_ms: Option<f64>,
    write_settle_ms: Option<f64>,
    seeks: Vec<Seek>,
    chunk_least_blocks: Option<u32>,
    chunk_most_blocks: Option<u32>,
    chunk: Vec<Rate>,
    failed: Vec<String>,
    confidence: std::collections::BTreeMap<&'static str, f64>,
}

/// Neighbouring tracks with the same numbers of sectors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Zone {
    first_block: u64,
    blocks: u64,
    tracks: u64,
    /// Of the different tracks, ascending.
    sectors_per_track: Vec<u32>,
}

#[derive(Debug, Serialize)]
struct Seek {
    cylinders: u32,
    ms: f64,
    deviation_us: f64,
    inward_ms: f64,
    outward_ms: f64,
}

#[derive(Debug, Serialize)]
struct Rate {
    blocks: u32,
    mb_s: f64,
}

/// The figures of a drive.
///
/// # Errors
/// If what was found contradicts itself.
pub fn figures(found: &Found) -> Result<Figures, Exit> {
    found.profile()?;
    let findings = &found.findings;
    let layout = findings.layout.as_ref().map(|layout| &layout.description);
    let arm = findings.arm.as_ref();
    let firmware = findings.firmware.as_ref();
    let chunk = firmware.and_then(|firmware| firmware.chunk.as_ref());
    let shares = belief::shares(findings, &found.device);
    Ok(Figures {
        drive: found.name.clone(),
        finished: found.ended == Ended::Finished,
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
        failed: failures(findings),
        confidence: shares
            .into_iter()
            .map(|(part, share)| (part.name(), share))
            .collect(),
    })
}

fn seeks(findings: &Findings) -> Vec<Seek> {
    let points = findings.arm.iter().flat_map(|arm| &arm.read);
    let seek = points.map(|point| Seek {
        cylinders: point.distance,
        ms: point.mean.as_millis_f64(),
        deviation_us: point.deviation.as_millis_f64() * 1e3,
        inward_ms: point.inward.as_millis_f64(),
        outward_ms: point.outward.as_millis_f64(),
    });
    seek.collect()
}

/// Throughput by the size of reads.
fn rates(findings: &Findings, block_bytes: u32) -> Vec<Rate> {
    let chunk = findings.firmware.iter().filter_map(|f| f.chunk.as_ref());
    let rate = chunk.flat_map(|chunk| &chunk.curve).map(|tried| Rate {
        blocks: tried.blocks,
        mb_s: tried.rate * f64::from(block_bytes) / 1e6,
    });
    rate.collect()
}

fn failures(findings: &Findings) -> Vec<String> {
    let failed = findings.progress.failed.iter();
    failed
        .map(|(step, why)| format!("{}: {why}", step.name()))
        .collect()
}

/// Stretches of the map whose tracks have the same numbers of sectors.
fn zones(findings: &Findings) -> Vec<Zone> {
    let mut zones: Vec<Zone> = Vec::new();
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
            _ => zones.push(Zone {
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

/// The report.
///
/// # Errors
/// If what was found contradicts itself.
pub fn text(found: &Found) -> Result<String, Exit> {
    let figures = figures(found)?;
    let mut text = String::new();
    let (seconds, commands) = (figures.drive_seconds, grouped(figures.commands));
    let ended = match found.ended {
        Ended::Finished => "",
        Ended::OutOfTime => ", and the budget is spent",
    };
    let _ = writeln!(
        text,
        "{}: {seconds:.1} s of the drive's time, {commands} commands{ended}",
        found.name
    );
    let _ = writeln!(
        text,
        "  known       {}",
        known(&found.device, &found.findings)
    );
    if let Some(period) = figures.period_ps {
        let micros = period as f64 / 1e6;
        let wander = figures.wander_ppm;
        let _ = writeln!(
            text,
            "  revolution  {micros:.4} us, which wanders by {wander:.2} ppm between sightings"
        );
    }
    for failed in &figures.failed {
        let _ = writeln!(text, "  not found   {failed}");
    }
    zone_table(&mut text, &figures.zones);
    seek_table(&mut text, &figures);
    if let Some(firmware) = &found.findings.firmware {
        electronics(&mut text, firmware);
    }
    text.push_str("\n  confidence, the share of fresh measurements that each part predicts\n");
    for (part, share) in belief::shares(&found.findings, &found.device) {
        let share = share * 100.0;
        let _ = writeln!(text, "    {:<14}{share:6.1} %", part.name());
    }
    Ok(text)
}

/// At most how many rows of a table are printed: more are in the profile.
const ROWS: usize = 40;

fn zone_table(text: &mut String, zones: &[Zone]) {
    if zones.is_empty() {
        return;
    }
    text.push_str("\n  first block          blocks     tracks   sectors per track\n");
    for zone in zones.iter().take(ROWS) {
        let (first, blocks) = (grouped(zone.first_block), grouped(zone.blocks));
        let sectors: Vec<String> = zone.sectors_per_track.iter().map(u32::to_string).collect();
        let _ = writeln!(
            text,
            "  {first:>14} {blocks:>14} {:>10}   {}",
            grouped(zone.tracks),
            sectors.join(", ")
        );
    }
    more(text, zones.len());
}

fn seek_table(text: &mut String, figures: &Figures) {
    if figures.seeks.is_empty() {
        return;
    }
    if let (Some(switch), Some(settle)) = (figures.head_switch_ms, figures.write_settle_ms) {
        let _ = writeln!(
            text,
            "\n  head switch {switch:.3} ms, writes settle {settle:.3} ms later"
        );
    }
    text.push_str("\n  cylinders       ms   spread us    inward   outward\n");
    for seek in figures.seeks.iter().take(ROWS) {
        let _ = writeln!(
            text,
            "  {:>9} {:8.3} {:11.0} {:9.3} {:9.3}",
            seek.cylinders, seek.ms, seek.deviation_us, seek.inward_ms, seek.outward_ms
        );
    }
    more(text, figures.seeks.len());
}

fn more(text: &mut String, rows: usize) {
    if rows > ROWS {
        let _ = writeln!(text, "  and {} more", rows - ROWS);
    }
}

fn electronics(text: &mut String, firmware: &profiler::findings::Firmware) {
    let (overheads, buffer) = (&firmware.overheads, &firmware.buffer);
    let _ = writeln!(
        text,
        "\n  overhead of a read {:.3} ms, from the buffer {:.3} ms; of a write {:.3} ms",
        overheads.read_miss.read.as_millis_f64(),
        overheads.read_hit.read.as_millis_f64(),
        overheads.write_miss.write.as_millis_f64(),
    );
    let _ = writeln!(
        text,
        "  bus {:.2} us a block; {} segments of {} blocks, look-ahead {:?}, write-back {:?}",
        firmware.bus.read_block.as_millis_f64() * 1e3,
        buffer.segments,
        buffer.segment_blocks,
        buffer.look_ahead,
        buffer.write_back,
    );
    let _ = writeln!(
        text,
        "  queue of {} commands, order {:?}",
        firmware.queue.depth, firmware.queue.order
    );
    if let Some(chunk) = &firmware.chunk {
        let most = chunk
            .most
            .map_or("any more".to_owned(), |most| most.to_string());
        let least = chunk.least;
        let _ = writeln!(
            text,
            "  sequential reads of {least} to {most} blocks keep the full rate"
        );
    }
}

/// The drawings: file names and contents. What was not found is not drawn.
///
/// # Errors
/// If what was found contradicts itself.
pub fn drawings(found: &Found) -> Result<Vec<(&'static str, String)>, Exit> {
    let figures = figures(found)?;
    let name = &found.name;
    let mut drawings = Vec::new();
    if !figures.seeks.is_empty() {
        drawings.push(("seek.svg", seek_plot(name, &figures.seeks)));
    }
    if !figures.zones.is_empty() {
        drawings.push(("zones.svg", zone_plot(name, &figures.zones)));
        drawings.push(("tracks.svg", drives::track_map(&found.profile()?)?));
    }
    if !figures.chunk.is_empty() {
        let points = |rate: &Rate| {
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

fn seek_plot(name: &str, seeks: &[Seek]) -> String {
    let curve = |name: &str, of: fn(&Seek) -> f64| Curve {
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

fn zone_plot(name: &str, zones: &[Zone]) -> String {
    let ends = |zone: &Zone| {
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
