//! The walking part of an exploration: track by track where nothing can be leapt over.

use block::Lba;
use drive::Angle;

use super::explore::Explorer;
use super::line::{self, beginning};
use super::observer::{Care, SAME, width};
use super::sector_count;
use super::sector_line::{LineBegin, NoTrack, SectorLine};
use super::track::{Traced, Tracing};
use super::track_cycle::{KindRun, TrackCycle, TrackKind};
use crate::clock::{apart, forward};
use crate::findings::MapPiece;

/// A line of fewer blocks is no track, but a sign that nothing fits. A choice.
const FEWEST: u32 = 4;

/// A track that has not more blocks more or less than expected has defects, or others' blocks in
/// its spare sectors. A choice: twice the longest series of defects in the zoned drives that we
/// ship.
const DEFECTS: u32 = 16;

/// Where delays hide sectors, the line of another zone is longer than this zone's by one of so many blocks. A
/// choice: with defects in between lines end early, but alike.
const LONGER: u32 = 32;

/// The share of a walked track's error that is believed behind a host that delays. A choice: the next tracks show
/// what is left.
pub(super) const LATE_GAIN: f64 = 0.25;

/// Sightings of the first block of a track that is not as expected, behind a host that delays. A choice: the median
/// of five is half as far off as one.
const SIGHTINGS_OF_FIRST: usize = 5;

/// Blocks at the end of a zone that may fit the next track as well. A choice: lines of 300 and of
/// 310 sectors are a third of a sector apart after 10 blocks.
const MOST_TAKEN: u64 = 40;

impl Explorer {
    pub(super) async fn trace(
        &mut self,
        expected: u32,
        turn: Option<Angle>,
    ) -> Result<Traced, NoTrack> {
        let (first, limit) = (self.first, self.limit);
        let tracing = Tracing::new(&mut self.observer, first, self.start, self.sectors, limit);
        tracing.end(expected, turn).await
    }

    /// Follows the present track to its end, and makes out the next one's beginning.
    pub(super) async fn walk(&mut self) -> Result<(), NoTrack> {
        if self.first >= self.limit {
            return Ok(());
        }
        let expected = self.expected();
        let blocks = expected.map_or(self.sectors, |kind| kind.blocks);
        let turn = expected.map(|kind| kind.turn);
        let mut traced = self.trace(blocks, turn).await?;
        if traced.blocks + traced.slipped() < blocks
            && !turn.is_some_and(|turn| self.turns_by(turn, &traced))
            && self.first.0 + u64::from(blocks) < self.limit.0
            && let Some(line) = self.line_of_another_zone(&traced).await
        {
            self.enter(line.end - width(line.sectors), line.sectors);
            traced = self.trace(line.sectors, None).await?;
        }
        match expected.filter(|kind| self.is_short(kind, &traced)) {
            Some(kind) => self.lacks(&kind, &mut traced),
            None => self.recount(expected, &traced).await?,
        }
        let mut next = Lba(self.first.0 + u64::from(traced.blocks));
        if traced.blocks < FEWEST && next < self.limit {
            return Err(NoTrack::NoLine);
        }
        let mut kind = TrackKind {
            blocks: traced.blocks,
            sectors: self.sectors,
            turn: turn.unwrap_or_default(),
            late: forward(self.observer.late_at_most()),
        };
        let Some(mut end) = traced.next.filter(|_| next < self.limit) else {
            self.step(&traced, kind);
            self.first = next;
            return Ok(());
        };
        let early = self.early(&traced, next, end).await?;
        if early > 0 {
            // The first blocks of the present track belong to the track before it.
            self.prober
                .findings(|findings| findings.map.lengthen(self.first, early as u32));
            self.first = Lba(self.first.0 + early);
            self.start = self.start + width(self.sectors).times(early);
            next = Lba(next.0 + early);
            end = self.observer.look(next).await?;
        }
        let (mut start, sectors, is_usual) = self.begins(next, end, expected, &traced).await?;
        if sectors != self.sectors {
            let back = self.taken_from(next, start, sectors, &mut traced).await?;
            start = start - width(sectors).times(back);
            next = Lba(next.0 - back);
            kind.blocks = traced.blocks;
        }
        // A host's delay is no part of a turn that was measured before.
        if !is_usual || self.observer.late() == 0.0 {
            kind.turn = start - self.start;
        }
        self.step(&traced, kind);
        self.first = next;
        self.enter(start, sectors);
        Ok(())
    }

