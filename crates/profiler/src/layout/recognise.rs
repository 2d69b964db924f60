//! Which pattern the tracks of a piece were filled in.
//!
//! Cylinder by cylinder, all tracks of a cycle are equally near to its first. In a serpentine the
//! arm comes back: there are tracks far behind a track in the order of blocks that are as near to
//! it as can be.

use drive::Angle;

use super::bands::{AT_ONCE, Bands, ROUGHLY, across, hinted, is_turn, lowest, searched};
use super::cylinder::{TWO_KINDS, is_cylinder};
use super::spans::{self, TrackSpan};
use super::strip::other_density;
use super::track_timer::{EQUAL, TrackTimer, nth};
use crate::clock::apart;
use crate::device::Offers;
use crate::findings::{FoundTrack, Heading, MapPiece, Pattern};

/// At most how many surfaces: those of the layouts that can be described.
const SURFACES: u64 = drive::geometry::MAX_SURFACES as u64;

/// Skews within a cycle that differ by less, in revolutions, are the same. A choice: a few
/// sectors, which slips may move.
const SAME: f64 = 0.006;

/// A pattern, and the first block of a row that fits it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Recognised {
    pub pattern: Pattern,
    /// A track with which a row begins.
    pub row: FoundTrack,
}

/// The pattern of the tracks on the map, looked for in some of its pieces; one surface alone if
/// none fits.
pub(super) async fn recognise(
    timer: &TrackTimer<'_>,
    pieces: &[usize],
    spans: &[TrackSpan],
) -> Option<Recognised> {
    for &piece in pieces {
        if let Some(found) = cylinders(timer, piece).await {
            return Some(found);
        }
    }
    let longest = *pieces.first()?;
    if let Some(found) = stepped(timer, longest).await {
        return Some(found);
    }
    let cuts = timer
        .prober
        .findings(|found| cuts(&found.map.pieces[longest]));
    let first = track(timer, longest, cuts.first().copied().unwrap_or(0))?;
    if let Some(found) = serpentine(timer, &first, longest, spans).await {
        return Some(found);
    }
    let pattern = Pattern::head_first(1);
    let row = first;
    Some(Recognised { pattern, row })
}

/// Cylinder by cylinder, if that is how a piece was filled.
async fn cylinders(timer: &TrackTimer<'_>, piece: usize) -> Option<Recognised> {
    let (period, first) = timer
        .prober
        .findings(|found| hint(&found.map.pieces[piece]));
    let period = period.filter(|&period| (2..=SURFACES).contains(&period))?;
    let first = track(timer, piece, first)?;
    let pattern = Pattern::head_first(period as u32);
    let row = first;
    is_cylinder(timer, &first, period as i64)
        .await?
        .then_some(Recognised { pattern, row })
}

/// Tracks whose timer to the next ones are measured where skews do not show cylinders. A choice: two
/// cylinders of 16 surfaces, more than drives have had since the 1990s, and what is before them.
const STEPS: i64 = 40;

/// Cylinder by cylinder, if the steps to the next track are longer after every so many tracks: skews
/// do not show it where slips, spares, or other skews from zone to zone hide it.
async fn stepped(timer: &TrackTimer<'_>, piece: usize) -> Option<Recognised> {
    let first = track(timer, piece, 0)?;
    // The known tracks may end.
    let pairs: Vec<_> = (0..STEPS)
        .map_while(|step| Some((timer.beside(&first, step)?, timer.beside(&first, step + 1)?)))
        .collect();
    let steps = match timer.prober.device().offers {
        Offers::CacheControl => timer.times(&pairs).await,
        // Every other step, so that no two have a track in common.
        Offers::Nothing => {
            let [even, odd] = [0, 1].map(|from| pairs.iter().copied().skip(from).step_by(2));
            let even = timer.times(&even.collect::<Vec<_>>()).await;
            let mut odd = timer.times(&odd.collect::<Vec<_>>()).await.into_iter();
            let both = even.into_iter().flat_map(|even| [Some(even), odd.next()]);
            both.flatten().collect()
        }
    };
    let steps = steps.into_iter().collect::<Option<Vec<f64>>>()?;
    let (period, begin) = longer(&steps)?;
    let row = timer.beside(&first, begin)?;
    let pattern = Pattern::head_first(period as u32);
    is_cylinder(timer, &row, period)
        .await?
        .then_some(Recognised { pattern, row })
}

