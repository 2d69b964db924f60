//! Patterns in the order of tracks: what came, and what is to come if it goes on.
//!
//! ```text
//!   a a a a b a a a a b a a a a b          14 tracks of a cylinder, the last with a wider skew:
//!   '--4--'1'--4--'1'--4--'1                runs  (4 a) (1 b), and again
//! ```

use drive::Angle;

use super::observer::{SAME, width};
use crate::clock::{apart, forward};
use crate::findings::MapPiece;

/// What distinguishes tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrackKind {
    pub(super) blocks: u32,
    pub(super) sectors: u32,
    /// From where its first block begins to where that of the next track does.
    pub(super) turn: Angle,
    /// How far sightings may be off, where a host delays them.
    pub(super) late: Angle,
}

/// Tracks of one kind that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KindRun {
    pub(super) kind: TrackKind,
    pub(super) tracks: u32,
}

/// Runs that are repeated, and how far into them a track is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TrackCycle {
    pub(super) runs: Vec<KindRun>,
    run: usize,
    track: u32,
    /// How many tracks ahead a prediction by these turns was right.
    span: u64,
    /// The same, since the place in the runs was guessed.
    checked: u64,
    /// How often the turns of each run alone were corrected.
    corrected: Vec<u32>,
}

/// Some tracks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TrackSum {
    pub(super) blocks: u64,
    pub(super) turn: Angle,
}

/// Tracks whose beginnings are not farther off are where they are expected, however narrow the
/// sectors are: both sides of a boundary tell by the skew between them which block it is before.
/// A choice: a tenth of what angles on a map are to be right to.
const NEAR: f64 = 1e-3;

impl TrackKind {
    /// How far the beginnings of such tracks may be off, in revolutions.
    pub(super) fn tolerance(&self) -> f64 {
        (SAME / f64::from(self.sectors))
            .max(NEAR)
            .max(self.late.revolutions())
    }

    /// Where the last block ends if the track begins at `start`.
    pub(super) fn end(&self, start: Angle) -> Angle {
        start + width(self.sectors).times(u64::from(self.blocks))
    }

    /// Whether the end of such a track shows: the next one does not go on with its line, or its turn is full.
    pub(super) fn shows_end(&self, tolerance: f64) -> bool {
        self.blocks >= self.sectors || apart(self.end(Angle::ZERO), self.turn).abs() > tolerance
    }

    pub(super) fn is_like(&self, other: &TrackKind) -> bool {
        self.blocks == other.blocks
            && self.sectors == other.sectors
            && apart(self.turn, other.turn).abs() <= self.tolerance()
    }
}

impl KindRun {
    fn is_like(&self, other: &KindRun) -> bool {
        self.tracks == other.tracks && self.kind.is_like(&other.kind)
    }
}

impl TrackSum {
    fn and(self, kind: &TrackKind, tracks: u64) -> TrackSum {
        TrackSum {
            blocks: self.blocks + u64::from(kind.blocks) * tracks,
            turn: self.turn + kind.turn.times(tracks),
        }
    }
}

impl TrackCycle {
    /// The runs, from the first track of run `run` on, repeated for ever.
    pub(super) fn new(runs: Vec<KindRun>, track: u32) -> TrackCycle {
        TrackCycle {
            corrected: vec![0; runs.len()],
            runs,
            run: 0,
            track,
            span: 1,
            checked: 0,
        }
    }

    /// The pattern of a piece of the map, repeated for ever.
    pub(super) fn of(piece: &MapPiece, late: Angle) -> TrackCycle {
        let mut runs = History::default();
        piece.runs(late).into_iter().for_each(|run| runs.push(run));
        TrackCycle::new(runs.runs, 0)
    }

    /// The present track.
    pub(super) fn kind(&self) -> TrackKind {
        self.runs[self.run].kind
    }

    pub(super) fn cycle_tracks(&self) -> u64 {
        self.runs.iter().map(|run| u64::from(run.tracks)).sum()
    }

