//! One track: where it ends, what is missing on it.

use block::Lba;
use drive::Angle;

use super::observer::{Care, Observer, SAME, width};
use super::sector_line::NoTrack;
use crate::clock::{apart, forward};
use crate::findings::Slip;

/// A track of which the beginning is known.
#[derive(Debug)]
pub(super) struct Tracing<'a> {
    observer: &'a mut Observer,
    first: Lba,
    start: Angle,
    sectors: u32,
    /// Sectors that hold no block, before where the line is followed.
    shift: u32,
    /// How far the clock has gone wrong since the start was told, in revolutions.
    drift: f64,
    /// No block from here on is looked at.
    limit: Lba,
}

/// A track whose end was found.
#[derive(Clone, Debug, Default)]
pub(super) struct Traced {
    pub(super) blocks: u32,
    pub(super) slips: Vec<Slip>,
    /// Blocks on it that are elsewhere.
    pub(super) elsewhere: Vec<Lba>,
    /// Where the next track's first block ends; none if no next track was looked at.
    pub(super) next: Option<Angle>,
}

impl Traced {
    /// Sectors that hold no block between blocks.
    pub(super) fn slipped(&self) -> u32 {
        self.slips.iter().map(|slip| slip.sectors).sum()
    }
}

/// What is at the end of a line.
enum Break {
    /// The line goes on.
    None,
    /// The track's end.
    End,
    /// So many sectors without a block.
    Gap(u32),
    /// A block that is elsewhere.
    Elsewhere,
}

/// More sectors in a row without a block are not thought to be defects but the end of the track.
/// A choice: the longest series of defects in the drives that we ship has 20.
const LONGEST_GAP: u32 = 64;

/// Of more sectors there is no second gap on a track. A choice: twice the longest series of defects
/// in the zoned drives that we ship.
const LONGEST_OF_MANY: u32 = 16;

/// Breaks in one track that are followed. A choice.
const BREAKS: usize = 40;

impl<'a> Tracing<'a> {
    pub(super) fn new(
        observer: &'a mut Observer,
        first: Lba,
        start: Angle,
        sectors: u32,
        limit: Lba,
    ) -> Self {
        Tracing {
            observer,
            first,
            start,
            sectors,
            shift: 0,
            drift: 0.0,
            limit,
        }
    }

    /// Finds the track's end: `expected` blocks are tried first. `turn` is to where the next track
    /// begins, if it is as expected.
    pub(super) async fn end(
        mut self,
        expected: u32,
        turn: Option<Angle>,
    ) -> Result<Traced, NoTrack> {
        let mut traced = Traced::default();
        let mut on = 0;
        for _ in 0..BREAKS {
            let last = self.line_end(on, expected).await?;
            let next = last + 1;
            traced.blocks = next;
            if self.lba(next) >= self.limit {
                return Ok(traced);
            }
            let off = self.off(next, 0, Care::Sure).await?;
            let angle = self.on_line(next, 0) + forward(off - self.drift);
            traced.next = Some(angle);
            let as_expected = |turn: Angle| {
                let expected = self.start + turn + width(self.sectors);
                apart(expected, angle).abs() <= self.tolerance()
            };
            // The end of a track does not show where the next one goes on with its line.
            let shows = off.abs() > self.tolerance() || next + self.shift >= self.sectors;
            if shows && next + self.shift == expected && turn.is_some_and(as_expected) {
                return Ok(traced);
            }
            match self.at_break(next, off).await? {
                Break::End => return Ok(traced),
                Break::None => on = next,
                Break::Gap(sectors) => {
                    let before = self.lba(next);
                    traced.slips.push(Slip { before, sectors });
                    self.shift += sectors;
                    on = next;
                }
                Break::Elsewhere => {
                    traced.elsewhere.push(self.lba(next));
                    on = next + 1;
                }
            }
        }
        Err(NoTrack::NoLine)
    }