/// After how many steps a longer one comes, always, and the first step behind a longer one.
fn longer(steps: &[f64]) -> Option<(i64, i64)> {
    let least = steps.iter().copied().reduce(f64::min)?;
    let greatest = steps.iter().copied().reduce(f64::max)?;
    let middle = f64::midpoint(least, greatest);
    let places: Vec<i64> = (0i64..)
        .zip(steps)
        .filter(|step| *step.1 > middle)
        .map(|step| step.0)
        .collect();
    let period = places.get(1)? - places[0];
    let regular = places.windows(2).all(|two| two[1] - two[0] == period);
    // None is missing at either end.
    let whole = places[0] < period && places[places.len() - 1] + period >= steps.len() as i64;
    let clear = greatest - least > TWO_KINDS && period > 1;
    (clear && regular && whole).then_some((period, places[0] + 1))
}

/// After how many tracks a piece's cuts come, mostly, and the first of them.
fn hint(piece: &MapPiece) -> (Option<u64>, u64) {
    let cuts = cuts(piece);
    let period = period(&cuts, piece.cycle_tracks());
    (period, cuts.first().copied().unwrap_or(0))
}

fn track(timer: &TrackTimer<'_>, piece: usize, ordinal: u64) -> Option<FoundTrack> {
    timer
        .prober
        .findings(|found| nth(&found.map, piece, ordinal))
}

/// Which tracks of a piece's cycle come after another skew than most, or have other numbers of
/// sectors than the one before.
pub(super) fn cuts(piece: &MapPiece) -> Vec<u64> {
    let turns = turns(piece);
    let alike = |one: &Succession, other: &Succession| {
        apart(one.skew, other.skew).abs() <= SAME.max(1.5 / f64::from(one.sectors))
    };
    let times = |one: &&Succession| -> u64 {
        let others = turns.iter().filter(|other| alike(one, other));
        others.map(|other| other.times).sum()
    };
    let Some(regular_skews) = turns.iter().rev().max_by_key(times) else {
        return Vec::new();
    };
    let mut cuts = Vec::new();
    let mut ordinal = 0;
    for turn in &turns {
        ordinal += turn.times;
        // Where the arm comes back, many tracks may have the other skew.
        if turn.other || (turn.times == 1 && !alike(turn, regular_skews)) {
            cuts.push(ordinal);
        }
    }
    cuts
}

/// Neighbouring tracks that are followed alike.
struct Succession {
    times: u64,
    /// From where a track begins to where the next one does.
    skew: Angle,
    sectors: u32,
    /// Whether the next has other numbers of sectors.
    other: bool,
}

/// How the tracks of a cycle follow each other, the last the first if it is repeated.
fn turns(piece: &MapPiece) -> Vec<Succession> {
    let mut turns = Vec::new();
    for (index, band) in piece.cycle.iter().enumerate() {
        let within = Succession {
            times: u64::from(band.tracks - 1),
            skew: band.skew,
            sectors: band.sectors,
            other: false,
        };
        let last = band.start + band.skew.times(within.times);
        if within.times > 0 {
            turns.push(within);
        }
        let wraps = index + 1 == piece.cycle.len();
        if wraps && piece.repeats == 1 {
            break;
        }
        let next = &piece.cycle[(index + 1) % piece.cycle.len()];
        let begin = match wraps {
            true => next.start + piece.step,
            false => next.start,
        };
        turns.push(Succession {
            times: 1,
            skew: begin - last,
            sectors: band.sectors,
            other: other_density(band.sectors, next.sectors),
        });
    }
    turns
}

/// After how many tracks the next cut comes, mostly.
fn period(cuts: &[u64], cycle: u64) -> Option<u64> {
    let (first, last) = (cuts.first()?, cuts.last()?);
    let mut lengths: Vec<u64> = cuts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    lengths.push(first + cycle - last);
    lengths.sort_unstable();
    Some(lengths[lengths.len() / 2])
}

