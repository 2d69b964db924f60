//! The effort of the planner: free bandwidth over the number of examined tracks and of stops.

use super::{GUARD, JUDGED, PARTS, SW60, outside};
use crate::Failure;
use crate::paper::Table;
use crate::paper::trial::{ScanTrial, Search, Trials};

/// The paper's external scheduler with this effort.
pub(super) fn trial(search: Search) -> ScanTrial {
    ScanTrial {
        search,
        ..outside(JUDGED, SW60, GUARD)
    }
}

/// The name of an effort in tables.
pub(super) fn named(search: Search) -> String {
    let Search { tracks, stops } = search;
    match tracks {
        u32::MAX => format!("search of all tracks, plans of {stops} stops"),
        _ => format!("search of {tracks} tracks, plans of {stops} stops"),
    }
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
        row.extend(PARTS.map(|part| format!("{:.2}", found.until(part))));
        row.push(format!("{:+.2}", found.mean_loss));
        table.rows.push(row);
    }
    Ok(table)
}

/// The efforts. The paper refines a plan until the drive takes the next command: an effort without
/// a bound is its upper end.
pub(super) const SEARCHES: [Search; 6] = [
    Search {
        tracks: 12,
        stops: 1,
    },
    Search {
        tracks: 96,
        stops: 1,
    },
    Search {
        tracks: 768,
        stops: 1,
    },
    Search {
        tracks: 6_144,
        stops: 1,
    },
    Search {
        tracks: u32::MAX,
        stops: 1,
    },
    Search {
        tracks: u32::MAX,
        stops: 3,
    },
];