    /// The last block on the line, from one on that is known to be.
    async fn line_end(&mut self, mut on: u32, expected: u32) -> Result<u32, NoTrack> {
        // No more blocks than sectors.
        let room = (self.limit.0 - self.first.0).min(u64::from(self.sectors - self.shift));
        let mut off = room as u32;
        let guess = expected.saturating_sub(1 + self.shift);
        if guess > on && guess < off {
            if self.is_on(guess, Care::Sure).await? {
                on = guess;
            } else {
                off = guess;
            }
        }
        if guess == on {
            // The caller looks at the block after it.
            return Ok(on);
        }
        while on + 1 < off {
            let middle = on + (off - on) / 2;
            if self.is_on(middle, Care::Quick).await? {
                on = middle;
            } else {
                off = middle;
            }
        }
        Ok(on)
    }

    /// What it is that a block is not on the line.
    async fn at_break(&mut self, block: u32, off: f64) -> Result<Break, NoTrack> {
        if off.abs() <= self.tolerance() {
            let room = self.sectors - self.shift;
            return Ok(if block < room {
                Break::None
            } else {
                Break::End
            });
        }
        let after = block + 1;
        let room = after + self.shift < self.sectors && self.lba(after) < self.limit;
        if room && self.is_on(after, Care::Sure).await? {
            return Ok(Break::Elsewhere);
        }
        if self.observer.is_blurred(self.sectors) {
            // The end of a track shows by its skew. A few sectors do not show.
            return Ok(Break::End);
        }
        let exact = off * f64::from(self.sectors);
        let gap = exact.round();
        let whole = (exact - gap).abs() <= SAME && gap >= 1.0;
        if !whole || gap > f64::from(LONGEST_GAP) {
            return Ok(Break::End);
        }
        let gap = gap as u32;
        if block + self.shift + gap >= self.sectors {
            return Ok(Break::End);
        }
        // After a gap the line goes on only as far as the turn does.
        let beyond = self.sectors - self.shift - gap;
        if self.lba(beyond) >= self.limit {
            return Ok(Break::Gap(gap));
        }
        let off = self.off(beyond, gap, Care::Sure).await?;
        if off.abs() <= self.tolerance() {
            return Ok(Break::End);
        }
        // A long one has to be the only one, so that the end of the turn tells.
        if gap > LONGEST_OF_MANY && beyond > block {
            let off = self.off(beyond - 1, gap, Care::Sure).await?;
            if off.abs() > self.tolerance() {
                return Ok(Break::End);
            }
        }
        Ok(Break::Gap(gap))
    }

    fn lba(&self, block: u32) -> Lba {
        Lba(self.first.0 + u64::from(block))
    }

    fn tolerance(&self) -> f64 {
        self.observer.tolerance(self.sectors)
    }

    /// Where a block ends if it is on the line, behind another gap.
    fn on_line(&self, block: u32, gap: u32) -> Angle {
        let sector = u64::from(block) + u64::from(self.shift + gap) + 1;
        self.start + forward(self.drift) + width(self.sectors).times(sector)
    }

    async fn off(&mut self, block: u32, gap: u32, care: Care) -> Result<f64, NoTrack> {
        let expected = self.on_line(block, gap);
        let (lba, tolerance) = (self.lba(block), self.tolerance());
        let off = self.observer.off(lba, expected, tolerance, care).await?;
        if off.abs() <= tolerance || care == Care::Quick || !self.observer.wanders() {
            return Ok(off);
        }
        // The first block tells how far the clock is wrong now.
        let first = self.start + width(self.sectors);
        self.drift = apart(first, self.observer.look(self.first).await?);
        let expected = self.on_line(block, gap);
        Ok(self.observer.off(lba, expected, tolerance, care).await?)
    }

    async fn is_on(&mut self, block: u32, care: Care) -> Result<bool, NoTrack> {
        Ok(self.off(block, 0, care).await?.abs() <= self.tolerance())
    }
}