    /// Tracks until the runs begin again; none if they do now.
    pub(super) fn until_cycle(&self) -> u64 {
        if self.run == 0 && self.track == 0 {
            return 0;
        }
        let rest: u64 = self.runs[self.run..]
            .iter()
            .map(|run| u64::from(run.tracks))
            .sum();
        rest - u64::from(self.track)
    }

    /// Tracks until the next place at which a leap has to land: blocks that were moved into the
    /// spare sectors at the end of a unit of tracks are in order again behind them, so that what
    /// is behind them tells nothing. With [`Landings::Runs`] the end of every run is such a place,
    /// since a repetition may be right in all but where its runs end.
    pub(super) fn until_landing(&self, landings: Landings) -> Option<u64> {
        // Surfaces of other densities have other numbers of blocks without any spare sectors.
        let full = |sectors: u32| {
            let alike = self.runs.iter().filter(|run| run.kind.sectors == sectors);
            alike.map(|run| run.kind.blocks).max().unwrap_or(0)
        };
        let spares = self.cycle_tracks() >= SMALLEST_UNIT;
        let mut passed = 0;
        for step in 0..self.runs.len() {
            let run = &self.runs[(self.run + step) % self.runs.len()];
            passed += u64::from(run.tracks);
            let short = run.kind.blocks < full(run.kind.sectors) && spares;
            if short || landings == Landings::Runs {
                return Some(passed - u64::from(self.track));
            }
        }
        None
    }

    fn cycle(&self) -> TrackSum {
        let mut all = TrackSum::default();
        for run in &self.runs {
            all = all.and(&run.kind, u64::from(run.tracks));
        }
        all
    }

    /// The next so many tracks.
    pub(super) fn ahead(&self, tracks: u64) -> TrackSum {
        let cycles = tracks / self.cycle_tracks();
        let cycle = self.cycle();
        let whole = TrackSum {
            blocks: cycle.blocks * cycles,
            turn: cycle.turn.times(cycles),
        };
        let mut phase = self.phase();
        phase.stretch(self, tracks % self.cycle_tracks(), whole)
    }

    fn phase(&self) -> CyclePosition {
        CyclePosition {
            run: self.run,
            track: self.track,
        }
    }

    /// The kind of the track so many tracks ahead.
    pub(super) fn kind_ahead(&self, tracks: u64) -> TrackKind {
        let mut phase = self.phase();
        let rest = tracks % self.cycle_tracks();
        phase.stretch(self, rest, TrackSum::default());
        self.runs[phase.run].kind
    }

    /// Whether it has been right for a whole repetition at once, from where it is thought to be.
    pub(super) fn is_proven(&self) -> bool {
        self.checked >= self.cycle_tracks()
    }

    /// How many tracks ahead a prediction was right.
    pub(super) fn span(&self) -> u64 {
        self.span
    }

    /// How many times as far so many tracks are as a prediction was right.
    pub(super) fn growth(&self, tracks: u64) -> f64 {
        tracks as f64 / self.span as f64
    }

    /// Goes on by so many tracks.
    pub(super) fn advance(&mut self, tracks: u64) {
        let mut phase = self.phase();
        let rest = tracks % self.cycle_tracks();
        phase.stretch(self, rest, TrackSum::default());
        (self.run, self.track) = (phase.run, phase.track);
    }

    /// A prediction so many tracks ahead was `off` revolutions off: the turns are corrected, if
    /// that tells more of them than what was known.
    pub(super) fn refine(&mut self, tracks: u64, off: f64) {
        self.checked = self.checked.max(tracks);
        if tracks < self.span {
            return;
        }
        self.span = tracks;
        for run in &mut self.runs {
            run.kind.turn = run.kind.turn + forward(off / tracks as f64);
        }
    }

