//! Adds distances where the seek curve deviates from the line between two measured points.
//!
//! ```text
//!   time                   x    found by two probes: one comes too early or too late
//!                        .' '.
//!      x -------------- o --- '- x     o  expected there
//!      low                      high
//! ```
//!
//! Measured curves are not monotonic, and have single outliers. A probe costs two seeks: one that
//! should just come in time, and one that should just miss. If the result is a surprise, the
//! distance is measured, and both parts of the interval become doubtful. Intervals without a
//! surprise lose doubt. The next probe goes to the interval with most at stake.

use block::Direction;

use crate::arm::survey::{Subject, Survey, TrackDistance};
use crate::findings::SeekPoint;

/// The assumed error of an interval without probes, in nanoseconds: nearly that of the known tables
/// at their worst points. A choice.
const UNKNOWN: f64 = 400e3;

/// The remaining fraction of an interval's doubt after a probe without a surprise. A choice.
const KEPT: f64 = 0.7;

/// The doubt that is not worth a probe, in nanoseconds of error in a mean seek. A hundred such
/// intervals are a fifth of the permitted mean error of 50 us (issue 4); the rest is for noise and
/// for undetected bends.
const NEGLIGIBLE: f64 = 100.0;

/// Additional time of a seek that should come in time, in deviations. More would hide bends, less
/// would find false ones. A choice.
const MARGIN: f64 = 2.0;

/// Divisor of the number of answers where neighbours are known: a jagged curve gains more from
/// twice as many points than from more accurate points. A choice.
const FEWER: u32 = 2;

/// Minimum number of answers. A choice: with two, single points are 0.3 ms off.
const FEWEST: u32 = 4;

/// The result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probed {
    AsExpected,
    Surprise,
}

impl Survey<'_> {
    /// Measures reads over more distances, until no doubt is worth a probe or the effort's time is
    /// over.
    pub async fn refine(&mut self, points: &mut Vec<SeekPoint>, overhead: f64) {
        let mut doubts = vec![UNKNOWN; points.len().saturating_sub(1)];
        let until = self.trips.now() + self.effort.refining;
        while let Some(at) = most_doubtful(points, &doubts) {
            if self.trips.now() >= until {
                break;
            }
            let (low, high) = (points[at], points[at + 1]);
            let distance = low.distance + 1 + self.spread(high.distance - low.distance - 1);
            let expected = between(&low, &high, distance);
            let margin = MARGIN * self.scatter.deviation();
            let surprised =
                self.probe(distance, overhead + expected, margin).await == Probed::Surprise;
            let found = match surprised {
                true => self.point_near(distance, expected, overhead).await,
                false => None,
            };
            let Some(new) = found else {
                doubts[at] *= KEPT;
                continue;
            };
            let doubt = (nanos(&new) - expected).abs().max(doubts[at] * KEPT);
            points.insert(at + 1, new);
            doubts[at] = doubt;
            doubts.insert(at + 1, doubt);
        }
    }

    /// Measures a distance with an expected time.
    async fn point_near(
        &mut self,
        distance: u32,
        expected: f64,
        overhead: f64,
    ) -> Option<SeekPoint> {
        let near = Some((overhead + expected, self.period / 16.0));
        let subject = self.subject(distance, Direction::Read);
        let fewer = Subject {
            samples: (subject.samples / FEWER).max(FEWEST),
            ..subject
        };
        let found = self.agreed(fewer, [near; 2]).await?;
        Some(super::curve::point(distance, &found, overhead))
    }

    /// Tries a seek that should just come in time, and one that should just miss.
    async fn probe(&mut self, distance: u32, expected: f64, margin: f64) -> Probed {
        let Some([one, other]) = self.pair(TrackDistance::Cylinders(distance)) else {
            return Probed::AsExpected;
        };
        for (from, to, lead) in [
            (one, other, expected + margin),
            (other, one, expected - margin),
        ] {
            let answer = self.trips.try_once(&from, &to, lead).await;
            if answer.is_some_and(|answer| !answer.holds(expected)) {
                return Probed::Surprise;
            }
        }
        Probed::AsExpected
    }
}

/// The value of the line between two points.
fn between(low: &SeekPoint, high: &SeekPoint, distance: u32) -> f64 {
    let run = f64::from(high.distance - low.distance);
    let share = f64::from(distance - low.distance) / run;
    nanos(low) + share * (nanos(high) - nanos(low))
}

/// The interval with the most doubt at stake; `None` if no doubt is worth a probe. A third of the
/// seeks is assumed random, a third log-uniform as those of ordered requests, and a third uniform,
/// as tables are judged (issue 4).
fn most_doubtful(points: &[SeekPoint], doubts: &[f64]) -> Option<usize> {
    let stroke = f64::from(points.last()?.distance);
    let at_stake = |at: usize| {
        let low = f64::from(points[at].distance);
        let high = f64::from(points[at + 1].distance);
        let random = (high - low) * (2.0 * stroke - low - high) / (stroke * stroke);
        // The doublings to the stroke, of which there are some 16, are as likely as each other.
        let doublings = (high - low) / low / 16.0;
        let alike = (high - low) / stroke;
        doubts[at] * (random + doublings + alike) / 3.0
    };
    let doubtful = |at: &usize| {
        at_stake(*at) > NEGLIGIBLE && points[at + 1].distance - points[*at].distance >= 2
    };
    let all = (0..doubts.len()).filter(doubtful);
    all.max_by(|&one, &other| at_stake(one).total_cmp(&at_stake(other)))
}

fn nanos(point: &SeekPoint) -> f64 {
    point.mean.as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::Duration;

    fn points(distances: &[u32]) -> Vec<SeekPoint> {
        let point = |&distance: &u32| SeekPoint {
            distance,
            mean: Duration::from_micros(1000),
            ..SeekPoint::default()
        };
        distances.iter().map(point).collect()
    }

    #[test]
    fn doubt_counts_by_how_many_seeks_it_concerns() {
        let points = points(&[1, 100, 200, 1000, 1001]);
        assert_eq!(most_doubtful(&points, &[0.0, 60e3, 60e3, 1e9]), Some(2));
        assert_eq!(most_doubtful(&points, &[0.0, 600e3, 60e3, 1e9]), Some(1));
        assert_eq!(most_doubtful(&points, &[0.0, 150.0, 150.0, 1e9]), None);
    }
}
