//! Rows of a serpentine, as skews show them: where two rows meet, the arm goes back over a band.
//!
//! ```text
//!   tracks    |-- band --|-- band --|-- band --|-- band --|-- band --|
//!   skew      ^ jump     (regular)  (regular)  ^ jump     (regular)
//!             |<------------- a row ---------->|
//! ```
//!
//! A single jump may be tracks that hold no blocks. Two jumps that are alike, with exactly a row between them, are not:
//! a row's length is a constant of the drive. What they show goes before single times between tracks.

use std::collections::BTreeMap;

use block::Lba;
use drive::Angle;

use super::super::strip::{CUT, Strip, StripOrigin};
use super::{Anchor, few};
use crate::clock::apart;
use crate::findings::Pattern;

/// At least so many rows have to be shown, and no inner ends of bands in nine of ten of them: where all bands
/// end alike, a jump is not the end of a row. A choice.
const ROWS: usize = 3;

/// Where rows begin.
#[derive(Clone, Debug, Default)]
pub(super) struct RowStarts {
    /// The first blocks of rows, ascending: those that skews show, and those that times between tracks tell and skews do not
    /// contradict.
    pub starts: Vec<Lba>,
    /// The starts that skews show, ascending.
    shown: Vec<Lba>,
    /// Rows from one of these to the next that have all of their tracks, or few too many, ascending.
    full: Vec<(Lba, Lba)>,
}

impl RowStarts {
    /// Whether skews show rows: nothing else ends a band then.
    pub fn are_shown(&self) -> bool {
        !self.shown.is_empty()
    }

    /// Whether a block is inside a row of which the map has all tracks.
    pub fn has_all_tracks(&self, lba: Lba) -> bool {
        let behind = self.full.partition_point(|row| row.0 < lba);
        behind > 0 && lba < self.full[behind - 1].1
    }

    /// Whether skews show that a row begins with a block.
    pub fn is_shown(&self, lba: Lba) -> bool {
        self.shown.binary_search(&lba).is_ok()
    }
}

/// A track behind another skew than the regular one.
#[derive(Clone, Copy, Debug)]
struct Jump {
    first: Lba,
    place: CountedTrack,
    skew: Angle,
}

/// The how-manieth track of the known blocks without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CountedTrack {
    stretch: usize,
    track: u64,
}

impl CountedTrack {
    /// How many tracks are between; none if unknown blocks are.
    fn tracks_to(self, other: CountedTrack) -> Option<u64> {
        (self.stretch == other.stretch).then(|| self.track.abs_diff(other.track))
    }

    fn farther(self, tracks: u64) -> CountedTrack {
        CountedTrack {
            track: self.track + tracks,
            ..self
        }
    }
}

/// Where rows begin, by all skews together, and by the times between tracks that told `anchors`.
pub(super) fn starts(strips: &[Strip], pattern: &Pattern, anchors: &[Anchor]) -> RowStarts {
    let places = places(strips);
    let jumps = jumps(strips, &places);
    let whole = whole_rows(&jumps, pattern);
    if whole.is_empty() {
        return RowStarts {
            starts: anchors.to_vec(),
            ..RowStarts::default()
        };
    }
    let shown = shown(&jumps, &whole, pattern);
    let full = shown.windows(2).filter_map(|pair| full(pair, pattern));
    let full = full.collect();
    let counted: Vec<CountedTrack> = shown.iter().map(|jump| jump.place).collect();
    let agrees = |anchor: &&Anchor| {
        let place = place_of(strips, &places, **anchor);
        place.is_none_or(|place| agrees(place, &counted, pattern))
    };
    let shown: Vec<Lba> = shown.iter().map(|jump| jump.first).collect();
    let mut starts = shown.clone();
    starts.extend(anchors.iter().filter(agrees));
    starts.sort_unstable();
    starts.dedup();
    RowStarts {
        starts,
        shown,
        full,
    }
}

/// The row between two starts, if it has all of its tracks, or few too many.
fn full(pair: &[Jump], pattern: &Pattern) -> Option<(Lba, Lba)> {
    let tracks = pair[0].place.tracks_to(pair[1].place)?;
    let more = tracks.checked_sub(pattern.row())?;
    (more <= few(pattern.band)).then_some((pair[0].first, pair[1].first))
}

/// The place of each strip's first track.
fn places(strips: &[Strip]) -> Vec<CountedTrack> {
    let mut next = CountedTrack {
        stretch: 0,
        track: 0,
    };
    let mut places = Vec::with_capacity(strips.len());
    for strip in strips {
        if strip.origin != StripOrigin::Map {
            (next.stretch, next.track) = (next.stretch + 1, 0);
        }
        places.push(next);
        next = next.farther(u64::from(strip.tracks));
    }
    places
}

