//! Bands of a serpentine: after how many tracks the arm comes back.

use std::collections::VecDeque;

use super::track_timer::{EQUAL, TrackTimer};
use crate::device::Offers;
use crate::findings::{FoundTrack, Turning};

/// The longest band that is looked for, in tracks. A choice: ten times those of the drives that
/// are known.
const LONGEST: i64 = 3200;

/// The shortest band of a serpentine, in tracks. A choice: half of the shortest known.
const SHORTEST: i64 = 8;

/// Times that are measured together without cache control. A choice: their reads evict each other's
/// blocks on most drives.
pub(super) const AT_ONCE: i64 = 24;

/// A band that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bands {
    /// The first track of one.
    pub first: FoundTrack,
    /// Tracks of one.
    pub tracks: i64,
    pub turning: Turning,
}

/// Bands of so many tracks from a track on, if the arm does come back after them.
pub(super) async fn hinted(
    timer: &TrackTimer<'_>,
    first: &FoundTrack,
    tracks: i64,
) -> Option<Bands> {
    if !(SHORTEST..=LONGEST).contains(&tracks) {
        return None;
    }
    for turning in [Turning::Alternating, Turning::Same] {
        let bands = Bands {
            first: timer.beside(first, tracks)?,
            tracks,
            turning,
        };
        // The first boundary may be one of rows: the next is not, then.
        for boundary in 0..2 {
            if joined(timer, &bands, boundary).await? {
                return Some(bands);
            }
        }
    }
    None
}

/// Whether a band is on the same cylinders as the band before it.
pub(super) async fn joined(timer: &TrackTimer<'_>, bands: &Bands, boundary: i64) -> Option<bool> {
    let (from, over) = across(timer, bands, boundary)?;
    // As far within the band.
    let within = timer.beside(&from, -timer.spacing())?;
    let pairs = [
        (from, timer.beside(&from, over)?),
        (within, timer.beside(&within, -(bands.tracks / 2))?),
    ];
    let times = timer.times(&pairs).await;
    Some(times[0]? < times[1]? - EQUAL)
}

/// A track some tracks on, and another one, as far from each other as a track and the one `over` tracks
/// behind it on the other side of a boundary: without cache control every time needs other tracks.
fn aside(
    timer: &TrackTimer<'_>,
    bands: &Bands,
    (from, over): (&FoundTrack, i64),
    tracks: i64,
) -> Option<(FoundTrack, FoundTrack)> {
    let other = match bands.turning {
        Turning::Alternating => over - tracks,
        Turning::Same => over + tracks,
    };
    Some((timer.beside(from, tracks)?, timer.beside(from, other)?))
}

/// Whether bands turn exactly at some boundaries, as [`is_turn`] says.
async fn are_turns(timer: &TrackTimer<'_>, bands: &Bands, at: &[i64]) -> Option<Vec<bool>> {
    let mut pairs = Vec::new();
    for &boundary in at {
        let (from, over) = across(timer, bands, boundary)?;
        for (place, over) in [(0, over), (2, over - 3), (4, over + 3)] {
            pairs.push(aside(timer, bands, (&from, over), place)?);
        }
        let within = timer.beside(&from, 6)?;
        pairs.push((within, timer.beside(&within, -(bands.tracks / 2))?));
    }
    let times = timer.times(&pairs).await;
    let times = times.into_iter().collect::<Option<Vec<f64>>>()?;
    let turns = times.chunks(4).map(|times| {
        let [near, less, more, far] = [times[0], times[1], times[2], times[3]];
        near < far - EQUAL && (less - more).abs() < EQUAL && less > near + EQUAL / 2.0
    });
    Some(turns.collect())
}

/// A track of the band before a boundary (counted from `bands.first`), and how far behind it the
/// track of the next band is that is on the same cylinder, if the bands are on the same cylinders.
pub(super) fn across(
    timer: &TrackTimer<'_>,
    bands: &Bands,
    boundary: i64,
) -> Option<(FoundTrack, i64)> {
    let quarter = bands.tracks / 4;
    let (back, over) = match bands.turning {
        Turning::Alternating => (1 + quarter, 2 * quarter + 1),
        Turning::Same => (quarter, bands.tracks),
    };
    let from = timer.beside(&bands.first, boundary * bands.tracks - back)?;
    Some((from, over))
}

