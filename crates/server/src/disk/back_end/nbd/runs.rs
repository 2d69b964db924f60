//! The block status of a server, in whole blocks.
//!
//! ```text
//!   told     | bytes |    hole        | bytes |   hole   |
//!   blocks   |       |       |        |       |       |  |
//!   runs     |     bytes     |  hole  |     bytes     |..|
//! ```

use crate::disk::back_end::{Holds, Run};

/// The answer that is always correct: data.
pub(super) fn unknown(length: u64) -> Vec<Run> {
    vec![Run {
        length,
        holds: Holds::Bytes,
    }]
}

/// The runs within `length` bytes, in whole blocks. A block that is partly a hole is data.
pub(super) fn whole_blocks(runs: &[Run], length: u64, block: u64) -> Vec<Run> {
    let mut whole: Vec<Run> = Vec::new();
    let (mut at, mut told) = (0_u64, 0_u64);
    for run in runs {
        at = at.saturating_add(run.length).min(length);
        // A hole ends with its last whole block, bytes with the last that they touch.
        let end = match run.holds {
            Holds::Hole => at / block * block,
            Holds::Bytes => at.next_multiple_of(block).min(length),
        };
        if end > told {
            whole.push(Run {
                length: end - told,
                holds: run.holds,
            });
            told = end;
        }
    }
    match whole.is_empty() {
        true => unknown(length),
        false => whole,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a table of bytes: a block is a hole if all that was told of it is.
        #[test]
        fn a_block_is_a_hole_if_all_of_it_is(
            told in prop::collection::vec((1_u64..20, any::<bool>()), 1..12),
            blocks in 1_u64..12,
        ) {
            const BLOCK: u64 = 8;
            let length = blocks * BLOCK;
            let runs: Vec<Run> = told
                .iter()
                .map(|&(length, is_hole)| Run {
                    length,
                    holds: if is_hole { Holds::Hole } else { Holds::Bytes },
                })
                .collect();
            let bytes: Vec<bool> = told
                .iter()
                .flat_map(|&(length, is_hole)| std::iter::repeat_n(is_hole, length as usize))
                .collect();
            let whole = whole_blocks(&runs, length, BLOCK);
            let mut at = 0;
            for run in &whole {
                prop_assert!(run.length > 0 && run.length.is_multiple_of(BLOCK));
                for block in at / BLOCK..(at + run.length) / BLOCK {
                    let span = block as usize * 8..(block as usize + 1) * 8;
                    let is_hole = bytes.get(span).is_some_and(|all| all.iter().all(|hole| *hole));
                    prop_assert_eq!(run.holds == Holds::Hole, is_hole);
                }
                at += run.length;
            }
            prop_assert!(at > 0 && at <= length);
        }
    }
}