    /// A prediction so many tracks ahead was `off` revolutions off, where a host delays sightings: if they are a part
    /// of one run of several, its turns are corrected. They become the mean of what all such predictions tell. The
    /// turn of a whole repetition stays if it was right over several.
    pub(super) fn refine_run(&mut self, tracks: u64, off: f64) -> bool {
        let run = &mut self.runs[self.run];
        let is_part = tracks <= u64::from(run.tracks - self.track);
        if self.corrected.len() == 1 || !is_part {
            return false;
        }
        let corrected = &mut self.corrected[self.run];
        *corrected = (*corrected + 1).min(MOST_CORRECTED);
        let share = off / tracks as f64 / f64::from(*corrected);
        let (place, length) = (self.run, f64::from(run.tracks));
        let others = self.cycle_tracks() as f64 - length;
        let back = match self.span > self.cycle_tracks() {
            true => share * length / others,
            false => 0.0,
        };
        for (number, run) in self.runs.iter_mut().enumerate() {
            let turned = if number == place { share } else { -back };
            run.kind.turn = run.kind.turn + forward(turned);
        }
        self.checked = self.checked.max(tracks);
        true
    }

    /// Goes on where a track of another kind than expected has been, if the track_cycle has such tracks.
    /// `last` is that track with those of its kind just before it.
    pub(super) fn resume_after(&mut self, last: &KindRun) {
        self.checked = 0;
        let like = |run: &KindRun| run.kind.is_like(&last.kind);
        let Some(place) = self.runs.iter().position(like) else {
            self.advance(1);
            return;
        };
        let tracks = self.runs[place].tracks;
        (self.run, self.track) = (place, last.tracks.min(tracks) - 1);
        self.advance(1);
    }

    /// Goes on with the next of its tracks that come after those of another density, and have so many
    /// sectors on a turn; the answer is none if it has none.
    pub(super) fn resumed_at(mut self, sectors: u32) -> Option<TrackCycle> {
        let runs = self.runs.len();
        let begins = |run: &usize| {
            let before = &self.runs[(run + runs - 1) % runs];
            self.runs[*run].kind.sectors == sectors && before.kind.sectors != sectors
        };
        let next = (self.run..self.run + runs)
            .map(|run| run % runs)
            .find(begins)?;
        self.checked = 0;
        (self.run, self.track) = (next, 0);
        Some(self)
    }

    /// The next so many tracks as runs; those of whole cycles once, with how many cycles.
    pub(super) fn parts(&self, tracks: u64) -> CycleParts {
        let until = self.until_cycle().min(tracks);
        let cycle = self.cycle_tracks();
        let start = CyclePosition { run: 0, track: 0 };
        CycleParts {
            head: self.phase().taken(self, until),
            cycles: (tracks - until) / cycle,
            tail: start.taken(self, (tracks - until) % cycle),
        }
    }

    /// Whether two rhythms are the same and at the same place.
    pub(super) fn is_like(&self, other: &TrackCycle) -> bool {
        let pairs = self.runs.iter().zip(&other.runs);
        self.runs.len() == other.runs.len()
            && (self.run, self.track) == (other.run, other.track)
            && pairs.into_iter().all(|(one, two)| one.is_like(two))
    }
}

/// The mean of a run's turns is over so many predictions at most. A choice: it follows a clock that wanders.
const MOST_CORRECTED: u32 = 16;

/// Where leaps have to land.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Landings {
    /// Behind every run.
    Runs,
    /// Behind tracks with spare sectors.
    Spares,
}

/// Spare sectors in units of fewer tracks are not looked at one by one, since that would take as
/// long as walking. A choice.
const SMALLEST_UNIT: u64 = 4;

/// Some tracks of a track_cycle: what was left of a repetition, whole ones, the beginning of another.
#[derive(Clone, Debug)]
pub(super) struct CycleParts {
    pub(super) head: Vec<KindRun>,
    pub(super) cycles: u64,
    pub(super) tail: Vec<KindRun>,
}

/// A place in a track_cycle.
#[derive(Clone, Copy, Debug)]
struct CyclePosition {
    run: usize,
    track: u32,
}

