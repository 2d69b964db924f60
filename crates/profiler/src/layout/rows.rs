//! Which row, surface and cylinder each track of a map is on, by the pattern that was recognised.

use block::Lba;
use drive::Angle;

use super::guess::MapGap;
use super::strip::{CUT, Strip, StripOrigin, is_cut, other_density};
use crate::clock::apart;
use crate::findings::Pattern;

mod densities;
mod jumps;
pub(super) mod sector_runs;

use densities::DensityCycle;
use jumps::RowStarts;

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
    /// Tracks of the band, with those at its end that hold no blocks, if more are known of than are laid
    /// out.
    pub band_tracks: u32,
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
    rows: &'a RowStarts,
    laid: Vec<Laid>,
    /// Where the next track is if nothing irregular comes.
    at: At,
    /// Tracks of the row's bands.
    band: u32,
}

/// No more tracks of a band in a row are without blocks. A choice: more are as likely another skew.
const MOST_LEFT_OUT: u32 = 6;

/// Whether the numbers of sectors show where bands end, so that one row's first block suffices.
pub(super) fn show_bands(strips: &[Strip], pattern: &Pattern, row: Anchor) -> bool {
    densities(strips, pattern, &[row]).is_some()
}

fn densities(strips: &[Strip], pattern: &Pattern, anchors: &[Anchor]) -> Option<DensityCycle> {
    let row = *anchors.first()?;
    match pattern.band {
        1 => None,
        _ => densities::cycle(strips, pattern, row),
    }
}

/// All blocks of a drive of `blocks` blocks, laid out.
pub(super) fn lay(
    strips: &[Strip],
    pattern: Pattern,
    anchors: &[Anchor],
    blocks: u64,
) -> Vec<Laid> {
    if let Some(cycle) = densities(strips, &pattern, anchors) {
        return densities::lay(&cycle, strips, pattern, blocks);
    }
    let rows = match pattern.band {
        1 => RowStarts::default(),
        _ => jumps::starts(strips, &pattern, anchors),
    };
    let mut layer = Layer {
        pattern,
        rows: &rows,
        laid: Vec::new(),
        at: At::default(),
        band: pattern.band,
    };
    let Some((first, last)) = strips.first().zip(strips.last()) else {
        return Vec::new();
    };
    layer.gap(&MapGap::between(Lba(0), first.first, first, first), strips);
    for (index, strip) in strips.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| &strips[before]);
        if let Some(before) = before {
            let mut gap = MapGap::between(before.end(), strip.first, before, strip);
            if gap.blocks > 0 {
                let row = pattern.row();
                let behind = mean(strips[..index].iter().rev(), row);
                gap.mean = u64::midpoint(behind, mean(strips[index..].iter(), row));
            }
            layer.gap(&gap, &strips[index..]);
        }
        if pattern.band == 1 {
            layer.cylinders(&strips[index..]);
        } else {
            layer.bands(&strips[index..], before);
        }
    }
    let mut gap = MapGap::between(last.end(), Lba(blocks), last, last);
    gap.mean = mean(strips.iter().rev(), pattern.row());
    layer.gap(&gap, &[]);
    layer.laid
}

/// Blocks of a track, in the mean of the first so many tracks of some strips.
fn mean<'a>(strips: impl Iterator<Item = &'a Strip>, tracks: u64) -> u64 {
    let (mut blocks, mut counted) = (0, 0);
    for strip in strips {
        let taken = u64::from(strip.tracks).min(tracks - counted);
        blocks += taken * u64::from(strip.blocks);
        counted += taken;
        if counted == tracks {
            break;
        }
    }
    blocks / counted.max(1)
}