/// The place of the track that a block is on.
fn place_of(strips: &[Strip], places: &[CountedTrack], lba: Lba) -> Option<CountedTrack> {
    let index = strips
        .partition_point(|strip| strip.first <= lba)
        .checked_sub(1)?;
    let strip = &strips[index];
    let tracks = (lba.0 - strip.first.0) / u64::from(strip.blocks);
    (lba < strip.end()).then(|| places[index].farther(tracks))
}

fn jumps(strips: &[Strip], places: &[CountedTrack]) -> Vec<Jump> {
    let mut jumps = Vec::new();
    for (pair, place) in strips.windows(2).zip(&places[1.min(places.len())..]) {
        let (before, strip) = (&pair[0], &pair[1]);
        let skew = strip.turn_start() - before.last_turn_start();
        let is_jump = apart(before.regular_skews.step, skew).abs() > CUT;
        if is_jump && strip.origin == StripOrigin::Map {
            jumps.push(Jump {
                first: strip.first,
                place: *place,
                skew,
            });
        }
    }
    jumps
}

fn is_like(one: &Jump, other: &Jump) -> bool {
    apart(one.skew, other.skew).abs() <= CUT
}

/// Pairs of jumps that are alike and exactly a row apart, as their numbers; none if the ends of bands inside of rows show
/// as well, or if there are too few.
fn whole_rows(jumps: &[Jump], pattern: &Pattern) -> Vec<(usize, usize)> {
    let at: BTreeMap<CountedTrack, usize> = (0..)
        .zip(jumps)
        .map(|(number, jump)| (jump.place, number))
        .collect();
    let mut rows = Vec::new();
    let mut with_bands = 0;
    for (number, jump) in jumps.iter().enumerate() {
        let Some(&next) = at.get(&jump.place.farther(pattern.row())) else {
            continue;
        };
        if !is_like(jump, &jumps[next]) {
            continue;
        }
        let ends_band = |inside: &Jump| {
            let tracks = inside.place.track - jump.place.track;
            tracks.is_multiple_of(u64::from(pattern.band))
        };
        with_bands += usize::from(jumps[number + 1..next].iter().any(ends_band));
        rows.push((number, next));
    }
    match rows.len() >= ROWS && with_bands * 10 <= rows.len() {
        true => rows,
        false => Vec::new(),
    }
}

/// Jumps with which rows begin: those of whole rows, and others that are like the nearest of these, and where whole rows
/// lead to, give or take few tracks.
fn shown(jumps: &[Jump], whole: &[(usize, usize)], pattern: &Pattern) -> Vec<Jump> {
    let mut sure = vec![false; jumps.len()];
    for &(one, other) in whole {
        (sure[one], sure[other]) = (true, true);
    }
    let known: Vec<usize> = (0..jumps.len()).filter(|jump| sure[*jump]).collect();
    let is_start = |number: &usize| {
        let jump = &jumps[*number];
        if sure[*number] {
            return true;
        }
        let behind = known.partition_point(|known| known < number);
        let near = [behind.checked_sub(1), Some(behind)].into_iter().flatten();
        let near: Vec<&Jump> = near
            .filter_map(|place| known.get(place))
            .map(|known| &jumps[*known])
            .collect();
        let tracks = near
            .iter()
            .filter_map(|known| known.place.tracks_to(jump.place));
        near.iter().any(|known| is_like(known, jump))
            && tracks
                .min()
                .is_none_or(|tracks| is_whole(tracks, pattern) && tracks > few(pattern.band))
    };
    (0..jumps.len())
        .filter(is_start)
        .map(|number| jumps[number])
        .collect()
}

/// Whether so many tracks are whole rows, give or take few.
fn is_whole(tracks: u64, pattern: &Pattern) -> bool {
    let rest = tracks % pattern.row();
    rest.min(pattern.row() - rest) <= few(pattern.band)
}

/// Whether a row may begin at a place: one that is shown not far from there is where whole rows lead to.
fn agrees(place: CountedTrack, shown: &[CountedTrack], pattern: &Pattern) -> bool {
    let behind = shown.partition_point(|shown| *shown < place);
    let near = [behind.checked_sub(1), Some(behind)].into_iter().flatten();
    let tracks = near
        .filter_map(|near| shown.get(near)?.tracks_to(place))
        .min();
    tracks.is_none_or(|tracks| {
        let is_far = tracks > pattern.row() + pattern.row() / 2;
        tracks == 0 || is_far || (tracks > few(pattern.band) && is_whole(tracks, pattern))
    })
}
