//! Measured seek times, and the seek tables of a profile derived from them.

use block::Duration;
use drive::seek::{SeekError, SeekTable};

use crate::confidence::Confidence;

/// Maximum difference of a time from that of a table which holds, in nanoseconds: twice the permitted mean error of
/// the table (issue 4).
pub(crate) const NEAR_NANOS: u64 = 100_000;

/// The findings about the arm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArmTimings {
    /// Measured seeks of reads, in ascending order.
    pub read: Vec<SeekPoint>,
    /// Measured seeks of writes without settling; empty without write permission.
    pub write: Vec<SeekPoint>,
    /// Switch time between surfaces of a cylinder; zero for a single surface. If it could not be measured, the shortest seek.
    pub head_switch: Duration,
    /// Time from the submission of a read to the first block of the same track that it can catch.
    pub overhead: Duration,
    /// Additional time of every repositioning for a write, in nanoseconds.
    pub write_settle_nanos: i64,
    /// Standard deviation of a single repositioning of a read, including overhead, over all seeks.
    pub deviation: Duration,
    /// The fraction of times between two fresh tracks that matched the table of reads.
    pub confidence: Confidence,
}

/// The seek over one distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeekPoint {
    /// Distance in cylinders.
    pub distance: u32,
    /// The mean of both directions.
    pub mean: Duration,
    /// Standard deviation of a single repositioning, including overhead. It rests on few answers,
    /// so it is rather too large.
    pub deviation: Duration,
    /// Time to higher cylinders.
    pub inward: Duration,
    /// Time to lower cylinders.
    pub outward: Duration,
}

impl ArmTimings {
    /// The seek table of reads, for a drive of `cylinders` cylinders.
    ///
    /// # Errors
    /// If there are no measurements.
    pub fn read_table(&self, cylinders: u32) -> Result<SeekTable, SeekError> {
        table(&self.read, cylinders)
    }

    /// The seek table of writes, for a drive of `cylinders` cylinders.
    ///
    /// # Errors
    /// If there are no measurements.
    pub fn write_table(&self, cylinders: u32) -> Result<SeekTable, SeekError> {
        table(&self.write_points(), cylinders)
    }

    /// Seeks of writes over all measured distances. Distances that were measured for reads only get
    /// the difference of writes and reads at the neighbouring distances. Empty without measurements
    /// of writes.
    pub fn write_points(&self) -> Vec<SeekPoint> {
        let mut points = self.write.clone();
        let (Some(last), Some(longest)) = (self.write.last(), self.read.last()) else {
            return points;
        };
        let Ok(reads) = self.read_table(longest.distance.max(last.distance) + 1) else {
            return points;
        };
        let longer = |point: &SeekPoint| nanos(point.mean) - nanos(reads.time(point.distance));
        for read in &self.read {
            let Err(above) = self
                .write
                .binary_search_by_key(&read.distance, |p| p.distance)
            else {
                continue;
            };
            let high = self.write.get(above).unwrap_or(last);
            let low = self.write[above.saturating_sub(1)];
            let run = i64::from(high.distance.abs_diff(low.distance)).max(1);
            let into = i64::from(read.distance.saturating_sub(low.distance)).min(run);
            let added = longer(&low) + (longer(high) - longer(&low)) * into / run;
            points.push(SeekPoint {
                mean: read.mean.adjusted(added),
                ..*read
            });
        }
        points.sort_by_key(|point| point.distance);
        points
    }

    /// The same with the transfer time of a one-block write's data, counted from the decoding of
    /// the command: a write on the current track waits for them.
    #[must_use]
    pub fn with_data(self, data: Duration) -> ArmTimings {
        ArmTimings {
            write_settle_nanos: self.write_settle_nanos.saturating_add(nanos(data)),
            ..self
        }
    }
}

fn table(points: &[SeekPoint], cylinders: u32) -> Result<SeekTable, SeekError> {
    let points = whole_stroke(points, cylinders.saturating_sub(1));
    let points = points.iter().map(|point| (point.distance, point.mean));
    SeekTable::new(points.collect(), cylinders)
}

/// The points and, if the measurements do not cover the whole stroke, one at its end: on the line
/// through the last point and the one of about half its distance. The last two points of a measured
/// table may have any slope.
pub(crate) fn whole_stroke(measured: &[SeekPoint], stroke: u32) -> Vec<SeekPoint> {
    let mut points = measured.to_vec();
    let Some(last) = measured.last().filter(|last| last.distance < stroke) else {
        return points;
    };
    let half = measured.partition_point(|point| point.distance <= last.distance / 2);
    let Some(half) = half.checked_sub(1).map(|place| measured[place]) else {
        return points;
    };
    let rise = last.mean.saturating_sub(half.mean).as_nanos() as f64;
    let more = rise * f64::from(stroke - last.distance) / f64::from(last.distance - half.distance);
    let end = last.mean + Duration::from_nanos(more as u64);
    points.push(SeekPoint {
        distance: stroke,
        mean: end,
        inward: end,
        outward: end,
        ..*last
    });
    points
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_last_distance_seeks_go_on_as_over_the_half_before_it() {
        let point = |distance, millis| SeekPoint {
            distance,
            mean: Duration::from_micros(millis),
            ..SeekPoint::default()
        };
        // The last two points alone would have 1,000 cylinders more take 80 ms.
        let measured = [
            point(1, 800),
            point(100, 2_000),
            point(190, 2_100),
            point(200, 3_000),
        ];
        let whole = whole_stroke(&measured, 1_200);
        assert_eq!(whole[..4], measured);
        assert_eq!(
            (whole[4].distance, whole[4].mean),
            (1_200, Duration::from_millis(13))
        );
        assert_eq!(whole_stroke(&measured, 200), measured);
    }
}
