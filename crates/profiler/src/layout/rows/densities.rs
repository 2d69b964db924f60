//! Rows of a serpentine whose surfaces differ in density: the numbers of sectors show its bands.
//!
//! ```text
//!   sectors    633 633 ... 633 | 601 ... 601 | 622 ... 622 | 633 ...
//!              surface 0       | surface 1   | surface 2   | next row
//! ```
//!
//! Bands may have any length, and other lengths in each row and zone. From zone to zone all surfaces
//! change alike, so that their proportions tell which surface comes after blocks of which nothing is known.

use block::Lba;
use drive::Angle;

use super::super::guess::MapGap;
use super::super::strip::{CUT, Strip};
use super::sector_runs::{SectorRun, bands_of, is_period, is_regular, runs, taken};
use super::{Laid, Layer, MOST_LEFT_OUT, RowStarts, mean};
use crate::clock::apart;
use crate::findings::Pattern;

/// In which order surfaces of different density follow each other.
#[derive(Clone, Debug)]
pub(super) struct DensityCycle {
    runs: Vec<SectorRun>,
    /// The sectors of each surface in one of the zones, in the order of a row.
    row: Vec<u32>,
}

/// A band, or the part of it that is known.
struct KnownBand {
    strips: Vec<Strip>,
    surface: u32,
    /// Whether its first and its last track are known.
    begins: Known,
    ends: Known,
    /// Whether the band before it ends where it begins.
    follows: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Yes,
    No,
}

/// Sectors of a surface are this near to what the proportions of another zone say. A choice: both are
/// rounded to whole sectors.
const ALIKE: f64 = 2.0;

/// Of two surfaces that fit as well to this share of their sectors, a zone begins with the first of a row.
/// A choice: one sector of five hundred.
const AS_WELL: f64 = 0.002;

/// The order of the surfaces, if the numbers of sectors show it; `row` is the first block of a row.
pub(super) fn cycle(strips: &[Strip], pattern: &Pattern, row: Lba) -> Option<DensityCycle> {
    let runs = runs(strips);
    let near = runs.iter().rposition(|run| run.strips[0].first <= row)?;
    for period in 2..=pattern.surfaces as usize {
        if !is_period(&runs, period) {
            continue;
        }
        let windows = (0..runs.len()).filter(|from| is_regular(&runs[*from..], period, 2));
        let from = 1 + windows.min_by_key(|from| from.abs_diff(near))?;
        let cycle = &runs[from..from + period];
        let bands = bands_of(cycle);
        if bands.iter().sum::<u32>() != pattern.surfaces {
            continue;
        }
        // The row begins with the band whose first track is the nearest.
        let counted = (near + period - from % period) % period;
        let alike = |run: &usize| cycle[*run].sectors == runs[near].sectors;
        // Another zone may have come in between.
        let run = Some(counted).filter(alike);
        let run = run.or_else(|| (0..period).find(alike))?;
        let passed = row.0 - runs[near].strips[0].first.0;
        let near = runs[near].strips.iter();
        let blocks: u64 = near.map(|strip| strip.end().0 - strip.first.0).sum();
        let of_run = u64::from(bands[run]);
        let band = (passed * of_run * 2 + blocks) / (2 * blocks);
        let first = bands[..run].iter().sum::<u32>() as usize + band as usize;
        let order = cycle.iter().zip(&bands);
        let mut row: Vec<u32> = order
            .flat_map(|(run, bands)| std::iter::repeat_n(run.sectors, *bands as usize))
            .collect();
        let surfaces = row.len();
        row.rotate_left(first % surfaces);
        return Some(DensityCycle { runs, row });
    }
    None
}

/// Sectors of the surfaces of a zone: those that were seen, and how many times as many as in the row that
/// is compared.
struct ZoneSectors {
    seen: Vec<Option<u32>>,
    scale: f64,
}

