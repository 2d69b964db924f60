//! Seek times by distance: a table with interpolation, or a formula converted to one.

use std::sync::Arc;

use block::Duration;

/// Seek times by distance in cylinders, for reads and for writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeekCurve {
    read: SeekTable,
    write: SeekTable,
}

/// One direction's table: as measured, not necessarily monotonic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeekTable {
    /// (distance in cylinders, nanoseconds), strictly ascending distances, never empty.
    points: Vec<(u32, u64)>,
    /// The time for each distance, for all distances of the drive.
    nanos: Arc<[u32]>,
    /// For each point, a lower bound of all times over its distance or a longer one; ascending.
    least: Vec<u64>,
    /// For each step of `2^step_shift` nanoseconds, the distance beyond which every seek takes longer than the step's end.
    reach: Arc<[u32]>,
    step_shift: u32,
}

/// The most steps of [`SeekTable::reach`]. A choice: a step is 0.4 % of the longest seek at most, and the steps
/// fill 2 KiB.
const STEPS: u64 = 512;

/// The reason that a list of points is no seek table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeekError {
    /// The list is empty.
    #[error("a seek table without points: expected at least one (distance, time)")]
    Empty,
    /// The distances do not ascend.
    #[error("distance {1} after {0}: expected distances from 1 upwards, each larger than the last")]
    NotAscending(u32, u32),
    /// A time exceeds the longest stroke of an arm.
    #[error("a seek of {0} ns over {1} cylinders: expected at most 4 seconds")]
    TooLong(u64, u32),
}

impl SeekTable {
    /// A table with these (distance, time) points, for a drive of `cylinders` cylinders.
    ///
    /// It is linear between points and beyond the last two, and constant below the first. Distance
    /// 0 takes no time.
    ///
    /// # Errors
    /// If the list is empty, the distances do not ascend from 1, or a time is absurd.
    pub fn new(points: Vec<(u32, Duration)>, cylinders: u32) -> Result<Self, SeekError> {
        let points: Vec<(u32, u64)> = points.into_iter().map(|(d, t)| (d, t.as_nanos())).collect();
        if points.is_empty() {
            return Err(SeekError::Empty);
        }
        let mut before = 0;
        for &(distance, nanos) in &points {
            if distance <= before {
                return Err(SeekError::NotAscending(before, distance));
            }
            if nanos > 4_000_000_000 {
                return Err(SeekError::TooLong(nanos, distance));
            }
            before = distance;
        }
        let nanos: Arc<[u32]> = (0..cylinders.max(2))
            .map(|d| interpolate(&points, d))
            .collect();
        // Lines are lowest at an end: a point, or the end of the disk.
        let mut lowest = nanos.last().map_or(0, |&end| u64::from(end));
        let mut least: Vec<u64> = points
            .iter()
            .rev()
            .map(|&(_, time)| {
                lowest = lowest.min(time);
                lowest
            })
            .collect();
        least.reverse();
        let longest = u64::from(nanos.iter().copied().max().unwrap_or(0));
        let mut step_shift = 0;
        while longest >> step_shift >= STEPS {
            step_shift += 1;
        }
        let mut table = SeekTable {
            points,
            nanos,
            least,
            reach: Arc::new([]),
            step_shift,
        };
        let ends = (0..(longest >> step_shift) + 1).map(|step| ((step + 1) << step_shift) - 1);
        table.reach = ends
            .map(|end| table.farthest_within(Duration::from_nanos(end)))
            .collect();
        Ok(table)
    }

    /// The time for `distance` cylinders.
    pub fn time(&self, distance: u32) -> Duration {
        let last = self.nanos.len() - 1;
        Duration::from_nanos(u64::from(self.nanos[(distance as usize).min(last)]))
    }

    /// The distance beyond which every seek takes longer than `time`, which bounds a search.
    /// Measured tables are not monotonic: some shorter distances may take longer, too.
    ///
    /// ```text
    ///   time given  ----*-------------------*--------
    ///                  / \      ______     /
    ///                 /   \____/      \___/
    ///                '                    ^ this far
    /// ```
    fn farthest_within(&self, time: Duration) -> u32 {
        let time = time.as_nanos();
        let above = self.least.partition_point(|&least| least <= time);
        let Some(&(far, longer)) = self.points.get(above) else {
            return u32::MAX;
        };
        let Some(below) = above.checked_sub(1) else {
            return 0;
        };
        // The line rises from here, where it is not above `time`, to there, where it is.
        let (near, shorter) = self.points[below];
        // It fits: times are below 4 s.
        let run = (time - shorter + 1) * u64::from(far - near);
        near + run.div_ceil(longer - shorter) as u32 - 1
    }

