//! Tracks that have lost a few sectors to defects, passed within a leap where a host's delays hide single sectors.
//!
//! ```text
//!   expected   |--- n blocks ----|~~skew~~|--- next track
//!   seen       |-- n-k blocks -|~~~~~~~~~~|--- block n-k begins the next track, where it should begin
//! ```
//!
//! Where the sectors are, delays hide; they are assumed in the middle. Angles are off by them on half of the track at most.

use block::Lba;
use drive::Angle;

use super::explore::Explorer;
use super::observer::{Care, width};
use super::sector_line::NoTrack;
use super::track::Traced;
use super::track_cycle::{KindRun, TrackCycle, TrackKind};
use super::walk::LATE_GAIN;
use crate::clock::forward;
use crate::findings::Slip;

/// Most blocks that such a track lacks. A choice: tracks of another zone lack more.
const MOST: u32 = 2;

/// Most such tracks more than others. A choice: more of them are of another zone.
const MORE_THAN_OTHERS: u64 = 8;

/// Fewest tracks ahead that were predicted rightly before. A choice: where the surfaces of a cylinder differ in density by as
/// little, the pattern has such tracks itself, and is found by walking.
const PREDICTED: u64 = 16;

/// The skew behind such a track is longer than so many of a host's usual delays. A choice: blocks of the track and of the next
/// one are told apart by one sighting then.
const APART: f64 = 2.0;

impl Explorer {
    /// Passes the present track if it differs from what is expected by a few missing blocks only; whether it does.
    pub(super) async fn pass_slipped(&mut self, cycle: &mut TrackCycle) -> Result<bool, NoTrack> {
        let kind = cycle.kind();
        let is_proven = cycle.span() >= PREDICTED && cycle.is_proven();
        if !is_proven
            || self.slipped >= MORE_THAN_OTHERS
            || !self.shows_slips(&kind)
            || self.first.0 + u64::from(kind.blocks) >= self.limit.0
        {
            return Ok(false);
        }
        if self.is_on(&kind, kind.blocks - 1).await? {
            return Ok(false);
        }
        let mut missing = 1;
        while !self.is_on(&kind, kind.blocks - missing - 1).await? {
            missing += 1;
            if missing > MOST {
                return Ok(false);
            }
        }
        let next = self.start + kind.turn;
        let first = Lba(self.first.0 + u64::from(kind.blocks - missing));
        let expected = next + width(kind.sectors);
        let off = self
            .observer
            .off(first, expected, kind.tolerance(), Care::Sure)
            .await?;
        if off.abs() > kind.tolerance() {
            return Ok(false);
        }
        let blocks = kind.blocks - missing;
        let slip = Slip {
            before: Lba(self.first.0 + u64::from(blocks / 2)),
            sectors: missing,
        };
        let traced = Traced {
            blocks,
            slips: vec![slip],
            ..Traced::default()
        };
        self.put(&traced, TrackKind { blocks, ..kind });
        self.history.push(KindRun { kind, tracks: 1 });
        cycle.advance(1);
        self.first = first;
        self.start = next + forward(off * LATE_GAIN);
        self.turn_to(cycle.kind().sectors);
        Ok(true)
    }

    /// Whether a few missing blocks at the end of such a track show by the skew behind it, and single sectors do not.
    fn shows_slips(&self, kind: &TrackKind) -> bool {
        let skew = (kind.turn - kind.end(Angle::ZERO)).revolutions();
        let hidden = f64::from(MOST) / f64::from(kind.sectors);
        let late = self.observer.late();
        self.observer.is_blurred(kind.sectors)
            && kind.blocks > 8 * MOST
            && skew > hidden + APART * late
            && skew < 1.0 - APART * late
    }

    /// Whether a block is on the present track, with a few missing ones before it or none.
    async fn is_on(&mut self, kind: &TrackKind, block: u32) -> Result<bool, NoTrack> {
        let hidden = f64::from(MOST) / f64::from(kind.sectors) / 2.0;
        let expected =
            self.start + width(kind.sectors).times(u64::from(block) + 1) + forward(hidden);
        let tolerance = hidden + self.observer.late();
        let lba = Lba(self.first.0 + u64::from(block));
        let off = self
            .observer
            .off(lba, expected, tolerance, Care::Quick)
            .await?;
        Ok(off.abs() <= tolerance)
    }
}
