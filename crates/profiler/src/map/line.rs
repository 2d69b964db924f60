//! Blocks that follow each other at equal angles: a track, from inside.
//!
//! ```text
//!   angle      . . . . . . . .                     . the line of the track: start + n * width
//!             .               | skew
//!            .                '-> o o o o          o the next track's
//!   block    first      last     next
//! ```

use block::Lba;
use drive::Angle;

use super::observer::{BESIDE, Care, Observer, SAME, width};
use crate::clock::{apart, forward};
use crate::prober::Unseen;

/// Why a track could not be made out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTrack {
    /// A block could not be sighted.
    Unseen(Unseen),
    /// The blocks there do not follow each other at equal angles.
    NoLine,
}

impl From<Unseen> for NoTrack {
    fn from(unseen: Unseen) -> Self {
        NoTrack::Unseen(unseen)
    }
}

/// Blocks that follow each other at equal angles.
#[derive(Clone, Copy, Debug)]
pub(super) struct SectorLine {
    pub(super) first: Lba,
    /// Where the first of them ends.
    pub(super) end: Angle,
    pub(super) sectors: u32,
    pub(super) blocks: u32,
    /// How far off the number of sectors usually is before it is rounded, because a host delays sightings.
    doubt: f64,
}

impl SectorLine {
    /// Whether it tells how many sectors there are on a turn.
    pub(super) fn is_long(&self) -> bool {
        self.blocks >= LONG_ENOUGH && self.doubt <= DOUBT
    }
}

/// Lines whose number of sectors is usually farther off do not tell it. A choice: both ends are late by
/// exponentially distributed times, whose difference is half a sector once in thirty times then, and the
/// number is told twice.
const DOUBT: f64 = 0.15;

/// The widths of sectors in revolutions: more than 10 on a track and fewer than 20,000, twice what
/// drives of 2020 have.
const WIDTHS: (f64, f64) = (1.0 / 20_000.0, 1.0 / 10.0);

/// Two sightings of a block agree within that, in revolutions, before any width is known. A
/// choice: a second attempt at a sector is off by more.
const ROUGH: f64 = 5e-4;

/// Lines of fewer blocks do not tell how many sectors there are on a turn. A choice.
const LONG_ENOUGH: u32 = 16;

/// Follows the line that begins with a block: the distance doubles while the angle is as
/// expected; then its end is searched.
pub(super) async fn trace(
    observer: &mut Observer,
    first: Lba,
    limit: Lba,
) -> Result<SectorLine, NoTrack> {
    if first.0 + 1 >= limit.0 {
        return Err(NoTrack::NoLine);
    }
    if observer.late() > 0.0 {
        return trace_late(observer, first, limit).await;
    }
    let end = observer.look_twice(first, ROUGH).await?;
    let second = observer.look_twice(Lba(first.0 + 1), ROUGH).await?;
    let mut pitch = apart(end, second);
    if pitch < WIDTHS.0 || pitch > WIDTHS.1 {
        return Err(NoTrack::NoLine);
    }
    let most = ((1.0 / WIDTHS.0) as u64).min(limit.0 - first.0);
    let (mut on, mut off) = (1, most);
    let mut ahead = 2;
    while on + 1 < off {
        // Doubling first, then halving what is left.
        let care = if ahead < off { Care::Sure } else { Care::Quick };
        let at = if ahead < off {
            ahead
        } else {
            on + (off - on) / 2
        };
        let expected = end + forward(pitch * at as f64);
        let tolerance = SAME * pitch;
        let error = observer.off(Lba(first.0 + at), expected, tolerance, care);
        let error = error.await?;
        if error.abs() <= tolerance {
            pitch += error / at as f64;
            (on, ahead) = (at, at * 2);
        } else {
            (off, ahead) = (at, u64::MAX);
        }
    }
    Ok(SectorLine {
        first,
        end,
        sectors: (1.0 / pitch).round() as u32,
        blocks: on as u32 + 1,
        doubt: 0.0,
    })
}

