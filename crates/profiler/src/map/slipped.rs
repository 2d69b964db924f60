//! Leaps over tracks that have lost some sectors to defects: what comes next is as expected, some blocks earlier.
//!
//! ```text
//!   expected   |--- n blocks ----|~~skew~~|--- next track
//!   seen       |-- n-k blocks -|~~~~~~~~~~|--- block n-k begins the next track, where it should begin
//!
//!   a leap     |.................................|   k blocks are missing in all
//!              |.......0........|.......k........|   by halving, down to single tracks that lack some
//! ```
//!
//! Where on its track a sector is missing, a host's delays hide; it is assumed in the middle. Angles are off by it on half of
//! the track at most.

use block::Lba;
use drive::Angle;

use super::explore::Explorer;
use super::observer::{Care, width};
use super::reach::{Reach, ShortTrack};
use super::sector_line::NoTrack;
use super::track::Traced;
use super::track_cycle::{KindRun, TrackCycle, TrackKind};
use crate::clock::forward;
use crate::device::Offers;
use crate::findings::Slip;

/// Most blocks that are missing in a leap. A choice: four halvings tell how many.
const MOST: u32 = 16;

/// The part of a turn that the sectors have which a track lacks. A choice: angles are off by half of it at most, a fifth of what
/// predictions may be off by.
const HARMLESS: f64 = 0.004;

/// Most such tracks more than others, by a pattern that has come again, and by one that is a guess. A choice: a scratch is on
/// 52 tracks in a row of a drive that we ship, and on 74 of another. Where the surfaces of a cylinder differ in density by as
/// little, the pattern has such tracks itself, and is found by walking.
const MORE_THAN_OTHERS: (u64, u64) = (80, 8);

/// Fewest tracks ahead that were predicted rightly before. A choice.
const PREDICTED: u64 = 16;

/// The skew at the end of a track is longer than so many of a host's usual delays. A choice: blocks of the track and of the next
/// one are told apart by few sightings then.
const APART: f64 = 2.0;

/// A boundary, and how many blocks are missing before it.
#[derive(Clone, Copy, Debug)]
struct Shortage {
    tracks: u64,
    missing: u32,
}

impl Explorer {
    /// How far a pattern goes on that is right so many tracks ahead but for some missing blocks; not at all if it is not.
    pub(super) async fn short(&mut self, cycle: &TrackCycle, ahead: u64) -> Result<Reach, NoTrack> {
        let most = self.most_missing(cycle);
        if most == 0
            || ahead > self.room(cycle)
            || !self
                .is_before_end(cycle, (ahead, most), Care::Quick)
                .await?
        {
            return Ok(Reach::default());
        }
        let missing = self.missing(cycle, ahead, (1, most)).await?;
        let Some(off) = self.landing(cycle, (ahead, missing), Care::Sure).await? else {
            return Ok(Reach::default());
        };
        let end = Shortage {
            tracks: ahead,
            missing,
        };
        self.located(cycle, end, off).await
    }

    /// How many blocks are missing up to the end of the track so many tracks ahead, from `least` to `most`. Few are
    /// likelier.
    async fn missing(
        &mut self,
        cycle: &TrackCycle,
        tracks: u64,
        (mut least, mut most): (u32, u32),
    ) -> Result<u32, NoTrack> {
        let mut step = 0;
        while least < most {
            let middle = (least + step).min(least + (most - least) / 2);
            match self
                .is_before_end(cycle, (tracks, middle), Care::Sure)
                .await?
            {
                true => most = middle,
                false => least = middle + 1,
            }
            step = step * 2 + 1;
        }
        Ok(least)
    }

    /// Whether the block that would be the last but so many, if none were missing, is on the last track.
    async fn is_before_end(
        &mut self,
        cycle: &TrackCycle,
        (tracks, blocks): (u64, u32),
        care: Care,
    ) -> Result<bool, NoTrack> {
        let last = cycle.kind_ahead(tracks - 1);
        let start = self.start + cycle.ahead(tracks - 1).turn;
        let hidden = width(last.sectors).times(blocks.into()).revolutions() / 2.0;
        let expected = last.end(start) - forward(hidden);
        let lba = Lba(self.first.0 + cycle.ahead(tracks).blocks - 1 - u64::from(blocks));
        let tolerance = hidden + self.tolerance(&last, cycle.growth(tracks));
        let off = self.observer.off(lba, expected, tolerance, care).await?;
        Ok(off.abs() <= tolerance)
    }

