//! How far a part of a profile can be trusted.

/// The share of fresh measurements that a part of a profile is expected to predict, in parts per
/// million: by Laplace's rule of succession from those that it was checked against and that were
/// not used to find it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Confidence(u32);

impl Confidence {
    /// Nothing is known.
    pub const NONE: Confidence = Confidence(0);

    /// Of so many checks so many came true. None without checks.
    pub fn of(came_true: u32, checks: u32) -> Self {
        if checks == 0 {
            return Confidence::NONE;
        }
        let ppm = (u64::from(came_true) + 1) * 1_000_000 / (u64::from(checks) + 2);
        Confidence(ppm as u32)
    }

    /// In parts per million.
    pub fn ppm(self) -> u32 {
        self.0
    }

    /// As a share, for reports.
    pub fn share(self) -> f64 {
        f64::from(self.0) / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_checks_are_needed_for_more_confidence() {
        assert_eq!(Confidence::of(0, 0), Confidence::NONE);
        assert_eq!(Confidence::of(8, 8).ppm(), 900_000);
        assert_eq!(Confidence::of(98, 98).ppm(), 990_000);
        assert!(Confidence::of(97, 98) < Confidence::of(98, 98));
    }
}
