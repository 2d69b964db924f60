//! Finds the tracks in the order of their blocks, with as few sightings as their order allows.
//!
//! ```text
//!   walk      every track: does its last block end it, where does the next begin?
//!   leap      |--------------------------->|------------------------------------------> ...
//!             if what came goes on, block n begins a track so many tracks ahead: n-1 and n are
//!             looked at. Twice as far each time it is right; when it is not, the first track that
//!             is not as predicted is searched by halving, and walked.
//! ```
//!
//! DIXtrac (Schindler, Ganger 1999) walks; DIG (Gim, Won 2010) leaps, and Wong (2019) warns of its
//! checks by multiples: no leap is believed without its landing on both sides of a boundary.

use block::Lba;
use drive::Angle;

use super::line::beginning;
use super::observer::{Care, Observer};
use super::reach::Reach;
use super::sector_line::{LineBegin, NoTrack};
use super::track_cycle::{History, Landings, TrackCycle};
use crate::clock::forward;
use crate::findings::MapPiece;
use crate::prober::Prober;

/// How an exploration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explored {
    /// Everything that was asked for is on the map.
    All,
    /// There are places where no track could be made out.
    Holes(u32),
    /// Too many such places: given up.
    NoTrack(NoTrack),
}

/// Places where no track could be made out, before an exploration is given up. A choice.
const HOLES: u32 = 64;

/// Blocks that are left out where no track could be made out: some tracks. A choice.
const HOLE: u64 = 5000;

/// Finds the tracks from the block `from` to the block before `to`, except what is known; the map
/// grows as it goes. The clock has been started. Where the map begins with a block that is not
/// the drive's first, the track that it is on is left out.
pub async fn explore(prober: &Prober, from: Lba, to: Lba) -> Explored {
    let mut holes = 0;
    let mut at = from;
    loop {
        at = prober.findings(|findings| findings.map.unknown_from(at));
        if at >= to {
            break;
        }
        let lost = match Explorer::begin(prober, at, to).await {
            Ok(mut explorer) => {
                let ended = explorer.run().await;
                at = explorer.first.max(at);
                ended.err()
            }
            Err(lost) => Some(lost),
        };
        if let Some(lost) = lost {
            holes += 1;
            at = Lba(at.0 + HOLE);
            if holes > HOLES {
                return Explored::NoTrack(lost);
            }
        }
    }
    match holes {
        0 => Explored::All,
        _ => Explored::Holes(holes),
    }
}

/// Ends of runs that are looked at when a track_cycle goes on after a track that was not of it: whether
/// it goes on at the right place. A choice: all of them for cylinders, which have two.
const FIRST_LANDINGS: u32 = 8;

/// Pieces of the map in which rows like the present one are looked for, to each side. A choice: some
/// rows in which no pattern was found, band by band.
const NEAR_PIECES: usize = 256;

/// An exploration on its way.
pub(super) struct Explorer {
    pub(super) prober: Prober,
    pub(super) observer: Observer,
    /// Where it is to end.
    pub(super) to: Lba,
    /// What is from here on is known, or does not exist.
    pub(super) limit: Lba,
    /// The present track: its first block, where it begins, and its turn's sectors.
    pub(super) first: Lba,
    pub(super) start: Angle,
    pub(super) sectors: u32,
    pub(super) history: History,
    /// What is expected to go on.
    pub(super) track_cycle: Option<TrackCycle>,
    /// How far to leap first.
    pub(super) stride: u64,
    /// How far off landings have been that were right, in revolutions: a mean.
    pub(super) spread: f64,
    /// Sectors and blocks of tracks that were last counted again.
    pub(super) recounted: Option<(u32, u32)>,
    /// The end of the track that was walked last, and its blocks.
    pub(super) walked: Option<(Lba, u32)>,
    /// How many more tracks were passed lately with a few missing blocks than others.
    pub(super) slipped: u64,
}

impl Explorer {
    /// Begins at a block that is not known.
    async fn begin(prober: &Prober, from: Lba, to: Lba) -> Result<Self, NoTrack> {
        let (limit, boundary) = prober.findings(|findings| {
            let pieces = &findings.map.pieces;
            let after = pieces.partition_point(|piece| piece.first <= from);
            let known = after.checked_sub(1).map(|before| pieces[before].end());
            let limit = pieces.get(after).map(|piece| piece.first);
            (limit, known == Some(from))
        });
        let limit = limit.unwrap_or(Lba(prober.device().blocks));
        let mut observer = Observer::new(prober);
        let is_first = from.0 == 0 || boundary;
        let begin = match is_first {
            true => LineBegin::Track(0),
            false => LineBegin::Anywhere,
        };
        let begun = beginning(&mut observer, from, limit, begin).await?;
        observer.resolve(begun.sectors);
        let mut explorer = Explorer {
            prober: prober.clone(),
            spread: observer.tolerance(begun.sectors),
            observer,
            to: to.min(limit),
            limit,
            first: from,
            start: begun.start,
            sectors: begun.sectors,
            history: History::default(),
            track_cycle: None,
            stride: 1,
            recounted: None,
            walked: None,
            slipped: 0,
        };
        if !is_first {
            let traced = explorer.trace(begun.sectors, None).await?;
            let next = Lba(from.0 + u64::from(traced.blocks));
            if next < limit {
                let begin = LineBegin::Track(0);
                let begun = beginning(&mut explorer.observer, next, limit, begin).await?;
                (explorer.start, explorer.sectors) = (begun.start, begun.sectors);
            }
            explorer.first = next;
        }
        Ok(explorer)
    }