impl DensityCycle {
    /// Whether a surface may have so many sectors in a zone.
    fn fits(&self, zone: &ZoneSectors, surface: usize, sectors: u32) -> bool {
        let surface = surface % self.row.len();
        let expected = f64::from(self.row[surface]) * zone.scale;
        zone.seen[surface].map_or((expected - f64::from(sectors)).abs() <= ALIKE, |seen| {
            seen == sectors
        })
    }

    /// How many surfaces a run has that begins with one of them, if the run behind it tells: it has another
    /// number of sectors, as the first surface behind has.
    fn surfaces_of(&self, zone: &ZoneSectors, index: usize, surface: usize) -> Option<usize> {
        let next = self.runs.get(index + 1).filter(|next| next.follows)?;
        let run = &self.runs[index];
        let more = 1..self.row.len();
        let more = more
            .take_while(|more| *more == 1 || self.fits(zone, surface + more - 1, run.sectors))
            .filter(|more| self.fits(zone, surface + more, next.sectors));
        // Of several that fit, bands as long as the next one.
        let longer = |more: &usize| {
            let [one, other] = [run.tracks / *more as u32, next.tracks].map(f64::from);
            one.max(other) / one.min(other).max(1.0)
        };
        more.min_by(|a, b| longer(a).total_cmp(&longer(b)))
    }

    /// The first surface of each run, and how many it has.
    fn places(&self) -> Vec<(usize, usize)> {
        let surfaces = self.row.len();
        let mut places: Vec<(usize, usize)> = Vec::new();
        let mut zone = self.zone(1.0);
        for (index, run) in self.runs.iter().enumerate() {
            let next = places
                .last()
                .map(|(first, number)| (first + number) % surfaces);
            let next = next.filter(|next| run.follows && self.fits(&zone, *next, run.sectors));
            let first = next.unwrap_or_else(|| {
                let (first, scale) = self.nearest(index, &zone);
                zone = self.zone(scale);
                first
            });
            let number = self.surfaces_of(&zone, index, first).unwrap_or_else(|| {
                // As in the rows before.
                let alike = |at: &usize| zone.seen[(first + at) % surfaces] == Some(run.sectors);
                (0..surfaces).take_while(alike).count().max(1)
            });
            for surface in first..first + number {
                zone.seen[surface % surfaces] = Some(run.sectors);
            }
            places.push((first, number));
        }
        places
    }

    fn zone(&self, scale: f64) -> ZoneSectors {
        ZoneSectors {
            seen: vec![None; self.row.len()],
            scale,
        }
    }

    /// The surface with which the runs from one on go on best, and how many times as many sectors they have.
    /// `before` is the zone before, to which a single run may belong.
    fn nearest(&self, index: usize, before: &ZoneSectors) -> (usize, f64) {
        let sectors = self.runs[index].sectors;
        let alone = self.runs.get(index + 1).is_none_or(|next| !next.follows);
        let seen = before.seen.iter().position(|seen| *seen == Some(sectors));
        if let Some(seen) = seen.filter(|_| alone) {
            return (seen, before.scale);
        }
        let off: Vec<(f64, f64)> = (0..self.row.len())
            .map(|first| self.off(index, first))
            .collect();
        let best = (0..off.len()).min_by(|&a, &b| off[a].0.total_cmp(&off[b].0));
        let best = best.unwrap_or(0);
        // Zones begin with a row.
        let first = match off[0].0 <= off[best].0 + AS_WELL {
            true => 0,
            false => best,
        };
        (first, off[first].1)
    }

