//! The noise of a mean response time, by batch means (Law, *Simulation Modeling and Analysis*, 5th edition, section
//! 9.5.3).
//!
//! ```text
//!   ends    r r r r | r r r r | r r r r | ...      response times of neighbours depend on each other
//!   means      m1   |    m2   |    m3   | ...      means of long batches hardly do
//! ```
//!
//! A full set of batches is halved by joining neighbours, so that memory is bounded for runs of any length.

use super::millis;

/// Sums of consecutive batches of equal length.
#[derive(Clone, Debug)]
pub(super) struct Batches {
    /// Number of requests in a batch.
    length: u64,
    /// Nanoseconds of each full batch.
    full: Vec<u128>,
    /// Number of requests and nanoseconds of the batch that is not full.
    open: (u64, u128),
}

/// The most batches that are kept. A choice: twice [`LEAST`], because joining halves them.
const MOST: usize = 64;

/// The fewest batches that tell the noise. Law, section 9.5.3, advises at most 20 to 30 long ones.
const LEAST: usize = MOST / 2;

/// Student's t for a confidence of 95 % with 31 degrees of freedom. With 62 it is 2.00.
const STUDENT: f64 = 2.04;

impl Batches {
    pub(super) fn new() -> Self {
        Batches {
            length: 1,
            full: Vec::with_capacity(MOST),
            open: (0, 0),
        }
    }

    /// Adds a response time in nanoseconds.
    pub(super) fn record(&mut self, nanos: u64) {
        self.open.0 += 1;
        self.open.1 += u128::from(nanos);
        if self.open.0 < self.length {
            return;
        }
        self.full.push(self.open.1);
        self.open = (0, 0);
        if self.full.len() == MOST {
            let pairs = self.full.chunks_exact(2).map(|pair| pair[0] + pair[1]);
            self.full = pairs.collect();
            self.length *= 2;
        }
    }

    /// Half the width of the 95 % confidence interval of the mean, in milliseconds; `None` for fewer than
    /// [`LEAST`] requests.
    pub(super) fn margin_ms(&self) -> Option<f64> {
        let count = self.full.len();
        if count < LEAST {
            return None;
        }
        let means = self
            .full
            .iter()
            .map(|&sum| millis(sum) / self.length as f64);
        let mean = means.clone().sum::<f64>() / count as f64;
        let squares: f64 = means.map(|value| (value - mean).powi(2)).sum();
        let variance = squares / (count - 1) as f64;
        let margin = STUDENT * (variance / count as f64).sqrt();
        Some((margin * 1e6).round() / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn margin(values: impl IntoIterator<Item = u64>) -> Option<f64> {
        let mut batches = Batches::new();
        for value in values {
            batches.record(value * 1_000_000);
        }
        batches.margin_ms()
    }

    #[test]
    fn few_requests_tell_no_noise_and_equal_ones_have_none() {
        assert_eq!(margin(vec![5; LEAST - 1]), None);
        for count in [LEAST, MOST - 1, MOST, 1000, 12_345] {
            assert_eq!(margin(vec![5; count]), Some(0.0), "{count}");
        }
    }

    #[test]
    fn batches_are_the_sums_of_equal_numbers_of_neighbours() {
        let mut batches = Batches::new();
        for value in 0..1000 {
            batches.record(value);
        }
        assert_eq!(batches.length, 16, "62 of 16 and a rest of 8");
        let wanted = (0..62).map(|batch| (batch * 16..batch * 16 + 16).sum::<u128>());
        assert_eq!(batches.full, wanted.collect::<Vec<_>>());
        assert_eq!(batches.open.0, 8);
    }

    #[test]
    fn dependent_requests_have_a_wider_margin_than_independent_ones() {
        let alternating = margin((0..4096).map(|at| at % 2 * 10)).expect("many");
        let in_one_long_wave = margin((0..4096).map(|at| at / 2048 * 10)).expect("many");
        assert!(alternating < 0.01, "{alternating}");
        assert!(in_one_long_wave > 1.0, "{in_one_long_wave}");
    }
}