    /// Leaps and walks to the end.
    async fn run(&mut self) -> Result<(), NoTrack> {
        while self.first < self.to {
            self.look_out();
            for candidate in self.candidates() {
                if self.leap(candidate).await? > 0 {
                    break;
                }
            }
            self.walk().await?;
        }
        Ok(())
    }

    /// Ends where another explorer has begun meanwhile.
    fn look_out(&mut self) {
        let next = self.prober.findings(|findings| {
            let pieces = &findings.map.pieces;
            let after = pieces.partition_point(|piece| piece.first < self.first);
            pieces.get(after).map(|piece| piece.first)
        });
        if let Some(next) = next {
            self.limit = self.limit.min(next);
            self.to = self.to.min(next);
        }
    }

    /// What may come next, the most likely first.
    fn candidates(&self) -> Vec<TrackCycle> {
        let mut candidates: Vec<TrackCycle> = Vec::new();
        candidates.extend(self.history.repeated(self.track_cycle.as_ref()));
        if let Some(track_cycle) = &self.track_cycle {
            let like = candidates
                .iter()
                .position(|other| other.is_like(track_cycle));
            match like {
                // Its turns are known better.
                Some(like) if self.observer.late() > 0.0 => candidates[like] = track_cycle.clone(),
                Some(_) => (),
                None => candidates.push(track_cycle.clone()),
            }
        }
        let last = self.history.last();
        if candidates.is_empty() && last.is_some_and(|run| run.kind.sectors != self.sectors) {
            candidates.extend(self.of_other_rows());
        }
        let steady = self.history.last().is_some_and(|run| run.tracks > 1);
        if candidates.is_empty() || steady {
            candidates.extend(self.history.going_on());
        }
        candidates.retain(|track_cycle| track_cycle.kind().sectors == self.sectors);
        // A leap over ends that do not show lands everywhere.
        let tolerance = self.observer.tolerance(self.sectors);
        candidates.retain(|cycle| cycle.runs.iter().all(|run| run.kind.shows_end(tolerance)));
        candidates
    }

    /// The pattern of other rows of the map whose surfaces differ in density, from the present track on, which is
    /// the first on its surface.
    fn of_other_rows(&self) -> Option<TrackCycle> {
        let late = forward(self.observer.late_at_most());
        let is_row = |piece: &&MapPiece| {
            let first = piece.cycle[0].sectors;
            let has_others = piece.cycle.iter().any(|band| band.sectors != first);
            let has_this = piece.cycle.iter().any(|band| band.sectors == self.sectors);
            piece.repeats > 1 && has_others && has_this
        };
        self.prober.findings(|findings| {
            let pieces = &findings.map.pieces;
            let here = pieces.partition_point(|piece| piece.first < self.first);
            let (before, behind) = pieces.split_at(here);
            let near = before.iter().rev().take(NEAR_PIECES);
            let near = near.chain(behind.iter().take(NEAR_PIECES)).filter(is_row);
            let nearest = near.min_by_key(|piece| piece.first.0.abs_diff(self.first.0))?;
            TrackCycle::of(nearest, late).resumed_at(self.sectors)
        })
    }

    /// Goes on by a track_cycle for as long as it is right; answers for how many tracks.
    async fn leap(&mut self, mut track_cycle: TrackCycle) -> Result<u64, NoTrack> {
        let (mut gone, mut landings) = (0, 0);
        loop {
            let most = self.room(&track_cycle);
            if most == 0 {
                break;
            }
            let enough = track_cycle.is_proven() && landings >= FIRST_LANDINGS;
            let places = if gone < track_cycle.cycle_tracks() && !enough {
                Landings::Runs
            } else {
                Landings::Spares
            };
            let nearest = track_cycle.until_landing(places).unwrap_or(most);
            let ahead = self.aligned(&track_cycle).min(nearest).min(most);
            landings += 1;
            if let Some(off) = self.landing(&track_cycle, (ahead, 0), Care::Sure).await? {
                self.take(&mut track_cycle, &Reach::all(ahead, off));
                gone += ahead;
                self.stride = (self.stride.max(ahead) * 2).min(self.limit.0);
                continue;
            }
            let reach = self.short(&track_cycle, ahead).await?;
            if reach.tracks > 0 {
                self.take(&mut track_cycle, &reach);
                gone += reach.tracks;
                self.stride = reach.tracks;
                continue;
            }
            let (right, off) = self.last_right(&track_cycle, ahead).await?;
            self.take(&mut track_cycle, &Reach::all(right, off));
            gone += right;
            let reach = self.short(&track_cycle, 1).await?;
            if reach.tracks == 0 {
                self.stride = (gone / 2).max(1);
                break;
            }
            self.take(&mut track_cycle, &reach);
            gone += 1;
            self.stride = right.max(1);
        }
        if gone > 0 {
            self.track_cycle = Some(track_cycle);
        }
        Ok(gone)
    }