    /// How far the runs of a row from one on are off, if the first is this surface: runs that do not fit,
    /// and the mean share of their sectors. The second figure is the scale.
    fn off(&self, index: usize, first: usize) -> (f64, f64) {
        let surfaces = self.row.len();
        let scale = f64::from(self.runs[index].sectors) / f64::from(self.row[first]);
        let zone = self.zone(scale);
        let (mut at, mut surface) = (index, first);
        let (mut misfits, mut off, mut sums) = (0.0, 0.0, (0.0, 0.0));
        while surface < first + surfaces {
            let run = f64::from(self.runs[at].sectors);
            let expected = f64::from(self.row[surface % surfaces]);
            off += (run / (expected * scale) - 1.0).abs();
            sums = (sums.0 + run, sums.1 + expected);
            if self.runs.get(at + 1).is_none_or(|next| !next.follows) {
                break;
            }
            let number = self.surfaces_of(&zone, at, surface);
            misfits += f64::from(u8::from(number.is_none()));
            (at, surface) = (at + 1, surface + number.unwrap_or(1));
        }
        let runs = (at - index).max(1) as f64;
        (misfits + off / runs, sums.0 / sums.1)
    }

    /// The bands, in the order of their blocks.
    fn bands(&self) -> Vec<KnownBand> {
        let mut bands = Vec::new();
        for (index, (run, place)) in self.runs.iter().zip(self.places()).enumerate() {
            let ends = self.runs.get(index + 1).is_some_and(|next| next.follows);
            let (first, number) = (place.0, place.1 as u32);
            let mut rest = run.strips.clone();
            for band in 0..number {
                let surface = (first as u32 + band) % self.row.len() as u32;
                let left = rest.iter().map(|strip| strip.tracks).sum::<u32>();
                let last: Option<&KnownBand> = bands.last();
                let last = last.filter(|last| last.surface < surface && last.begins == Known::Yes);
                let tracks = match last.filter(|_| run.follows) {
                    _ if band + 1 == number => left,
                    Some(last) => last.places().1.min(left),
                    None => left / (number - band),
                };
                let strips = taken(&mut rest, tracks);
                if strips.is_empty() {
                    continue;
                }
                bands.push(KnownBand {
                    strips,
                    surface,
                    begins: match band > 0 || run.follows {
                        true => Known::Yes,
                        false => Known::No,
                    },
                    ends: match band + 1 < number || ends {
                        true => Known::Yes,
                        false => Known::No,
                    },
                    follows: band > 0 || run.follows,
                });
            }
        }
        let first = bands.first_mut();
        if let Some(first) = first.filter(|band| band.strips[0].first == Lba(0)) {
            first.begins = Known::Yes;
        }
        bands
    }
}

impl KnownBand {
    /// Each strip's first track, counted from the first known one with those that hold no blocks; and the
    /// number of all.
    fn places(&self) -> (Vec<u32>, u32) {
        let (mut places, mut next) = (Vec::new(), 0);
        let mut before: Option<&Strip> = None;
        for strip in &self.strips {
            next += before.map_or(0, |before| left_out(before, strip));
            places.push(next);
            next += strip.tracks;
            before = Some(strip);
        }
        (places, next)
    }
}

/// How many tracks hold no blocks between two strips of a band, if the skew is that over them.
fn left_out(before: &Strip, strip: &Strip) -> u32 {
    let step = before.regular_skews.step;
    let skew = strip.start - before.last_start();
    let off = |tracks: u64| apart(step.times(tracks + 1), skew).abs();
    let fits = |tracks: &u32| off(u64::from(*tracks)) < CUT;
    match off(0) < CUT || step == Angle::ZERO {
        true => 0,
        false => (1..=MOST_LEFT_OUT).find(fits).unwrap_or(0),
    }
}

/// The tracks of all bands of each band's row.
fn lengths(bands: &[KnownBand]) -> Vec<u32> {
    let mut lengths = vec![0; bands.len()];
    let mut from = 0;
    let mut usual = 0;
    for end in 1..=bands.len() {
        let goes_on = bands.get(end);
        let goes_on =
            goes_on.is_some_and(|band| band.follows && band.surface > bands[end - 1].surface);
        if goes_on {
            continue;
        }
        let row = &bands[from..end];
        let whole = row
            .iter()
            .filter(|band| (band.begins, band.ends) == (Known::Yes, Known::Yes));
        let longest = whole.map(|band| band.places().1).max();
        let part = row.iter().map(|band| band.places().1).max().unwrap_or(0);
        let length = longest.unwrap_or(usual).max(part);
        lengths[from..end].fill(length);
        usual = longest.unwrap_or(usual);
        from = end;
    }
    lengths
}

