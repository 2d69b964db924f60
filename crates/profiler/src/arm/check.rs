//! The accuracy of a seek table: fresh pairs of tracks are measured and compared with its
//! predictions.
//!
//! ```text
//!   found - predicted    -NEAR         0         +NEAR
//!                      ----|-----x--x-xx---x-------|------x---
//!                                  as predicted           not so
//! ```
//!
//! Single seeks that come in time, or too late, as predicted are not sufficient evidence. Their
//! permitted error grows with the scatter of all seeks, and wrong distances scatter, too. Each pair
//! is therefore measured on its own, and compared with the table by the error that the goal
//! permits.

use block::Direction;
use drive::seek::SeekTable;

use crate::arm::survey::{Survey, ThereAndBack, TrackDistance};
use crate::arm::threshold::Threshold;
use crate::arm::track_blocks::TrackBlocks;
use crate::confidence::Confidence;
use crate::findings::NEAR_NANOS;

/// Maximum difference of a measured pair from the table, in nanoseconds. The noise of a measurement with [`ANSWERS`] takes
/// half of it.
const NEAR: f64 = NEAR_NANOS as f64;

/// Answers near the threshold for each pair, both directions together. A choice: seeks that scatter
/// by 60 us are measured to 25.
const ANSWERS: u32 = 8;

/// Maximum trips per pair: some are needed for halving, and some are void. A choice.
const TRIPS: u32 = 40;

/// Distance of the two test predictions from the mean, in deviations.
const MARGIN: f64 = 3.0;

impl Survey<'_> {
    /// Predicts the times between fresh pairs of tracks: half of them over uniform distances, half
    /// over log-uniform ones.
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
            let holds = answer.holds(mean) && self.off(&pair, distance, mean).await.abs() <= NEAR;
            came_true += u32::from(holds);
        }
        Confidence::of(came_true, checks)
    }

    /// The difference of the mean of both directions from a prediction, in nanoseconds; infinite if
    /// the answers are contradictory. Without cache control each trip has a fresh pair of that
    /// distance.
    async fn off(
        &mut self,
        pair: &ThereAndBack<TrackBlocks>,
        distance: u32,
        predicted: f64,
    ) -> f64 {
        let mut search = Threshold::new(self.period, Some((predicted, self.period / 16.0)));
        for going in 0..TRIPS {
            let fresh = match self.trips.needs_fresh_tracks() {
                true => self.pair(TrackDistance::Cylinders(distance)),
                false => None,
            };
            let [one, other] = fresh.unwrap_or(*pair);
            let (from, to) = match going % 2 {
                0 => (other, one),
                _ => (one, other),
            };
            self.trips
                .step(&from, &to, Direction::Read, &mut search)
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