impl CyclePosition {
    /// Goes on by less than a cycle, and adds up what it passes.
    fn stretch(
        &mut self,
        track_cycle: &TrackCycle,
        mut tracks: u64,
        mut sum: TrackSum,
    ) -> TrackSum {
        while tracks > 0 {
            let run = &track_cycle.runs[self.run];
            let left = u64::from(run.tracks - self.track).min(tracks);
            sum = sum.and(&run.kind, left);
            tracks -= left;
            self.track += left as u32;
            if self.track == run.tracks {
                (self.run, self.track) = ((self.run + 1) % track_cycle.runs.len(), 0);
            }
        }
        sum
    }

    fn taken(mut self, track_cycle: &TrackCycle, mut tracks: u64) -> Vec<KindRun> {
        let mut taken = Vec::new();
        while tracks > 0 {
            let run = track_cycle.runs[self.run];
            let left = u64::from(run.tracks - self.track).min(tracks) as u32;
            let tracks_of = KindRun {
                tracks: left,
                ..run
            };
            taken.push(tracks_of);
            tracks -= u64::from(left);
            (self.run, self.track) = ((self.run + 1) % track_cycle.runs.len(), 0);
        }
        taken
    }
}

/// What came, as runs; the latest part of it.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    runs: Vec<KindRun>,
}

/// Runs that are remembered. A choice: two repetitions of a serpentine over 32 surfaces, there and
/// back with a run for each switch of heads.
const REMEMBERED: usize = 256;

impl History {
    pub(super) fn forget(&mut self) {
        self.runs.clear();
    }

    /// The numbers of sectors of its tracks, the latest first, without those of the last one.
    pub(super) fn densities(&self) -> impl Iterator<Item = u32> {
        let last = self.runs.last().map(|run| run.kind.sectors);
        let all = self.runs.iter().rev().map(|run| run.kind.sectors);
        all.filter(move |sectors| Some(*sectors) != last)
    }

    pub(super) fn last(&self) -> Option<&KindRun> {
        self.runs.last()
    }

    /// More tracks came.
    pub(super) fn push(&mut self, more: KindRun) {
        match self.runs.last_mut() {
            Some(last) if last.kind.is_like(&more.kind) => last.tracks += more.tracks,
            _ => self.runs.push(more),
        }
        if self.runs.len() > REMEMBERED {
            self.runs.drain(..REMEMBERED / 4);
        }
    }

    /// A part of a track_cycle came.
    pub(super) fn extend(&mut self, parts: &CycleParts, cycle: &[KindRun]) {
        parts.head.iter().for_each(|run| self.push(*run));
        if cycle.len() == 1 {
            // Many tracks of one kind are one run.
            let tracks = u64::from(cycle[0].tracks) * parts.cycles;
            if tracks > 0 {
                self.push(KindRun {
                    tracks: tracks.min(u64::from(u32::MAX / 2)) as u32,
                    ..cycle[0]
                });
            }
        } else {
            let fit = (REMEMBERED / 2 / cycle.len()).max(2) as u64;
            if parts.cycles > fit {
                self.forget();
            }
            for _ in 0..parts.cycles.min(fit) {
                cycle.iter().for_each(|run| self.push(*run));
            }
        }
        parts.tail.iter().for_each(|run| self.push(*run));
    }

    /// The shortest series of runs that has just come twice, to come again; three times if it is
    /// longer than that of a track_cycle that has been right: defects that are alike by chance are no
    /// pattern.
    pub(super) fn repeated(&self, right: Option<&TrackCycle>) -> Option<TrackCycle> {
        let simple = right.map_or(1, |track_cycle| track_cycle.runs.len());
        let simple = if simple == 1 { REMEMBERED } else { simple };
        self.repeated_before(self.runs.len(), simple, None)
            .or_else(|| {
                let end = self.runs.len().checked_sub(1)?;
                self.repeated_before(end, simple, self.last())
            })
    }

