//! What a volume shows while it has a checkpoint: its length, and its holes.

use proptest::prelude::*;

use super::*;
use crate::disk::back_end::{Holds, Run};
use crate::volume::resize::Resize;

#[test]
fn a_volume_keeps_its_length_while_it_has_a_checkpoint_or_is_in_use() {
    let mut by_hand = by_hand();
    let resize = |offset: u64, from: u64, to: u64| Resize {
        volume: "v".to_owned(),
        offset,
        from,
        to,
    };
    let v0 = |to| resize(OFFSET, BYTES, to);
    let v1 = |to| resize(OFFSET + BYTES, CHUNK, to);
    let (volumes, disk) = by_hand.parts();
    assert_eq!(
        volumes.may_resize(disk, &v1(CHUNK), 3),
        Ok(()),
        "up to the end of the drive"
    );
    let problem = volumes
        .may_resize(disk, &v1(CHUNK + 1), 0)
        .expect_err("past the end");
    assert!(
        problem.contains("would end past the drive, which has"),
        "{problem}"
    );
    assert_eq!(
        volumes.may_resize(disk, &v0(BYTES), 3),
        Ok(()),
        "it does not shrink"
    );
    assert_eq!(
        volumes.may_resize(disk, &v0(CHUNK), 0),
        Ok(()),
        "nobody uses it"
    );
    let problem = volumes
        .may_resize(disk, &v0(BYTES - 1), 3)
        .expect_err("in use");
    assert!(problem.contains("and 3 connections use it"), "{problem}");
    open(&mut by_hand, 1);
    let (volumes, disk) = by_hand.parts();
    for to in [CHUNK, BYTES, BYTES + CHUNK] {
        let problem = volumes
            .may_resize(disk, &v0(to), 0)
            .expect_err("it has a checkpoint");
        assert!(
            problem.contains("volume v has a checkpoint: release it"),
            "{problem}"
        );
    }
    assert_eq!(
        volumes.may_resize(disk, &v1(0), 0),
        Ok(()),
        "another volume"
    );
    assert!(v0(1).is_of(&export("any", OFFSET, BYTES)));
    assert!(!v0(1).is_of(&export("any", OFFSET, CHUNK)) && !v0(1).is_of(&export("any", 0, BYTES)));
    volumes.resize(&v1(BLOCK));
    let lengths: Vec<u64> = volumes.operations.exports.all()[..2]
        .iter()
        .map(|e| e.length)
        .collect();
    assert_eq!(lengths, [BYTES, BLOCK]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Beside a look at each sector: what was changed since the moment is data.
    #[test]
    fn holes_of_a_moment_are_those_of_the_volume_whose_chunks_are_not_changed(
        lengths in prop::collection::vec((1..3000u64, any::<bool>()), 1..6),
        changed in prop::collection::btree_set(0..20u64, 0..6),
        offset in 0..BYTES / BLOCK,
    ) {
        let mut by_hand = by_hand();
        let moment = open(&mut by_hand, 20);
        for &chunk in &changed {
            let one = write(&mut by_hand, chunk * CHUNK..chunk * CHUNK + 1, 5);
            by_hand.run();
            prop_assert!(is_done(&one));
        }
        let mut at = offset * BLOCK;
        let mut runs = Vec::new();
        for &(blocks, is_hole) in &lengths {
            let length = (blocks * BLOCK).min(BYTES - at);
            let holds = if is_hole { Holds::Hole } else { Holds::Bytes };
            if length > 0 {
                runs.push(Run { length, holds });
                at += length;
            }
        }
        let flat = |runs: &[Run]| {
            let each = runs.iter().flat_map(|run| {
                std::iter::repeat_n(run.holds, (run.length / BLOCK) as usize)
            });
            each.collect::<Vec<Holds>>()
        };
        let found = by_hand.volumes().checkpoints.runs_of_moment(moment, offset * BLOCK, &runs);
        let expected: Vec<Holds> = (offset..).zip(flat(&runs)).map(|(block, holds)| {
            match changed.contains(&(block * BLOCK / CHUNK)) {
                true => Holds::Bytes,
                false => holds,
            }
        }).collect();
        prop_assert_eq!(flat(&found), expected);
        prop_assert!(found.windows(2).all(|two| two[0].holds != two[1].holds), "{found:?}");
        prop_assert_eq!(by_hand.volumes().checkpoints.runs_of_moment(0, 0, &runs), runs);
    }
}
