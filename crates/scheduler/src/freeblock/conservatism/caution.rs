//! The source of the guard: a constant, or errors and an impact budget.

use block::Duration;

/// The source of the guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Caution {
    /// Lumb et al., FAST 2002: a constant that is added to the predicted seeks of detours.
    Fixed {
        /// The constant.
        guard: Duration,
        /// Gaps whose latency is less than this below a whole revolution are not filled, because
        /// the seek might succeed in time.
        near_miss: Duration,
    },
    /// A guard that is learned from errors and an impact budget.
    Learned {
        /// The largest mean lengthening of foreground requests, in parts per million.
        impact_ppm: u32,
    },
}

impl Default for Caution {
    /// Learned, at an impact budget of 1 % of the mean response time. That of a service is set by its configuration.
    fn default() -> Self {
        Caution::Learned { impact_ppm: 10_000 }
    }
}
