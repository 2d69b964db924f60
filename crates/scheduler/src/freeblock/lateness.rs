//! The distribution of the head's lateness, learned from the commands that missed their sector.
//!
//! The length of a seek is not observable, because rotational latency hides it. A missed sector is,
//! because it costs a revolution. A command with slack `slack` that lost a revolution was late by
//! more than `slack`; one that did not was not. A command that should have just missed its sector,
//! and did not, was early:
//!
//! ```text
//!   probability
//!   of being     1 |-----.
//!   later          |      `.
//!                  |        `.
//!                0 |__________`-------........___
//!                     early  0   late ->     slack
//! ```
//!
//! Some delays have nothing to do with the seek: sectors that are read before they are written, a scan of the
//! drive's own. They show where no seek is late, at slacks beyond the last bin, and their share is taken out.
//!
//! Observations are counted in bins of slack. The probability is the decreasing function with the
//! best fit (pool adjacent violators: Ayer et al., Annals of Mathematical Statistics 26, 1955).

use block::Duration;

/// The width of a bin. A choice: a quarter of the smallest relevant seek noise, 60 us.
const BIN_NANOS: i64 = 16_000;
/// Bins of earliness. A choice: 0.5 ms, the largest guard that pays.
const EARLY: usize = 32;
/// Bins of lateness. A choice: 1.5 ms; a longer guard leaves nothing of most gaps.
const LATE: usize = 96;
const BINS: usize = EARLY + LATE;
/// The weight of the prior in each bin, in observations. A choice: outvoted within a minute.
const PRIOR_WEIGHT: f64 = 1.0;
/// The number of bins in which the prior probability halves: 32 us. A choice for seeks that scatter
/// by 20 to 130 us (../shared/specs/scheduling.md, section 7). It matters in the first minute only.
///
/// The choice was made after seeing a result: 96 us cost a tenth of that minute's bytes at 60 us.
/// 96 us leaves a few per cent at the 0.3 ms of Lumb et al. (FAST 2002, 5.3).
const PRIOR_HALVES: usize = 2;
/// Observations in a bin at which older ones are halved, because the drive may change. A choice.
const MOST_IN_BIN: f64 = 4096.0;

/// Observations that remain in a bin after a doubt. A choice: some seconds of a busy drive bring as
/// many.
const DOUBTED: f64 = 8.0;

/// The weight of the assumption that nothing but seeks makes commands late, in observations. A choice.
const CALM: f64 = 64.0;

/// The probability of each lateness.
#[derive(Clone, Debug)]
pub struct Lateness {
    seen: [f64; BINS],
    late: [f64; BINS],
    chance: [f64; BINS],
    /// Commands with more slack than any seek needs, and those that were late all the same.
    with_slack: (f64, f64),
    /// Whether `chance` is fitted to all of the observations.
    is_fitted: bool,
}

/// The same for commands that the host delays as well: 96 us. A choice for round trips of 50 to 300 us over a
/// socket to another process.
const DELAYED_PRIOR_HALVES: usize = 6;

impl Default for Lateness {
    fn default() -> Self {
        Self::with_prior(PRIOR_HALVES)
    }
}

impl Lateness {
    /// Nothing is observed yet, of commands that a delay of the host makes late as well.
    pub fn of_delayed() -> Self {
        Self::with_prior(DELAYED_PRIOR_HALVES)
    }

    fn with_prior(halves: usize) -> Self {
        let mut later = [0.0; BINS];
        let mut tail = 0.5;
        for bin in 0..LATE.max(EARLY) {
            if bin > 0 && bin % halves == 0 {
                tail /= 2.0;
            }
            if bin < LATE {
                later[EARLY + bin] = tail;
            }
            if bin < EARLY {
                later[EARLY - 1 - bin] = 1.0 - tail;
            }
        }
        Lateness {
            seen: [PRIOR_WEIGHT; BINS],
            late: later.map(|chance| chance * PRIOR_WEIGHT),
            chance: later,
            with_slack: (CALM, 0.0),
            is_fitted: false,
        }
    }

