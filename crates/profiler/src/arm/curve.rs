//! The seek curve by distance, for reads and writes and both directions.

use block::{Direction, Duration};
use drive::Geometry;
use drive::seek::SeekTable;

use crate::arm::Effort;
use crate::arm::survey::{BASE, Near, Subject, Survey, ThereAndBack, TrackDistance, middle};
use crate::arm::threshold::MeasuredTime;
use crate::confidence::Confidence;
use crate::device::WritePermission;
use crate::findings::{ArmTimings, SeekPoint};
use crate::prober::Prober;

/// Measures the arm of a drive with a known layout, and stores the findings. The angles of the
/// layout must be those of the clock.
///
/// Returns `None` if the clock is not running, or no two measurements agree. Without cache control
/// every measurement has tracks of its own, and that of the overhead goes from the last block of a
/// track to its first ones, which no look-ahead has read.
pub async fn measure(prober: &Prober, geometry: &Geometry, effort: Effort) -> Option<()> {
    let mut survey = Survey::new(prober, geometry, effort)?;
    let distances = distances(survey.stroke()?).into_iter();
    let mut distances: Vec<u32> = distances.map(|over| survey.reachable(over)).collect();
    distances.sort_unstable();
    distances.dedup();
    let reads = survey.direction(Direction::Read, &distances, None).await?;
    let mut arm = ArmTimings {
        head_switch: reads
            .switch
            .or(untold_switch(geometry, &reads))
            .unwrap_or_default(),
        read: reads.points,
        overhead: Duration::from_nanos(reads.overhead.max(0.0) as u64),
        ..ArmTimings::default()
    };
    if prober.device().writes == WritePermission::Allowed
        && let Ok(like) = arm.read_table(geometry.cylinders())
        && let Some(writes) = survey
            .direction(Direction::Write, &distances, Some(&like))
            .await
    {
        let settle = match (writes.switch, reads.switch) {
            (Some(write), Some(read)) => write.as_nanos() as i64 - read.as_nanos() as i64,
            _ => 0,
        };
        arm.write_settle_nanos = settle;
        arm.write = writes
            .points
            .iter()
            .map(|point| earlier(point, settle))
            .collect();
    }
    survey.refine(&mut arm.read, reads.overhead).await;
    let table = arm.read_table(geometry.cylinders()).ok()?;
    arm.confidence = survey.check(&table, reads.overhead).await;
    if !reads.is_told {
        arm.confidence = arm.confidence.min(untold());
    }
    arm.deviation = Duration::from_nanos(survey.scatter.deviation() as u64);
    prober.findings(|findings| findings.arm = Some(arm));
    Some(())
}

/// A head switch that could not be measured takes as long as the shortest seek: it settles as that does, and moves the arm less.
fn untold_switch(geometry: &Geometry, reads: &MeasuredSeeks) -> Option<Duration> {
    let seek = reads.points.first().filter(|_| geometry.surfaces() > 1);
    seek.map(|seek| seek.mean)
}

/// The confidence in seeks of which only the sum with the overhead is told: of three kinds of ways, those on a track are not
/// as predicted.
fn untold() -> Confidence {
    Confidence::of(1, 1)
}

/// The distances of FAST 2002: all to 10, every second to 20, fifth to 50, tenth to 100, then steps
/// of a quarter, and the full stroke.
fn distances(stroke: u32) -> Vec<u32> {
    let near = (1..=10).chain((12..=20).step_by(2));
    let middle = (25..=50).step_by(5).chain((60..=100).step_by(10));
    let mut distances: Vec<u32> = near.chain(middle).collect();
    let mut far = 125;
    // The last two are not much nearer to each other than the others.
    while far < stroke - stroke / 10 {
        distances.push(far);
        far += far / 4;
    }
    distances.retain(|&distance| distance < stroke);
    distances.push(stroke);
    distances
}

/// Measurements of reads, or of writes.
struct MeasuredSeeks {
    /// Time between blocks of one track, in nanoseconds.
    overhead: f64,
    /// Whether it is told: otherwise it is too long, and seeks are too short by as much.
    is_told: bool,
    /// The head switch without the overhead; `None` for one surface.
    switch: Option<Duration>,
    /// Seeks without the overhead.
    points: Vec<SeekPoint>,
}

/// Expected maximum difference from the previous distance's seek, as a fraction of a revolution;
/// larger ones take longer to find. A choice.
const STEP: f64 = 1.0 / 8.0;

/// A distance that cannot be measured is shortened by this part of it. A choice: those of the table
/// differ by a fifth.
const SHORTER: u32 = 50;

/// Number of shortened distances to try. A choice.
const LESS: u32 = 4;

/// The same where the curve is expected to rise like another one. A choice.
const LIKE: f64 = 1.0 / 48.0;

