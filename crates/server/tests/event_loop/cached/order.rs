//! Operations whose order is known: what each of them finds is known in advance.

use block::Durability;
use server::cache_setting::PAGE;

use super::posted::{Asked, alone, in_one_turn, writing_back};
use crate::random::BLOCKS;
use crate::station::{BLOCK, Medium, Served};

/// A part of a page is written through, beside the rest of it that is on its way from the cache. The
/// rest is read before the volume has it, and the page is gone by then.
#[test]
fn what_is_beside_a_part_that_is_written_through_is_not_lost() {
    for medium in [Medium::CoarseFile, Medium::CoarseDrive] {
        let served = Served::behind(Some(writing_back(3)), medium, BLOCKS * BLOCK);
        let (volatile, durable) = (Durability::Volatile, Durability::Durable);
        let answers = in_one_turn(
            &served,
            vec![
                Asked::write(volatile, (0, PAGE), 7),
                Asked::write(durable, (BLOCK, BLOCK), 9),
                Asked::flush(),
                Asked::read(10 * PAGE, 2 * PAGE),
            ],
        );
        assert!(answers.iter().all(Result::is_ok), "{medium:?}");
        let mut expected = vec![7; PAGE as usize];
        expected[BLOCK as usize..2 * BLOCK as usize].fill(9);
        let there = alone(&served, Asked::read(0, PAGE)).expect("it can be read");
        assert!(
            there == expected,
            "{medium:?}: what was acknowledged is lost"
        );
        let folder = served.stop();
        medium.assert_holds(&folder, &expected);
    }
}
