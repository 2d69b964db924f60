//! Reads beside trims, which the back end does without the engine.

use block::Durability;
use block::operation::Ask;
use nbd::Style;
use nbd::request::Asked;
use proptest::prelude::*;

use crate::random::{Step, play};
use crate::station::Medium;

/// Reads, writes and trims of a few blocks, so that most overlap.
fn steps_of_reads_and_trims() -> impl Strategy<Value = Vec<Step>> {
    let durability = Durability::Volatile;
    let what = prop_oneof![
        3 => Just(Asked::Of(Ask::Read)),
        2 => Just(Asked::Of(Ask::Write { durability })),
        2 => Just(Asked::Of(Ask::Trim { durability })),
    ];
    let step = prop_oneof![
        1 => Just(Step::Open(Style::Structured)),
        40 => (0..4usize, what, 0..16u64, 1..20u64).prop_map(|(who, what, first, count)| {
            Step::Submit { who, what, first, count }
        }),
        8 => (0..4usize).prop_map(Step::Take),
    ];
    prop::collection::vec(step, 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// No read finds a part of a block trimmed.
    #[test]
    fn a_read_beside_trims_finds_whole_blocks(steps in steps_of_reads_and_trims()) {
        play(Medium::File, steps.clone());
        play(Medium::Emulated, steps);
    }
}
