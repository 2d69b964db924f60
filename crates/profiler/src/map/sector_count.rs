//! How many sectors a turn has, where a host delays sightings.
//!
//! Where sectors are wide, the ends of one line tell. Where delays hide them, a track's blocks are counted, and all
//! tracks together tell how many sectors a track has besides.

use block::Lba;
use drive::Angle;

use super::observer::{BESIDE, Observer};
use super::sector_line::{DOUBT, FIRSTS, LineBegin, NoTrack, SectorLine, WIDTHS};
use crate::clock::{apart, forward, median};
use crate::prober::SpareSectors;

/// Sightings near the ends of a line take no more than this part of it. A choice.
const ENDS: u64 = 8;

/// The number of sectors on a turn is told by so many sightings of each end at most. A choice: two
/// seconds of the drive's time.
const MOST: usize = 97;

/// How exactly the ends of a line are told for the number of its sectors, as a share of one of them. A
/// choice: with a seventh of a sector at both ends the number is wrong once in a hundred times, and it is told
/// twice.
const POINTS: f64 = 0.15;

/// Two tellings of the number of sectors before a third. A choice.
const TELLINGS: usize = 4;

/// Lines of which fewer sightings tell the number of sectors are counted one by one. A choice: a telling of
/// more takes as long as ten tracks that are walked.
const FEW: usize = 16;

/// Sightings of each end of a line that add to what all tracks tell of their spare sectors. A choice.
const BATCH: usize = 8;

/// Most such batches of one line, before it is counted alone. A choice: as many sightings as that takes.
const BATCHES: usize = 12;

/// How exactly the ends of a line of narrow sectors are told, in revolutions. A choice: a tenth of what predictions may be
/// off by.
const NARROW_POINTS: f64 = 1e-3;

/// Where a line begins, and how many sectors a turn has. A line that begins with its track has as many blocks as
/// the track, and the others tell how many sectors it has besides.
pub(super) async fn count(
    observer: &mut Observer,
    line: &mut SectorLine,
    mut pitch: f64,
    begin: LineBegin,
) -> Result<(), NoTrack> {
    let on = u64::from(line.blocks) - 1;
    let sector = pitch * (on as f64 * pitch).min(1.0);
    if observer.sightings(POINTS * sector, usize::MAX) <= FEW {
        return count_alone(observer, line, pitch).await;
    }
    let before = match begin {
        // As good as it is for where the next track begins.
        LineBegin::Anywhere => {
            line.doubt = 0.0;
            return Ok(());
        }
        LineBegin::Track(before) => before,
    };
    let blocks = f64::from(line.blocks) + before as f64;
    let mut error = observer.error_of(FIRSTS) / sector;
    // Nothing tells the spare sectors of a line whose sectors are too narrow.
    let assumed = observer.is_narrow(blocks as u32).then_some(0);
    for _ in 0..BATCHES {
        let spare = 1.0 / pitch - blocks;
        if !SpareSectors::is_plausible(spare, error) {
            return count_alone(observer, line, pitch).await;
        }
        if let Some(spares) = observer.spares(spare, error).or(assumed) {
            line.sectors = blocks as u32 + spares;
            line.doubt = 0.0;
            return Ok(());
        }
        let ends = ends_of(observer, line, (on, pitch), BATCH).await?;
        pitch = (pitch + ends.wider).max(WIDTHS.0);
        error = observer.error_of(BATCH / 2) / (sector * ends.span);
    }
    count_alone(observer, line, pitch).await
}

/// The same, of the line alone, by two tellings that agree, or one of narrow sectors. Those of lines that are too short
/// for it are left out.
async fn count_alone(
    observer: &mut Observer,
    line: &mut SectorLine,
    mut pitch: f64,
) -> Result<(), NoTrack> {
    let on = u64::from(line.blocks) - 1;
    let share = on as f64 * pitch;
    let is_narrow = observer.is_narrow((1.0 / pitch) as u32);
    let (points, doubt) = match is_narrow {
        true => (NARROW_POINTS, NARROW_POINTS / pitch),
        false => (POINTS * pitch, DOUBT),
    };
    let sightings = observer.sightings(points * share.min(1.0), MOST);
    line.doubt = observer.error_of(sightings) / (pitch * share);
    if line.doubt > doubt {
        return Ok(());
    }
    let mut told = None;
    for _ in 0..TELLINGS {
        let ends = ends_of(observer, line, (on, pitch), sightings).await?;
        pitch = (pitch + ends.wider).max(WIDTHS.0);
        line.end = line.end + forward(ends.begin);
        line.sectors = (1.0 / pitch).round() as u32;
        if is_narrow {
            line.doubt = 0.0;
            return Ok(());
        }
        if pitch <= WIDTHS.0 {
            break;
        }
        if told.replace(line.sectors) == Some(line.sectors) {
            return Ok(());
        }
    }
    line.doubt = f64::INFINITY;
    Ok(())
}

