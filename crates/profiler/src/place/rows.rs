//! Which row, surface and cylinder each track of a map is on, by the pattern that was recognised.

use block::Lba;

use super::guess::Gap;
use super::pattern::Pattern;
use super::strip::{Origin, Strip};
use crate::clock::apart;

/// Tracks of one band.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Laid {
    pub strip: Strip,
    /// The row, from the drive's first.
    pub row: u32,
    /// Which band of the row.
    pub band: u32,
    /// The how-manieth track of the band the first one is.
    pub within: u32,
}

/// Where a row begins, known from timing.
pub(super) type Anchor = Lba;

/// Where the next track is.
#[derive(Clone, Copy, Debug, Default)]
struct At {
    row: u32,
    band: u32,
    within: u32,
}

/// Lays tracks out one after the other.
pub(super) struct Layer<'a> {
    pattern: Pattern,
    anchors: &'a [Anchor],
    laid: Vec<Laid>,
    /// Where the next track is if nothing irregular comes.
    at: At,
    /// Tracks of the row's bands.
    band: u32,
    /// Whether the last band ended by counting only.
    counted: bool,
}

/// How far a skew may be off the regular one, in revolutions, between tracks of one band: a few
/// slipped sectors. A choice.
const CUT: f64 = 0.02;

/// All blocks of a drive of `blocks` blocks, laid out.
pub(super) fn lay(
    strips: &[Strip],
    pattern: Pattern,
    anchors: &[Anchor],
    blocks: u64,
) -> Vec<Laid> {
    let mut layer = Layer {
        pattern,
        anchors,
        laid: Vec::new(),
        at: At::default(),
        band: pattern.band,
        counted: false,
    };
    let Some((first, last)) = strips.first().zip(strips.last()) else {
        return Vec::new();
    };
    layer.gap(Lba(0), first.first.0, first, first);
    for (index, strip) in strips.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| &strips[before]);
        if let Some(before) = before {
            let end = before.end();
            layer.gap(end, strip.first.0 - end.0, before, strip);
        }
        if pattern.band == 1 {
            layer.cylinders(&strips[index..]);
        } else {
            layer.bands(&strips[index..], before);
        }
    }
    let end = last.end();
    layer.gap(end, blocks.saturating_sub(end.0), last, last);
    layer.laid
}

