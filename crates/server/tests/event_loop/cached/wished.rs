//! What a coordinator reads more comes from free blocks.

use block::Durability;
use proptest::prelude::*;
use server::cache_setting::{CacheSetting, PAGE, Readmore, Writes};
use server::status::{Cache, Task, TaskState};

use super::posted::{Asked, alone, in_one_turn};
use super::setting;
use super::swept::scan;
use crate::random::{BLOCKS, play_on, steps};
use crate::station::{BLOCK, FASTEST, Medium, Served};

/// A cache of at most so many pages that wishes.
fn wishing(most: u64) -> impl Strategy<Value = CacheSetting> {
    let coordinator = prop_oneof![Just("pfc"), Just("adaptive(watch=off)")];
    (setting(most), coordinator).prop_map(|(setting, coordinator)| CacheSetting {
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

#[test]
fn one_reader_gets_free_blocks_where_another_one_makes_gaps() {
    let setting = CacheSetting {
        bytes: 128 * PAGE,
        coordinator: "pfc".to_owned(),
        readmore: Readmore::Free,
        ..super::posted::writing_back(64)
    };
    let served = Served::swept(setting, FASTEST, BLOCKS * BLOCK);
    let pages = BLOCKS * BLOCK / PAGE;
    for page in 0..pages {
        let write = Asked::write(Durability::Volatile, (page * PAGE, PAGE), fill(page));
        alone(&served, write).expect("it is written");
    }
    alone(&served, Asked::flush()).expect("it is written");
    let mut step = 0;
    while told(&served).granted_bytes_total == 0 {
        assert!(step < 20_000, "nothing is granted: {:?}", told(&served));
        // One goes through the first half, the other one jumps about in the second.
        let first = 2 * step % (pages / 2);
        let far = pages / 2 + step * 97 % (pages / 2);
        let both = [(first, 2), (far, 1)];
        let asked = both.map(|(page, count)| Asked::read(page * PAGE, count * PAGE));
        let answers = in_one_turn(&served, Vec::from(asked));
        for ((page, count), answer) in both.into_iter().zip(answers) {
            let bytes = answer.expect("it is read");
            let expected = (page..page + count).flat_map(|page| [fill(page); PAGE as usize]);
            assert!(bytes.into_iter().eq(expected), "page {page}");
        }
        step += 1;
    }
    let told = told(&served);
    assert!(told.wished_bytes_total >= told.granted_bytes_total);
    assert_eq!(told.readmore_bytes_total, told.granted_bytes_total);
    let picture = served.ask(|event_loop| event_loop.picture());
    let [standing] = picture.standing.as_slice() else {
        panic!("one task for all caches: {:?}", picture.standing);
    };
    let cache = &picture.caches[0];
    assert_eq!(standing.name, "readmore");
    assert!(standing.free_bytes_total + standing.idle_bytes_total >= cache.granted_bytes_total);
    assert_eq!(standing.satisfied_bytes_total, cache.granted_bytes_total);
    let dropped = cache.withdrawn_bytes_total + cache.expired_bytes_total;
    assert_eq!(standing.dropped_bytes_total, dropped);
    served.stop();
}

/// A scan reads what a client asks for while its command is at the drive. The client gets it once, and needs
/// no command of his own.
#[test]
fn a_reader_waits_for_what_is_being_read_in_the_background() {
    // The drive is slow, so that its command is still there when the operations are; should the machine not
    // get to them for that long, the next attempt finds one.
    let has_joined = (0..10).any(|_| {
        let setting = CacheSetting {
            bytes: 2 * BLOCKS * BLOCK,
            coordinator: "pfc".to_owned(),
            readmore: Readmore::Free,
            writes: Writes::Through,
            ..super::posted::writing_back(64)
        };
        let served = Served::swept(setting, 10.0, BLOCKS * BLOCK);
        let (pages, all) = (64, (0, 64 * PAGE));
        alone(&served, Asked::write(Durability::Volatile, all, 7)).expect("it is written");
        let (received, _) = scan(&served, pages * PAGE);
        let is_under_way = || {
            served.ask(|event_loop| {
                let is_active = |task: &Task| task.state == TaskState::Active;
                event_loop.engine().dispatch().at_drive() > 0
                    || !event_loop.tasks().list().iter().any(is_active)
            })
        };
        while !is_under_way() {}
        let asked = (0..pages).map(|page| Asked::read(page * PAGE, PAGE));
        for answer in in_one_turn(&served, asked.collect()) {
            assert!(answer.expect("it is read") == [7; PAGE as usize]);
        }
        let joined = told(&served).joined_bytes_total;
        drop(received);
        served.stop();
        joined > 0
    });
    assert!(has_joined);
}

#[test]
fn without_free_blocks_there_is_no_such_cache() {
    let setting = CacheSetting {
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