    /// Where the next track begins, the first block of which was seen to end at an angle, with its turn's sectors, and whether that
    /// is as expected.
    async fn begins(
        &mut self,
        next: Lba,
        mut end: Angle,
        expected: Option<TrackKind>,
        traced: &Traced,
    ) -> Result<(Angle, u32, bool), NoTrack> {
        let mut usual = expected.and_then(|kind| self.usual_beginning(end, kind, traced));
        if usual.is_none() && self.observer.late() > 0.0 {
            // All tracks of the next leaps are as far off as this one sighting would be, and where delays are long it does not
            // tell that the turn is another.
            end = self.observer.typical(next, SIGHTINGS_OF_FIRST).await?;
            if self.observer.late() > self.observer.late_at_most() {
                usual = expected.and_then(|kind| self.usual_beginning(end, kind, traced));
            }
        }
        match usual {
            Some(start) => Ok((start, self.sectors, true)),
            None => {
                let (start, sectors) = self.next_beginning(next, end).await?;
                Ok((start, sectors, false))
            }
        }
    }

    /// Whether the next track begins behind the present one by a turn.
    pub(super) fn turns_by(&self, turn: Angle, traced: &Traced) -> bool {
        let expected = self.start + turn + width(self.sectors);
        let tolerance = self.observer.tolerance(self.sectors);
        let next = traced.next;
        next.is_some_and(|next| apart(expected, next).abs() <= tolerance)
    }

    /// The line of a track that is longer than what was traced with the present zone's sectors: a landing by
    /// chance behind the end of a zone.
    async fn line_of_another_zone(&mut self, traced: &Traced) -> Option<SectorLine> {
        let longer = match self.observer.is_blurred(self.sectors) {
            // The line of another zone leaves this one's only after a while.
            true => traced.blocks + traced.blocks / LONGER + 1,
            false => traced.blocks * 2,
        };
        let line = line::trace(
            &mut self.observer,
            self.first,
            self.limit,
            LineBegin::Track(0),
        )
        .await;
        line.ok()
            .filter(|line| line.is_long() && line.blocks >= longer && line.sectors != self.sectors)
    }

    /// Counts the sectors of a track that has other numbers of blocks than expected, where delays hide single
    /// sectors. One track has lost some to defects; two that are alike may be of another zone. The same where such
    /// tracks have other numbers of sectors besides their blocks than most.
    async fn recount(
        &mut self,
        expected: Option<TrackKind>,
        traced: &Traced,
    ) -> Result<(), NoTrack> {
        let end = Lba(self.first.0 + u64::from(traced.blocks));
        let before = self.walked.replace((end, traced.blocks));
        let again = before == Some((self.first, traced.blocks));
        let is_other = expected.is_some_and(|kind| kind.blocks != traced.blocks);
        let usual = self.observer.usual_spares(self.sectors);
        let is_unusual = usual.is_some_and(|spares| traced.blocks + spares != self.sectors);
        let told = Some((self.sectors, traced.blocks));
        let is_usual_here = expected.is_some() && !is_other;
        let is_asked = (again && is_other) || (is_unusual && (again || is_usual_here));
        let is_asked = is_asked && self.recounted != told;
        if !is_asked || !self.observer.is_blurred(self.sectors) {
            return Ok(());
        }
        let first = (self.first, self.start + width(self.sectors));
        let counted =
            sector_count::recount(&mut self.observer, first, traced.blocks, self.sectors).await?;
        self.recounted = told;
        if let Some(sectors) = counted.filter(|sectors| *sectors != self.sectors) {
            self.enter(self.start, sectors);
        }
        Ok(())
    }

