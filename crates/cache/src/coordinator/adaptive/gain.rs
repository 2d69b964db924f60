//! The reduction of demands' waiting time under coordination, and its standard error.
//!
//! ```text
//!   a round:    waiting, cut at twice the mean, of demands that continue ..
//!                 .. requests of arm 0 | .. requests of arm 1 | .. nothing known, by turn
//!                        |                        |
//!                        '---- difference --------'  separately for demands that continue requests and
//!                                                    for others, weighted by the number of demands
//! ```
//!
//! Three rules keep the spread of a round small:
//!
//! - Prefetches of the upper level do not count. It is unknown who waits for them, and under coordination they
//!   take longer even if all requests gain.
//! - A wait above twice the mean counts as twice the mean. Long waits occur in bursts, and the arm in turn is
//!   chance.
//! - Demands that continue earlier requests are compared with each other only, because the arm with fewer turns
//!   has more demands without prepared regions.
//!
//! A late prefetch becomes a demand. Coordination may cause more demands, each of which waits less. Their share
//! of the requests is therefore compared in the same way.

use super::Arm;

/// The requests of a round, by [`Prepared`], then by arm.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tallies([[GainTally; 2]; 2]);

/// Numbers of requests and of demands among them, and the demands' waiting time.
#[derive(Clone, Copy, Debug, Default)]
struct GainTally {
    requests: u64,
    demands: u64,
    nanos: u64,
}

/// Whether a request continues an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prepared {
    /// No earlier request is known: it counts for the arm in turn.
    Unknown,
    /// It continues a request in a turn of the arm for which it counts.
    Known,
}

/// The mean of the waits above 0; later ones have more weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Typical {
    mean: i64,
    waits: i64,
}

/// A gain in millionths, and its variance; later rounds have more weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArmGain {
    mean: i64,
    /// Of a round of weight 1.
    variance: i64,
    /// Of all rounds together.
    weight: i64,
    rounds: i64,
}

/// The whole waiting time, in the unit of a gain.
pub(super) const WHOLE: i64 = 1_000_000;

/// The scale of integer means.
const FINE: u64 = 1 << 20;

/// The largest wait that counts, thirteen days, so that sums do not overflow.
const LONGEST_WAIT: u64 = 1 << 50;

/// The largest wait that counts, as a multiple of the mean. A choice: with 1 rounds spread least, but
/// coordination's savings in queues are not visible; with 3 they spread more (OLTP of seed 1).
pub(super) const CUT: i64 = 2;

/// Waits in the typical wait's average. A choice: some turns.
const WAITS: i64 = 256;

/// The least number of demands of each arm for a comparison. A choice: the standard deviation of waits is about
/// their mean, so that of a mean of sixteen is a quarter of it.
const DEMANDS: u64 = 16;

/// The weight of the prior, in rounds with a mean of 0 and the usual spread. Two or three rounds that agree by
/// chance prove nothing.
const PRIOR_ROUNDS: i64 = 2;

/// The spread of a round of two turns of 64 requests, in millionths. A choice, about that of loads of seed 1.
const PRIOR_DEVIATION: i64 = 200_000;

/// The number and the weight of rounds above which older ones lose weight. Choices: after 128 rounds with a
/// spread of 20 %, the standard error is 1.8 %.
const MEMORY: i64 = 64;
const HEAVIEST: i64 = 128;

impl Tallies {
    /// Notes a completion for this arm. `waited` is the cut wait of a demand; `None` for a prefetch.
    pub(super) fn add(&mut self, arm: Arm, prepared: Prepared, waited: Option<u64>) {
        let tally = &mut self.0[prepared as usize][arm as usize];
        tally.requests += 1;
        if let Some(nanos) = waited {
            tally.demands += 1;
            tally.nanos += nanos;
        }
    }

    /// The reduction of demands' mean wait under coordination, in millionths of the mean of both; `None` if
    /// they are not comparable.
    pub(super) fn waiting(&self) -> Option<i64> {
        self.gain(|tally| (tally.nanos, tally.demands))
    }

    /// The reduction of the share of demands under coordination, in the same unit.
    pub(super) fn demands(&self) -> Option<i64> {
        self.gain(|tally| (tally.demands, tally.requests))
    }

