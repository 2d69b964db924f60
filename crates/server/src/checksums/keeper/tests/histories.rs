//! Properties of random histories.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::steps::step;
use super::*;
use crate::checksums::PAGES;
use crate::checksums::record::{PageSums, page_sum};

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whatever is lost, and whenever: what nobody damaged is not reported.
    #[test]
    fn no_history_raises_a_false_alarm(
        steps in prop::collection::vec(step(), 1..120),
        is_built in any::<bool>(),
        is_crowded in any::<bool>(),
    ) {
        let mut world = World::new();
        if is_crowded {
            world.keeper.most_active = 2;
        }
        if is_built {
            world.scrub();
            world.keeper.begin_pass();
        }
        for step in &steps {
            world.take(step);
        }
        world.drain();
        world.collect();
        prop_assert_eq!(world.scrub(), []);
        // After a scrub nothing is in doubt, and each chunk has its checksum.
        prop_assert_eq!(world.keeper.doubted(), 0);
        world.drain();
        world.restart(None);
        prop_assert_eq!(world.keeper.doubted(), 0);
        prop_assert_eq!(world.scrub(), []);
        prop_assert_eq!(&world.alarms, &[0; 0]);
        let counts = world.keeper.pass().expect("done").counts();
        prop_assert_eq!(counts, PassCounts { sound: LENGTH.div_ceil(CHUNK), ..PassCounts::default() });
    }

    /// After any history and a scrub, writes of at most two pages of a chunk keep the guard of all its pages.
    #[test]
    fn each_flipped_bit_is_found(
        before in prop::collection::vec(step(), 0..60),
        writes in prop::collection::vec((0..LENGTH / PAGE, any::<u8>()), 0..40),
        flips in prop::collection::btree_map(0..LENGTH / PAGE, (0..PAGE * 8, any::<u64>()), 1..6),
        is_restarted in any::<bool>(),
    ) {
        let mut world = World::new();
        before.iter().for_each(|step| world.take(step));
        world.drain();
        world.scrub();
        let mut written: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for (page, value) in writes {
            let pages = written.entry(page * PAGE / CHUNK).or_default();
            pages.insert(page);
            if pages.len() > 2 {
                pages.remove(&page);
                continue;
            }
            let range = page * PAGE..((page + 1) * PAGE).min(LENGTH);
            // The engine keeps the order of writes of the same bytes.
            if world.commands.iter().any(|other| overlap(&other.range, &range)) {
                world.drain();
            }
            world.submit(range, Some(value), Moment::Early);
            world.release();
        }
        world.drain();
        if is_restarted {
            world.restart(None);
        }
        for (&page, &(bit, _)) in &flips {
            let place = (page * PAGE + bit / 8).min(LENGTH - 1);
            world.drive.bytes[place as usize] ^= 1 << (bit % 8);
        }
        let found = world.scrub();
        for &page in flips.keys() {
            let at = page * PAGE;
            let is_found = found.iter().any(|damage| {
                damage.kind == DamageKind::Changed && damage.offset <= at && at < damage.offset + damage.length
            });
            prop_assert!(is_found, "page {} in {:?}", page, found);
        }
        // No chunk without a flip is reported.
        for damage in &found {
            let chunk = damage.offset / CHUNK;
            prop_assert!(flips.keys().any(|page| page * PAGE / CHUNK == chunk));
        }
        // A rewrite mends it.
        for &page in flips.keys() {
            let chunk = page * PAGE / CHUNK;
            world.submit(chunk * CHUNK..((chunk + 1) * CHUNK).min(LENGTH), Some(3), Moment::Early);
        }
        world.release();
        world.drain();
        prop_assert_eq!(world.scrub(), []);
    }
}

#[test]
fn histories_meet_crashes_amid_writes() {
    // Or the properties above prove nothing.
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let histories = prop::collection::vec(step(), 100..120);
    let mut counts = PassCounts::default();
    for _ in 0..100 {
        let steps = histories
            .new_tree(&mut runner)
            .expect("a history")
            .current();
        let mut world = World::new();
        steps.iter().for_each(|step| world.take(step));
        world.drain();
        world.collect();
        world.scrub();
        let pass = world.keeper.pass().expect("done").counts();
        counts.adopted_after_crash += world.counts.adopted_after_crash + pass.adopted_after_crash;
        counts.sound += world.counts.sound + pass.sound;
    }
    assert!(
        counts.adopted_after_crash > 3 && counts.sound > 100,
        "{counts:?}"
    );
}

#[test]
fn a_checksum_of_a_page_is_of_its_bytes() {
    let mut world = World::new();
    world.submit(0..CHUNK, Some(5), Moment::Early);
    world.release();
    while world.order() {}
    world.release();
    world.drain();
    let bytes = contents(&(0..CHUNK), 5);
    let mut sums: PageSums = [0; PAGES];
    for (sum, page) in sums.iter_mut().zip(bytes.chunks(PAGE as usize)) {
        *sum = page_sum(crate::checksums::record::crc(page));
    }
    let kept = world
        .region
        .as_mut()
        .expect("open")
        .record(0)
        .expect("memory");
    assert_eq!(kept, Record::of(&sums));
}