    /// Which tracks up to a boundary lack the blocks that are missing there: by halving. It ends before a track that lacks more
    /// than is harmless.
    async fn located(
        &mut self,
        cycle: &TrackCycle,
        end: Shortage,
        off: f64,
    ) -> Result<Reach, NoTrack> {
        let mut reach = Reach {
            tracks: end.tracks,
            off,
            short: Vec::new(),
        };
        let mut at = Shortage {
            tracks: 0,
            missing: 0,
        };
        let mut ahead = vec![end];
        while let Some(next) = ahead.pop() {
            let missing = next.missing - at.missing;
            if missing > 0 && next.tracks - at.tracks > 1 {
                let tracks = at.tracks + (next.tracks - at.tracks) / 2;
                let range = (at.missing, next.missing);
                let missing = self.missing(cycle, tracks, range).await?;
                ahead.extend([next, Shortage { tracks, missing }]);
                continue;
            }
            if missing > 0 {
                if missing > self.harmless(&cycle.kind_ahead(at.tracks)) {
                    reach.tracks = at.tracks;
                    reach.off = 0.0;
                    break;
                }
                reach.short.push(ShortTrack {
                    ahead: at.tracks,
                    missing,
                });
            }
            at = next;
        }
        Ok(reach)
    }

    /// Most blocks that may be missing up to a boundary; none if that does not show, or the pattern was not right for long.
    fn most_missing(&self, cycle: &TrackCycle) -> u32 {
        if cycle.span() < PREDICTED || self.has_many_short(Some(cycle)) {
            return 0;
        }
        let most = |kind: &TrackKind| match self.harmless(kind) {
            0 => 0,
            _ => {
                let skew = (kind.turn - kind.end(Angle::ZERO)).revolutions();
                let room = skew.min(1.0 - skew) - APART * self.observer.late();
                // Half of the skew is the least distance of what is told apart.
                let most = (room * f64::from(kind.sectors) / 2.0).max(0.0) as u32;
                most.min(MOST).min(kind.blocks / 8)
            }
        };
        cycle
            .runs
            .iter()
            .map(|run| most(&run.kind))
            .min()
            .unwrap_or(0)
    }

    /// Whether more tracks lack blocks than defects explain, where a pattern is expected.
    fn has_many_short(&self, cycle: Option<&TrackCycle>) -> bool {
        let is_sure = |cycle: &TrackCycle| cycle.is_proven() && cycle.runs.len() > 1;
        let most = match cycle.is_some_and(is_sure) {
            true => MORE_THAN_OTHERS.0,
            false => MORE_THAN_OTHERS.1,
        };
        self.slipped >= most
    }

    /// Whether the present track, of which the end was found, is as expected but for some blocks that it lacks.
    pub(super) fn is_short(&self, kind: &TrackKind, traced: &Traced) -> bool {
        let missing = kind.blocks.saturating_sub(traced.blocks);
        let cycle = self.track_cycle.as_ref();
        (1..=self.harmless(kind)).contains(&missing)
            && cycle.is_some_and(|cycle| cycle.span() >= PREDICTED)
            && self.observer.is_blurred(kind.sectors)
            && !self.has_many_short(cycle)
            && self.turns_by(kind.turn, traced)
    }

    /// The present track lacks blocks of such a one.
    pub(super) fn lacks(&mut self, kind: &TrackKind, traced: &mut Traced) {
        let sectors = kind.blocks - traced.blocks;
        let before = Lba(self.first.0 + u64::from(traced.blocks / 2));
        traced.slips.push(Slip { before, sectors });
        self.slipped += 1;
    }

    /// Most blocks that such a track may lack where it is not told.
    fn harmless(&self, kind: &TrackKind) -> u32 {
        match self.prober.device().offers {
            Offers::Nothing => (HARMLESS * f64::from(kind.sectors)) as u32,
            Offers::CacheControl => 0,
        }
    }

    /// Puts the present track on the map, which is as expected but for some missing blocks.
    pub(super) fn pass_short(&mut self, cycle: &mut TrackCycle, missing: u32) {
        let kind = cycle.kind();
        let blocks = kind.blocks - missing;
        let mut traced = Traced {
            blocks,
            ..Traced::default()
        };
        self.lacks(&kind, &mut traced);
        self.put(&traced, TrackKind { blocks, ..kind });
        self.history.push(KindRun { kind, tracks: 1 });
        self.first = Lba(self.first.0 + u64::from(blocks));
        self.start = self.start + kind.turn;
        cycle.advance(1);
    }
}
