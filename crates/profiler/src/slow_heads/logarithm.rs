//! Logarithms in whole numbers, the same on every machine.

/// The natural logarithm of a ratio of at least 1, in millionths, rounded down; zero for smaller ratios.
pub(super) const fn ln(numerator: u64, denominator: u64) -> i64 {
    if denominator == 0 || numerator <= denominator {
        return 0;
    }
    let mut rest = ((numerator as u128) << FRACTION) / denominator as u128;
    let mut whole: u128 = 0;
    while rest >= TWO {
        rest >>= 1;
        whole += 1;
    }
    // The binary digits of the logarithm: a square doubles it.
    let mut digits: u128 = 0;
    let mut left = FRACTION;
    while left > 0 {
        rest = (rest * rest) >> FRACTION;
        digits <<= 1;
        if rest >= TWO {
            rest >>= 1;
            digits |= 1;
        }
        left -= 1;
    }
    let binary = (whole << FRACTION) | digits;
    ((binary * LN_2) >> FRACTION) as i64
}

/// Binary digits behind the point. A choice: squares fit, and the error is far below a millionth.
const FRACTION: u32 = 32;

/// Two, with that many digits.
const TWO: u128 = 1 << (FRACTION + 1);

/// The natural logarithm of 2, in millionths.
const LN_2: u128 = 693_147;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_logarithm_to_a_few_millionths() {
        for (numerator, denominator) in [
            (1, 1),
            (65, 64),
            (4, 1),
            (256, 64),
            (1_000_001, 1_000_000),
            (2_000_000_000_000, 1),
            (u64::MAX, 1),
        ] {
            let exact = (numerator as f64 / denominator as f64).ln() * 1e6;
            let found = ln(numerator, denominator) as f64;
            assert!(
                (found - exact).abs() < 2.0 + exact * 1e-6,
                "{numerator}/{denominator}: {found}, {exact}"
            );
        }
        assert_eq!(ln(3, 4), 0);
        assert_eq!(ln(1, 0), 0);
    }
}