impl Layer<'_> {
    fn push(&mut self, strip: Strip) {
        let At { row, band, within } = self.at;
        self.laid.push(Laid {
            strip,
            row,
            band,
            within,
            band_tracks: 0,
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

    /// Puts guessed tracks where nothing is known; `strips` are those that follow, if any do.
    fn gap(&mut self, gap: &MapGap<'_>, strips: &[Strip]) {
        if gap.blocks == 0 {
            return;
        }
        let (row, band) = (self.pattern.row(), u64::from(self.pattern.band));
        let done = u64::from(self.at.band) * band + u64::from(self.at.within);
        let tracks = match self.begin(strips) {
            Some(begin) => gap.tracks(row, (begin + row - done % row) % row),
            None => gap.tracks(1, 0),
        };
        for strip in gap.filled(tracks) {
            self.count(strip);
        }
    }

    /// The how-manieth track of its row the first of some strips is, if that is known.
    fn begin(&self, strips: &[Strip]) -> Option<u64> {
        let first = strips.first()?;
        let row = self.pattern.row();
        if self.pattern.band == 1 {
            return Some(u64::from(phase(first, strips, self.pattern.surfaces)));
        }
        let starts = &self.rows.starts;
        let after = starts.partition_point(|start| *start < first.first);
        let anchor = *starts.get(after)?;
        let mut tracks = 0;
        for strip in strips {
            if strip.end() > anchor {
                tracks += anchor.0.saturating_sub(strip.first.0) / u64::from(strip.blocks);
                // Farther away something irregular may have come in between.
                return (tracks <= 2 * row).then(|| (row - tracks % row) % row);
            }
            tracks += u64::from(strip.tracks);
        }
        None
    }

    /// Lays tracks out by counting alone.
    fn count(&mut self, mut strip: Strip) {
        while strip.tracks > 0 {
            if self.at.within >= self.band {
                self.next_band();
            }
            let room = self.band - self.at.within;
            let taken = strip.split(room.min(strip.tracks));
            self.push(taken);
        }
    }

    /// Lays the first of some strips out, whose tracks are in bands of several.
    fn bands(&mut self, strips: &[Strip], before: Option<&Strip>) {
        let mut strip = strips[0];
        if before.is_none() && self.laid.is_empty() {
            let begin = self.begin(strips).unwrap_or(0);
            // The map may have a track too many in the first row.
            let is_row = self.pattern.row() - begin <= few(self.pattern.band);
            let begin = if is_row { 0 } else { begin };
            self.at.band = (begin / u64::from(self.pattern.band)) as u32;
            self.at.within = (begin % u64::from(self.pattern.band)) as u32;
        } else if let Some(before) = before.filter(|before| is_cut(before, &strip))
            && !self.rows.is_shown(strip.first)
        {
            let tracks = self.left_out(before, &strip);
            match tracks.filter(|_| !self.rows.has_all_tracks(strip.first)) {
                Some(tracks) => self.at.within += tracks,
                None if self.rows.are_shown() => (),
                None => self.cut(strips),
            }
        }
        if strip.tracks > 1 && apart(strip.regular_skews.step, strip.skew).abs() > CUT {
            // Bands of one track: their skew is that to the next band.
            while strip.tracks > 1 {
                let track = strip.split(1);
                self.count(track);
                self.cut(strips);
            }
        }
        // Where skews or times say so, a row begins.
        let starts = &self.rows.starts;
        let from = starts.partition_point(|start| *start < strip.first);
        let end = strip.end();
        for start in starts[from..].iter().take_while(|start| **start < end) {
            let before = (start.0 - strip.first.0) / u64::from(strip.blocks);
            if before > 0 {
                let part = strip.split(before as u32);
                self.count(part);
            }
            self.begin_row();
        }
        self.count(strip);
    }

    /// A row begins here.
    fn begin_row(&mut self) {
        let At { band, within, .. } = self.at;
        let full = band + 1 == self.pattern.surfaces && within == self.band;
        if full || (band, within) == (0, 0) {
            return;
        }
        let is_over = band == 0 && u64::from(within) <= few(self.pattern.band);
        match is_over && self.at.row > 0 {
            // The map has some tracks too many.
            true => self.take_back(),
            false => self.next_row(),
        }
    }

    /// How many tracks of a band hold no blocks between two strips, if the skew is that over them.
    fn left_out(&self, before: &Strip, strip: &Strip) -> Option<u32> {
        let skew = strip.start - before.last_start();
        let step = before.regular_skews.step;
        // The last of what holds no block may be the beginning of the track.
        let late = Angle::fraction(1, u64::from(strip.sectors)).times(u64::from(strip.spare()));
        let fits = |tracks: &u32| {
            let expected = step.times(u64::from(*tracks) + 1);
            [expected, expected + late]
                .iter()
                .any(|expected| apart(*expected, skew).abs() < CUT)
                && self.at.within + tracks < self.band
        };
        let inside = self.at.within > 0 && !other_density(before.sectors, strip.sectors);
        (1..=MOST_LEFT_OUT).find(fits).filter(|_| inside)
    }

    /// A band ends here: the map shows it.
    fn cut(&mut self, strips: &[Strip]) {
        let at = self.at;
        let fresh = u64::from(at.within) <= few(self.pattern.band) && !self.laid.is_empty();
        if at.within == 0 || at.within == self.band {
            return;
        }
        if fresh {
            self.take_back();
            return;
        }
        if at.band == 0 && ends_after(strips, at.within, self.pattern.band) {
            self.band = at.within;
        }
        let shorter = self.band;
        self.next_band();
        if self.at.band > 0 {
            self.band = shorter;
        }
    }

    /// Counting, or a track of another density, ended the band before too early: the tracks of this one are its last
    /// ones.
    fn take_back(&mut self) {
        let at = self.at;
        let laid = &mut self.laid;
        let moved = laid
            .iter()
            .rev()
            .take_while(|l| l.row == at.row && l.band == at.band);
        let from = laid.len() - moved.count();
        if let Some(last) = from.checked_sub(1).map(|last| laid[last]) {
            let mut within = last.within + last.strip.tracks;
            for track in &mut laid[from..] {
                (track.row, track.band, track.within) = (last.row, last.band, within);
                within += track.strip.tracks;
            }
        }
        self.at.within = 0;
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
        let skew = track.turn_start() - last.turn_start();
        let known = track.origin == StripOrigin::Map && last.origin != StripOrigin::Guess;
        if other_density(track.sectors, last.sectors) {
            // Zones begin with a cylinder.
            self.next_row();
        } else if known && follows(head, skew, track, surfaces) {
            self.next_band();
        } else {
            let phase = phase(rest, strips, surfaces);
            if phase <= head || !known || !skips(head, phase, skew, track) {
                self.next_row();
            }
            self.at.band = phase;
        }
        self.at.within = 0;
    }
}

/// So many tracks of a band of some are few: counting may be off by them. A choice.
fn few(band: u32) -> u64 {
    u64::from(band / 16).max(1)
}

/// Whether the band that the first of some strips begins ends where one of `short` tracks would,
/// and not where one of `long` tracks would.
fn ends_after(strips: &[Strip], short: u32, long: u32) -> bool {
    let mut tracks = strips[0].tracks;
    for pair in strips.windows(2) {
        if is_cut(&pair[0], &pair[1]) || tracks > 4 * long {
            break;
        }
        tracks += pair[1].tracks;
    }
    tracks.is_multiple_of(short) && !tracks.is_multiple_of(long)
}

/// Whether a skew is that from a surface's track to the next track.
fn follows(head: u32, skew: Angle, track: &Strip, surfaces: u32) -> bool {
    let (step, jump) = (track.regular_skews.step, track.regular_skews.jump);
    let last = surfaces > 1 && head + 1 == surfaces;
    let expected = if last { jump } else { step };
    let clear = (apart(step, jump).abs() * 0.4).min(CUT);
    apart(expected, skew).abs() < clear.max(1.5 / f64::from(track.sectors))
}

/// Whether a skew is that to a later track of the same cylinder: those between were slipped.
fn skips(head: u32, to: u32, skew: Angle, track: &Strip) -> bool {
    let expected = track.regular_skews.step.times(u64::from(to - head));
    apart(expected, skew).abs() < 1.5 / f64::from(track.sectors)
}

/// The surface of the first track of what is left of some strips: where the next jump comes tells.
fn phase(rest: &Strip, strips: &[Strip], surfaces: u32) -> u32 {
    if surfaces == 1 {
        return 0;
    }
    let is_jump = |strip: &Strip, skew: Angle| {
        let regular_skews = strip.regular_skews;
        let to_jump = apart(regular_skews.jump, skew).abs();
        to_jump < CUT && to_jump < apart(regular_skews.step, skew).abs()
    };
    let mut count = 0;
    let mut before: Option<Strip> = None;
    for strip in std::iter::once(rest).chain(&strips[1..]) {
        let jumps = before
            .is_some_and(|before| is_jump(strip, strip.turn_start() - before.last_turn_start()));
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
