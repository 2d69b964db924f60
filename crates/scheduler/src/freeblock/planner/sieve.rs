//! Whether a track of a cylinder may be better than the best so far, without a visit.
//!
//! A track whose blocks follow each other sector by sector is counted exactly: a visit is made only
//! where it will be the best. Of other tracks the coarse outline tells more than what passes.

use std::ops::Range;

use block::{Duration, Instant};
use drive::{Position, Profile};

use super::ground::SearchBounds;
use super::outline::{Outline, Passing};
use super::turning::{Rim, Sectors, Sweep, Turning};
use super::visit::Leg;
use crate::freeblock::Ranges;
use crate::freeblock::wanted::{Slices, WantedBlocks};

/// The times of the seeks to a track and from it.
pub(super) type Seeks = (Duration, Duration);

/// The wanted blocks of a track, as far as they are known without its bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// Not less than they are.
    pub most: u32,
    /// Whether `most` is their number, if no more than all of the track's blocks.
    pub is_exact: bool,
}

/// The sieve of a cylinder.
pub(super) struct Sieve<'a> {
    profile: &'a Profile,
    ground: &'a SearchBounds,
    wanted: &'a WantedBlocks,
    leg: &'a Leg,
    ranges: Ranges,
    /// The least seeks to any of its tracks.
    least: Seeks,
    passing: Option<Passing>,
    /// The span between the last seeks that were asked for.
    span: Option<(Seeks, Option<Turning>)>,
}

/// The blocks of a track that follow each other sector by sector, and what passes of them.
struct Straight<'a> {
    slices: Slices<'a>,
    sectors: Sectors,
    /// The sector of the first block.
    first: u32,
}

impl<'a> Sieve<'a> {
    pub fn new(
        (profile, ground): (&'a Profile, &'a SearchBounds),
        wanted: &'a WantedBlocks,
        (leg, ranges): (&'a Leg, Ranges),
        least: Seeks,
    ) -> Self {
        Sieve {
            profile,
            ground,
            wanted,
            leg,
            ranges,
            least,
            passing: None,
            span: None,
        }
    }

    /// Whether a visit of a track may be better. `is_better` tells so of wanted blocks that are
    /// read, the sectors of their track, and all of its wanted blocks.
    #[inline]
    pub fn passes(
        &mut self,
        position: Position,
        held: Held,
        seeks: Seeks,
        is_better: impl Fn(u32, u32, u32) -> bool,
    ) -> bool {
        let outlines = self.ground.outlines();
        let Some(outline) = outlines.at(position) else {
            return true;
        };
        let most = held.most.min(outline.blocks());
        let is_better = |wanted: u32| {
            let wanted = wanted.min(most);
            let left = if held.is_exact { most } else { wanted };
            is_better(wanted, outline.sectors(), left)
        };
        if !is_better(most) {
            return false;
        }
        let slices = self.wanted.slices_at(position, outline.blocks());
        let Some(slices) = slices else {
            return false;
        };
        match outlines.straight(&outline) {
            Some(straight) => self.turning(seeks).is_some_and(|turning| {
                let straight = Straight::new(turning, straight, slices);
                straight.is_better(self.profile, self.leg, self.ranges, is_better)
            }),
            None => self.may_pass(&outline, &slices, is_better),
        }
    }

    /// The span on a track between two seeks.
    #[inline]
    fn turning(&mut self, seeks: Seeks) -> Option<Turning> {
        match self.span {
            Some((of, turning)) if of == seeks => turning,
            _ => {
                let turning = self.leg.turning(self.profile, seeks);
                self.span = Some((seeks, turning));
                turning
            }
        }
    }

    /// Whether what passes by a track's outline may be better.
    fn may_pass(
        &mut self,
        outline: &Outline,
        slices: &Slices<'_>,
        is_better: impl Fn(u32) -> bool,
    ) -> bool {
        let passing = match self.passing {
            Some(passing) => passing,
            None => *self.passing.insert(self.passing_on_any()),
        };
        let Some(ranges) = outline.passing(&passing) else {
            return true;
        };
        let wanted = ranges.map(|blocks| match blocks.is_empty() {
            true => 0,
            false => slices.wanted(slices.touched(blocks)),
        });
        is_better(wanted[0] + wanted[1])
    }

    /// A superset of the part of the cylinder that passes, with the least seeks.
    fn passing_on_any(&self) -> Passing {
        let leg = self.leg;
        let (there, back) = self.least;
        let from = leg.leaves + there + leg.to_free;
        let until = leg.latest.as_nanos().saturating_sub(back.as_nanos());
        let until = until.min(leg.done_by.as_nanos());
        let time = Duration::from_nanos(until.saturating_sub(from.as_nanos()));
        Passing::new(&self.profile.spindle, from, time)
    }
}

impl<'a> Straight<'a> {
    #[inline]
    fn new(turning: Turning, (rim, first): (Rim, u32), slices: Slices<'a>) -> Self {
        Straight {
            slices,
            sectors: turning.sectors(&rim),
            first,
        }
    }

    /// Whether a visit, which reads what passes of the slices, is better. With a slow bus it reads
    /// less.
    #[inline]
    fn is_better(
        &self,
        profile: &Profile,
        leg: &Leg,
        ranges: Ranges,
        is_better: impl Fn(u32) -> bool,
    ) -> bool {
        let sectors = &self.sectors;
        let upper_slices = self.inside(sectors.upper..sectors.upper_end);
        let upper = self.slices.wanted(upper_slices.clone());
        let lower = self.slices.wanted(self.inside(0..sectors.lower_end));
        let both = match ranges {
            Ranges::One => upper.max(lower),
            Ranges::Two => upper + lower,
        };
        if ranges == Ranges::One || leg.bus.is_some() || upper.min(lower) == 0 {
            return is_better(both);
        }
        is_better(both)
            && (is_better(upper.max(lower))
                || is_better(upper + self.second(profile, leg, upper_slices)))
    }

    /// The wanted blocks that pass after those of the upper sweep and a margin.
    fn second(&self, profile: &Profile, leg: &Leg, upper: Range<u32>) -> u32 {
        let ends = self
            .slices
            .first(upper.clone())
            .zip(self.slices.last(upper));
        let Some((first, last)) = ends else {
            return 0;
        };
        let read = self.slices.blocks_of(first..last + 1);
        let margin = profile.spindle.angle_at(Instant::ZERO + leg.to_free);
        let margin = u128::from((margin - profile.spindle.phase()).raw());
        let over = self.sectors.turned(Sweep::Upper, self.first + read.end);
        let from = self.sectors.lower_from(over + margin);
        let end = self.sectors.lower_end.min(self.first + read.start);
        self.slices.wanted(self.inside(from.min(end)..end))
    }

    /// The slices that lie on a range of sectors wholly.
    #[inline]
    fn inside(&self, sectors: Range<u32>) -> Range<u32> {
        let block = |sector: u32| sector.saturating_sub(self.first);
        self.slices.inside(block(sectors.start)..block(sectors.end))
    }
}
