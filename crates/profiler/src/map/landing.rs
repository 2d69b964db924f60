//! The landings of leaps: whether a track begins where a pattern says, and how far off it is.
//!
//! ```text
//!   |--- track ---|--- track ---|          a leap lands by the last block of one and the first of the next;
//!                x y . . .                 behind a host that delays, some blocks behind it tell the angle, too
//! ```

use block::Lba;
use drive::Angle;

use super::explore::Explorer;
use super::observer::{Care, Observer, width};
use super::sector_line::NoTrack;
use super::track_cycle::{TrackCycle, TrackKind};
use crate::clock::{apart, median};

/// The share of a landing's error in the mean of those before it. A choice.
const SPREAD_GAIN: f64 = 0.1;

/// The share of a landing's error that is believed behind a host that delays: of a leap that is longer than those
/// before, and of others. A choice: the error of the turns grows with the leap, that of the landing does not.
const LANDING_GAINS: (f64, f64) = (0.8, 0.5);

/// Leaps over so many tracks land by more sightings behind such a host: they tell where all of the tracks are. A
/// choice.
const LONG_LEAP: u64 = 8;

/// How much farther off a landing may be behind such a host if its leap is so many times as long as those before.
/// A choice: with more, leaps by a mean of turns pass over longer turns between cylinders.
const MOST_GROWN: f64 = 1.5;

/// How far off it may be besides, as a share of the skew before it: a boundary one block farther is not taken
/// for it. A choice: less than half.
const OF_SKEW: f64 = 0.4;

/// Landings that are farther off than so many times the mean are not believed. A choice: five
/// standard deviations, if the errors are normal.
const FAR: f64 = 6.0;

/// The same of the median of several sightings, as so many times its usual error.
const EXACT: f64 = 2.0;

/// Long leaps may always be so far off, in revolutions. A choice: where heads change within a leap by a mean of turns, angles are off
/// by half of it at most.
const HARMLESS: f64 = 0.024;

/// Landings are never asked to be more exact than by this share of a sector. A choice.
const FINEST: f64 = 0.02;

impl Explorer {
    /// Looks at the boundary before the track so many tracks ahead, where so many blocks are missing before it; answers how
    /// far off it is, in revolutions, if it is where it should be. A quick look is at the block before it only: a
    /// sector that is left out moves the boundary over it.
    pub(super) async fn landing(
        &mut self,
        track_cycle: &TrackCycle,
        (ahead, missing): (u64, u32),
        care: Care,
    ) -> Result<Option<f64>, NoTrack> {
        let stretch = track_cycle.ahead(ahead);
        let next = Lba(self.first.0 + stretch.blocks - u64::from(missing));
        let before = track_cycle.kind_ahead(ahead - 1);
        let (mut behind, mut offs) = (None, Vec::new());
        if care == Care::Sure {
            let tolerance = self.tolerance(&before, track_cycle.growth(ahead));
            // Look-ahead reads what is above: downwards no block is in the buffer.
            let kind = track_cycle.kind_ahead(ahead);
            let begin = (next, self.start + stretch.turn);
            let has_room = begin.0.0 + u64::from(kind.blocks) < self.limit.0;
            if self.observer.late() > 0.0 && ahead >= LONG_LEAP && has_room {
                for block in Observer::beside(kind.sectors) {
                    let Some(off) = self.lands_on(begin, block, (&kind, tolerance)).await? else {
                        return Ok(None);
                    };
                    offs.push(off);
                }
            }
            behind = self.lands_on(begin, 0, (&kind, tolerance)).await?;
            if behind.is_none() {
                return Ok(None);
            }
        }
        let expected = before.end(self.start + track_cycle.ahead(ahead - 1).turn);
        let last = Lba(next.0 - 1);
        let tolerance = self.tolerance(&before, track_cycle.growth(ahead));
        let off = self
            .lands(last, expected, (&before, tolerance), care)
            .await?;
        let (Some(off), Some(behind)) = (off, behind) else {
            return Ok(off);
        };
        if self.observer.late() == 0.0 {
            return Ok(Some(behind));
        }
        offs.extend([off, behind]);
        // The median of some is as exact as its error says, and single sightings are not.
        let exact = EXACT * self.observer.error_of(offs.len()) * self.grown(track_cycle, ahead);
        let exact = exact.max(HARMLESS);
        let is_exact = offs.len() > 2;
        let off = median(&mut offs);
        Ok((!is_exact || off.abs() <= exact).then_some(off))
    }

    /// How far off a block of a track is that begins with another one there, if it is not far off.
    async fn lands_on(
        &mut self,
        (first, start): (Lba, Angle),
        block: u64,
        kind: (&TrackKind, f64),
    ) -> Result<Option<f64>, NoTrack> {
        let expected = start + width(kind.0.sectors).times(block + 1);
        let lba = Lba(first.0 + block);
        self.lands(lba, expected, kind, Care::Sure).await
    }

    /// How far off a block is, if it is not far off.
    async fn lands(
        &mut self,
        lba: Lba,
        expected: Angle,
        (kind, tolerance): (&TrackKind, f64),
        care: Care,
    ) -> Result<Option<f64>, NoTrack> {
        let mut off = self.observer.off(lba, expected, tolerance, care).await?;
        if off.abs() > tolerance && care == Care::Sure && self.observer.wanders() {
            self.observer.recover().await?;
            off = self.observer.off(lba, expected, tolerance, care).await?;
        }
        if off.abs() <= kind.tolerance() {
            // Whether it is believed or not: too narrow a tolerance widens again.
            self.spread += SPREAD_GAIN * (off.abs() - self.spread);
        }
        Ok((off.abs() <= tolerance).then_some(off))
    }

    /// How far off the landing behind a track may be: not much farther than others were. Behind a host the
    /// turns of leaps that are longer than those before are not known better.
    pub(super) fn tolerance(&self, before: &TrackKind, growth: f64) -> f64 {
        let usual = FAR * self.spread + FINEST / f64::from(before.sectors);
        let usual = usual.min(before.tolerance());
        let late = self.observer.late();
        if late == 0.0 {
            return usual;
        }
        let skew = apart(before.end(Angle::ZERO), before.turn).abs();
        (usual * growth.clamp(1.0, MOST_GROWN))
            .min((skew * OF_SKEW).max(self.observer.late_at_most()))
    }

    /// By how many errors of a median a leap may be off: those of its two ends, and that of its turns, which grows with it.
    fn grown(&self, cycle: &TrackCycle, ahead: u64) -> f64 {
        (2.0 + cycle.growth(ahead).powi(2)).sqrt()
    }

    /// What is believed of the error of a landing.
    pub(super) fn believed(&self, off: f64, growth: f64) -> f64 {
        match (self.observer.late() > 0.0, growth >= 1.0) {
            (false, _) => off,
            (true, true) => off * LANDING_GAINS.0,
            (true, false) => off * LANDING_GAINS.1,
        }
    }
}