    /// A distance beyond which every seek takes longer than `time`, which bounds a search. Some shorter distances may take
    /// longer, too: measured tables are not monotonic, and times are rounded up by 0.4 %
    /// of the longest seek at most.
    #[inline]
    pub fn reach(&self, time: Duration) -> u32 {
        let step = (time.as_nanos() >> self.step_shift) as usize;
        self.reach.get(step).copied().unwrap_or(u32::MAX)
    }

    /// The number of cylinders of the drive.
    pub fn cylinders(&self) -> u32 {
        self.nanos.len() as u32
    }

    /// The published points.
    pub fn points(&self) -> impl ExactSizeIterator<Item = (u32, Duration)> {
        self.points
            .iter()
            .map(|&(d, t)| (d, Duration::from_nanos(t)))
    }
}

impl SeekCurve {
    /// A curve from a table for reads and one for writes.
    pub fn new(read: SeekTable, write: SeekTable) -> Self {
        SeekCurve { read, write }
    }

    /// The table for reads (and for seeks without transfer).
    pub fn read(&self) -> &SeekTable {
        &self.read
    }

    /// The table for writes.
    pub fn write(&self) -> &SeekTable {
        &self.write
    }
}

/// The value at `distance` of the line through the neighbouring points, at least zero, at most
/// what fits: a stroke beyond 4 seconds is no drive's.
fn interpolate(points: &[(u32, u64)], distance: u32) -> u32 {
    if distance == 0 {
        return 0;
    }
    let above = points.partition_point(|&(d, _)| d < distance);
    let (low, high) = match (above, points.len()) {
        (_, 1) | (0, _) => return points[0].1 as u32,
        (a, n) if a == n => (points[n - 2], points[n - 1]),
        (a, _) => (points[a - 1], points[a]),
    };
    let rise = high.1 as i128 - low.1 as i128;
    let run = i128::from(high.0 - low.0);
    let nanos = low.1 as i128 + rise * (i128::from(distance) - i128::from(low.0)) / run;
    nanos.clamp(0, i128::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(points: &[(u32, u64)]) -> SeekTable {
        let points = points
            .iter()
            .map(|&(d, us)| (d, Duration::from_micros(us)))
            .collect();
        SeekTable::new(points, 1000).expect("a valid table")
    }

    #[test]
    fn linear_between_points_and_beyond_them() {
        let seek = table(&[(1, 1000), (2, 900), (10, 1700), (100, 2600)]);
        for (distance, micros) in [
            (0, 0),
            (1, 1000),
            (2, 900),
            (6, 1300),
            (10, 1700),
            (55, 2150),
            (100, 2600),
            (110, 2700),
        ] {
            assert_eq!(
                seek.time(distance),
                Duration::from_micros(micros),
                "distance {distance}"
            );
        }
    }

    #[test]
    fn farther_than_the_farthest_within_a_time_everything_takes_longer() {
        let tables: [&[(u32, u64)]; 6] = [
            &[(1, 1000), (2, 900), (10, 1700), (100, 2600)],
            // An outlier, as that of the Atlas 10K at 4,700 cylinders.
            &[(3, 500), (40, 700), (50, 1900), (60, 701), (900, 3000)],
            &[(1, 800)],
            &[(1, 900), (500, 900), (600, 100)],
            &[(1, 100), (998, 3000), (5000, 10)],
            &[(7, 100), (5000, 9000)],
        ];
        for points in tables {
            let seek = table(points);
            for nanos in (0..4_000_000)
                .step_by(7_919)
                .chain([100_000, 700_000, 900_000])
            {
                let within = |d: &u32| seek.time(*d).as_nanos() <= nanos;
                let expected = (0..1000).rev().find(within).expect("distance 0");
                let farthest = seek.farthest_within(Duration::from_nanos(nanos));
                assert!(farthest >= expected, "{points:?}: {nanos} ns");
                let reach = seek.reach(Duration::from_nanos(nanos));
                let step = 1 << seek.step_shift;
                let after = seek.farthest_within(Duration::from_nanos(nanos + step));
                assert!(
                    (farthest..=after).contains(&reach),
                    "{points:?}: {nanos} ns"
                );
                // Within the points of the disk it is not only not too near.
                let exact = points.iter().all(|point| point.0 < 1000) && points[0].0 == 1;
                if exact && farthest < points[points.len() - 1].0 {
                    assert_eq!(farthest, expected, "{points:?}: {nanos} ns");
                }
            }
        }
    }

    #[test]
    fn one_point_is_a_constant() {
        let seek = table(&[(5, 800)]);
        assert_eq!(seek.time(1), seek.time(999));
    }

    #[test]
    fn points_out_of_order_are_refused() {
        let point = |d| (d, Duration::from_micros(1));
        for (points, error) in [
            (vec![], SeekError::Empty),
            (vec![point(0)], SeekError::NotAscending(0, 0)),
            (vec![point(3), point(3)], SeekError::NotAscending(3, 3)),
        ] {
            assert_eq!(SeekTable::new(points, 10), Err(error));
        }
    }
}
