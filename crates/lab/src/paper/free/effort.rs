//! The effort of the planner: free bandwidth over the number of examined tracks and of stops.

use super::{BINARY, GUARD, HALF, JUDGED, PARTS, SW60, WHOLE, outside};
use crate::Failure;
use crate::paper::grounds::OtherSetup;
use crate::paper::trial::{ScanTrial, Search, Trials};
use crate::paper::{Drawing, Table};
use crate::plot::{Curve, Panel};

/// The paper's external scheduler with this effort.
pub(super) fn trial(search: Search) -> ScanTrial {
    ScanTrial {
        search,
        part: part(search),
        ..outside(JUDGED, SW60, GUARD)
    }
}

/// Hundredths of the scan that an effort reads. A search of one track hardly ever meets the last wanted ones: its rate is
/// 2.90 MB/s until half of the scan and 0.66 until 95 %, and it had not read all after 50 minutes of CPU time (093e0f73).
fn part(search: Search) -> u32 {
    match search.tracks {
        1 => HALF,
        _ => WHOLE,
    }
}

/// The name of an effort in tables.
pub(super) fn named(search: Search) -> String {
    let tracks = match search.tracks {
        u32::MAX => "all tracks".to_owned(),
        1 => "1 track".to_owned(),
        tracks => format!("{tracks} tracks"),
    };
    let stops = match search.stops {
        1 => "1 stop".to_owned(),
        stops => format!("{stops} stops"),
    };
    format!("search of {tracks}, plans of {stops}")
}

/// An effort as another setup of a claim: its free bandwidth over what it reads of the scan.
///
/// # Errors
/// If it was not run.
pub(super) fn setup(trials: &Trials, search: Search) -> Result<OtherSetup, Failure> {
    let found = trials.get(&trial(search))?.until(part(search)) / BINARY;
    let name = match part(search) {
        WHOLE => named(search),
        _ => format!("{}; the first half of the scan", named(search)),
    };
    Ok(OtherSetup::one(name, found))
}

/// Free bandwidth by effort.
///
/// # Errors
/// If one was not run.
pub(super) fn table(trials: &Trials) -> Result<Table, Failure> {
    let title = format!(
        "Effort of the planner: {SW60}, guard 0.3 ms, Table 1, external; the engine examines {} tracks",
        Search::default().tracks
    );
    let columns = [
        "search",
        "start MB/s",
        "first half",
        "whole",
        "mean response %",
    ];
    let mut table = Table::new(title, &columns);
    for search in SEARCHES {
        let found = trials.get(&trial(search))?;
        let mut row = vec![named(search)];
        row.extend(PARTS.map(|until| match until <= part(search) {
            true => format!("{:.2}", found.until(until)),
            false => "hardly ends".to_owned(),
        }));
        row.push(format!("{:+.2}", found.mean_loss));
        table.rows.push(row);
    }
    Ok(table)
}

/// Free bandwidth over the examined tracks, for plans of one stop. A search of all tracks is drawn at their number.
///
/// # Errors
/// If one was not run.
pub(super) fn drawing(trials: &Trials) -> Result<Drawing, Failure> {
    let mut curves = PARTS.map(|part| Curve {
        name: match part {
            WHOLE => "whole scan",
            HALF => "first half",
            _ => "start",
        }
        .to_owned(),
        points: Vec::new(),
    });
    for search in SEARCHES.into_iter().filter(|search| search.stops == 1) {
        let found = trials.get(&trial(search))?;
        let tracks = u64::from(search.tracks).min(found.drive.tracks);
        let drawn = curves.iter_mut().zip(PARTS);
        for (curve, until) in drawn.filter(|(_, until)| *until <= part(search)) {
            let at = (tracks as f64).log10();
            curve.points.push((at, found.until(until)));
        }
    }
    Ok(Drawing {
        name: "planner-effort",
        panels: vec![Panel::Lines {
            title: format!(
                "Free bandwidth by the planner's effort, Atlas 10K, external, {SW60}, 0.3 ms"
            ),
            x_label: "examined tracks for each gap, power of ten".to_owned(),
            y_label: "MB/s".to_owned(),
            curves: curves.to_vec(),
        }],
    })
}

const fn one_stop(tracks: u32) -> Search {
    Search { tracks, stops: 1 }
}

/// The efforts. The paper refines a plan until the drive takes the next command: an effort without
/// a bound is its upper end.
pub(super) const SEARCHES: [Search; 10] = [
    one_stop(1),
    one_stop(12),
    one_stop(48),
    one_stop(96),
    one_stop(192),
    one_stop(384),
    one_stop(768),
    one_stop(6_144),
    one_stop(u32::MAX),
    Search {
        tracks: u32::MAX,
        stops: 3,
    },
];
