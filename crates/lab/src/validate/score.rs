//! The measures of a model's quality.

use block::{Direction, Duration};

use super::Sample;

/// The demerits and means of one replay, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// The number of requests.
    pub requests: usize,
    /// The root mean square distance of the two distributions.
    pub demerit: f64,
    /// The demerit of reads.
    pub demerit_read: f64,
    /// The demerit of writes.
    pub demerit_write: f64,
    /// Mean of the measured service times.
    pub measured_mean: f64,
    /// Mean of the simulated service times.
    pub simulated_mean: f64,
}

impl Score {
    /// Compares `simulated`, in the order of the samples, with the measured times.
    ///
    /// # Panics
    /// If the numbers of samples and times differ.
    pub fn of(samples: &[Sample], simulated: &[Duration]) -> Score {
        assert_eq!(
            samples.len(),
            simulated.len(),
            "every sample has one simulated time"
        );
        let measured: Vec<Duration> = samples.iter().map(|sample| sample.service).collect();
        let of_direction = |direction| {
            let of = |times: &[Duration]| -> Vec<Duration> {
                let pairs = samples.iter().zip(times);
                pairs
                    .filter(|(s, _)| s.direction == direction)
                    .map(|(_, &t)| t)
                    .collect()
            };
            demerit(of(&measured), of(simulated))
        };
        Score {
            requests: samples.len(),
            demerit: demerit(measured.clone(), simulated.to_vec()),
            demerit_read: of_direction(Direction::Read),
            demerit_write: of_direction(Direction::Write),
            measured_mean: mean(&measured),
            simulated_mean: mean(simulated),
        }
    }
}

/// The demerit figure (Ruemmler and Wilkes 1994): the root mean square of the differences of
/// equal ranks, in milliseconds. Zero for no requests.
pub fn demerit(mut measured: Vec<Duration>, mut simulated: Vec<Duration>) -> f64 {
    measured.sort_unstable();
    simulated.sort_unstable();
    let squares = measured.iter().zip(&simulated).map(|(m, s)| {
        let difference = m.as_millis_f64() - s.as_millis_f64();
        difference * difference
    });
    (squares.sum::<f64>() / measured.len().max(1) as f64).sqrt()
}

/// The median of |simulated - measured|, in milliseconds; `None` for no requests.
pub fn median_error(samples: &[Sample], simulated: &[Duration]) -> Option<f64> {
    let mut errors: Vec<u64> = samples
        .iter()
        .zip(simulated)
        .map(|(sample, s)| sample.service.as_nanos().abs_diff(s.as_nanos()))
        .collect();
    errors.sort_unstable();
    let middle = errors.len() / 2;
    match errors.len() {
        0 => None,
        n if n % 2 == 1 => Some(errors[middle] as f64 * 1e-6),
        _ => Some((errors[middle - 1] + errors[middle]) as f64 * 0.5e-6),
    }
}

/// The mean in milliseconds; zero for no times.
pub fn mean(times: &[Duration]) -> f64 {
    let nanos: u128 = times.iter().map(|t| u128::from(t.as_nanos())).sum();
    nanos as f64 * 1e-6 / times.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use block::{Extent, Instant, Lba, Sectors};
    use proptest::prelude::*;

    use super::*;

    fn millis(times: &[u64]) -> Vec<Duration> {
        times.iter().map(|&t| Duration::from_millis(t)).collect()
    }

    #[test]
    fn the_demerit_compares_ranks_not_requests() {
        assert_eq!(demerit(millis(&[1, 2, 3]), millis(&[3, 1, 2])), 0.0);
        assert_eq!(demerit(millis(&[1, 2, 3, 4]), millis(&[6, 5, 3, 4])), 2.0);
        assert_eq!(demerit(vec![], vec![]), 0.0);
    }

    /// The same by its definition: the smallest of both, then the smallest of the others, ...
    fn naive(mut measured: Vec<u64>, mut simulated: Vec<u64>) -> f64 {
        let count = measured.len();
        let mut sum = 0.0;
        while !measured.is_empty() {
            let smallest = |times: &mut Vec<u64>| {
                let least = *times.iter().min().expect("as many of both");
                let place = times.iter().position(|&time| time == least);
                times.remove(place.expect("it is there")) as f64 / 1e6
            };
            sum += (smallest(&mut measured) - smallest(&mut simulated)).powi(2);
        }
        (sum / count.max(1) as f64).sqrt()
    }

    proptest! {
        #[test]
        fn the_demerit_is_that_of_the_definition(
            pairs in proptest::collection::vec((0u64..60_000_000, 0u64..60_000_000), 0..60),
            reads in proptest::collection::vec(any::<bool>(), 60),
        ) {
            let samples: Vec<Sample> = pairs
                .iter()
                .zip(&reads)
                .map(|(&(measured, _), &read)| Sample {
                    direction: if read { Direction::Read } else { Direction::Write },
                    extent: Extent::new(Lba(0), Sectors(1)).expect("an extent"),
                    issued: Instant::ZERO,
                    service: Duration::from_nanos(measured),
                    think: Duration::ZERO,
                })
                .collect();
            let simulated: Vec<Duration> =
                pairs.iter().map(|&(_, s)| Duration::from_nanos(s)).collect();
            let score = Score::of(&samples, &simulated);
            let of = |wanted: &dyn Fn(bool) -> bool| {
                let chosen = pairs.iter().zip(&reads).filter(|&(_, &read)| wanted(read));
                let (measured, simulated) = chosen.map(|(&pair, _)| pair).unzip();
                naive(measured, simulated)
            };
            let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
            prop_assert!(near(score.demerit, of(&|_| true)));
            prop_assert!(near(score.demerit_read, of(&|read| read)));
            prop_assert!(near(score.demerit_write, of(&|read| !read)));
        }
    }

    #[test]
    fn the_median_error_is_that_of_requests() {
        let sample = |service| Sample {
            direction: Direction::Read,
            extent: Extent::new(Lba(0), Sectors(1)).expect("an extent"),
            issued: Instant::ZERO,
            service: Duration::from_millis(service),
            think: Duration::ZERO,
        };
        let samples = [1, 2, 3, 4].map(sample);
        assert_eq!(median_error(&samples, &millis(&[1, 3, 6, 40])), Some(2.0));
        assert_eq!(median_error(&samples[..3], &millis(&[4, 2, 5])), Some(2.0));
        assert_eq!(median_error(&[], &[]), None);
        assert_eq!(mean(&millis(&[1, 2, 6])), 3.0);
    }
}
