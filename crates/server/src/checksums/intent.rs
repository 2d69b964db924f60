//! The pages of a chunk that an intent names, in six bits.
//!
//! ```text
//!   code   0     1     2 ... 17    18 ... 32         33 ... 46       47 ... 59
//!          none  all   one page    two neighbours    two apart       three apart
//! ```
//!
//! A record keeps its guard of the other pages while at most two pages are unknown. So more than two have one code.

use super::{ALL_PAGES, PAGES};

/// Bits of a code.
pub const CODE_BITS: u64 = 6;

/// The largest distance of two pages with a code of their own. A choice: pairs at four would need more than six bits.
const FARTHEST: u32 = 3;

/// The least set of pages that has a code and contains these.
pub fn covering(pages: u16) -> u16 {
    let distance = || 15 - pages.leading_zeros() - pages.trailing_zeros();
    match pages.count_ones() {
        0 | 1 => pages,
        2 if distance() <= FARTHEST => pages,
        _ => ALL_PAGES,
    }
}

/// The code of the least set that contains these pages.
pub fn encode(pages: u16) -> u8 {
    let covered = covering(pages);
    sets()
        .position(|set| set == covered)
        .map_or(WHOLE, |code| code as u8)
}

/// The pages of a code. Those of a code that is never written may all have been changed.
pub fn decode(code: u8) -> u16 {
    sets().nth(usize::from(code)).unwrap_or(ALL_PAGES)
}

/// All sets, in the order of their codes.
fn sets() -> impl Iterator<Item = u16> {
    let pairs = (0..=FARTHEST).flat_map(|distance| {
        let firsts = 0..PAGES as u32 - distance;
        firsts.map(move |first| 1 << first | 1 << (first + distance))
    });
    [0, ALL_PAGES].into_iter().chain(pairs)
}

/// The code of all pages.
const WHOLE: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_six_bits_and_contain_what_they_are_of() {
        assert!(sets().count() <= 1 << CODE_BITS);
        for pages in 0..=u16::MAX {
            let decoded = decode(encode(pages));
            assert_eq!(decoded, covering(pages));
            assert_eq!(pages & !decoded, 0, "{pages:#b} is within {decoded:#b}");
            let is_exact = decoded == pages;
            assert!(is_exact || pages.count_ones() >= 2, "{pages:#b} is exact");
        }
        assert_eq!(covering(0b1001), 0b1001);
        assert_eq!(covering(0b1_0001), u16::MAX);
        assert_eq!(decode(63), u16::MAX);
    }
}