    /// Notes a command with a believed latency of `wait` in a revolution of `period`, and the
    /// number of revolutions that it took in addition (negative: fewer).
    pub fn observe(&mut self, wait: Duration, period: Duration, revolutions: i64) {
        let (wait, period) = (wait.as_nanos() as i64, period.as_nanos() as i64);
        self.count(wait, revolutions > 0);
        self.count(wait - period, revolutions >= 0);
    }

    fn count(&mut self, slack: i64, was_later: bool) {
        self.is_fitted = false;
        let Some(bin) = bin(slack) else {
            if slack > 0 {
                let (seen, late) = self.with_slack;
                let kept = if seen > MOST_IN_BIN { 0.5 } else { 1.0 };
                self.with_slack = (
                    seen * kept + 1.0,
                    late * kept + f64::from(u8::from(was_later)),
                );
            }
            return;
        };
        self.seen[bin] += 1.0;
        self.late[bin] += f64::from(u8::from(was_later));
        if self.seen[bin] > MOST_IN_BIN {
            self.seen[bin] /= 2.0;
            self.late[bin] /= 2.0;
        }
    }

    /// Reduces the weight of all observations.
    pub fn doubt(&mut self) {
        self.is_fitted = false;
        for (seen, late) in self.seen.iter_mut().zip(&mut self.late) {
            let kept = (DOUBTED / *seen).min(1.0);
            *seen *= kept;
            *late *= kept;
        }
    }

    /// Fits the probabilities to the observations, if there are new ones.
    pub fn learn(&mut self) {
        if std::mem::replace(&mut self.is_fitted, true) {
            return;
        }
        // Blocks of bins with one probability each: (late, seen, bins).
        let mut blocks = [(0.0, 0.0, 0_usize); BINS];
        let mut used = 0;
        for bin in 0..BINS {
            let mut block = (self.late[bin], self.seen[bin], 1);
            while used > 0 {
                let (late, seen, bins) = blocks[used - 1];
                if late * block.1 >= block.0 * seen {
                    break;
                }
                block = (late + block.0, seen + block.1, bins + block.2);
                used -= 1;
            }
            blocks[used] = block;
            used += 1;
        }
        let anyway = self.late_anyway();
        let mut bin = 0;
        for &(late, seen, bins) in &blocks[..used] {
            let of_seek = (late / seen - anyway) / (1.0 - anyway);
            self.chance[bin..bin + bins].fill(of_seek.max(0.0));
            bin += bins;
        }
    }

    /// The share of commands that are late whatever their slack.
    pub fn late_anyway(&self) -> f64 {
        self.with_slack.1 / self.with_slack.0
    }

    /// The probability that the head is late by more than `slack` nanoseconds. For negative slack:
    /// that it is not early by more than that.
    pub fn chance(&self, slack: i64) -> f64 {
        match bin(slack) {
            Some(bin) => self.chance[bin],
            None if slack < 0 => 1.0,
            // No guard is as long.
            None => 0.0,
        }
    }

    /// The cheapest guard, if a nanosecond of guard costs one, and lateness costs `price`
    /// nanoseconds.
    pub fn guard(&self, price: f64) -> Duration {
        let cost = |bin: usize| (bin as f64) * BIN_NANOS as f64 + price * self.chance[EARLY + bin];
        let best = (0..LATE).min_by(|&a, &b| cost(a).total_cmp(&cost(b)));
        Duration::from_nanos(best.unwrap_or(0) as u64 * BIN_NANOS as u64)
    }
}

/// The bin of a slack in nanoseconds, if it has one.
fn bin(slack: i64) -> Option<usize> {
    let bin = slack.div_euclid(BIN_NANOS) + EARLY as i64;
    usize::try_from(bin).ok().filter(|&bin| bin < BINS)
}