impl Layer<'_> {
    fn push(&mut self, strip: Strip) {
        let At { row, band, within } = self.at;
        self.laid.push(Laid {
            strip,
            row,
            band,
            within,
        });
        self.at.within += strip.tracks;
    }

    fn next_band(&mut self) {
        self.at.within = 0;
        self.at.band += 1;
        if self.at.band >= self.pattern.surfaces {
            self.next_row();
        }
    }

    fn next_row(&mut self) {
        self.at = At {
            row: self.at.row + 1,
            ..At::default()
        };
        self.band = self.pattern.band;
    }

    /// Puts guessed tracks where nothing is known.
    fn gap(&mut self, first: Lba, blocks: u64, before: &Strip, after: &Strip) {
        if blocks == 0 {
            return;
        }
        let (row, band) = (self.pattern.row(), u64::from(self.pattern.band));
        let done = u64::from(self.at.band) * band + u64::from(self.at.within);
        let gap = Gap {
            first,
            blocks,
            before,
            after,
            rest: (row - done.min(row)) % row,
            row,
        };
        for strip in gap.filled() {
            self.count(strip);
        }
    }

    /// Lays tracks out by counting alone.
    fn count(&mut self, mut strip: Strip) {
        while strip.tracks > 0 {
            if self.at.within >= self.band {
                self.next_band();
                self.counted = true;
            }
            let room = self.band - self.at.within;
            let taken = strip.split(room.min(strip.tracks));
            self.push(taken);
        }
    }

    /// Lays the first of some strips out, whose tracks are in bands of several.
    fn bands(&mut self, strips: &[Strip], before: Option<&Strip>) {
        let strip = &strips[0];
        if strip.origin == Origin::AfterGap {
            self.resume(strips);
        } else if let Some(before) = before {
            let skew = apart(before.last_start(), strip.start);
            let off = apart(before.usual.step, strip.start - before.last_start());
            let cut = strip.sectors != before.sectors || off.abs() > CUT || skew == 0.0;
            if cut {
                self.cut();
            }
        }
        self.count(*strip);
    }

    /// A band ends here: the map shows it.
    fn cut(&mut self) {
        let few = (self.pattern.band / 16).max(1);
        let at = self.at;
        let fresh = self.counted && at.within <= few && !self.laid.is_empty();
        self.counted = false;
        if at.within == 0 || at.within == self.band {
            return;
        }
        if fresh {
            // Counting ended the band before too early: these tracks are its last ones.
            let laid = &mut self.laid;
            let moved = laid
                .iter()
                .rev()
                .take_while(|l| l.row == at.row && l.band == at.band);
            let moved = moved.count();
            let from = laid.len() - moved;
            if let Some(last) = from.checked_sub(1).map(|last| laid[last]) {
                let mut within = last.within + last.strip.tracks;
                for track in &mut laid[from..] {
                    (track.row, track.band, track.within) = (last.row, last.band, within);
                    within += track.strip.tracks;
                }
            }
            self.at.within = 0;
            return;
        }
        if at.band == 0 {
            self.band = at.within;
        }
        let shorter = self.band;
        self.next_band();
        if self.at.band > 0 {
            self.band = shorter;
        }
    }

    /// Goes on after a gap, in a new row or, where an anchor tells, inside one.
    fn resume(&mut self, strips: &[Strip]) {
        if self.at.band > 0 || self.at.within > 0 {
            self.next_row();
        }
        let first = strips[0].first;
        let after = self.anchors.partition_point(|anchor| *anchor < first);
        let Some(anchor) = self.anchors.get(after) else {
            return;
        };
        let mut tracks = 0;
        for strip in strips {
            if strip.end() > *anchor {
                let into = anchor.0.saturating_sub(strip.first.0) / u64::from(strip.blocks);
                tracks += into;
                break;
            }
            tracks += u64::from(strip.tracks);
        }
        let (row, band) = (self.pattern.row(), u64::from(self.pattern.band));
        let done = (row - tracks % row) % row;
        self.at.band = (done / band) as u32;
        self.at.within = (done % band) as u32;
    }

    /// Lays the first of some strips out, whose tracks follow each other cylinder by cylinder.
    fn cylinders(&mut self, strips: &[Strip]) {
        let mut strip = strips[0];
        while strip.tracks > 0 {
            let rest = strip;
            let track = strip.split(1);
            self.turn(&track, &rest, strips);
            self.push(track);
        }
    }

    /// Finds the surface of the next track from the skew that leads to it.
    fn turn(&mut self, track: &Strip, rest: &Strip, strips: &[Strip]) {
        let surfaces = self.pattern.surfaces;
        let Some(last) = self.laid.last().map(|laid| laid.strip) else {
            self.at.band = phase(rest, strips, surfaces);
            return;
        };
        let head = self.at.band;
        let skew = track.start - last.start;
        let known = track.origin == Origin::Map && last.origin != Origin::Guess;
        match steps(head, skew, track, surfaces).filter(|_| known) {
            Some(steps) => {
                for _ in 0..steps {
                    self.next_band();
                }
            }
            None => {
                let phase = phase(rest, strips, surfaces);
                self.next_row();
                self.at.band = phase;
            }
        }
        self.at.within = 0;
    }
}

/// Over how many tracks, in the order of a cylinder's surfaces, a skew leads: one, or more where
/// tracks were slipped. None if it fits none.
fn steps(head: u32, skew: drive::Angle, track: &Strip, surfaces: u32) -> Option<u32> {
    let (step, jump) = (track.usual.step, track.usual.jump);
    let expected = |steps: u32| {
        if surfaces == 1 {
            step.times(u64::from(steps))
        } else if head + steps < surfaces {
            step.times(u64::from(steps))
        } else {
            step.times(u64::from(steps - 1)) + jump
        }
    };
    let off = |steps: u32| apart(expected(steps), skew).abs();
    let exact = 1.5 / f64::from(track.sectors);
    let clear = (apart(step, jump).abs() * 0.4).min(CUT);
    if off(1) < exact.max(clear) {
        return Some(1);
    }
    (2..surfaces.max(2)).find(|&steps| off(steps) < exact)
}

/// The surface of the first track of what is left of some strips: where the next jump comes tells.
fn phase(rest: &Strip, strips: &[Strip], surfaces: u32) -> u32 {
    if surfaces == 1 {
        return 0;
    }
    let is_jump = |strip: &Strip, skew: drive::Angle| {
        let usual = strip.usual;
        let to_jump = apart(usual.jump, skew).abs();
        to_jump < CUT && to_jump < apart(usual.step, skew).abs()
    };
    let mut count = 0;
    let mut before: Option<Strip> = None;
    for strip in std::iter::once(rest).chain(&strips[1..]) {
        let jumps = before.is_some_and(|before| is_jump(strip, strip.start - before.last_start()));
        if jumps || count >= 2 * surfaces {
            break;
        }
        if strip.tracks > 1 && is_jump(strip, strip.skew) {
            count += 1;
            break;
        }
        count += strip.tracks;
        before = Some(*strip);
    }
    if count >= 2 * surfaces {
        return 0;
    }
    (surfaces - count % surfaces) % surfaces
}
