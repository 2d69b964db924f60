//! A map's tracks in order: strips of tracks that are alike, and the cuts between them.

use block::Lba;
use drive::Angle;

use crate::clock::apart;
use crate::findings::TrackMap;

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
    /// The turn before each track's first block that holds spare sectors.
    pub front: Angle,
    /// What is regular there.
    pub regular_skews: RegularSkews,
    /// Whether it is on the map, or a guess.
    pub origin: StripOrigin,
}

/// The regular skews of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RegularSkews {
    /// From most tracks to the next.
    pub step: Angle,
    /// The commonest of the others, where there are others.
    pub jump: Angle,
}

/// Where a strip comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StripOrigin {
    /// The map, following the strip before.
    Map,
    /// The map, after blocks of which nothing is known.
    AfterGap,
    /// Nothing is known: the strip is like those before.
    Guess,
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

    /// Where its first track's turn begins.
    pub fn turn_start(&self) -> Angle {
        self.start - self.front
    }

    /// Where its last track's turn begins.
    pub fn last_turn_start(&self) -> Angle {
        self.last_start() - self.front
    }

    /// How many sectors of each track's turn hold neither a block nor a slip.
    pub fn spare(&self) -> u32 {
        self.sectors.saturating_sub(self.blocks + self.slipped)
    }

    /// Takes some tracks off its beginning.
    pub fn split(&mut self, tracks: u32) -> Strip {
        let taken = Strip { tracks, ..*self };
        self.first = taken.end();
        self.start = self.start + self.skew.times(u64::from(tracks));
        self.tracks -= tracks;
        if self.origin == StripOrigin::AfterGap {
            self.origin = StripOrigin::Map;
        }
        taken
    }
}

/// The map's tracks in order.
pub(super) fn strips(map: &TrackMap) -> Vec<Strip> {
    let mut all: Vec<Strip> = Vec::new();
    let mut slips = map.slips.iter().peekable();
    for piece in &map.pieces {
        let mut first = piece.first;
        let gap = all.last().is_none_or(|last| last.end() != first);
        let mut origin = if gap {
            StripOrigin::AfterGap
        } else {
            StripOrigin::Map
        };
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
                    front: Angle::ZERO,
                    regular_skews: RegularSkews::default(),
                    origin,
                };
                first = strip.end();
                origin = StripOrigin::Map;
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

/// Whether a band ends between two strips: the skew is another, or the density is.
pub(super) fn is_cut(before: &Strip, strip: &Strip) -> bool {
    let off = apart(
        before.regular_skews.step,
        strip.turn_start() - before.last_turn_start(),
    );
    let follows = strip.origin == StripOrigin::Map;
    follows && (other_density(strip.sectors, before.sectors) || off.abs() > CUT)
}

/// How far a skew may be off the regular one, in revolutions, between tracks of one band: a few
/// slipped sectors. A choice.
pub(super) const CUT: f64 = 0.02;

/// Whether tracks have other numbers of sectors, by more than a few that were slipped.
pub(super) fn other_density(a: u32, b: u32) -> bool {
    a.abs_diff(b) * DENSITIES > a.max(b)
}

/// Zones and surfaces differ by more than this part of their sectors per track. A choice: one
/// hundredth is less than the steps of all drives that are known.
const DENSITIES: u32 = 100;
