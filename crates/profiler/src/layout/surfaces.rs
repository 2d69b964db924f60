//! How many surfaces a serpentine has, and where its rows begin, where densities show its bands.
//!
//! ```text
//!   surface 0   ----->            from the first track of a band to the last one of the next:
//!   surface 1   <-----            back on the same cylinder
//!   surface 0        ----->       between rows: a band farther, or two
//! ```

use super::bands::Bands;
use super::recognise::{Recognised, heading};
use super::rows::sector_runs::{ShownRows, shown};
use super::strip::Strip;
use super::track_timer::{EQUAL, TrackTimer};
use crate::findings::{FoundTrack, Heading, Pattern, Turning};

/// The part of a band that lies between the compared tracks and its ends, as one of so many. A choice: odd
/// tracks are at the ends.
const ENDS: u32 = 8;

/// The pattern that was recognised, with the surfaces that differ in density. Without densities, or if
/// times between bands do not show where rows begin, it is what was `found` without.
pub(super) async fn of_densities(
    timer: &TrackTimer<'_>,
    strips: &[Strip],
    found: Option<Recognised>,
) -> Option<Recognised> {
    if found.is_some_and(|found| found.pattern.band == 1 && found.pattern.surfaces > 1) {
        return found;
    }
    let Some(rows) = shown(strips) else {
        return found;
    };
    let found_turning = found
        .map(|found| found.pattern)
        .filter(|pattern| pattern.band > 1);
    let turning = found_turning.map_or(Turning::Alternating, |pattern| pattern.turning);
    recognised(timer, &rows, turning).await.or(found)
}

async fn recognised(
    timer: &TrackTimer<'_>,
    rows: &ShownRows,
    turning: Turning,
) -> Option<Recognised> {
    let period = rows.surfaces as usize;
    let mut pairs = Vec::new();
    for bands in rows.bands.windows(2) {
        pairs.push(compared(timer, bands, turning)?);
    }
    let times = timer.times(&pairs).await;
    let times = times.into_iter().collect::<Option<Vec<f64>>>()?;
    // The middle one of each boundary's times: one row may be odd.
    let middle = |boundary: usize| {
        let mut times: Vec<f64> = times
            .iter()
            .copied()
            .skip(boundary)
            .step_by(period)
            .collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let mut middles: Vec<(f64, usize)> = (0..period).map(|at| (middle(at), at)).collect();
    middles.sort_by(|a, b| b.0.total_cmp(&a.0));
    let [longest, next] = [middles[0], middles[1]];
    if longest.0 < next.0 + EQUAL {
        return None;
    }
    let (first, tracks) = rows.bands[longest.1 + 1];
    let row = track(timer, first)?;
    if tracks < 2 {
        return None;
    }
    let bands = Bands {
        first: row,
        tracks: i64::from(tracks),
        turning,
    };
    let begins = heading(timer, &bands, i64::from(rows.surfaces), &row).await;
    let pattern = Pattern {
        surfaces: rows.surfaces,
        band: tracks,
        turning,
        begins: begins.unwrap_or(Heading::Onward),
    };
    Some(Recognised { pattern, row })
}

/// A track of a band and one of the next, on the same cylinder if both are of one row.
fn compared(
    timer: &TrackTimer<'_>,
    bands: &[(block::Lba, u32)],
    turning: Turning,
) -> Option<(FoundTrack, FoundTrack)> {
    let [(from, before), (to, behind)] = [bands[0], bands[1]];
    let least = before.min(behind);
    let end = i64::from(least / ENDS);
    let from = match turning {
        Turning::Alternating => {
            timer.beside(&track(timer, from)?, i64::from(before - least) + end)?
        }
        Turning::Same => timer.beside(&track(timer, from)?, end)?,
    };
    let to = match turning {
        Turning::Alternating => timer.beside(&track(timer, to)?, i64::from(least) - 1 - end)?,
        Turning::Same => timer.beside(&track(timer, to)?, end)?,
    };
    Some((from, to))
}

fn track(timer: &TrackTimer<'_>, first: block::Lba) -> Option<FoundTrack> {
    timer.prober.findings(|found| found.map.track_of(first))
}
