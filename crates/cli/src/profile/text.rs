//! Profiles as text.

use std::fmt::Write as _;

use block::Duration;
use lab::profiling::behind::BehindFigures;
use lab::profiling::check::Checked;
use lab::profiling::found::{FoundDrive, ProfilingEnd};
use lab::profiling::report::{FoundZone, ProfileFigures, figures};
use profiler::{Offers, belief};

use super::progress::known;
use crate::output::{Exit, grouped};

/// The report.
///
/// # Errors
/// If the findings contradict each other.
pub fn report(found: &FoundDrive) -> Result<String, Exit> {
    let figures = figures(found)?;
    let mut text = String::new();
    let (seconds, commands) = (figures.drive_seconds, grouped(figures.commands));
    let ended = match found.ended {
        ProfilingEnd::Finished => "",
        ProfilingEnd::OutOfTime => ", and the budget is spent",
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
    if found.device.offers == Offers::Nothing && !found.findings.host.floor.is_zero() {
        let host = &found.findings.host;
        let micros = |time: Duration| time.as_millis_f64() * 1e3;
        let _ = writeln!(
            text,
            "  host        the buffer answers in {:.0} us, 99 % of the time within {:.0} us more; nine of ten \
             reads from the medium end at most {:.0} us late",
            micros(host.floor),
            micros(host.p99),
            micros(host.late)
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

/// Limit of printed rows of a table. The profile has all.
const ROWS: usize = 40;

fn zone_table(text: &mut String, zones: &[FoundZone]) {
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

fn seek_table(text: &mut String, figures: &ProfileFigures) {
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

/// The comparison with the truth, below the report.
pub fn checked(figures: &Checked, found: &FoundDrive) -> String {
    let mut text = String::from("\nagainst what is true of the drive\n");
    let mut line = |what: &str, figure: Option<f64>, digits: usize, unit: &str| {
        let figure = figure.map_or("not known".to_owned(), |f| format!("{f:.digits$}{unit}"));
        let _ = writeln!(text, "  {what:<44}{figure}");
    };
    let head_time = figures.head_time;
    line(
        "head times of 10,000 random pairs off by",
        head_time.map(|errors| errors.mean_us),
        1,
        " us in the mean",
    );
    line(
        "head times of 99 % of them within",
        head_time.map(|errors| errors.p99_us),
        1,
        " us",
    );
    line(
        "of those a turn late or early",
        head_time.map(|errors| errors.other_turn * 100.0),
        2,
        " %",
    );
    line("period off by", figures.period_ppm, 2, " ppm");
    line(
        "angles of 95 % of blocks within",
        figures.angle_p95_rev,
        5,
        " revolutions",
    );
    line(
        "angles of 99 % of blocks within",
        figures.angle_p99_rev,
        5,
        " revolutions",
    );
    line(
        "seek table off by, in the mean",
        figures.seek_mean_error_us,
        1,
        " us",
    );
    let percent = |share: Option<f64>| share.map(|share| share * 100.0);
    line("zones exact", percent(figures.zones_exact), 1, " %");
    line("tracks exact", percent(figures.tracks_exact), 1, " %");
    let known = found.findings.map.known() as f64 / found.device.blocks as f64;
    line(
        "blocks whose tracks are said to be known",
        Some(known * 100.0),
        1,
        " %",
    );
    line(
        "tracks of those exact",
        percent(figures.known_true),
        1,
        " %",
    );
    text
}

/// The figures of a run behind a load.
pub fn behind(figures: &BehindFigures) -> String {
    let mut text = String::new();
    let ended = match figures.finished {
        true => "nothing is left to ask",
        false => "the budget is spent",
    };
    let _ = writeln!(
        text,
        "{} behind {}: {:.1} s of the drive, {ended}\n",
        figures.drive, figures.behind, figures.drive_seconds
    );
    let _ = writeln!(text, "  after s   tracks known    probes");
    for moment in &figures.progress {
        let _ = writeln!(
            text,
            "{:9.1} {:12.2} % {:>9}",
            moment.seconds,
            moment.known * 100.0,
            grouped(moment.probes)
        );
    }
    let _ = writeln!(
        text,
        "\n{} probes took {:.1} % of the time; the tracks of {:.2} % of the blocks are known; the profile is {}",
        grouped(figures.probes),
        figures.probing * 100.0,
        figures.known * 100.0,
        match figures.usable {
            true => "usable",
            false => "not usable yet",
        }
    );
    let _ = writeln!(text, "\n              requests   mean ms    p99 ms");
    for (name, side) in [("alone", &figures.alone), ("beside", &figures.foreground)] {
        let millis = |value: Option<f64>| value.map_or("-".to_owned(), |ms| format!("{ms:.2}"));
        let _ = writeln!(
            text,
            "{name:10} {:>11} {:>9} {:>9}",
            grouped(side.requests),
            millis(side.mean_ms),
            millis(side.p99_ms)
        );
    }
    if let (Some(mean), Some(p99)) = (figures.mean_percent, figures.p99_percent) {
        let _ = writeln!(text, "impact     {:>11} {mean:>+8.2}% {p99:>+8.2}%", "");
    }
    text
}
