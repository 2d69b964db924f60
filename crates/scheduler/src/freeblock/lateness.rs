//! How late the head really is: learned from which commands missed their sector.
//!
//! Whether a seek took longer than believed cannot be seen: the wait for the sector hides it. What
//! can be seen is that the sector was missed, because that costs a revolution. A command that was
//! believed to be on its track `slack` before its sector, and lost a revolution, says that the
//! seek was later than `slack`; one that did not, that it was not. One that was believed to have
//! just missed its sector, and to wait nearly a revolution, but did not, was early:
//!
//! ```text
//!   chance of
//!   being later  1 |-----.
//!                  |      `.
//!                  |        `.
//!                0 |__________`-------........___
//!                     early  0   late ->     slack
//! ```
//!
//! The observations are counted in bins of slack; the chance is the decreasing function that fits
//! them best (pool adjacent violators: Ayer et al., Annals of Mathematical Statistics 26, 1955).

use block::Duration;

/// How wide a bin is. A choice: a quarter of the smallest seek noise that matters here, 60 us.
const BIN_NANOS: i64 = 16_000;
/// Bins of earliness. A choice: 0.5 ms, as much as any guard that pays.
const EARLY: usize = 32;
/// Bins of lateness. A choice: 1.5 ms; a guard as long as that leaves nothing of most gaps.
const LATE: usize = 96;
const BINS: usize = EARLY + LATE;
/// Observations that the prior belief is worth in each bin. A choice: outvoted within a minute.
const PRIOR_WEIGHT: f64 = 1.0;
/// Bins in which the prior chance of being later halves: 32 us. A choice, for seeks that scatter by
/// 20 to 130 us (../shared/specs/scheduling.md, section 7); it matters in the first minute only. It
/// was made after seeing that 96 us, which leaves the 0.3 ms of Lumb et al. (FAST 2002, 5.3) a few
/// per cent, cost a tenth of that minute's bytes at 60 us.
const PRIOR_HALVES: usize = 2;
/// At this many observations in a bin the older ones count half: the drive may change. A choice.
const MOST_IN_BIN: f64 = 4096.0;

/// Observations in a bin that are left when they are doubted. A choice: some seconds of a busy drive bring
/// as many.
const DOUBTED: f64 = 8.0;

/// The chance that the head is later than believed, by how much later.
#[derive(Clone, Debug)]
pub struct Lateness {
    seen: [f64; BINS],
    late: [f64; BINS],
    chance: [f64; BINS],
}

impl Default for Lateness {
    fn default() -> Self {
        let mut later = [0.0; BINS];
        let mut tail = 0.5;
        for bin in 0..LATE.max(EARLY) {
            if bin > 0 && bin % PRIOR_HALVES == 0 {
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
        }
    }
}

impl Lateness {
    /// A command was believed to wait `wait` for its sector, of a revolution of `period`, and took
    /// so many revolutions more than believed (negative: fewer).
    pub fn observe(&mut self, wait: Duration, period: Duration, revolutions: i64) {
        let (wait, period) = (wait.as_nanos() as i64, period.as_nanos() as i64);
        self.count(wait, revolutions > 0);
        self.count(wait - period, revolutions >= 0);
    }

    fn count(&mut self, slack: i64, was_later: bool) {
        let Some(bin) = bin(slack) else { return };
        self.seen[bin] += 1.0;
        self.late[bin] += f64::from(u8::from(was_later));
        if self.seen[bin] > MOST_IN_BIN {
            self.seen[bin] /= 2.0;
            self.late[bin] /= 2.0;
        }
    }

    /// What was observed so far counts little from now on.
    pub fn doubt(&mut self) {
        for (seen, late) in self.seen.iter_mut().zip(&mut self.late) {
            let kept = (DOUBTED / *seen).min(1.0);
            *seen *= kept;
            *late *= kept;
        }
    }

    /// Takes what was observed since into account.
    pub fn learn(&mut self) {
        // Blocks of bins with one chance each: (late, seen, bins).
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
        let mut bin = 0;
        for &(late, seen, bins) in &blocks[..used] {
            self.chance[bin..bin + bins].fill(late / seen);
            bin += bins;
        }
    }

    /// The chance that the head is later than believed by more than `slack` nanoseconds; of
    /// negative slack, that it is not early by more than that.
    pub fn chance(&self, slack: i64) -> f64 {
        match bin(slack) {
            Some(bin) => self.chance[bin],
            None if slack < 0 => 1.0,
            // Not looked at: no guard is as long.
            None => 0.0,
        }
    }

    /// The guard that costs least, if a nanosecond of guard costs one, and being late costs
    /// `price` nanoseconds.
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
