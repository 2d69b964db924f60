//! A map's tracks one run after the other, with the skews that are regular where they are.

use block::Lba;
use drive::Angle;

use crate::clock::apart;
use crate::map::{Piece, TrackMap};

/// Neighbouring tracks that are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Strip {
    /// The first block.
    pub first: Lba,
    /// Tracks.
    pub tracks: u32,
    /// Blocks of each.
    pub blocks: u32,
    /// Sectors between them that hold no block.
    pub slipped: u32,
    /// Sectors on a whole turn.
    pub sectors: u32,
    /// Where the first block begins.
    pub start: Angle,
    /// From track to track.
    pub skew: Angle,
    /// What is regular there.
    pub usual: Usual,
    /// Whether it is on the map, or a guess.
    pub origin: Origin,
}

/// Where a strip comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The map, following the strip before.
    Map,
    /// The map, after blocks of which nothing is known.
    AfterGap,
    /// Nothing is known: the strip is like those before.
    Guess,
}

/// The regular skews of a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Usual {
    /// From most tracks to the next.
    pub step: Angle,
    /// The one that differs most from it, where the cycle has one.
    pub jump: Angle,
}

impl Strip {
    /// The block after its last.
    pub fn end(&self) -> Lba {
        Lba(self.first.0 + u64::from(self.tracks) * u64::from(self.blocks))
    }

    /// Where its last track begins.
    pub fn last_start(&self) -> Angle {
        self.start + self.skew.times(u64::from(self.tracks - 1))
    }

    /// Takes some tracks off its beginning.
    pub fn split(&mut self, tracks: u32) -> Strip {
        let taken = Strip { tracks, ..*self };
        self.first = taken.end();
        self.start = self.start + self.skew.times(u64::from(tracks));
        self.tracks -= tracks;
        if self.origin == Origin::AfterGap {
            self.origin = Origin::Map;
        }
        taken
    }
}

/// The map's tracks in order.
pub(super) fn strips(map: &TrackMap) -> Vec<Strip> {
    let mut all: Vec<Strip> = Vec::new();
    let usual = usual_skews(&map.pieces);
    let mut slips = map.slips.iter().peekable();
    for (piece, usual) in map.pieces.iter().zip(usual) {
        let mut first = piece.first;
        let gap = all.last().is_none_or(|last| last.end() != first);
        let mut origin = if gap { Origin::AfterGap } else { Origin::Map };
        for repeat in 0..piece.repeats {
            let base = piece.angle + piece.step.times(u64::from(repeat));
            for band in &piece.cycle {
                let mut strip = Strip {
                    first,
                    tracks: band.tracks,
                    blocks: band.blocks,
                    slipped: 0,
                    sectors: band.sectors,
                    start: base + band.start,
                    skew: band.skew,
                    usual,
                    origin,
                };
                first = strip.end();
                origin = Origin::Map;
                // Tracks with slips stand for themselves.
                while let Some(slip) = slips.peek().filter(|slip| slip.before < strip.end()) {
                    let into =
                        (slip.before.0.saturating_sub(strip.first.0)) / u64::from(strip.blocks);
                    if into > 0 {
                        all.push(strip.split(into as u32));
                    }
                    let mut slipped = strip;
                    if strip.tracks > 1 {
                        slipped = strip.split(1);
                    } else {
                        strip.tracks = 0;
                    }
                    while let Some(slip) = slips.next_if(|slip| slip.before < slipped.end()) {
                        slipped.slipped += slip.sectors;
                    }
                    all.push(slipped);
                    if strip.tracks == 0 {
                        break;
                    }
                }
                if strip.tracks > 0 {
                    all.push(strip);
                }
            }
        }
    }
    all
}

/// The regular skews of each piece; those of its neighbours where it is too short to tell.
fn usual_skews(pieces: &[Piece]) -> Vec<Usual> {
    let steps: Vec<Option<Angle>> = pieces.iter().map(step_of).collect();
    let mut step = steps.iter().flatten().next().copied().unwrap_or_default();
    let jump_of = |(piece, step): (&Piece, &Option<Angle>)| jump_of(piece, (*step)?);
    let jumps: Vec<Option<Angle>> = pieces.iter().zip(&steps).map(jump_of).collect();
    let mut jump = jumps.iter().flatten().next().copied().unwrap_or(step);
    let found = steps.into_iter().zip(jumps);
    found
        .map(|(own_step, own_jump)| {
            step = own_step.unwrap_or(step);
            jump = own_jump.unwrap_or(jump);
            Usual { step, jump }
        })
        .collect()
}

/// So many tracks alike tell the regular skew though nothing repeats. A choice.
const ALIKE: u32 = 8;

/// The skew from most tracks of a piece to the next.
fn step_of(piece: &Piece) -> Option<Angle> {
    let longest = piece.cycle.iter().max_by_key(|band| band.tracks)?;
    if longest.tracks >= ALIKE || (longest.tracks > 1 && piece.repeats > 1) {
        return Some(longest.skew);
    }
    if piece.repeats > 1 {
        return commonest(&transitions(piece));
    }
    None
}

/// The skew that differs most from the regular one in a piece that repeats.
fn jump_of(piece: &Piece, step: Angle) -> Option<Angle> {
    if piece.repeats < 2 {
        return None;
    }
    let far = |skew: &Angle| apart(step, *skew).abs();
    transitions(piece)
        .into_iter()
        .max_by(|a, b| far(a).total_cmp(&far(b)))
}

/// From each band's last track to the track after it.
fn transitions(piece: &Piece) -> Vec<Angle> {
    let next = |index: usize| match piece.cycle.get(index + 1) {
        Some(band) => band.start,
        None => piece.step + piece.cycle[0].start,
    };
    let bands = piece.cycle.iter().enumerate();
    bands
        .map(|(index, band)| {
            next(index) - (band.start + band.skew.times(u64::from(band.tracks - 1)))
        })
        .collect()
}

/// The skew that most others are near to.
fn commonest(skews: &[Angle]) -> Option<Angle> {
    let near = |skew: &Angle| {
        skews
            .iter()
            .filter(|other| apart(*skew, **other).abs() < 0.01)
            .count()
    };
    skews.iter().copied().max_by_key(|skew| near(skew))
}
