//! The sizes of a load's requests.

use std::fmt;

use serde::Serialize;

use super::dice::Dice;

/// The distribution of sizes, in bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Sizes {
    /// One size.
    Fixed {
        /// Bytes.
        bytes: u64,
    },
    /// Several sizes with weights.
    Choice {
        /// The sizes; never empty, weights never zero.
        options: Vec<SizeOption>,
    },
    /// Multiples of a unit from an exponential distribution, rounded up, with exactly the given
    /// mean. The number of units is geometric.
    Exponential {
        /// The mean, at least one unit.
        mean_bytes: u64,
        /// The unit.
        multiple_bytes: u64,
    },
    /// All multiples of a unit within bounds, equally likely.
    Uniform {
        /// The smallest, a multiple of the unit.
        from_bytes: u64,
        /// The largest, a multiple of the unit.
        to_bytes: u64,
        /// The unit.
        multiple_bytes: u64,
    },
}

/// One size of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SizeOption {
    /// Bytes.
    pub bytes: u64,
    /// The weight.
    pub weight: u32,
}

impl Sizes {
    /// The largest possible size.
    pub fn largest(&self) -> u64 {
        match self {
            Sizes::Fixed { bytes } => *bytes,
            Sizes::Choice { options } => options.iter().map(|o| o.bytes).max().unwrap_or(0),
            Sizes::Exponential {
                mean_bytes,
                multiple_bytes,
            } => (mean_bytes.saturating_mul(TAIL_MEANS) / multiple_bytes) * multiple_bytes,
            Sizes::Uniform { to_bytes, .. } => *to_bytes,
        }
    }

    /// The mean size.
    pub fn mean(&self) -> f64 {
        match self {
            Sizes::Fixed { bytes } => *bytes as f64,
            Sizes::Choice { options } => {
                let total: u64 = options.iter().map(|o| u64::from(o.weight)).sum();
                options
                    .iter()
                    .map(|o| o.bytes as f64 * f64::from(o.weight))
                    .sum::<f64>()
                    / total as f64
            }
            Sizes::Exponential { mean_bytes, .. } => *mean_bytes as f64,
            Sizes::Uniform {
                from_bytes,
                to_bytes,
                ..
            } => (*from_bytes as f64 + *to_bytes as f64) / 2.0,
        }
    }

    /// The first size that is not a multiple of `unit` bytes.
    pub fn not_multiple_of(&self, unit: u64) -> Option<u64> {
        let broken = |bytes: &u64| !bytes.is_multiple_of(unit);
        match self {
            Sizes::Fixed { bytes } => Some(*bytes).filter(broken),
            Sizes::Choice { options } => options.iter().map(|o| o.bytes).find(broken),
            Sizes::Exponential { multiple_bytes, .. } | Sizes::Uniform { multiple_bytes, .. } => {
                Some(*multiple_bytes).filter(broken)
            }
        }
    }

    /// A random size.
    pub(super) fn draw(&self, dice: &mut Dice) -> u64 {
        match self {
            Sizes::Fixed { bytes } => *bytes,
            Sizes::Choice { options } => {
                let total = options.iter().map(|o| u64::from(o.weight)).sum();
                let mut left = dice.below(total);
                for option in options {
                    if left < u64::from(option.weight) {
                        return option.bytes;
                    }
                    left -= u64::from(option.weight);
                }
                unreachable!("a draw below the sum of the weights belongs to one of them")
            }
            Sizes::Exponential {
                mean_bytes,
                multiple_bytes,
            } => {
                let going_on = libm::log1p(-(*multiple_bytes as f64 / *mean_bytes as f64));
                let further = (dice.ln_uniform() / going_on) as u64;
                further
                    .saturating_add(1)
                    .saturating_mul(*multiple_bytes)
                    .min(self.largest())
            }
            Sizes::Uniform {
                from_bytes,
                to_bytes,
                multiple_bytes,
            } => {
                let steps = (to_bytes - from_bytes) / multiple_bytes;
                from_bytes + dice.below(steps + 1) * multiple_bytes
            }
        }
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kib = |bytes: u64| bytes as f64 / 1024.0;
        match self {
            Sizes::Fixed { bytes } => write!(f, "{} KiB", kib(*bytes)),
            Sizes::Choice { options } => {
                for (place, option) in options.iter().enumerate() {
                    let separator = if place == 0 { "" } else { ", " };
                    write!(
                        f,
                        "{separator}{} x {} KiB",
                        option.weight,
                        kib(option.bytes)
                    )?;
                }
                Ok(())
            }
            Sizes::Exponential {
                mean_bytes,
                multiple_bytes,
            } => {
                let (mean, multiple) = (kib(*mean_bytes), kib(*multiple_bytes));
                write!(f, "{mean} KiB on average in multiples of {multiple}")
            }
            Sizes::Uniform {
                from_bytes,
                to_bytes,
                multiple_bytes,
            } => {
                let (from, to, multiple) = (kib(*from_bytes), kib(*to_bytes), kib(*multiple_bytes));
                write!(f, "{from} to {to} KiB in multiples of {multiple}")
            }
        }
    }
}

