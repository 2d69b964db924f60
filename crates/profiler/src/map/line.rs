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

use super::observer::{Care, Observer, SAME, width};
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
}

impl SectorLine {
    /// Whether it tells how many sectors there are on a turn.
    pub(super) fn is_long(&self) -> bool {
        self.blocks >= LONG_ENOUGH
    }
}

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
    })
}

/// How exactly a line's points are told behind a host, in revolutions: at first, and for the number of
/// its sectors, as a share of one of them. Choices: with a twentieth of a sector at both ends the number is
/// wrong once in thousands of lines.
const POINTS: (f64, f64) = (1e-3, 0.05);

/// A line with nearly as many blocks as there are sectors on a turn has all of them: most tracks have no
/// spare sectors, and the ends of the line tell the number to about half a sector. A choice.
const WHOLE: f64 = 1.5;

/// The same behind a host that delays sightings: the earliest of some sightings of a block is the
/// block's angle, and the ends of the line are sighted most often.
async fn trace_late(
    observer: &mut Observer,
    first: Lba,
    limit: Lba,
) -> Result<SectorLine, NoTrack> {
    let few = observer.sightings(POINTS.0);
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
        let at = on * 2;
        let expected = end + forward(pitch * at as f64);
        let tolerance = (SAME * pitch).max(observer.late());
        let misfit = observer.off(Lba(first.0 + at), expected, tolerance, Care::Sure);
        let misfit = misfit.await?;
        if misfit.abs() > tolerance {
            off = at;
            break;
        }
        pitch = least(pitch + misfit / at as f64);
        on = at;
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
    if on > 1 {
        pitch = least(pitch_between(observer, (first, end), on, pitch).await?);
    }
    let (blocks, turn) = (on as u32 + 1, 1.0 / pitch);
    let whole = (turn - f64::from(blocks)).abs() < WHOLE;
    Ok(SectorLine {
        first,
        end,
        sectors: if whole { blocks } else { turn.round() as u32 },
        blocks,
    })
}

/// Blocks between sightings near the ends of a line. A choice: neighbours are read as one sequence, which
/// look-ahead goes on with.
const BESIDE: u64 = 3;

/// Sightings near the ends of a line take no more than this part of it. A choice.
const ENDS: u64 = 8;

/// From block to block of a line of which the pitch is known roughly, by the earliest sightings near both
/// of its ends: of other blocks each time, so that the buffer holds none.
async fn pitch_between(
    observer: &mut Observer,
    (first, end): (Lba, Angle),
    on: u64,
    pitch: f64,
) -> Result<f64, NoTrack> {
    let sightings = observer.sightings(POINTS.1 * pitch) as u64;
    let step = BESIDE.min(on / ENDS / (sightings + 1));
    let (mut begin, mut last) = (0.0_f64, f64::INFINITY);
    // In turn, so that a correction of the clock is in both.
    for place in (0..=sightings).map(|sighting| sighting * step) {
        for (block, least) in [(on - place, &mut last), (place, &mut begin)] {
            let expected = end + forward(pitch * block as f64);
            let seen = observer.look(Lba(first.0 + block)).await?;
            *least = least.min(apart(expected, seen));
        }
    }
    Ok(pitch + (last - begin) / on as f64)
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
    let seen = observer.look_twice(first, tolerance).await?;
    let second = observer.look_twice(Lba(first.0 + 1), tolerance).await?;
    // Either the first block alone is not on the line, or a short track comes before it.
    let second_fits = apart(on_line + sector, second).abs() <= tolerance;
    let first_fits = apart(on_line, seen).abs() <= tolerance;
    Ok(Beginning {
        start: if second_fits { on_line } else { seen } - sector,
        sectors: line.sectors,
        first_elsewhere: second_fits && !first_fits,
    })
}
