//! How long reads of the medium take at most, but for a few: the far ones of procedures that take turns.

use block::Duration;

/// One of so many reads takes longer. A choice: retries of the drive and stalls of the host are rarer, and a seek from
/// one region to another is not.
const FEW: u64 = 100;

/// How much one read changes it. A choice: a hundred reads reach the longest seeks, and a stall moves nothing.
const STEP: Duration = Duration::from_micros(500);

/// What reads take at most, by stochastic approximation of the quantile (Robbins, Monro 1951).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UsualReads {
    most: Duration,
}

impl UsualReads {
    /// Adds a read that took so long.
    pub(super) fn add(&mut self, took: Duration) {
        let down = Duration::from_nanos(STEP.as_nanos() / FEW);
        self.most = match took > self.most {
            true => self.most + STEP.saturating_sub(down),
            false => self.most.saturating_sub(down),
        };
    }

    /// What all but a few take at most.
    pub(super) fn most(&self) -> Duration {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_hundred_reads_takes_longer() {
        let mut usual = UsualReads::default();
        let mut seed = 1_u64;
        let mut longer = 0;
        for number in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let took = Duration::from_micros(5_000 + (seed >> 40) % 20_000);
            longer += u32::from(number >= 10_000 && took > usual.most());
            usual.add(took);
        }
        assert!((50..200).contains(&longer), "{longer} of 10,000");
        assert!(usual.most() > Duration::from_micros(23_000), "{usual:?}");
    }
}
