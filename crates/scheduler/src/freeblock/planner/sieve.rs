//! Whether a track of a cylinder may be better than the best so far, without a visit.
//!
//! Most tracks are not, by their coarse outlines. Of others the blocks that follow each other sector
//! by sector are counted exactly: a visit is made only where it will be the best.

use std::ops::Range;

use block::{Duration, Instant};
use drive::{Position, Profile};

use super::ground::SearchBounds;
use super::outline::{self, Outline, Outlines, Passing};
use super::turning::{Rim, Sectors, Sweep, Turning};
use super::visit::Leg;
use crate::freeblock::Ranges;
use crate::freeblock::wanted::{Cylinder, Slices};

/// The times of the seeks to a track and from it.
pub(super) type Seeks = (Duration, Duration);

/// What passes of the tracks of a cylinder, coarsely.
pub(super) struct Sieve<'a> {
    ranges: Ranges,
    tracks: Cylinder<'a>,
    /// Their outlines, if there are any.
    outlines: &'a [Outline],
    /// A superset of what passes of any of them.
    passing: Passing,
}

/// The blocks of a track that follow each other sector by sector, and what passes of them.
struct Straight<'a> {
    slices: Slices<'a>,
    sectors: Sectors,
    /// The sector of the first block.
    first: u32,
}

impl<'a> Sieve<'a> {
    /// The sieve of a cylinder whose nearest track takes these seeks.
    #[inline]
    pub fn new(
        (profile, ground): (&Profile, &'a SearchBounds),
        (leg, ranges): (&Leg, Ranges),
        (cylinder, tracks): (u32, Cylinder<'a>),
        (there, back): Seeks,
    ) -> Self {
        let from = leg.leaves + there + leg.to_free;
        let until = leg.latest.saturating_sub(back).min(leg.done_by);
        Sieve {
            ranges,
            tracks,
            outlines: ground.outlines().of(cylinder),
            passing: Passing::new(&profile.spindle, from, until.since(from)),
        }
    }

    /// Whether what passes by a track's outline may be better. `is_better` tells so of wanted blocks that are
    /// read, the sectors of their track, and all of its wanted blocks.
    #[inline]
    pub fn may_pass(&self, head: u32, is_better: impl Fn(u32, u32, u32) -> bool) -> bool {
        let Some(outline) = outline::known(self.outlines, head) else {
            return true;
        };
        let Some(passing) = outline.passing(&self.passing) else {
            return true;
        };
        let slices = self.tracks.slices(head, outline.blocks());
        let [upper, lower] = passing.map(|blocks| match blocks.is_empty() {
            true => 0,
            false => slices.wanted(slices.touched(blocks)),
        });
        let wanted = match self.ranges {
            Ranges::One => upper.max(lower),
            Ranges::Two => upper + lower,
        };
        with_left(&self.tracks, (head, outline), is_better)(wanted)
    }
}

/// Whether a visit of a track may be better whose sectors pass as `turning` says, with the same `is_better`.
pub(super) fn passes(
    (profile, outlines): (&Profile, &Outlines),
    (leg, ranges): (&Leg, Ranges),
    tracks: &Cylinder<'_>,
    (position, turning): (Position, &Turning),
    is_better: impl Fn(u32, u32, u32) -> bool,
) -> bool {
    let Some(outline) = outlines.at(position) else {
        return true;
    };
    let Some(straight) = outlines.straight(position, outline) else {
        return true;
    };
    let slices = tracks.slices(position.head, outline.blocks());
    let is_better = with_left(tracks, (position.head, outline), is_better);
    Straight::new(turning, straight, slices).is_better(profile, leg, ranges, is_better)
}

/// Whether so many wanted blocks of a track are better, of all that are left of it.
#[inline]
fn with_left(
    tracks: &Cylinder<'_>,
    (head, outline): (u32, &Outline),
    is_better: impl Fn(u32, u32, u32) -> bool,
) -> impl Fn(u32) -> bool {
    let most = tracks.most(head).min(outline.blocks());
    let (sectors, is_exact) = (outline.sectors(), tracks.is_exact());
    move |wanted: u32| {
        let wanted = wanted.min(most);
        let left = if is_exact { most } else { wanted };
        is_better(wanted, sectors, left)
    }
}

impl<'a> Straight<'a> {
    #[inline]
    fn new(turning: &Turning, (rim, first): (Rim, u32), slices: Slices<'a>) -> Self {
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