    /// The same, where a run that has only begun may follow.
    fn repeated_before(
        &self,
        end: usize,
        simple: usize,
        begun: Option<&KindRun>,
    ) -> Option<TrackCycle> {
        for period in 2..=end / 2 {
            let times = if period > simple { 3 } else { 2 };
            let Some(from) = end.checked_sub(times * period) else {
                break;
            };
            let (one, two) = (
                &self.runs[from..end - period],
                &self.runs[from + period..end],
            );
            if !one.iter().zip(two).all(|(one, two)| one.is_like(two)) {
                continue;
            }
            let two = &self.runs[end - period..end];
            let track = match begun {
                None => 0,
                Some(run) if run.tracks < two[0].tracks && run.kind.is_like(&two[0].kind) => {
                    run.tracks
                }
                Some(_) => continue,
            };
            return Some(TrackCycle::new(two.to_vec(), track));
        }
        None
    }

    /// The last kind, for ever.
    pub(super) fn going_on(&self) -> Option<TrackCycle> {
        let kind = self.last()?.kind;
        Some(TrackCycle::new(vec![KindRun { kind, tracks: 1 }], 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(tracks: u32, blocks: u32, turn: u64) -> KindRun {
        let (sectors, turn) = (100, Angle::fraction(turn, 100));
        let kind = TrackKind {
            blocks,
            sectors,
            turn,
            late: Angle::ZERO,
        };
        KindRun { kind, tracks }
    }

    #[test]
    fn an_end_shows_unless_the_next_track_goes_on_with_the_line() {
        assert!(run(1, 30, 35).kind.shows_end(0.02));
        assert!(!run(1, 30, 31).kind.shows_end(0.02));
        // A whole turn ends.
        assert!(run(1, 100, 0).kind.shows_end(0.02));
    }

    #[test]
    fn what_is_ahead_is_what_single_steps_come_to() {
        let track_cycle =
            TrackCycle::new(vec![run(4, 100, 10), run(1, 94, 25), run(3, 100, 11)], 2);
        let (mut steps, mut sum) = (track_cycle.clone(), TrackSum::default());
        for tracks in 0..40 {
            assert_eq!(track_cycle.ahead(tracks), sum, "{tracks} tracks");
            assert_eq!(
                track_cycle.kind_ahead(tracks),
                steps.kind(),
                "{tracks} tracks"
            );
            sum = sum.and(&steps.kind(), 1);
            steps.advance(1);
        }
    }

    #[test]
    fn parts_are_what_is_ahead() {
        let track_cycle = TrackCycle::new(vec![run(4, 100, 10), run(1, 94, 25)], 3);
        for tracks in 0..30 {
            let parts = track_cycle.parts(tracks);
            let ends = parts.head.iter().chain(&parts.tail);
            let counted: u64 = ends.map(|run| u64::from(run.tracks)).sum();
            assert_eq!(counted + parts.cycles * 5, tracks);
        }
    }

    #[test]
    fn a_pattern_is_what_came_twice_and_goes_on_where_it_is() {
        let mut history = History::default();
        let cylinder = [run(4, 100, 10), run(1, 100, 25)];
        for part in [run(2, 100, 10), cylinder[1], cylinder[0], cylinder[1]] {
            history.push(part);
            assert_eq!(history.repeated(None), None);
        }
        history.push(cylinder[0]);
        history.push(cylinder[1]);
        let found = history.repeated(None).expect("a pattern");
        assert_eq!(
            (found.runs.as_slice(), found.until_cycle()),
            (&cylinder[..], 0)
        );
        history.push(run(1, 100, 10));
        let found = history.repeated(None).expect("a pattern");
        assert_eq!(
            (found.runs.as_slice(), found.until_cycle()),
            (&cylinder[..], 4)
        );
    }

    #[test]
    fn a_longer_pattern_than_one_that_was_right_has_to_come_three_times() {
        let right = TrackCycle::new(vec![run(4, 100, 10), run(1, 100, 25)], 0);
        let mut history = History::default();
        let odd = [
            run(4, 100, 10),
            run(1, 100, 25),
            run(3, 100, 10),
            run(1, 100, 40),
        ];
        for times in 1..=3 {
            odd.iter().for_each(|part| history.push(*part));
            let found = history.repeated(Some(&right));
            assert_eq!(found.is_some(), times == 3, "{times} times");
        }
    }
}