/// Bands that the map does not show: the times from one track to those farther and farther behind
/// it fall where the arm comes back.
pub(super) async fn searched(timer: &TrackTimer<'_>, first: &FoundTrack) -> Option<Bands> {
    let mut tracks = SHORTEST;
    let mut seen: Vec<(i64, f64)> = Vec::new();
    let mut ahead = VecDeque::new();
    while tracks < 2 * LONGEST {
        if ahead.is_empty() {
            ahead.extend(together(timer, first, tracks).await);
        }
        seen.push((tracks, ahead.pop_front()??));
        if let Some(found) = fallen(&seen) {
            let aside = (found.1 - found.0) / 2;
            let found = (found.0 - aside, found.1 + aside);
            let centre = lowest(timer, first, found, ROUGHLY[0]).await?;
            if let Some(bands) = confirmed(timer, first, centre).await {
                return Some(bands);
            }
            seen.clear();
        }
        tracks = farther(tracks);
    }
    None
}

/// The next distance that is looked at.
fn farther(tracks: i64) -> i64 {
    tracks + (tracks / 10).max(2)
}

/// The time over a distance; without cache control also over the next ones, each from another track
/// near the first.
async fn together(timer: &TrackTimer<'_>, first: &FoundTrack, tracks: i64) -> Vec<Option<f64>> {
    let at_once = match timer.prober.device().offers {
        Offers::CacheControl => 1,
        Offers::Nothing => AT_ONCE,
    };
    let mut pairs = Vec::new();
    let mut over = tracks;
    for place in 0..at_once {
        let from = timer.beside(first, timer.spacing() * place);
        let to = from.and_then(|from| timer.beside(&from, over));
        pairs.extend(from.zip(to));
        over = farther(over);
    }
    timer.times(&pairs).await
}

/// Between which distances the times fell and rose again, three neighbours together.
fn fallen(seen: &[(i64, f64)]) -> Option<(i64, i64)> {
    let mean = |three: &[(i64, f64)]| three.iter().map(|time| time.1).sum::<f64>() / 3.0;
    let means: Vec<f64> = seen.windows(3).map(mean).collect();
    let last = means.last()?;
    let by_time = |a: &(usize, &f64), b: &(usize, &f64)| a.1.total_cmp(b.1);
    let (highest, peak) = means.iter().enumerate().max_by(by_time)?;
    let behind = means.iter().enumerate().skip(highest);
    let (lowest, low) = behind.min_by(by_time)?;
    let fell = *peak > low + EQUAL && *last > low + EQUAL / 2.0;
    fell.then(|| (seen[lowest].0, seen[lowest + 2].0))
}

/// How many distances tell roughly where the time is the shortest, where nothing is known of bands,
/// and where their length is. A choice.
pub(super) const ROUGHLY: [i64; 2] = [32, 10];

/// How far from there it is looked for track by track. A choice.
const EXACTLY: i64 = 12;

/// The middle of the distances whose time is the shortest, twice, rounded up.
pub(super) async fn lowest(
    timer: &TrackTimer<'_>,
    from: &FoundTrack,
    (low, high): (i64, i64),
    roughly: i64,
) -> Option<i64> {
    let (mut first, mut last) = (low.max(1), high);
    if last - first > 2 * EXACTLY {
        let step = ((last - first) / roughly).max(1);
        let distances: Vec<i64> = (first..=last).step_by(step as usize).collect();
        let times = over_all(timer, from, &distances).await?;
        let off = |centre: &i64| misfit(&times, *centre);
        let centre = (first..=last).min_by(|a, b| off(a).total_cmp(&off(b)))?;
        (first, last) = ((centre - EXACTLY).max(1), centre + EXACTLY);
    }
    let distances: Vec<i64> = (first..=last).collect();
    let times = over_all(timer, from, &distances).await?;
    let least = times.iter().map(|time| time.1).fold(f64::MAX, f64::min);
    let near = times.iter().filter(|time| time.1 < least + EQUAL);
    let (sum, count) = near.fold((0, 0), |(sum, count), time| (sum + time.0, count + 1));
    // The middle lies between two tracks.
    (count > 0).then(|| (2 * sum + count - 1) / count)
}