    /// Whether there are enough demands for a comparison.
    pub(super) fn is_enough(&self) -> bool {
        let fewer = self
            .0
            .map(|[alone, other]| alone.demands.min(other.demands));
        fewer.into_iter().sum::<u64>() >= DEMANDS
    }

    fn gain(&self, of: fn(GainTally) -> (u64, u64)) -> Option<i64> {
        gain(self.0.map(|arms| arms.map(of)))
    }
}

/// The difference between the means without and with coordination, in millionths of the mean of both. `like`
/// has pairs of a sum and a count.
pub(super) fn gain(like: [[(u64, u64); 2]; 2]) -> Option<i64> {
    let (mut difference, mut both) = (0, 0);
    for [alone, coordinated] in like {
        if alone.1 == 0 || coordinated.1 == 0 {
            continue;
        }
        let count = i128::from(alone.1) + i128::from(coordinated.1);
        let mean = |(sum, count)| i128::from(sum) * i128::from(FINE) / i128::from(count);
        let (alone, coordinated) = (mean(alone), mean(coordinated));
        difference += count * (alone - coordinated);
        both += count * (alone + coordinated);
    }
    let whole = i128::from(WHOLE);
    let gain = (2 * whole * difference).checked_div(both)?;
    Some(gain.clamp(-whole, whole) as i64)
}

impl Typical {
    /// The state before the first wait.
    pub(super) const NEW: Typical = Typical { mean: 0, waits: 0 };

    /// Notes a wait. Returns the part that counts, at most `most` times the mean.
    pub(super) fn cut(&mut self, nanos: u64, most: i64) -> u64 {
        let nanos = nanos.min(LONGEST_WAIT) as i64;
        let away = nanos - self.mean;
        if nanos > 0 && self.waits < WAITS {
            self.waits += 1;
            self.mean += away / self.waits;
        } else if nanos > 0 {
            self.mean += away / WAITS;
        }
        nanos.min(most * self.mean) as u64
    }
}

impl ArmGain {
    /// The state before the first round.
    pub(super) const PRIOR: ArmGain = ArmGain {
        mean: 0,
        variance: PRIOR_DEVIATION * PRIOR_DEVIATION,
        weight: PRIOR_ROUNDS,
        rounds: PRIOR_ROUNDS,
    };

    /// Adds the gain `says` of a round whose turns are `weight` times as long as the shortest.
    pub(super) fn add(&mut self, says: i64, weight: i64) {
        self.rounds = (self.rounds + 1).min(MEMORY);
        self.weight = (self.weight + weight).min(HEAVIEST);
        let before = says - self.mean;
        self.mean += before * weight / self.weight;
        let after = says - self.mean;
        self.variance += (weight * before * after - self.variance) / self.rounds;
    }

    /// The mean in millionths.
    pub(super) fn mean(&self) -> i64 {
        self.mean
    }

    /// The standard error in millionths.
    pub(super) fn error(&self) -> i64 {
        (self.variance / (self.weight - 1)).isqrt()
    }

    /// The mean in standard errors, rounded towards 0.
    pub(super) fn errors(&self) -> i64 {
        self.mean / self.error().max(1)
    }

    /// Whether the mean is above 0 by `tenths` tenths of a standard error.
    pub(super) fn is_above(&self, tenths: i64) -> bool {
        10 * self.mean > tenths * self.error()
    }

    /// Whether the mean is below 0 by `tenths` tenths of a standard error.
    pub(super) fn is_below(&self, tenths: i64) -> bool {
        -10 * self.mean > tenths * self.error()
    }

    /// The number of added rounds, up to [`MEMORY`] with the prior.
    pub(super) fn rounds(&self) -> i64 {
        self.rounds - PRIOR_ROUNDS
    }
}

#[cfg(test)]
mod tests {
    use super::super::Arm::{self, Alone, Coordinated};
    use super::Prepared::{self, Known, Unknown};
    use super::{ArmGain, CUT, HEAVIEST, MEMORY, Tallies, Typical, WHOLE};

    /// So many demands of an arm that waited so long, and as many requests that nobody waits for.
    fn add(tallies: &mut Tallies, arm: Arm, prepared: Prepared, demands: u64, nanos: u64) {
        for _ in 0..demands {
            tallies.add(arm, prepared, Some(nanos));
            tallies.add(arm, prepared, None);
        }
    }