/// Bands that go there and back, or the same track_timer each.
async fn serpentine(
    timer: &TrackTimer<'_>,
    first: &FoundTrack,
    piece: usize,
    spans: &[TrackSpan],
) -> Option<Recognised> {
    let (period, _) = timer
        .prober
        .findings(|found| hint(&found.map.pieces[piece]));
    let mut hints: Vec<(u64, FoundTrack)> = Vec::new();
    hints.extend(period.map(|period| (period, *first)));
    timer.prober.findings(|found| {
        let common = spans::commonest(spans).into_iter();
        hints.extend(common.filter_map(|(tracks, at)| Some((tracks, found.map.track_of(at)?))));
    });
    for (tracks, from) in hints {
        if let Some(bands) = hinted(timer, &from, tracks as i64).await
            && let Some(found) = rows_of(timer, &bands).await
        {
            return Some(found);
        }
    }
    let bands = searched(timer, first).await?;
    rows_of(timer, &bands).await
}

/// What is near and what is far in bands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Near {
    /// Times between tracks of one cylinder are below.
    limit: f64,
}

impl Near {
    async fn measure(timer: &TrackTimer<'_>, bands: &Bands) -> Option<Near> {
        let mut pairs = Vec::new();
        for boundary in 0..3 {
            let (from, over) = across(timer, bands, boundary)?;
            pairs.push((from, timer.beside(&from, over)?));
            let from = timer.beside(&from, -timer.spacing())?;
            pairs.push((from, timer.beside(&from, -(bands.tracks / 2))?));
        }
        let times = timer.times(&pairs).await;
        let times = times.into_iter().collect::<Option<Vec<f64>>>()?;
        let near = times.iter().copied().step_by(2).fold(f64::MAX, f64::min);
        let far = times.iter().copied().skip(1).step_by(2).fold(0.0, f64::max);
        let limit = (near + far) / 2.0;
        (far > near + EQUAL).then_some(Near { limit })
    }

    /// The first boundary from one on at which a row begins.
    async fn row_from(&self, timer: &TrackTimer<'_>, bands: &Bands, from: i64) -> Option<i64> {
        let at_once = match timer.prober.device().offers {
            Offers::CacheControl => 1,
            Offers::Nothing => AT_ONCE,
        };
        let mut boundary = from;
        while boundary <= from + SURFACES as i64 {
            let pair = |boundary| {
                let (before, over) = across(timer, bands, boundary)?;
                Some((before, timer.beside(&before, over)?))
            };
            let pairs: Vec<_> = (boundary..boundary + at_once).map_while(pair).collect();
            for time in timer.times(&pairs).await {
                let is_same_row = time? < self.limit;
                if !is_same_row {
                    return Some(boundary);
                }
                boundary += 1;
            }
            if (pairs.len() as i64) < at_once {
                // The known tracks end.
                return None;
            }
        }
        None
    }
}

/// Rows that are looked at for two neighbours of as many bands. A choice.
const ROWS: usize = 5;

/// How many bands are in a row, and which track_timer the first of them goes.
async fn rows_of(timer: &TrackTimer<'_>, bands: &Bands) -> Option<Recognised> {
    let near = Near::measure(timer, bands).await?;
    let mut boundary = near.row_from(timer, bands, 0).await?;
    let mut surfaces = 0;
    for _ in 0..ROWS {
        // The known tracks may end before another row does.
        let Some(next) = near.row_from(timer, bands, boundary + 1).await else {
            break;
        };
        if next - boundary == surfaces {
            break;
        }
        surfaces = next - boundary;
        boundary = next;
    }
    if surfaces == 0 {
        return None;
    }
    let row = timer.beside(&bands.first, boundary * bands.tracks)?;
    let begins = heading(timer, bands, surfaces, &row).await?;
    let pattern = Pattern {
        surfaces: surfaces as u32,
        band: bands.tracks as u32,
        turning: bands.turning,
        begins,
    };
    Some(Recognised { pattern, row })
}

