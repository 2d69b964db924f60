//! How late just-in-time seeks land.

use block::Duration;
use scheduler::freeblock::Lateness;

/// What was learned of the landings of seeks.
#[derive(Debug, Default)]
pub(crate) struct Landings {
    lateness: Lateness,
    /// Ends since the chances were last worked out.
    unlearned: u32,
}

impl Landings {
    /// A command ended that was believed to wait `wait` for its sector, and took so many revolutions
    /// more.
    pub(crate) fn observe(&mut self, wait: Duration, period: Duration, revolutions: i64) {
        self.lateness.observe(wait, period, revolutions);
        self.unlearned += 1;
        if self.unlearned >= LEARN_EVERY {
            self.unlearned = 0;
            self.lateness.learn();
        }
    }

    /// The chance that a seek that is to land so long before its sector misses it.
    pub(crate) fn chance(&self, landing: Duration) -> f64 {
        self.lateness.chance(landing.as_nanos() as i64)
    }

    /// How long before its sector a seek should land where a missed one costs `price`.
    pub(crate) fn guard(&self, price: f64) -> Duration {
        self.lateness.guard(price)
    }
}

/// After so many ends the chance of being late is worked out anew. A choice.
const LEARN_EVERY: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_landing_is_chosen_by_how_late_seeks_were() {
        let (wait, period) = (Duration::from_micros(100), Duration::from_millis(8));
        let seen = |revolutions| {
            let mut landings = Landings::default();
            (0..64).for_each(|_| landings.observe(wait, period, revolutions));
            landings
        };
        let (late, in_time) = (seen(1), seen(0));
        assert!(late.chance(wait) > 0.9, "{}", late.chance(wait));
        assert!(in_time.chance(wait) < 0.1, "{}", in_time.chance(wait));
        let price = period.as_nanos() as f64;
        assert!(late.guard(price) > wait && late.guard(price) > in_time.guard(price));
    }
}