    #[test]
    fn like_is_compared_with_like() {
        let mut tallies = Tallies::default();
        add(&mut tallies, Alone, Known, 90, 10);
        add(&mut tallies, Alone, Unknown, 10, 1000);
        assert_eq!(tallies.waiting(), None);
        // As long as alone, but most of them find nothing prepared.
        add(&mut tallies, Coordinated, Known, 5, 10);
        add(&mut tallies, Coordinated, Unknown, 20, 1000);
        assert_eq!(tallies.waiting(), Some(0));
        assert_eq!(tallies.demands(), Some(0));
        // What cannot be compared does not count.
        let mut tallies = Tallies::default();
        add(&mut tallies, Alone, Unknown, 10, 3000);
        add(&mut tallies, Coordinated, Unknown, 10, 1000);
        add(&mut tallies, Coordinated, Known, 10, 1_000_000);
        assert_eq!(tallies.waiting(), Some(WHOLE));
        assert_eq!(tallies.demands(), Some(0));
    }

    #[test]
    fn what_nobody_waits_for_is_no_demand() {
        let mut tallies = Tallies::default();
        add(&mut tallies, Alone, Known, 10, 100);
        add(&mut tallies, Coordinated, Known, 10, 100);
        (0..20).for_each(|_| tallies.add(Alone, Known, None));
        assert_eq!(tallies.waiting(), Some(0));
        // Half of the requests were demands, and a quarter of them.
        assert_eq!(tallies.demands(), Some(-666_666));
    }

    #[test]
    fn a_long_wait_counts_as_twice_the_mean_of_the_others() {
        let mut typical = Typical::NEW;
        assert_eq!(typical.cut(100, CUT), 100);
        for _ in 0..1000 {
            assert_eq!(typical.cut(0, CUT), 0);
            assert_eq!(typical.cut(100, CUT), 100);
        }
        let cut = typical.cut(100_000, CUT);
        assert!((200..1_100).contains(&cut), "{cut}");
        // It follows what becomes usual.
        for _ in 0..2000 {
            typical.cut(100_000, CUT);
        }
        assert_eq!(typical.cut(1_000_000, CUT) / 200_000, CUT as u64 / 2);
        // And stays a number.
        let mut tallies = Tallies::default();
        for _ in 0..10_000 {
            tallies.add(Alone, Known, Some(typical.cut(u64::MAX, CUT)));
            tallies.add(Coordinated, Known, Some(0));
        }
        assert_eq!(tallies.waiting(), Some(WHOLE));
    }

    #[test]
    fn a_few_rounds_that_agree_prove_little_and_longer_ones_more() {
        let of = |rounds: u32, weight: i64| {
            let mut gain = ArmGain::PRIOR;
            (0..rounds).for_each(|_| gain.add(100_000, weight));
            gain
        };
        let errors = |gain: ArmGain| gain.mean() as f64 / gain.error() as f64;
        assert!(errors(of(2, 1)) < 1.0);
        assert!(errors(of(4, 1)) < 2.0);
        assert!(errors(of(8, 1)) > 2.0);
        assert!(errors(of(4, 4)) > errors(of(4, 1)));
        assert_eq!(of(3, 1).rounds(), 3);
    }

    #[test]
    fn rounds_four_times_as_long_spread_half_as_widely() {
        let error = |spread: i64, weight| {
            let mut gain = ArmGain::PRIOR;
            (0..30).for_each(|round| gain.add([spread, -spread][round % 2], weight));
            gain.error() as f64
        };
        let ratio = error(200_000, 1) / error(100_000, 4);
        assert!((1.8..2.2).contains(&ratio), "{ratio}");
    }

    #[test]
    fn it_forgets() {
        let mut gain = ArmGain::PRIOR;
        (0..1000).for_each(|_| gain.add(200_000, 1));
        let turned = (0..1000).find(|_| {
            gain.add(-200_000, 1);
            gain.mean() < 0
        });
        assert!(turned.is_some_and(|rounds| rounds < HEAVIEST));
        assert!(gain.rounds() < MEMORY);
    }
}
