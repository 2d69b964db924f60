//! What a coordinator reads more comes from free blocks.

use block::Durability;
use proptest::prelude::*;
use server::cached::{PAGE, Readmore, Setting};
use server::status::Cache;

use super::posted::{Asked, alone, in_one_turn};
use super::setting;
use crate::random::{BLOCKS, play_on, steps};
use crate::station::{BLOCK, FASTEST, Medium, Served};

/// A cache of at most so many pages that wishes.
fn wishing(most: u64) -> impl Strategy<Value = Setting> {
    let coordinator = prop_oneof![Just("pfc"), Just("ours(watch=off)")];
    (setting(most), coordinator).prop_map(|(setting, coordinator)| Setting {
        coordinator: coordinator.to_owned(),
        readmore: Readmore::Free,
        ..setting
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn a_cache_on_free_blocks_holds_what_some_order_gives(
        setting in wishing(600),
        steps in steps(),
    ) {
        let served = Served::swept(setting, FASTEST, BLOCKS * BLOCK);
        play_on(served, Medium::Emulated, steps);
    }
}

fn told(served: &Served) -> Cache {
    served.ask(|event_loop| event_loop.picture().caches[0].clone())
}

/// What a page has.
fn fill(page: u64) -> u8 {
    (page % 251) as u8 + 1
}

/// One goes through the first half, the other one jumps about in the second, until it has happened.
fn read_until(served: &Served, has_happened: fn(&Cache) -> bool) {
    let pages = BLOCKS * BLOCK / PAGE;
    for page in 0..pages {
        let write = Asked::write(Durability::Volatile, (page * PAGE, PAGE), fill(page));
        alone(served, write).expect("it is written");
    }
    alone(served, Asked::flush()).expect("it is written");
    let mut step = 0;
    while !has_happened(&told(served)) {
        assert!(step < 20_000, "it does not happen: {:?}", told(served));
        let first = 2 * step % (pages / 2);
        let far = pages / 2 + step * 97 % (pages / 2);
        let both = [(first, 2), (far, 1)];
        let asked = both.map(|(page, count)| Asked::read(page * PAGE, count * PAGE));
        let answers = in_one_turn(served, Vec::from(asked));
        for ((page, count), answer) in both.into_iter().zip(answers) {
            let bytes = answer.expect("it is read");
            let expected = (page..page + count).flat_map(|page| [fill(page); PAGE as usize]);
            assert!(bytes.into_iter().eq(expected), "page {page}");
        }
        step += 1;
    }
}

fn going_on() -> Setting {
    Setting {
        bytes: 128 * PAGE,
        coordinator: "pfc".to_owned(),
        readmore: Readmore::Free,
        ..super::posted::writing_back(64)
    }
}

#[test]
fn one_reader_gets_free_blocks_where_another_one_makes_gaps() {
    let served = Served::swept(going_on(), FASTEST, BLOCKS * BLOCK);
    read_until(&served, |told| told.granted_bytes_total > 0);
    let told = told(&served);
    assert!(told.wished_bytes_total >= told.granted_bytes_total);
    assert_eq!(told.readmore_bytes_total, told.granted_bytes_total);
    served.stop();
}

/// His request comes while the blocks are on their way: it needs no command of its own.
#[test]
fn a_reader_who_is_there_before_his_wish_waits_for_its_read() {
    let served = Served::swept(going_on(), FASTEST, BLOCKS * BLOCK);
    read_until(&served, |told| told.joined_bytes_total > 0);
    served.stop();
}

#[test]
fn without_free_blocks_there_is_no_such_cache() {
    let setting = Setting {
        coordinator: "pfc".to_owned(),
        readmore: Readmore::Free,
        ..super::posted::writing_back(64)
    };
    let refused = Served::refuses(setting, BLOCKS * BLOCK);
    assert!(
        refused.starts_with("readmore free: free blocks need a drive"),
        "{refused}"
    );
}