/// All blocks of a drive of `blocks` blocks, laid out by the densities of its surfaces.
pub(super) fn lay(
    cycle: &DensityCycle,
    strips: &[Strip],
    pattern: Pattern,
    blocks: u64,
) -> Vec<Laid> {
    let bands = cycle.bands();
    let lengths = lengths(&bands);
    let rows = RowStarts::default();
    let mut layer = Layer {
        pattern,
        rows: &rows,
        laid: Vec::new(),
        at: super::At::default(),
        band: pattern.band,
    };
    let mut before: Option<&Strip> = None;
    let mut index = 0;
    for (band, &length) in bands.iter().zip(&lengths) {
        let (places, all) = band.places();
        let missing = match (band.begins, band.ends) {
            (Known::No, Known::Yes) => length - all,
            _ => 0,
        };
        let first = &band.strips[0];
        let from = before.map_or(Lba(0), Strip::end);
        if first.first > from {
            let mut gap = MapGap::between(from, first.first, before.unwrap_or(first), first);
            let behind = strips[..index].iter().rev();
            let ahead = mean(strips[index..].iter(), pattern.row());
            gap.mean = match index {
                0 => ahead,
                _ => u64::midpoint(mean(behind, pattern.row()), ahead),
            };
            let begin = u64::from(band.surface) * u64::from(length) + u64::from(missing);
            layer.guess(&gap, length, Some(begin));
        }
        layer.begin_band(band.surface, length);
        for (strip, place) in band.strips.iter().zip(places) {
            layer.at.within = missing + place;
            layer.push(*strip);
            if let Some(laid) = layer.laid.last_mut() {
                laid.band_tracks = length;
            }
        }
        layer.at.within = length;
        before = band.strips.last();
        let end = before.map_or(Lba(0), Strip::end);
        index += strips[index..]
            .iter()
            .take_while(|strip| strip.end() <= end)
            .count();
    }
    if let (Some(last), Some(&length)) = (before, lengths.last()) {
        let mut gap = MapGap::between(last.end(), Lba(blocks), last, last);
        gap.mean = mean(strips.iter().rev(), pattern.row());
        layer.guess(&gap, length, None);
    }
    layer.laid
}

impl Layer<'_> {
    /// Goes to the band of a surface, in the same row if there is room for it.
    fn begin_band(&mut self, surface: u32, length: u32) {
        let is_begun = self.at.within > 0 && self.at.within < self.band;
        let is_later = surface > self.at.band
            || (surface == self.at.band && (is_begun || self.at.within == 0));
        if !is_later && !self.laid.is_empty() {
            self.next_row();
        }
        (self.at.band, self.band) = (surface, length);
    }

    /// Puts guessed tracks where nothing is known, in bands of so many. `begin` is the place in its row of
    /// the track behind them.
    fn guess(&mut self, gap: &MapGap<'_>, length: u32, begin: Option<u64>) {
        if gap.blocks == 0 {
            return;
        }
        self.pattern.band = length;
        let row = self.pattern.row();
        let within = self.at.within.min(length);
        let done = u64::from(self.at.band) * u64::from(length) + u64::from(within);
        let tracks = match begin {
            Some(begin) => gap.tracks(row, (begin % row + row - done % row) % row),
            None => gap.tracks(1, 0),
        };
        (self.at.within, self.band) = (within, length);
        for strip in gap.filled(tracks) {
            self.count(strip);
        }
    }
}