/// How exactly the ends of a line are told for the number of its sectors, as a share of one of them. A
/// choice: with a tenth of a sector at both ends the number is wrong once in 150 times, and twice alike once
/// in a hundred thousand.
const POINTS: f64 = 0.1;

/// The same behind a host that delays sightings: the earliest of some sightings of a block is the
/// block's angle, and the ends of the line are sighted most often.
async fn trace_late(
    observer: &mut Observer,
    first: Lba,
    limit: Lba,
) -> Result<SectorLine, NoTrack> {
    let few = observer.few();
    let error = 2.0 * observer.mean_of(few);
    let end = observer.earliest(first, few).await?;
    let second = observer.earliest(Lba(first.0 + 1), few).await?;
    let mut pitch = apart(end, second);
    if pitch < -error || pitch > WIDTHS.1 {
        return Err(NoTrack::NoLine);
    }
    let least = |pitch: f64| pitch.max(WIDTHS.0);
    pitch = least(pitch);
    let most = ((1.0 / WIDTHS.0) as u64).min(limit.0 - first.0);
    let (mut on, mut off) = (1, most);
    while on * 2 < off {
        let at = Lba(first.0 + on * 2);
        let expected = end + forward(pitch * (on * 2) as f64);
        let tolerance = (SAME * pitch).max(observer.late());
        let mut misfit = observer.off(at, expected, tolerance, Care::Sure).await?;
        if misfit.abs() > tolerance {
            off = on * 2;
            break;
        }
        if misfit > 0.0 {
            // A late sighting would make the pitch too wide for the next one.
            misfit = misfit.min(apart(expected, observer.earliest(at, few).await?));
        }
        on *= 2;
        pitch = least(pitch + misfit / on as f64);
    }
    while on + 1 < off {
        let at = on + (off - on) / 2;
        let expected = end + forward(pitch * at as f64);
        let tolerance = observer.late().max(SAME * pitch);
        let misfit = observer.off(Lba(first.0 + at), expected, tolerance, Care::Quick);
        match misfit.await?.abs() <= tolerance {
            true => on = at,
            false => off = at,
        }
    }
    let mut line = SectorLine {
        first,
        end,
        sectors: (1.0 / pitch).round() as u32,
        blocks: on as u32 + 1,
        doubt: f64::INFINITY,
    };
    if line.blocks >= LONG_ENOUGH {
        measure(observer, &mut line, pitch).await?;
    }
    Ok(line)
}

/// Sightings near the ends of a line take no more than this part of it. A choice.
const ENDS: u64 = 8;

/// The number of sectors on a turn is told by so many sightings of each end at most. A choice: two
/// seconds of the drive's time.
const MOST: usize = 96;

/// Two tellings of the number of sectors before a third. A choice.
const TELLINGS: usize = 4;

