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
use super::sector_count::count;
use super::sector_line::{FIRSTS, LONG_ENOUGH, LineBegin, NoTrack, SectorLine, WIDTHS};
use crate::clock::{apart, forward};

/// Two sightings of a block agree within that, in revolutions, before any width is known. A
/// choice: a second attempt at a sector is off by more.
const ROUGH: f64 = 5e-4;

/// Follows the line that begins with a block: the distance doubles while the angle is as
/// expected; then its end is searched. Behind a host that delays sightings it matters where the line begins.
pub(super) async fn trace(
    observer: &mut Observer,
    first: Lba,
    limit: Lba,
    begin: LineBegin,
) -> Result<SectorLine, NoTrack> {
    if first.0 + 1 >= limit.0 {
        return Err(NoTrack::NoLine);
    }
    if observer.late() > 0.0 {
        return trace_late(observer, first, limit, begin).await;
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

/// How much farther than nearly all delays the next point of a line may be while it is known to half of that
/// distance only. A choice: the error of a line grows with the distance, by less than half.
const UNSURE: f64 = 1.5;

/// How often the end of a line is searched. A choice: a host's stall may hide that it goes on, and one search of
/// ten meets a stall.
const SEARCHES: usize = 4;

/// The same behind a host that delays sightings: the line that fits all of its sightings best.
async fn trace_late(
    observer: &mut Observer,
    first: Lba,
    limit: Lba,
    begin: LineBegin,
) -> Result<SectorLine, NoTrack> {
    let mut fit = LineFit::begin(observer.look(first).await?);
    for _ in 1..FIRSTS {
        let seen = observer.look(first).await?;
        fit.add(0, apart(fit.at(0), seen));
    }
    let second = observer.look(Lba(first.0 + 1)).await?;
    let step = apart(fit.at(0), second);
    if step < -observer.late() || step > WIDTHS.1 + observer.late() {
        return Err(NoTrack::NoLine);
    }
    fit.add(1, step);
    let most = ((1.0 / WIDTHS.0) as u64).min(limit.0 - first.0);
    let (mut on, mut off) = (1, most);
    while on * 2 < off {
        let tolerance = (SAME * fit.pitch()).max(UNSURE * observer.late());
        match fit
            .sees(observer, (first, on * 2), tolerance, Care::Sure)
            .await?
        {
            true => on *= 2,
            false => off = on * 2,
        }
    }
    for _ in 0..SEARCHES {
        while on + 1 < off {
            let at = on + (off - on) / 2;
            let tolerance = (SAME * fit.pitch()).max(observer.late());
            match fit
                .sees(observer, (first, at), tolerance, Care::Quick)
                .await?
            {
                true => on = at,
                false => off = at,
            }
        }
        let tolerance = (SAME * fit.pitch()).max(observer.late());
        if off >= most
            || !fit
                .sees(observer, (first, off), tolerance, Care::Sure)
                .await?
        {
            break;
        }
        (on, off) = (off, most.min(on * 2));
    }
    let mut line = SectorLine {
        first,
        end: fit.at(0),
        sectors: (1.0 / fit.pitch()).round() as u32,
        blocks: on as u32 + 1,
        doubt: f64::INFINITY,
    };
    if line.blocks >= LONG_ENOUGH {
        count(observer, &mut line, fit.pitch(), begin).await?;
    }
    Ok(line)
}

/// The line through sightings of blocks of one track, by least squares.
#[derive(Clone, Copy, Debug)]
struct LineFit {
    origin: Angle,
    /// Sightings, and the sums of their blocks, angles in revolutions, and products.
    count: f64,
    sums: [f64; 4],
}

impl LineFit {
    fn begin(origin: Angle) -> LineFit {
        LineFit {
            origin,
            count: 1.0,
            sums: [0.0; 4],
        }
    }

    /// Adds a sighting of a block that was `off` revolutions from the line.
    fn add(&mut self, block: u64, off: f64) {
        let (start, pitch) = self.line();
        let (x, y) = (block as f64, start + pitch * block as f64 + off);
        self.count += 1.0;
        let more = [x, y, x * x, x * y];
        self.sums
            .iter_mut()
            .zip(more)
            .for_each(|(sum, more)| *sum += more);
    }

    /// Where block 0 is, from the origin, and from each block to the next, in revolutions.
    fn line(&self) -> (f64, f64) {
        let [x, y, xx, xy] = self.sums.map(|sum| sum / self.count);
        let spread = xx - x * x;
        let pitch = match spread > 0.0 {
            true => ((xy - x * y) / spread).max(WIDTHS.0),
            false => 0.0,
        };
        (y - pitch * x, pitch)
    }

    fn pitch(&self) -> f64 {
        self.line().1.max(WIDTHS.0)
    }

    /// Where a block ends.
    fn at(&self, block: u64) -> Angle {
        let (start, pitch) = self.line();
        self.origin + forward(start + pitch * block as f64)
    }

    /// Whether a block is on the line: if so, it is one of its points.
    async fn sees(
        &mut self,
        observer: &mut Observer,
        (first, block): (Lba, u64),
        tolerance: f64,
        care: Care,
    ) -> Result<bool, NoTrack> {
        let lba = Lba(first.0 + block);
        let off = observer.off(lba, self.at(block), tolerance, care).await?;
        let is_on = off.abs() <= tolerance;
        if is_on {
            self.add(block, off);
        }
        Ok(is_on)
    }
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
    mut begin: LineBegin,
) -> Result<Beginning, NoTrack> {
    let mut at = first;
    for _ in 0..4 {
        let line = match trace(observer, at, limit, begin).await {
            Ok(line) => line,
            Err(NoTrack::NoLine) => {
                at = Lba(at.0 + 1);
                if let LineBegin::Track(before) = &mut begin {
                    *before += 1;
                }
                continue;
            }
            Err(lost) => return Err(lost),
        };
        if !line.is_long() {
            at = Lba(at.0 + u64::from(line.blocks));
            begin = LineBegin::Track(0);
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
        seen = observer.typical(first, FIRSTS).await?;
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
