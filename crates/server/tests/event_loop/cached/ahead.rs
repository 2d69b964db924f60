//! What is read ahead in slack (free prefetch) reaches the cache.

use block::{Durability, Switch};
use scheduler::Preemption;
use server::cache_setting::{CacheSetting, PAGE, Writes};

use super::posted::{Asked, alone, in_one_turn, writing_back};
use crate::station::{FASTEST, Served};
use crate::streams;

const BYTES: u64 = 32 << 20;

/// Written at once.
const AREA: u64 = 1 << 20;

fn fill(offset: u64) -> u8 {
    (offset / AREA) as u8 + 1
}

#[test]
fn one_reader_gets_what_was_read_ahead_while_the_arm_had_time() {
    let rules = Preemption {
        free_prefetch: Switch::On,
        ..Preemption::as_in_paper(&streams::drive())
    };
    let setting = CacheSetting {
        bytes: 4 << 20,
        writes: Writes::Through,
        ..writing_back(64)
    };
    let served = Served::preempted(setting, rules, FASTEST, BYTES);
    for area in (0..BYTES).step_by(AREA as usize) {
        let write = Asked::write(Durability::Volatile, (area, AREA), fill(area));
        alone(&served, write).expect("it is written");
    }
    let cache = || served.ask(|event_loop| event_loop.picture().caches[0].clone());
    let pages = BYTES / PAGE;
    let mut step = 0;
    while cache().ahead_used_bytes_total == 0 {
        assert!(step < 20_000, "nothing of it is used: {:?}", cache());
        // Two readers in order, and one that jumps about.
        let places = [step, pages / 2 + step, step * 1_201];
        let asked = places.map(|page| Asked::read(page % pages * PAGE, PAGE));
        let answers = in_one_turn(&served, Vec::from(asked));
        for (page, answer) in places.into_iter().zip(answers) {
            let bytes = answer.expect("it is read");
            let expected = fill(page % pages * PAGE);
            assert!(bytes.iter().all(|&byte| byte == expected), "page {page}");
        }
        step += 1;
    }
    assert!(cache().prefetched_bytes_total >= cache().ahead_used_bytes_total);
    served.stop();
}
