//! The drawing of a drive as SVG: seek curve, media rate over the blocks, track map.

use std::path::Path;

use block::Lba;
use drive::geometry::Track;
use drive::{Angle, Profile};
use plotters::prelude::*;

/// The size of the drawing, and of each of its three panels.
const SIZE: (u32, u32) = (960, 1080);

/// Points of a curve, and cells of a track.
const POINTS: u32 = 480;
const CELLS: u32 = 120;

/// Writes the drawing to a file. The error is a message for users.
pub fn write(profile: &Profile, path: &Path) -> Result<(), String> {
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    draw(profile, &area).map_err(|error| error.to_string())
}

/// Draws the first tracks as SVG. The error is a message for users.
pub fn track_map(profile: &Profile) -> Result<String, String> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (SIZE.0, SIZE.1 / 3)).into_drawing_area();
        let drawn = area.fill(&WHITE).map_err(|error| error.to_string());
        drawn.and_then(|()| tracks(profile, &area).map_err(|error| error.to_string()))?;
        area.present().map_err(|error| error.to_string())?;
    }
    Ok(text)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw(profile: &Profile, area: &Area) -> Drawn {
    area.fill(&WHITE)?;
    let title = format!("{} ({})", profile.model, profile.provenance.name());
    let area = area.titled(&title, ("sans-serif", 22))?;
    let panels = area.split_evenly((3, 1));
    seek(profile, &panels[0])?;
    rate(profile, &panels[1])?;
    tracks(profile, &panels[2])?;
    area.present()?;
    Ok(())
}

/// The seek times of reads and of writes.
fn seek(profile: &Profile, area: &Area) -> Drawn {
    let longest = profile.geometry.cylinders() - 1;
    let distances =
        (1..=POINTS).map(|i| (u64::from(i) * u64::from(longest) / u64::from(POINTS)) as u32);
    let distances: Vec<u32> = std::iter::once(1)
        .chain(distances.filter(|d| *d > 1))
        .collect();
    let settle = profile.write_settle_nanos as f64 * 1e-6;
    let read = |d: u32| profile.seek.read().time(d).as_millis_f64();
    let write = |d: u32| profile.seek.write().time(d).as_millis_f64() + settle;
    let top = distances
        .iter()
        .map(|&d| read(d).max(write(d)))
        .fold(0.0, f64::max)
        * 1.05;
    let mut chart = ChartBuilder::on(area)
        .caption("Seek", ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(36)
        .y_label_area_size(50)
        .build_cartesian_2d(0.0..f64::from(longest), 0.0..top)?;
    chart
        .configure_mesh()
        .max_light_lines(0)
        .x_desc("cylinders")
        .x_label_formatter(&|distance| format!("{distance:.0}"))
        .y_desc("ms")
        .draw()?;
    let points = |time: &dyn Fn(u32) -> f64| -> Vec<(f64, f64)> {
        distances.iter().map(|&d| (f64::from(d), time(d))).collect()
    };
    for (label, colour, points) in [
        ("read", &BLUE, points(&read)),
        ("write, with settling", &RED, points(&write)),
    ] {
        chart
            .draw_series(LineSeries::new(points, colour))?
            .label(label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .border_style(BLACK)
        .background_style(WHITE)
        .draw()?;
    Ok(())
}

/// The rate of sectors under the head, over the blocks.
fn rate(profile: &Profile, area: &Area) -> Drawn {
    let blocks = profile.geometry.sectors().0;
    let period = profile.spindle.period_ps() as f64 * 1e-12;
    let gigabytes = |lba: u64| lba as f64 * f64::from(profile.block_bytes) * 1e-9;
    let mut points = Vec::new();
    for point in 0..POINTS {
        let lba = Lba(u64::from(point) * (blocks - 1) / u64::from(POINTS - 1));
        if let Some(place) = profile.geometry.locate(lba) {
            let bytes = f64::from(place.sectors_per_track) * f64::from(profile.block_bytes);
            points.push((gigabytes(lba.0), bytes / period * 1e-6));
        }
    }
    let top = points.iter().map(|point| point.1).fold(0.0, f64::max) * 1.05;
    let mut chart = ChartBuilder::on(area)
        .caption("Media rate", ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(36)
        .y_label_area_size(50)
        .build_cartesian_2d(0.0..gigabytes(blocks), 0.0..top)?;
    chart
        .configure_mesh()
        .max_light_lines(0)
        .x_desc("GB from block 0")
        .y_desc("MB/s")
        .draw()?;
    chart.draw_series(LineSeries::new(points, &BLUE))?;
    Ok(())
}

/// The first tracks over one revolution: light blocks are the track's first, dark its last.
fn tracks(profile: &Profile, area: &Area) -> Drawn {
    let tracks = first_tracks(profile, MAP_TRACKS);
    let mut chart = ChartBuilder::on(area)
        .caption(
            "The first tracks: light to dark is first to last block",
            ("sans-serif", 16),
        )
        .margin(10)
        .x_label_area_size(36)
        .y_label_area_size(50)
        .build_cartesian_2d(0.0..1.0, tracks.len() as f64..0.0)?;
    chart
        .configure_mesh()
        .disable_mesh()
        .x_desc("revolutions")
        .y_desc("track")
        .y_label_formatter(&|track| format!("{track:.0}"))
        .draw()?;
    for (row, track) in tracks.iter().enumerate() {
        for cell in 0..CELLS {
            let angle = Angle::fraction(2 * u64::from(cell) + 1, 2 * u64::from(CELLS));
            let Some(share) = share_at(profile, track, angle) else {
                continue;
            };
            let (left, right) = (
                f64::from(cell) / f64::from(CELLS),
                f64::from(cell + 1) / f64::from(CELLS),
            );
            let corners = [(left, row as f64), (right, row as f64 + 0.9)];
            let colour = HSLColor(0.6, 0.6, 0.9 - 0.65 * share);
            chart.draw_series([Rectangle::new(corners, colour.filled())])?;
        }
    }
    Ok(())
}

/// The first tracks of a drive, in the order of their blocks.
pub fn first_tracks(profile: &Profile, count: usize) -> Vec<Track> {
    let mut tracks = Vec::new();
    let mut next = Lba(0);
    while tracks.len() < count {
        let Some(track) = profile.geometry.track_of(next) else {
            break;
        };
        next = Lba(track.last.0.max(next.0) + 1);
        tracks.push(track);
    }
    tracks
}

/// The block at an angle, as a share of the track's blocks from 0 to 1; `None` if there is no
/// block.
pub fn share_at(profile: &Profile, track: &Track, angle: Angle) -> Option<f64> {
    let way = (angle - track.start).revolutions();
    let sector = (way * f64::from(track.sectors)) as u32;
    let lba = profile
        .geometry
        .lba_at(track.cylinder, track.head, sector)?;
    let blocks = track.last.0 - track.first.0 + 1;
    Some(lba.0.saturating_sub(track.first.0) as f64 / blocks as f64)
}

/// Tracks of the map.
pub const MAP_TRACKS: usize = 24;