    /// The present track begins there, and has so many sectors on a turn.
    fn enter(&mut self, start: Angle, sectors: u32) {
        if sectors != self.sectors {
            // Another surface, or another zone.
            let is_expected = |cycle: &TrackCycle| cycle.kind().sectors == sectors;
            if !self.track_cycle.as_ref().is_some_and(is_expected) {
                let cycle = self.track_cycle.take();
                self.track_cycle = cycle.and_then(|cycle| cycle.resumed_at(sectors));
                self.stride = 1;
            }
            self.observer.resolve(sectors);
        }
        (self.start, self.sectors) = (start, sectors);
    }

    /// What the present track is expected to be.
    fn expected(&self) -> Option<TrackKind> {
        let track_cycle = self.track_cycle.as_ref().map(TrackCycle::kind);
        let last = self.history.last().map(|run| run.kind);
        track_cycle
            .or(last)
            .filter(|kind| kind.sectors == self.sectors)
    }

    /// Where the next track begins, the first block of which ends at `end`, if that is as expected.
    fn usual_beginning(&self, end: Angle, kind: TrackKind, traced: &Traced) -> Option<Angle> {
        let expected = self.start + kind.turn;
        let off = apart(expected, end - width(self.sectors));
        let is_usual = kind.blocks == traced.blocks && off.abs() <= kind.tolerance();
        let believed = match self.observer.late() > 0.0 {
            true => off * LATE_GAIN,
            false => off,
        };
        is_usual.then(|| expected + forward(believed))
    }

    /// Where the next track begins, the first block of which ends at `end`, and its turn's
    /// sectors.
    async fn next_beginning(&mut self, next: Lba, end: Angle) -> Result<(Angle, u32), NoTrack> {
        let start = end - width(self.sectors);
        // As many sectors as before?
        let sector = u64::from(self.sectors) * 3 / 4;
        let far = Lba(next.0 + sector);
        let tolerance = self.observer.tolerance(self.sectors);
        if far < self.limit {
            let expected = end + width(self.sectors).times(sector);
            let off = self
                .observer
                .off(far, expected, tolerance, Care::Sure)
                .await?;
            if off.abs() <= tolerance {
                return Ok((start, self.sectors));
            }
            let seen = expected + forward(off);
            if let Some(begun) = self.of_other_surface(next, end, (sector, seen)).await? {
                return Ok(begun);
            }
        }
        match beginning(&mut self.observer, next, self.limit, LineBegin::Track(0)).await {
            Ok(begun) => {
                if begun.first_elsewhere {
                    self.prober
                        .findings(|findings| findings.map.move_away(next));
                }
                Ok((begun.start, begun.sectors))
            }
            // A few last blocks.
            Err(NoTrack::NoLine) if far >= self.limit => Ok((start, self.sectors)),
            Err(lost) => Err(lost),
        }
    }

    /// The beginning of a track that has as many sectors as tracks before, of which the first block ends at
    /// `end`, and one some blocks behind it was seen to end at an angle; none if two blocks do not fit.
    async fn of_other_surface(
        &mut self,
        next: Lba,
        end: Angle,
        (blocks, seen): (u64, Angle),
    ) -> Result<Option<(Angle, u32)>, NoTrack> {
        let line = |sectors: u32, blocks: u64| end + width(sectors).times(blocks);
        let fits = |sectors: &u32| {
            let tolerance = self.observer.tolerance(*sectors);
            u64::from(*sectors) > blocks && apart(line(*sectors, blocks), seen).abs() <= tolerance
        };
        let Some(sectors) = self.history.densities().find(fits) else {
            return Ok(None);
        };
        let half = blocks / 2;
        let (expected, tolerance) = (line(sectors, half), self.observer.tolerance(sectors));
        let block = Lba(next.0 + half);
        let off = self.observer.off(block, expected, tolerance, Care::Sure);
        let is_line = off.await?.abs() <= tolerance;
        Ok(is_line.then(|| (end - width(sectors), sectors)))
    }