/// Which track_timer the first bands of rows go: where two rows meet, tracks of their first bands are as
/// far from each other as tracks of one band.
pub(super) async fn heading(
    timer: &TrackTimer<'_>,
    bands: &Bands,
    surfaces: i64,
    row: &FoundTrack,
) -> Option<Heading> {
    let length = surfaces * bands.tracks;
    let before = timer.beside(row, -length);
    let (before, row) = match before {
        Some(before) => (before, *row),
        None => (*row, timer.beside(row, length)?),
    };
    let mut pairs = Vec::new();
    for part in [16, 11, 8, 6] {
        let (near, far) = (bands.tracks / part, bands.tracks - 1 - bands.tracks / part);
        let end = |first: &FoundTrack| timer.beside(first, far);
        let begin = |first: &FoundTrack| timer.beside(first, near);
        let within = begin(&row)?;
        pairs.push((within, timer.beside(&within, 2 * near + 1)?));
        pairs.push((end(&before)?, begin(&row)?));
        pairs.push((begin(&before)?, end(&row)?));
    }
    let times = timer.times(&pairs).await;
    let times = times.into_iter().collect::<Option<Vec<f64>>>()?;
    let (mut onward, mut back) = (0.0, 0.0);
    for times in times.chunks(3) {
        onward += (times[1] - times[0]).abs();
        back += (times[2] - times[0]).abs();
    }
    Some(if onward < back {
        Heading::Onward
    } else {
        Heading::Back
    })
}

/// The first row that begins behind the first track of a piece of a serpentine.
pub(super) async fn row_in(
    timer: &TrackTimer<'_>,
    index: usize,
    spans: &[TrackSpan],
    pattern: &Pattern,
    near: f64,
    attempt: u64,
) -> Option<FoundTrack> {
    let tracks = i64::from(pattern.band);
    let first = match cut_behind(timer, index, spans, pattern).filter(|_| attempt == 0) {
        Some(first) => first,
        None => {
            let from = track(timer, index, attempt * u64::from(pattern.band) / 3)?;
            turn_behind(timer, &from, tracks).await?
        }
    };
    let bands = Bands {
        first,
        tracks,
        turning: pattern.turning,
    };
    let near = Near { limit: near };
    // Before the first band there may be too few tracks to tell.
    let from = i64::from(across(timer, &bands, 0).is_none());
    let boundary = near.row_from(timer, &bands, from).await?;
    let row = timer.beside(&bands.first, boundary * tracks)?;
    // What looks like the beginning of a band may be something irregular.
    let turns = pattern.surfaces < 2 || is_turn(timer, &bands, boundary + 1).await?;
    turns.then_some(row)
}

/// The first track behind a piece's first one, and not far behind, that the map shows to begin a
/// band.
fn cut_behind(
    timer: &TrackTimer<'_>,
    index: usize,
    spans: &[TrackSpan],
    pattern: &Pattern,
) -> Option<FoundTrack> {
    timer.prober.findings(|found| {
        let first = found.map.pieces[index].first;
        let from = spans.partition_point(|span| span.first < first);
        let mut passed = 0;
        for span in &spans[from..] {
            // Bands that are alike may look like one.
            let bands = span.tracks.is_multiple_of(u64::from(pattern.band));
            if span.whole && bands {
                return found.map.track_of(span.first);
            }
            passed += span.tracks;
            if passed > 3 * pattern.row() {
                break;
            }
        }
        None
    })
}

/// The first track of a band behind another track, where the map does not show it: the arm comes
/// back there.
async fn turn_behind(timer: &TrackTimer<'_>, from: &FoundTrack, tracks: i64) -> Option<FoundTrack> {
    let step = (tracks / 8).max(2);
    let mut best: Option<(i64, f64)> = None;
    // Over two bands the arm is back in any case; a track for which it turns there is no help.
    for over in (step..2 * tracks - 2 * step).step_by(step as usize) {
        let time = timer.over(from, over).await?;
        if best.is_none_or(|best| time < best.1) && over > 2 * step {
            best = Some((over, time));
        }
    }
    let (over, _) = best?;
    let twice_centre = lowest(timer, from, (over - 2 * step, over + 2 * step), ROUGHLY[1]).await?;
    timer.beside(from, (twice_centre / 2 + 1) / 2)
}

/// The time between near and far in a serpentine's rows.
pub(super) async fn limit(timer: &TrackTimer<'_>, found: &Recognised) -> Option<f64> {
    let pattern = &found.pattern;
    let bands = Bands {
        first: timer.beside(&found.row, i64::from(pattern.band))?,
        tracks: i64::from(pattern.band),
        turning: pattern.turning,
    };
    Some(Near::measure(timer, &bands).await?.limit)
}
