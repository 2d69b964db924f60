//! The confidence in a part of a profile.

/// The fraction of fresh measurements that a part of a profile is expected to predict, in parts per
/// million. Laplace's rule of succession derives it from checks that did not contribute to the
/// part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Confidence(u32);

impl Confidence {
    /// No confidence.
    pub const NONE: Confidence = Confidence(0);

    /// The confidence after `came_true` of `checks` predictions came true; none without checks.
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

    /// The confidence as a fraction, for reports.
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