    /// Where a zone ends, the lines of two tracks may cross so flatly that some blocks are on
    /// both. Gives those back that fit the next track better; answers how many.
    async fn taken_from(
        &mut self,
        next: Lba,
        start: Angle,
        sectors: u32,
        traced: &mut Traced,
    ) -> Result<u64, NoTrack> {
        if self.observer.is_blurred(sectors) {
            return Ok(0);
        }
        let end = self.start + width(self.sectors).times((traced.blocks + traced.slipped()).into());
        let mut back = 0;
        while back < u64::from(traced.blocks - 1) && back < MOST_TAKEN {
            let seen = self.observer.look(Lba(next.0 - 1 - back)).await?;
            let here = apart(end - width(self.sectors).times(back), seen);
            let there = apart(start - width(sectors).times(back), seen);
            if there.abs() >= here.abs() || there.abs() > SAME / f64::from(sectors) {
                break;
            }
            back += 1;
        }
        traced.blocks -= back as u32;
        let end = Lba(next.0 - back);
        traced.slips.retain(|slip| slip.before < end);
        Ok(back)
    }

    /// How many blocks too early the present track is thought to begin: a track has no more blocks than
    /// sectors, so that those which go on behind a whole turn of it tell. Where the last track before
    /// happens to end just where this one begins, angles do not tell which track a block between them
    /// is on. Nothing is told where all go on: tracks follow each other without a skew; nor where that
    /// track has no room for them: then it is the next one that goes on there. `end` is where the first
    /// block behind the turn ends.
    async fn early(&mut self, traced: &Traced, next: Lba, end: Angle) -> Result<u64, NoTrack> {
        let tolerance = SAME / f64::from(self.sectors);
        let whole = traced.blocks == self.sectors
            && traced.slips.is_empty()
            && !self.observer.is_blurred(self.sectors);
        let first = self.first;
        let room = self
            .prober
            .findings(|findings| findings.map.room_before(first));
        if !whole || room == 0 || apart(self.start + width(self.sectors), end).abs() > tolerance {
            return Ok(0);
        }
        for early in [MOST_TAKEN].into_iter().chain(1..MOST_TAKEN) {
            let block = Lba(next.0 + early);
            if block >= self.limit {
                break;
            }
            let expected = self.start + width(self.sectors).times(early + 1);
            let off = self
                .observer
                .off(block, expected, tolerance, Care::Sure)
                .await?;
            match (early, off.abs() > tolerance) {
                (MOST_TAKEN, false) => break,
                (MOST_TAKEN, true) | (_, false) => (),
                (_, true) => return Ok(if early <= room { early } else { 0 }),
            }
        }
        Ok(0)
    }

    /// Puts the present track on the map.
    pub(super) fn put(&self, traced: &Traced, kind: TrackKind) {
        let run = KindRun { kind, tracks: 1 };
        let piece = MapPiece::of(self.first, self.start, &[run], 1);
        let late = self.observer.late();
        self.prober.findings(|findings| {
            let map = &mut findings.map;
            map.insert(piece, late);
            let place = map.slips.partition_point(|slip| slip.before < self.first);
            map.slips.splice(place..place, traced.slips.iter().copied());
            traced
                .elsewhere
                .iter()
                .for_each(|moved| map.move_away(*moved));
        });
    }

    /// Believes in one track.
    fn step(&mut self, traced: &Traced, kind: TrackKind) {
        let run = KindRun { kind, tracks: 1 };
        self.put(traced, kind);
        let Some(track_cycle) = &mut self.track_cycle else {
            self.history.push(run);
            return;
        };
        let expected = track_cycle.kind();
        // Defects are no part of what is repeated: other tracks have theirs at other places.
        let defect = expected.blocks.abs_diff(kind.blocks) <= DEFECTS
            && apart(expected.turn, kind.turn).abs() <= kind.tolerance();
        if defect {
            let kind = expected;
            self.history.push(KindRun { kind, tracks: 1 });
            track_cycle.advance(1);
        } else {
            self.history.push(run);
            track_cycle.resume_after(self.history.last().unwrap_or(&run));
        }
    }
}