    /// How far to leap: whole repetitions where that is not too far.
    fn aligned(&self, track_cycle: &TrackCycle) -> u64 {
        let cycle = track_cycle.cycle_tracks();
        if self.stride < cycle {
            return self.stride.max(1);
        }
        track_cycle.until_cycle() + self.stride / cycle * cycle
    }

    /// How many tracks ahead there may be a boundary that is to be found.
    pub(super) fn room(&self, track_cycle: &TrackCycle) -> u64 {
        let blocks = self.to.0 - self.first.0;
        let (mut fits, mut beyond) = (0, blocks + 1);
        while fits + 1 < beyond {
            let middle = fits + (beyond - fits) / 2;
            if track_cycle.ahead(middle).blocks < blocks {
                fits = middle;
            } else {
                beyond = middle;
            }
        }
        fits
    }

    /// How many tracks ahead the last boundary is where it should be, and how far it is off, if
    /// the one `wrong` tracks ahead is not.
    async fn last_right(
        &mut self,
        track_cycle: &TrackCycle,
        wrong: u64,
    ) -> Result<(u64, f64), NoTrack> {
        let mut beyond = wrong;
        for _ in 0..3 {
            let mut right = 0;
            while right + 1 < beyond {
                let middle = right + (beyond - right) / 2;
                match self.landing(track_cycle, (middle, 0), Care::Quick).await? {
                    Some(_) => right = middle,
                    None => beyond = middle,
                }
            }
            if right == 0 {
                break;
            }
            // A chance hit beyond a change of the pattern does not stand the look at both sides.
            if let Some(off) = self.landing(track_cycle, (right, 0), Care::Sure).await? {
                return Ok((right, off));
            }
            beyond = right;
        }
        Ok((0, 0.0))
    }

    /// Believes in the next tracks.
    fn take(&mut self, cycle: &mut TrackCycle, reach: &Reach) {
        if reach.tracks == 0 {
            return;
        }
        let (tracks, seen) = (reach.tracks, reach.off);
        let ahead = cycle.ahead(tracks);
        let off = self.believed(seen, cycle.growth(tracks));
        if self.observer.late() == 0.0 || !cycle.refine_run(tracks, seen) {
            cycle.refine(tracks, off);
        }
        let end = self.start + ahead.turn + forward(off);
        let mut passed = 0;
        for short in &reach.short {
            self.pass(cycle, short.ahead - passed);
            self.pass_short(cycle, short.missing);
            passed = short.ahead + 1;
        }
        self.pass(cycle, tracks - passed);
        let regular = tracks - reach.short.len() as u64;
        self.slipped = self.slipped.saturating_sub(regular);
        self.start = end;
        self.turn_to(cycle.kind().sectors);
    }

    /// Puts the next so many tracks on the map, which are as expected.
    fn pass(&mut self, cycle: &mut TrackCycle, tracks: u64) {
        if tracks == 0 {
            return;
        }
        let parts = cycle.parts(tracks);
        let (mut first, mut angle) = (self.first, self.start);
        let repeats = parts.cycles.min(u64::from(u32::MAX)) as u32;
        let series = [(&parts.head, 1), (&cycle.runs, repeats), (&parts.tail, 1)];
        let late = self.observer.late();
        self.prober.findings(|findings| {
            for (runs, repeats) in series {
                let piece = MapPiece::of(first, angle, runs, repeats);
                (first, angle) = (piece.end(), piece.end_angle());
                findings.map.insert(piece, late);
            }
        });
        self.history.extend(&parts, &cycle.runs);
        let ahead = cycle.ahead(tracks);
        self.first = Lba(self.first.0 + ahead.blocks);
        self.start = self.start + ahead.turn;
        cycle.advance(tracks);
    }

    /// The present track has so many sectors on a turn.
    pub(super) fn turn_to(&mut self, sectors: u32) {
        if sectors != self.sectors {
            self.sectors = sectors;
            self.observer.resolve(sectors);
        }
    }
}
