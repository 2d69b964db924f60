//! What a table of seeks is worth: fresh pairs of tracks, for which it says a time, are measured.
//!
//! ```text
//!   found - predicted    -NEAR         0         +NEAR
//!                      ----|-----x--x-xx---x-------|------x---
//!                                  as predicted           not so
//! ```
//!
//! That single seeks come in time, and too late, as predicted is not enough: what they are allowed
//! to be off grows with what all seeks scatter by, and distances that are believed wrongly scatter,
//! too. So each pair is measured for itself, and held against the table by what the goal allows.

use block::Direction;
use drive::seek::SeekTable;

use crate::arm::reposition::TrackBlocks;
use crate::arm::survey::{Survey, ThereAndBack, TrackDistance};
use crate::arm::threshold::Threshold;
use crate::confidence::Confidence;

/// How far a measured pair may be from the table, in nanoseconds: twice what the table's mean error
/// may be (issue 4), of which a measurement by [`ANSWERS`] has half for its own noise.
const NEAR: f64 = 100e3;

/// Answers near the threshold for each pair, of both ways together. A choice: seeks that scatter by
/// 60 us are measured to 25.
const ANSWERS: u32 = 8;

/// At most so many goings for each pair: halving takes some, and some are void. A choice.
const TRIPS: u32 = 40;

/// A single seek is predicted so many deviations before and after the mean.
const MARGIN: f64 = 3.0;

impl Survey<'_> {
    /// Predicts the time between fresh pairs of tracks: half of random distances, half of distances
    /// of random length.
    pub async fn check(&mut self, table: &SeekTable, overhead: f64) -> Confidence {
        // Not the longest that was measured: the table answers for all.
        let longest = self.geometry.cylinders().saturating_sub(1).max(1);
        let (mut came_true, mut checks) = (0, 0);
        for check in 0..self.effort.checks {
            let within = match check % 4 {
                0 | 1 => longest,
                2 => longest.min(1000),
                _ => longest.min(100),
            };
            let distance = 1 + self.spread(within);
            let Some(pair) = self.pair(TrackDistance::Cylinders(distance)) else {
                continue;
            };
            let mean = overhead + table.time(distance).as_nanos() as f64;
            // One that just comes in time, or one that just does not.
            let margin = MARGIN * self.scatter.deviation();
            let lead = match check / 4 % 2 {
                0 => mean + margin,
                _ => mean - margin,
            };
            let Some(answer) = self.trips.try_once(&pair[0], &pair[1], lead).await else {
                continue;
            };
            checks += 1;
            let holds = answer.holds(mean) && self.off(&pair, mean).await.abs() <= NEAR;
            came_true += u32::from(holds);
        }
        Confidence::of(came_true, checks)
    }

    /// How far the mean of both ways between two tracks is from a prediction, in nanoseconds;
    /// infinitely far if the answers contradict each other.
    async fn off(&mut self, [one, other]: &ThereAndBack<TrackBlocks>, predicted: f64) -> f64 {
        let mut search = Threshold::new(self.period, Some((predicted, self.period / 16.0)));
        for going in 0..TRIPS {
            let (from, to) = match going % 2 {
                0 => (other, one),
                _ => (one, other),
            };
            self.trips
                .step(from, to, Direction::Read, &mut search)
                .await;
            if search.weighed() >= ANSWERS || search.is_hopeless() {
                break;
            }
        }
        let found = search.spread().filter(|_| search.weighed() >= ANSWERS);
        found.map_or(f64::INFINITY, |found| {
            found.mean.as_nanos() as f64 - predicted
        })
    }
}
