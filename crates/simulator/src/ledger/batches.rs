//! The noise of a mean response time, by batch means (Law, *Simulation Modeling and Analysis*, 5th edition, section
//! 9.5.3), and the noise of the difference of two runs that serve the same requests (paired t, section 10.2.1).
//!
//! ```text
//!   arrivals  r r r r | r r r r | r r r r | ...    response times of neighbours depend on each other
//!   means       m1    |   m2    |   m3    | ...    means of long batches hardly do
//!   other run   n1    |   n2    |   n3    | ...    of the same requests: m1 - n1, m2 - n2, ...
//! ```
//!
//! A full set of batches is halved by joining neighbours, so that memory is bounded for runs of any length.

/// Sums over batches of consecutive arrivals. All batches have as many.
#[derive(Clone, Debug, Default)]
pub(super) struct Batches {
    /// The logarithm of the number of arrivals in a batch.
    log_length: u32,
    /// Number of requests and nanoseconds of each batch.
    sums: Vec<(u64, u128)>,
}

/// The mean response times of consecutive batches of a run's requests, in order of arrival.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchMeans(Vec<BatchMean>);

/// The mean of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
struct BatchMean {
    requests: u64,
    ms: f64,
}

/// The most batches that are kept. A choice: twice [`LEAST`], because joining halves them.
const MOST: usize = 64;

/// The fewest batches that tell the noise. Law, section 9.5.3, advises at most 20 to 30 long ones.
const LEAST: usize = MOST / 2;

/// Student's t for a confidence of 95 % with 31 degrees of freedom. With 62 it is 2.00.
const STUDENT: f64 = 2.04;

impl Batches {
    /// Adds the response time of an arrival, in nanoseconds. Arrivals are numbered from 0.
    pub(super) fn record(&mut self, number: u64, nanos: u64) {
        while number >> self.log_length >= MOST as u64 {
            let pairs = self.sums.chunks(2);
            let joined = pairs.map(|pair| {
                pair.iter()
                    .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
            });
            self.sums = joined.collect();
            self.log_length += 1;
        }
        let batch = (number >> self.log_length) as usize;
        if batch >= self.sums.len() {
            self.sums.resize(batch + 1, (0, 0));
        }
        let sum = &mut self.sums[batch];
        *sum = (sum.0 + 1, sum.1 + u128::from(nanos));
    }

    /// The means of the full batches. A batch without requests has none: its arrivals were skipped.
    pub(super) fn means(&self) -> BatchMeans {
        let full = match self.sums.split_last() {
            Some((last, before)) if last.0 < 1 << self.log_length => before,
            _ => &self.sums,
        };
        let served = full.iter().filter(|sum| sum.0 > 0);
        let means = served.map(|&(requests, nanos)| BatchMean {
            requests,
            ms: super::millis(nanos) / requests as f64,
        });
        BatchMeans(means.collect())
    }
}

impl BatchMeans {
    /// Half the width of the 95 % confidence interval of the mean, in milliseconds; `None` for fewer than
    /// 32 batches.
    pub fn margin_ms(&self) -> Option<f64> {
        margin(self.0.iter().map(|batch| batch.ms))
    }

    /// The same of the difference of the means of two runs that serve the same requests in the same order of arrival.
    /// `None` also for runs of different numbers of requests.
    pub fn paired_margin_ms(&self, other: &BatchMeans) -> Option<f64> {
        let requests = |means: &BatchMeans| -> Vec<u64> {
            means.0.iter().map(|batch| batch.requests).collect()
        };
        if requests(self) != requests(other) {
            return None;
        }
        let pairs = self.0.iter().zip(&other.0);
        margin(pairs.map(|(one, other)| one.ms - other.ms))
    }
}

/// Half the width of the 95 % confidence interval of the mean of so many independent values.
fn margin(values: impl ExactSizeIterator<Item = f64> + Clone) -> Option<f64> {
    let count = values.len();
    if count < LEAST {
        return None;
    }
    let mean = values.clone().sum::<f64>() / count as f64;
    let squares: f64 = values.map(|value| (value - mean).powi(2)).sum();
    let variance = squares / (count - 1) as f64;
    let margin = STUDENT * (variance / count as f64).sqrt();
    Some((margin * 1e6).round() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn means(values: impl IntoIterator<Item = u64>) -> BatchMeans {
        let mut batches = Batches::default();
        for (number, value) in (0..).zip(values) {
            batches.record(number, value * 1_000_000);
        }
        batches.means()
    }

    #[test]
    fn few_requests_tell_no_noise_and_equal_ones_have_none() {
        assert_eq!(means(vec![5; LEAST - 1]).margin_ms(), None);
        for count in [LEAST, MOST - 1, MOST, 1000, 12_345] {
            assert_eq!(means(vec![5; count]).margin_ms(), Some(0.0), "{count}");
        }
    }

    #[test]
    fn batches_are_the_means_of_equal_numbers_of_neighbours_in_any_order_of_their_ends() {
        let mut batches = Batches::default();
        // The ends of neighbours come in another order than their arrivals.
        for pair in 0..500 {
            batches.record(2 * pair + 1, (2 * pair + 1) * 1_000_000);
            batches.record(2 * pair, 2 * pair * 1_000_000);
        }
        let wanted = (0..62).map(|batch| BatchMean {
            requests: 16,
            ms: f64::from(batch * 16) + 7.5,
        });
        assert_eq!(
            batches.means(),
            BatchMeans(wanted.collect()),
            "62 of 16 and a rest of 8"
        );
    }

    #[test]
    fn skipped_arrivals_are_in_no_mean() {
        let mut batches = Batches::default();
        (0..128)
            .filter(|number| !(32..64).contains(number))
            .for_each(|number| batches.record(number, 5_000_000));
        let means = batches.means();
        assert_eq!(means.0.len(), 48);
        assert_eq!(means.margin_ms(), Some(0.0));
    }

    #[test]
    fn dependent_requests_have_a_wider_margin_than_independent_ones() {
        let alternating = means((0..4096).map(|at| at % 2 * 10)).margin_ms();
        let in_one_long_wave = means((0..4096).map(|at| at / 2048 * 10)).margin_ms();
        assert!(alternating.expect("many") < 0.01, "{alternating:?}");
        assert!(
            in_one_long_wave.expect("many") > 1.0,
            "{in_one_long_wave:?}"
        );
    }

    #[test]
    fn what_the_requests_of_two_runs_have_in_common_is_no_noise_of_their_difference() {
        let wave = |at: u64| 100 + at / 256 % 7 * 10;
        let one = means((0..4096).map(wave));
        let other = means((0..4096).map(|at| wave(at) + 1 + at / 128 % 2));
        let alone = one.margin_ms().expect("many");
        let paired = one.paired_margin_ms(&other).expect("the same requests");
        assert!(alone > 5.0 && paired < 0.2, "{alone} {paired}");
        assert_eq!(one.paired_margin_ms(&one), Some(0.0));
        assert_eq!(one.paired_margin_ms(&means(vec![1; 4000])), None);
    }
}