impl Survey<'_> {
    /// A seek.
    pub fn subject(&self, distance: u32, direction: Direction) -> Subject {
        Subject {
            gap: TrackDistance::Cylinders(distance),
            direction,
            samples: match direction {
                Direction::Read => self.effort.samples,
                Direction::Write => self.effort.write_samples,
            },
        }
    }

    async fn direction(
        &mut self,
        direction: Direction,
        distances: &[u32],
        like: Option<&SeekTable>,
    ) -> Option<MeasuredSeeks> {
        let (overhead, is_told) = self.overhead(direction).await?;
        let mut switch = None;
        if self.geometry.surfaces() > 1 {
            let surfaces = Subject {
                gap: TrackDistance::Surfaces,
                direction,
                samples: self.effort.samples * BASE,
            };
            let near = Some((overhead, self.period * STEP));
            let found = self.agreed(surfaces, [near; 2]).await;
            switch = found.map(|found| after(middle(&found), overhead));
        }
        let mut points = Vec::new();
        let mut before: Option<(u32, ThereAndBack<MeasuredTime>)> = None;
        for &distance in distances {
            let Some((distance, found)) = self.about(distance, direction, before, like).await
            else {
                continue;
            };
            before = Some((distance, found));
            points.push(point(distance, &found, overhead));
        }
        Some(MeasuredSeeks {
            overhead,
            is_told,
            switch,
            points,
        })
    }

    /// Measures a distance, or a slightly shorter one if that is impossible: the full stroke lies
    /// between few tracks only, and the table must reach it.
    async fn about(
        &mut self,
        distance: u32,
        direction: Direction,
        before: Option<(u32, ThereAndBack<MeasuredTime>)>,
        like: Option<&SeekTable>,
    ) -> Option<(u32, ThereAndBack<MeasuredTime>)> {
        let less = (0..LESS).map(|times| distance - distance / SHORTER * times);
        let mut tried = 0;
        for distance in less {
            if distance == tried {
                continue;
            }
            tried = distance;
            let near = self.near(before, distance, like);
            let subject = self.subject(distance, direction);
            if let Some(found) = self.agreed(subject, near).await {
                return Some((distance, found));
            }
        }
        None
    }

    /// The expected time over a distance, from that over another one.
    fn near(
        &self,
        before: Option<(u32, ThereAndBack<MeasuredTime>)>,
        distance: u32,
        like: Option<&SeekTable>,
    ) -> ThereAndBack<Near> {
        let Some((last, found)) = before else {
            return [None; 2];
        };
        let time = |table: &SeekTable, distance| table.time(distance).as_nanos() as f64;
        let (rise, off) = match like {
            Some(like) => (time(like, distance) - time(like, last), LIKE),
            None => (0.0, STEP),
        };
        found.map(|way| Some((way.mean.as_nanos() as f64 + rise, self.period * off)))
    }
}

/// A time without the overhead.
fn after(time: f64, overhead: f64) -> Duration {
    Duration::from_nanos((time - overhead).max(0.0).round() as u64)
}

pub(super) fn point(distance: u32, ways: &ThereAndBack<MeasuredTime>, overhead: f64) -> SeekPoint {
    let [inward, outward] = ways.map(|way| after(way.mean.as_nanos() as f64, overhead));
    let [there, back] = ways.map(|way| way.deviation.as_nanos());
    SeekPoint {
        distance,
        mean: after(middle(ways), overhead),
        deviation: Duration::from_nanos(u64::midpoint(there, back)),
        inward,
        outward,
    }
}

/// The same seek without settling.
fn earlier(point: &SeekPoint, settle: i64) -> SeekPoint {
    let adjusted = |time: Duration| time.adjusted(settle.saturating_neg());
    SeekPoint {
        mean: adjusted(point.mean),
        inward: adjusted(point.inward),
        outward: adjusted(point.outward),
        ..*point
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distances_of_the_paper() {
        let all = distances(1000);
        assert_eq!(all[..12], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14]);
        assert_eq!(all[15..22], [25, 30, 35, 40, 45, 50, 60]);
        assert_eq!(all[26..30], [125, 156, 195, 243]);
        assert_eq!(all.last(), Some(&1000));
        assert_eq!(distances(3), [1, 2, 3]);
    }

    #[test]
    fn an_unmeasured_head_switch_is_the_shortest_seek_where_there_are_heads() {
        let point = |distance, micros| SeekPoint {
            distance,
            mean: Duration::from_micros(micros),
            ..SeekPoint::default()
        };
        let reads = MeasuredSeeks {
            overhead: 0.0,
            is_told: true,
            switch: None,
            points: vec![point(1, 900), point(2, 1100)],
        };
        let geometry = |name: &str| {
            let shipped = drive::catalog::find(name).expect("it is shipped");
            shipped.profile().expect("a profile").geometry
        };
        let rz26 = geometry("dec-rz26");
        assert!(rz26.surfaces() > 1);
        let seek = Some(Duration::from_micros(900));
        assert_eq!(untold_switch(&rz26, &reads), seek);
        assert_eq!(
            untold_switch(&geometry("hitachi-travelstar-80gn"), &reads),
            None
        );
    }
}
