//! `headtime drives show`: a drive on one screen.

use std::io::{self, Write};

use drive::{Angle, Profile};
use lab::drive_drawing::{MAP_TRACKS, first_tracks, share_at};

use super::chart::Chart;
use super::summary::{self, DriveSummary};

/// The size of the seek curve and the width of the track map, in characters.
const WIDTH: usize = 72;
const HEIGHT: usize = 10;

/// Limit of printed zones.
const ZONES: usize = 16;

/// Prints figures, seek curve, zones and track map.
pub fn show(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    head(profile, out)?;
    seek(profile, out)?;
    zones(profile, out)?;
    map(profile, out)
}

/// The figures, and their origin.
fn head(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    match profile.year {
        Some(year) => writeln!(out, "{}  ({}, {year})", profile.name, profile.model)?,
        None => writeln!(out, "{}  ({})", profile.name, profile.model)?,
    }
    writeln!(
        out,
        "{}, {} blocks of {} bytes, {} actuator{}",
        summary::bytes(profile.capacity_bytes()),
        profile.geometry.sectors().0,
        profile.block_bytes,
        profile.actuators,
        if profile.actuators == 1 { "" } else { "s" },
    )?;
    writeln!(out, "{}", DriveSummary::of(profile).row())?;
    writeln!(
        out,
        "\norigin of the numbers ({})",
        profile.provenance.name()
    )?;
    for origin in &profile.origins {
        let table = if origin.table.is_empty() {
            "drive"
        } else {
            &origin.table
        };
        let mut lead = table;
        for line in wrap(&origin.text, 100) {
            writeln!(out, "  {lead:<9} {line}")?;
            lead = "";
        }
    }
    Ok(())
}

/// Wraps a text at spaces, into lines of at most `width` characters.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].chars().count() + 1 + word.chars().count() > width
        {
            lines.push(String::new());
        }
        let last = lines.len() - 1;
        if !lines[last].is_empty() {
            lines[last].push(' ');
        }
        lines[last].push_str(word);
    }
    lines
}

/// The seek curve over all distances.
fn seek(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let longest = profile.geometry.cylinders() - 1;
    let curve = profile.seek.read();
    let mut chart = Chart::new(WIDTH, HEIGHT);
    let columns = chart.columns();
    let distance = |column: usize| {
        let share = (column as u64 + 1) * u64::from(longest) / columns as u64;
        (share as u32).max(1)
    };
    let times: Vec<f64> = (0..columns)
        .map(|c| curve.time(distance(c)).as_millis_f64())
        .collect();
    let top = times.iter().fold(0.0f64, |a, b| a.max(*b)) * 1.05;
    for (column, time) in times.iter().enumerate() {
        chart.set(column, time / top);
    }
    writeln!(out, "\nseek in ms over cylinders")?;
    for (row, line) in chart.lines().enumerate() {
        let value = top * (HEIGHT - row) as f64 / HEIGHT as f64;
        writeln!(out, "  {value:6.1} ┤{line}")?;
    }
    writeln!(out, "         └{}", "─".repeat(WIDTH))?;
    writeln!(out, "          1{longest:>width$}", width = WIDTH - 1)
}

/// The zones, or as many of them as fit.
fn zones(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let zones = profile.geometry.zones();
    let most = zones
        .iter()
        .map(|zone| zone.sectors_per_track)
        .max()
        .unwrap_or(1);
    let shown = zones.len().min(ZONES);
    writeln!(out, "\n{} zones", zones.len())?;
    writeln!(
        out,
        "  {:>12} {:>9} {:>8}  angle",
        "first block", "cylinder", "sectors"
    )?;
    for index in 0..shown {
        let zone = zones[index * zones.len() / shown];
        let bar = zone.sectors_per_track as usize * 48 / most as usize;
        writeln!(
            out,
            "  {:>12} {:>9} {:>8}  {:.4}  {}",
            zone.first.0,
            zone.cylinder,
            zone.sectors_per_track,
            zone.start.revolutions(),
            "█".repeat(bar)
        )?;
    }
    Ok(())
}

/// The first tracks in the order of their blocks, over one revolution: darker is later.
fn map(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\ntracks from block 0 on, over one revolution (░ first blocks ... █ last blocks)"
    )?;
    for track in first_tracks(profile, MAP_TRACKS) {
        let row: String = (0..WIDTH)
            .map(|column| {
                let angle = Angle::fraction(2 * column as u64 + 1, 2 * WIDTH as u64);
                match share_at(profile, &track, angle) {
                    None => '·',
                    Some(share) => ['░', '▒', '▓', '█'][((share * 4.0) as usize).min(3)],
                }
            })
            .collect();
        writeln!(
            out,
            "  cyl {:>6} head {:>2} │{row}│",
            track.cylinder, track.head
        )?;
    }
    Ok(())
}