/// Times from a track to those at some distances behind it, on the way back; without cache control each
/// from another track, as far from the other one.
async fn over_all(
    timer: &TrackTimer<'_>,
    from: &FoundTrack,
    distances: &[i64],
) -> Option<Vec<(i64, f64)>> {
    let mut pairs = Vec::new();
    for (place, &over) in (0..).zip(distances) {
        let place = timer.spacing() * place;
        pairs.push((
            timer.beside(from, place)?,
            timer.beside(from, over - place)?,
        ));
    }
    let times = timer.times(&pairs).await;
    let times = times.into_iter().collect::<Option<Vec<f64>>>()?;
    Some(distances.iter().copied().zip(times).collect())
}

/// How far times are off those of an arm that comes back at a distance, squared: on both sides of
/// it times grow with the root of the distance from there, as those of short seeks do.
fn misfit(times: &[(i64, f64)], centre: i64) -> f64 {
    let root = |tracks: i64| (tracks.abs_diff(centre) as f64).sqrt();
    let count = times.len() as f64;
    let mean_root = times.iter().map(|time| root(time.0)).sum::<f64>() / count;
    let mean = times.iter().map(|time| time.1).sum::<f64>() / count;
    let (mut both, mut roots, mut all) = (0.0, 0.0, 0.0);
    for &(tracks, time) in times {
        let (x, y) = (root(tracks) - mean_root, time - mean);
        both += x * y;
        roots += x * x;
        all += y * y;
    }
    // A time that falls is no fit.
    let slope = (both / roots.max(f64::MIN_POSITIVE)).max(0.0);
    all - slope * both
}

/// Bands for which the arm is back at twice the distance `twice_centre / 2`, if more speaks for
/// them.
async fn confirmed(timer: &TrackTimer<'_>, first: &FoundTrack, twice_centre: i64) -> Option<Bands> {
    for tracks in [
        twice_centre / 4,
        (twice_centre + 2) / 4,
        (twice_centre + 4) / 4,
    ] {
        let bands = Bands {
            first: timer.beside(first, tracks)?,
            tracks,
            turning: Turning::Alternating,
        };
        if tracks >= SHORTEST && is_exact(timer, &bands).await? {
            return Some(bands);
        }
    }
    let tracks = twice_centre / 2;
    let bands = Bands {
        first: timer.beside(first, tracks)?,
        tracks,
        turning: Turning::Same,
    };
    (tracks >= SHORTEST && joined(timer, &bands, 0).await? && joined(timer, &bands, 1).await?)
        .then_some(bands)
}

/// Whether bands turn exactly where they are thought to, at two boundaries; one may be that of two
/// rows.
async fn is_exact(timer: &TrackTimer<'_>, bands: &Bands) -> Option<bool> {
    if timer.prober.device().offers == Offers::Nothing {
        let turns = are_turns(timer, bands, &[0, 1, 2]).await?;
        return Some(turns.iter().filter(|turn| **turn).count() >= 2);
    }
    let (mut turned, mut not) = (0, 0);
    for boundary in 0..3 {
        if is_turn(timer, bands, boundary).await? {
            turned += 1;
        } else {
            not += 1;
        }
        if turned == 2 || not == 2 {
            break;
        }
    }
    Some(turned == 2)
}

/// Whether bands turn exactly at a boundary: tracks at the same distance from there are near each
/// other, and on both sides it grows alike.
pub(super) async fn is_turn(timer: &TrackTimer<'_>, bands: &Bands, boundary: i64) -> Option<bool> {
    if timer.prober.device().offers == Offers::Nothing {
        return Some(are_turns(timer, bands, &[boundary]).await?[0]);
    }
    if !joined(timer, bands, boundary).await? {
        return Some(false);
    }
    let (from, over) = across(timer, bands, boundary)?;
    let mut off = [0.0; 2];
    for (side, off) in [-3, 3].into_iter().zip(&mut off) {
        *off = timer.over(&from, over + side).await?;
    }
    let middle = timer.over(&from, over).await?;
    Some((off[0] - off[1]).abs() < EQUAL && off[0] > middle + EQUAL / 2.0)
}
