//! Seeded random numbers that are the same on every machine: integers, basic IEEE 754 operations,
//! and logarithms computed in Rust (`libm`), never by the system.

use rand_core::Rng;
use rand_pcg::Pcg64;

/// A stream of random numbers. A load uses separate streams for directions, sizes, positions and
/// times, so that a change of one leaves the others unchanged.
#[derive(Clone, Debug)]
pub struct Dice {
    rng: Pcg64,
}

impl Dice {
    /// The stream `purpose` of a seed.
    pub fn new(seed: u64, purpose: u64) -> Self {
        let mut mixer = SplitMix(seed ^ SplitMix(purpose).next().rotate_left(32));
        let mut wide = || u128::from(mixer.next()) << 64 | u128::from(mixer.next());
        Dice {
            rng: Pcg64::new(wide(), wide()),
        }
    }

    /// A uniform 64-bit number.
    pub fn any(&mut self) -> u64 {
        self.rng.next_u64()
    }

    /// An exactly uniform number below `bound`; zero if `bound` is zero.
    ///
    /// Lemire's method: the high half of a product, redrawn where the low half is biased.
    pub fn below(&mut self, bound: u64) -> u64 {
        let mut product = u128::from(self.any()) * u128::from(bound);
        if (product as u64) < bound {
            let biased = bound.wrapping_neg() % bound;
            while (product as u64) < biased {
                product = u128::from(self.any()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// One Bernoulli trial with this probability.
    pub fn happens(&mut self, chance: Chance) -> Toss {
        if self.any() >> 11 < chance.0 {
            Toss::Yes
        } else {
            Toss::No
        }
    }

    /// The logarithm of a uniform number from (0, 1]: at most zero, at least -36.8.
    ///
    /// Multiplied by `-mean`, it is exponentially distributed.
    pub fn ln_uniform(&mut self) -> f64 {
        let above_zero = (self.any() >> 11) + 1;
        libm::log(above_zero as f64 * TWO_TO_MINUS_53)
    }
}

/// A probability, in units of 2^-53.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chance(u64);

impl Chance {
    /// The nearest representable probability, clamped to 0..=1.
    pub fn new(probability: f64) -> Self {
        Chance((probability.clamp(0.0, 1.0) / TWO_TO_MINUS_53) as u64)
    }
}

/// The result of a Bernoulli trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toss {
    /// The event happened.
    Yes,
    /// The event did not happen.
    No,
}

/// The generator of Steele, Lea, Flood 2014: spreads seeds that differ in one bit over all bits.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// The spacing of 64-bit floats just below one: a 53-bit number becomes a float without rounding.
const TWO_TO_MINUS_53: f64 = 1.0 / (1u64 << 53) as f64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_of_a_seed_is_fixed_for_all_machines_and_times() {
        let mut dice = Dice::new(1, 0);
        let drawn: Vec<u64> = (0..3).map(|_| dice.any()).collect();
        assert_eq!(drawn, SEED_1_PURPOSE_0);
        let logarithm = dice.ln_uniform();
        assert_eq!(logarithm.to_bits(), LN_AFTER_THEM.to_bits(), "{logarithm}");
    }

    #[test]
    fn purposes_and_seeds_give_different_sequences() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..20 {
            for purpose in 0..20 {
                assert!(seen.insert(Dice::new(seed, purpose).any()));
            }
        }
    }

    #[test]
    fn numbers_below_a_bound_are_even() {
        let mut dice = Dice::new(5, 0);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[dice.below(7) as usize] += 1;
        }
        for count in counts {
            assert!((9_700..10_300).contains(&count), "{counts:?}");
        }
        assert_eq!(dice.below(0), 0);
        assert_eq!(dice.below(1), 0);
    }

    #[test]
    fn certain_and_impossible_things() {
        let mut dice = Dice::new(3, 1);
        for _ in 0..1000 {
            assert_eq!(dice.happens(Chance::new(1.0)), Toss::Yes);
            assert_eq!(dice.happens(Chance::new(0.0)), Toss::No);
        }
    }

    const SEED_1_PURPOSE_0: [u64; 3] = [
        12_582_210_884_482_747_959,
        630_156_194_963_138_960,
        15_803_029_934_081_575_314,
    ];
    const LN_AFTER_THEM: f64 = -1.302972916574223;
}