/// How likely it is, as the logarithm of the odds, that tracks have no more than usual besides their blocks. A choice: ten
/// to one. Two tracks in a row that miss equally many blocks are rare.
const USUAL: f64 = 2.3;

/// The number of sectors is told at such odds, as a logarithm. A choice: a hundred to one.
const ODDS: f64 = 4.6;

/// Most sightings of each end for that, in such parts. A choice: eight seconds of the drive's time.
const PARTS: usize = 5;

/// How many sectors a track has on a turn, if that is told: its first block ends at `end`. It has as many as were
/// believed, and some blocks are missing, or it has no more than usual besides its blocks.
pub(super) async fn recount(
    observer: &mut Observer,
    (first, end): (Lba, Angle),
    blocks: u32,
    sectors: u32,
) -> Result<Option<u32>, NoTrack> {
    let pitch = 1.0 / f64::from(sectors);
    let mut line = SectorLine {
        first,
        end,
        sectors,
        blocks,
        doubt: f64::INFINITY,
    };
    let on = u64::from(blocks.max(2)) - 1;
    let Some(spares) = observer.usual_spares(sectors) else {
        count_alone(observer, &mut line, pitch).await?;
        return Ok(line.is_long().then_some(line.sectors));
    };
    let other = blocks + spares;
    let apart = 1.0 / f64::from(other) - pitch;
    if apart == 0.0 || (observer.is_narrow(sectors) && apart.abs() <= NARROW_POINTS * pitch) {
        return Ok(Some(other));
    }
    let mut odds = USUAL;
    for _ in 0..PARTS {
        let ends = ends_of(observer, &line, (on, pitch), MOST).await?;
        // One sector more or less, as a share of what shows it, and the error of that.
        let seen = ends.wider / apart;
        let error = observer.error_of(MOST / 2) / (apart * on as f64 * ends.span);
        odds += (seen - 0.5) / (error * error);
        if odds.abs() >= ODDS {
            break;
        }
    }
    Ok(Some(if odds > 0.0 { other } else { sectors }))
}

/// The ends of a line, by sightings near them.
#[derive(Clone, Copy, Debug)]
struct LineEnds {
    /// How far off the beginning is, in revolutions.
    begin: f64,
    /// How much wider the blocks are, in revolutions.
    wider: f64,
    /// How far apart the sightings were, as a share of the line.
    span: f64,
}

/// How far off a line is, by the medians of sightings near its ends: of other blocks each time, so that the buffer
/// holds none.
async fn ends_of(
    observer: &mut Observer,
    line: &SectorLine,
    (on, pitch): (u64, f64),
    sightings: usize,
) -> Result<LineEnds, NoTrack> {
    let places = (on / ENDS / BESIDE).clamp(1, sightings as u64);
    let (mut begins, mut ends) = (Vec::new(), Vec::new());
    // In turn, so that a correction of the clock is in both.
    for sighting in 0..sightings as u64 {
        let place = sighting % places;
        // Look-ahead reads what is above: where that stays in the buffer, downwards.
        let above = match observer.forgets_soon() {
            true => place,
            false => places - 1 - place,
        };
        let (below, above) = (on - place * BESIDE, above * BESIDE);
        for (block, offs) in [(below, &mut ends), (above, &mut begins)] {
            let expected = line.end + forward(pitch * block as f64);
            let seen = observer.look(Lba(line.first.0 + block)).await?;
            offs.push(apart(expected, seen));
        }
    }
    // Sightings are of each place in turn.
    let inwards = (places - 1) as f64 / 2.0 * BESIDE as f64;
    let between = on as f64 - 2.0 * inwards;
    let begin = median(&mut begins);
    let wider = (median(&mut ends) - begin) / between;
    Ok(LineEnds {
        begin: begin - wider * inwards,
        wider,
        span: between / on as f64,
    })
}
