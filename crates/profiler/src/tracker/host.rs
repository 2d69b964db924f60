//! Learns the delay of the host: the time from the decision to give a command until the drive has it.
//!
//! ```text
//!   engine   decides
//!              |-- delay --|
//!   drive                  |- electronics -|---- seek ----|.. slack ..|== sector ==|
//! ```
//!
//! A command that waits at the drive for the arm hides the delay. One that the drive begins on arrival is later by
//! it, and shows that as a seek does: by the side of the sector on which it ends. The believed phase of the
//! platter contains the delay of outcomes, so that what is learned is both ways.
//!
//! The electronics of a profile may contain a part of the delay already, so that the rest can be negative.

use block::{Duration, Instant};

use super::shift::{Band, CensoredTime, Odds, step_of};

/// The slack of a command that may begin on arrival, against a belief without the delay, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivalSlack {
    /// From the end of the electronics' work to the last moment at which the arm has to leave.
    pub slack: i64,
    /// The same for the pass of the sector before that, if the arm was free for it.
    pub earlier: Option<i64>,
}

/// The deviation of arrivals from the original belief.
#[derive(Clone, Debug)]
pub(super) struct HostDelay {
    band: Band,
    odds: Odds,
    /// The time of the last adoption.
    adopted: Option<Instant>,
    /// Informative commands since then.
    commands: u32,
    /// Whether another delay is due for adoption.
    is_due: bool,
}

/// Minimum interval between adoptions. A choice: the delay of a path changes in minutes.
const ADOPT_EVERY: Duration = Duration::from_secs(1);

/// Informative commands without an adoption by which the delay is settled. A choice: four evaluations.
const SETTLED: u32 = 64;

impl HostDelay {
    pub(super) fn new() -> Self {
        let odds = Odds::new();
        HostDelay {
            band: Band::new(&odds),
            odds,
            adopted: None,
            commands: 0,
            is_due: false,
        }
    }

    /// Records a command that took `revolutions` revolutions more than predicted.
    pub(super) fn observe(&mut self, arrival: &ArrivalSlack, revolutions: i64) {
        if !arrival.is_informative() || !(-1..=1).contains(&revolutions) {
            return;
        }
        let time = CensoredTime {
            slack: arrival.slack,
            earlier: arrival.earlier,
        };
        self.commands = self.commands.saturating_add(1);
        self.is_due |= self.band.observe(&self.odds, time, revolutions);
    }

    /// Whether what makes a command late that begins on arrival is no longer taken for the delay.
    pub(super) fn is_settled(&self) -> bool {
        self.commands >= SETTLED && !self.is_due
    }

    /// The delay in nanoseconds, if there is more evidence than at the last adoption.
    pub(super) fn adopt(&mut self, now: Instant) -> Option<i64> {
        let is_early = self.adopted.is_some_and(|at| now < at + ADOPT_EVERY);
        if !self.is_due || is_early {
            return None;
        }
        self.is_due = false;
        self.adopted = Some(now);
        self.commands = 0;
        self.band.shift = self.band.next;
        Some(self.band.shift)
    }
}

impl ArrivalSlack {
    /// Whether a delay decides between two passes of the sector.
    pub(super) fn is_informative(&self) -> bool {
        step_of(self.slack).is_some() || self.earlier.and_then(step_of).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: i64 = 6_000_000;

    /// A host that delays the n-th command by `delay(n)` nanoseconds, by an exponentially distributed time of
    /// mean `scatter` besides, and one command in 100 by 3 ms. Commands whose believed slack is up to `most`
    /// are chosen. Returns the delay that is believed in the end, and the adoptions.
    fn learned(delay: impl Fn(u64) -> i64, scatter: f64, most: i64) -> (i64, u32) {
        let mut host = HostDelay::new();
        let (mut believed, mut adoptions) = (0, 0);
        for n in 0..6_000_u64 {
            let dice = |k: u64| (n * 16 + k + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            let share = (dice(0) % 10_000 + 1) as f64 / 10_001.0;
            let noise = (1..13).map(|k| (dice(k) % 1001) as i64).sum::<i64>() - 6_000;
            let stall = i64::from(dice(13).is_multiple_of(100)) * 3_000_000;
            let later = delay(n) - (share.ln() * scatter) as i64 + noise * 60 + stall;
            let slack = believed + (dice(14) as i64 * 7_919) % most;
            let revolutions = (later - slack).div_euclid(TURN) + 1;
            let arrival = ArrivalSlack {
                slack,
                earlier: Some(slack - TURN),
            };
            host.observe(&arrival, revolutions);
            if let Some(found) = host.adopt(Instant::from_nanos(n * 9_000_000)) {
                believed = found;
                adoptions += 1;
            }
        }
        (believed, adoptions)
    }

    #[test]
    fn a_delay_is_found_and_none_where_there_is_none() {
        for most in [TURN, TURN / 4] {
            assert_eq!(learned(|_| 0, 0.0, most), (0, 0));
            for delay in [60_000, 120_000, 300_000, 500_000] {
                let (found, adoptions) = learned(|_| delay, 20_000.0, most);
                let median = delay + 14_000;
                assert!((found - median).abs() <= 50_000, "{delay}: {found}");
                assert!((1..10).contains(&adoptions), "{adoptions}");
            }
        }
    }

    #[test]
    fn a_delay_that_grows_is_followed_and_one_that_falls_where_commands_end_early() {
        // Within a minute by 240 us; the last few hundred commands count.
        let (found, _) = learned(|n| 60_000 + n as i64 * 40, 20_000.0, TURN / 4);
        assert!((found - 314_000).abs() <= 100_000, "{found}");
        let (found, _) = learned(|n| 300_000 - n as i64 * 40, 20_000.0, TURN);
        assert!((found - 74_000).abs() <= 100_000, "{found}");
    }

    #[test]
    fn commands_with_much_slack_say_nothing() {
        let mut host = HostDelay::new();
        for n in 0..1_000 {
            let arrival = ArrivalSlack {
                slack: 3_000_000,
                earlier: None,
            };
            host.observe(&arrival, n % 2);
        }
        assert_eq!((host.adopt(Instant::ZERO), host.commands), (None, 0));
    }
}