/// The cut of an exponential size in means, so that a load definitely fits a drive or does not. One
/// in e^64 would be larger, so the cut never shows.
const TAIL_MEANS: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_of(sizes: &Sizes, draws: u32) -> f64 {
        let mut dice = Dice::new(11, 2);
        let total: u64 = (0..draws).map(|_| sizes.draw(&mut dice)).sum();
        total as f64 / f64::from(draws)
    }

    #[test]
    fn the_paper_s_sizes_are_multiples_with_the_exact_mean_and_geometric_shares() {
        let sizes = Sizes::Exponential {
            mean_bytes: 8192,
            multiple_bytes: 4096,
        };
        let mut dice = Dice::new(4, 2);
        let draws = 200_000;
        let mut counts = [0u32; 4];
        for _ in 0..draws {
            let size = sizes.draw(&mut dice);
            assert!(size.is_multiple_of(4096) && size > 0 && size <= sizes.largest());
            if let Some(count) = counts.get_mut((size / 4096 - 1) as usize) {
                *count += 1;
            }
        }
        for (k, count) in counts.into_iter().enumerate() {
            let expected = 0.5f64.powi(k as i32 + 1) * f64::from(draws);
            assert!((f64::from(count) - expected).abs() < 4.0 * expected.sqrt());
        }
        assert!((mean_of(&sizes, draws) / 8192.0 - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_mean_of_one_unit_is_always_one_unit() {
        let sizes = Sizes::Exponential {
            mean_bytes: 4096,
            multiple_bytes: 4096,
        };
        let mut dice = Dice::new(9, 2);
        assert!((0..1000).all(|_| sizes.draw(&mut dice) == 4096));
    }

    #[test]
    fn between_bounds_all_multiples_are_equally_likely() {
        let sizes = Sizes::Uniform {
            from_bytes: 4096,
            to_bytes: 65536,
            multiple_bytes: 4096,
        };
        let mut dice = Dice::new(4, 2);
        let mut counts = [0u32; 16];
        for _ in 0..160_000 {
            let size = sizes.draw(&mut dice);
            assert!(size.is_multiple_of(4096));
            counts[(size / 4096 - 1) as usize] += 1;
        }
        // Five standard deviations.
        let even = |count: &u32| (9_500..10_500).contains(count);
        assert!(counts.iter().all(even), "{counts:?}");
        assert_eq!((sizes.mean(), sizes.largest()), (34816.0, 65536));
        assert!((mean_of(&sizes, 100_000) / 34816.0 - 1.0).abs() < 0.01);
        assert_eq!(sizes.not_multiple_of(8192), Some(4096));
    }

    #[test]
    fn choices_come_as_often_as_their_weights_say() {
        let option = |bytes, weight| SizeOption { bytes, weight };
        let sizes = Sizes::Choice {
            options: vec![option(4096, 3), option(65536, 1)],
        };
        assert_eq!(sizes.mean(), 19456.0);
        assert!((mean_of(&sizes, 100_000) / 19456.0 - 1.0).abs() < 0.02);
        assert_eq!(sizes.largest(), 65536);
        assert_eq!(sizes.not_multiple_of(512), None);
        assert_eq!(sizes.not_multiple_of(8192), Some(4096));
    }
}