/// Where a line begins, and how many sectors a turn has, by two tellings that agree. Those of lines that are
/// too short for it are left out.
async fn measure(
    observer: &mut Observer,
    line: &mut SectorLine,
    mut pitch: f64,
) -> Result<(), NoTrack> {
    let on = u64::from(line.blocks) - 1;
    let share = on as f64 * pitch;
    let sightings = observer.sightings_up_to(POINTS * pitch * share.min(1.0), MOST);
    line.doubt = observer.mean_of(sightings) / (pitch * share);
    if line.doubt > DOUBT {
        return Ok(());
    }
    let mut told = None;
    for _ in 0..TELLINGS {
        let ends = ends_of(observer, line, (on, pitch), sightings).await?;
        pitch = (pitch + (ends.1 - ends.0) / on as f64).max(WIDTHS.0);
        line.end = line.end + forward(ends.0);
        line.sectors = (1.0 / pitch).round() as u32;
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

/// How exactly a line's points are told for whether it has as many sectors as the one before, as a share of
/// one of them. A choice: a line of three quarters of a turn with one more is off by seven times as much.
const SAME_COUNT: f64 = 0.1;

/// Where a line of `blocks` blocks begins whose first ends at about `end`, if it has `sectors` on a turn:
/// behind a host that delays sightings.
pub(super) async fn goes_on(
    observer: &mut Observer,
    (first, end): (Lba, Angle),
    blocks: u32,
    sectors: u32,
) -> Result<Option<Angle>, NoTrack> {
    let pitch = 1.0 / f64::from(sectors);
    let on = u64::from(blocks) - 1;
    let doubt = f64::INFINITY;
    let line = SectorLine {
        first,
        end,
        sectors,
        blocks,
        doubt,
    };
    let sightings = observer.sightings_up_to(SAME_COUNT * pitch, MOST);
    let ends = ends_of(observer, &line, (on, pitch), sightings).await?;
    let one = on as f64 * pitch * pitch;
    let is_same = (ends.1 - ends.0).abs() < one / 2.0;
    Ok(is_same.then(|| end + forward(ends.0)))
}

/// How far off both ends of a line are, by the earliest of sightings near them: of other blocks each time,
/// so that the buffer holds none.
async fn ends_of(
    observer: &mut Observer,
    line: &SectorLine,
    (on, pitch): (u64, f64),
    sightings: usize,
) -> Result<(f64, f64), NoTrack> {
    let places = (on / ENDS / BESIDE).clamp(1, sightings as u64);
    let (mut begin, mut last) = (f64::INFINITY, f64::INFINITY);
    // In turn, so that a correction of the clock is in both.
    for sighting in 0..sightings as u64 {
        let place = sighting % places;
        // Look-ahead reads what is above: where that stays in the buffer, downwards.
        let begins = match observer.forgets_soon() {
            true => place,
            false => places - 1 - place,
        };
        let (below, above) = (on - place * BESIDE, begins * BESIDE);
        for (block, least) in [(below, &mut last), (above, &mut begin)] {
            let expected = line.end + forward(pitch * block as f64);
            let seen = observer.look(Lba(line.first.0 + block)).await?;
            *least = least.min(apart(expected, seen));
        }
    }
    Ok((begin, last))
}

/// Where a track begins whose first block is known, and how many sectors a turn has there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beginning {
    pub(super) start: Angle,
    pub(super) sectors: u32,
    /// Whether the first block itself is elsewhere.
    pub(super) first_elsewhere: bool,
}

/// Makes out a track from its first block on, without knowing anything of it.
pub(super) async fn beginning(
    observer: &mut Observer,
    first: Lba,
    limit: Lba,
) -> Result<Beginning, NoTrack> {
    let mut at = first;
    for _ in 0..4 {
        let line = match trace(observer, at, limit).await {
            Ok(line) => line,
            Err(NoTrack::NoLine) => {
                at = Lba(at.0 + 1);
                continue;
            }
            Err(lost) => return Err(lost),
        };
        if !line.is_long() {
            at = Lba(at.0 + u64::from(line.blocks));
            continue;
        }
        return begun(observer, first, &line).await;
    }
    Err(NoTrack::NoLine)
}

/// The track's beginning, from a line near it.
async fn begun(
    observer: &mut Observer,
    first: Lba,
    line: &SectorLine,
) -> Result<Beginning, NoTrack> {
    let sector = width(line.sectors);
    let before = line.first.0 - first.0;
    if before == 0 {
        return Ok(Beginning {
            start: line.end - sector,
            sectors: line.sectors,
            first_elsewhere: false,
        });
    }
    let tolerance = observer.tolerance(line.sectors);
    let on_line = line.end - sector.times(before);
    let mut seen = observer.look_twice(first, tolerance).await?;
    let second = observer.look_twice(Lba(first.0 + 1), tolerance).await?;
    if observer.late() > 0.0 {
        seen = observer.earliest(first, observer.few()).await?;
    }
    // Either the first block alone is not on the line, or a short track comes before it.
    let second_fits = apart(on_line + sector, second).abs() <= tolerance;
    let first_fits = apart(on_line, seen).abs() <= tolerance;
    Ok(Beginning {
        start: if second_fits { on_line } else { seen } - sector,
        sectors: line.sectors,
        first_elsewhere: second_fits && !first_fits,
    })
}
