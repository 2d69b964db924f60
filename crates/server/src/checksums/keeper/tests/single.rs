//! Single rules.

use super::*;

/// An intent that is gone has its records on the medium: a power cut right after loses neither.
#[test]
fn a_removed_intent_leaves_its_record() {
    for seed in 0..64 {
        let mut world = World::new();
        world.scrub();
        world.submit(0..PAGE, Some(9), Moment::Early);
        world.drain();
        world.restart(Some(&mut Dice(seed)));
        assert_eq!(world.scrub(), [], "power cut {seed}");
    }
}

/// Counts the intents of writes whose region answers at once: how often a write waits, and how often the region syncs.
fn waits_and_syncs(length: u64, writes: impl Iterator<Item = Range<u64>>) -> (u64, u64) {
    let mut keeper = Keeper::new(length, Trimmed::Fixed, &[]);
    let (mut waits, mut syncs) = (0, 0);
    for (key, range) in writes.enumerate() {
        let mut is_ready = keeper.readiness(&range) == Readiness::Ready;
        waits += u64::from(!is_ready);
        while let Some(Order::Intend(intents)) = keeper.poll() {
            syncs += 1;
            keeper.answer(Instant::ZERO, &Report::Intended(intents));
        }
        is_ready |= keeper.readiness(&range) == Readiness::Ready;
        assert!(is_ready && keeper.poll().is_none(), "{range:?}");
        keeper.write_begun(key as u64, range, Vec::new());
        keeper.change_ended(Instant::ZERO, key as u64, Ending::Good);
    }
    (waits, syncs)
}

#[test]
fn a_sequential_write_asks_for_few_intents_and_early() {
    let length = 1 << 30;
    let of = |bytes: u64| {
        waits_and_syncs(
            length,
            (0..length / bytes).map(move |n| n * bytes..(n + 1) * bytes),
        )
    };
    // It doubles up to 16 MiB, and is asked for half of it before its end: a sync for each 8 MiB.
    assert_eq!(of(CHUNK), (2, 141));
    assert_eq!(of(PAGE).0, 2);
    assert!(of(PAGE).1 < 150);
    assert_eq!(of(1 << 20).0, 2);
    // Runs beside each other do not wait either.
    let beside = (0..1024 * 4_u64).map(|n| {
        let first = n % 4 * (length / 4) + n / 4 * CHUNK;
        first..first + CHUNK
    });
    assert_eq!(waits_and_syncs(length, beside).0, 8);
}

/// Random writes of a page, 150 a second for a minute, over volumes of some sizes: how many need a sync of the region,
/// and what share of the pages has an intent at the end.
#[test]
fn random_writes_leave_few_pages_in_doubt() {
    let of = |length: u64| {
        let mut keeper = Keeper::new(length, Trimmed::Fixed, &[]);
        let (mut dice, mut syncs) = (Dice(7), 0);
        for key in 0..9000 {
            let now = Instant::ZERO + Duration::from_millis(key * 1000 / 150);
            if keeper.settle(now) {
                keeper.flush_begun(key);
                keeper.flush_ended(key, Ending::Good);
            }
            let page = dice.roll(length / PAGE);
            let range = page * PAGE..(page + 1) * PAGE;
            keeper.readiness(&range);
            while let Some(order) = keeper.poll() {
                if let Order::Intend(intents) = order {
                    syncs += 1;
                    keeper.answer(now, &Report::Intended(intents));
                }
            }
            keeper.write_begun(key, range, Vec::new());
            keeper.change_ended(now, key, Ending::Good);
        }
        let named: u32 = keeper
            .intended
            .values()
            .map(|pages| pages.count_ones())
            .sum();
        (
            syncs as f64 / 9000.0,
            f64::from(named) / (length / PAGE) as f64,
        )
    };
    for (gibibytes, most_syncs, most_named) in [(4, 1.0, 0.005), (64, 1.0, 0.000_2)] {
        let (syncs, named) = of(gibibytes << 30);
        println!("{gibibytes} GiB: {syncs:.3} syncs a write, {named:.6} of the pages named");
        assert!(
            syncs <= most_syncs && named <= most_named,
            "{syncs} {named}"
        );
    }
    let (syncs, named) = of(256 << 20);
    println!("256 MiB: {syncs:.3} syncs a write, {named:.6} of the pages named");
    assert!(named < 0.5);
}

/// A write of other places asks for its own pages alone, however busy the chunks before it are.
#[test]
fn a_random_write_is_no_run() {
    let mut keeper = Keeper::new(1 << 30, Trimmed::Fixed, &[]);
    for (key, page) in [0, 3, 40, 17, 20, 25].into_iter().enumerate() {
        let range = page * PAGE..page * PAGE + PAGE;
        keeper.readiness(&range);
        while let Some(Order::Intend(intents)) = keeper.poll() {
            keeper.answer(Instant::ZERO, &Report::Intended(intents));
        }
        keeper.write_begun(key as u64, range, Vec::new());
    }
    let expected = [(0, 0b1001), (1, ALL_PAGES), (2, 1 << 8)];
    assert_eq!(keeper.intended.into_iter().collect::<Vec<_>>(), expected);
}

/// A volume becomes shorter and longer again while a write past its shorter end is in flight.
#[test]
fn a_write_past_the_end_is_awaited() {
    let mut world = World::of(40 * CHUNK, 0);
    world.scrub();
    world.submit(39 * CHUNK..40 * CHUNK, Some(9), Moment::Late);
    world.release();
    while world.order() {}
    world.release();
    for chunks in [20, 40] {
        world.length = chunks * CHUNK;
        world.keeper.resize(world.length);
        while world.order() {}
    }
    world.keeper.begin_pass();
    // A second write of the chunk, to another page.
    world.submit(38 * CHUNK..39 * CHUNK + PAGE, Some(7), Moment::Early);
    world.release();
    while world.order() {}
    world.release();
    world.end(0, true);
    world.flush();
    world.pass_time(12);
    assert!(world.keeper.active() > 0, "the second write is in flight");
    world.drain();
    assert_eq!(world.scrub(), []);
    assert_eq!(world.alarms, [0; 0]);
}

/// Trims without a flush are told apart up to a number. With more, no read counts until a flush.
#[test]
fn many_trims_await_a_flush() {
    let length = 5000 * CHUNK;
    let mut keeper = Keeper::new(length, Trimmed::Fixed, &[]);
    keeper.begin_pass();
    keeper.flush_begun(1);
    keeper.flush_ended(1, Ending::Good);
    for trim in 0..2000 {
        assert_eq!(keeper.waits_for_flush(), trim > 1024, "after {trim} trims");
        keeper.punch_begun(2 + trim, trim * 2 * CHUNK..(trim * 2 + 1) * CHUNK);
        keeper.change_ended(Instant::ZERO, 2 + trim, Ending::Good);
    }
}

fn only(range: Range<u64>) -> Vec<Range<u64>> {
    std::iter::once(range).collect()
}

/// One bad block fails the whole of a read: what is read without it is readable.
#[test]
fn failed_reads_are_narrowed_down() {
    let mut keeper = Keeper::new(4 * CHUNK, Trimmed::Fixed, &[]);
    keeper.begin_pass();
    keeper.flush_begun(0);
    keeper.flush_ended(0, Ending::Good);
    let bytes = vec![0; 4 * CHUNK as usize];
    let read = |keeper: &mut Keeper, range: Range<u64>| {
        let bad = CHUNK + 512..CHUNK + 1024;
        keeper.read_begun(1);
        let here = &bytes[range.start as usize..range.end as usize];
        let all = (!overlap(&bad, &range)).then(|| pieces(range.start, here));
        keeper.read_ended(1, &range, all);
        keeper.pass().expect("begun").unreadable()
    };
    assert_eq!(read(&mut keeper, 0..3 * CHUNK), only(0..3 * CHUNK));
    assert_eq!(
        read(&mut keeper, CHUNK + PAGE..4 * CHUNK),
        only(0..CHUNK + PAGE)
    );
    assert_eq!(read(&mut keeper, 0..CHUNK), only(CHUNK..CHUNK + PAGE));
    for block in 0..8 {
        let at = CHUNK + block * BLOCK;
        read(&mut keeper, at..at + BLOCK);
    }
    let pass = keeper.pass_mut().expect("begun");
    assert_eq!(pass.unreadable(), only(CHUNK + 512..CHUNK + 1024));
    pass.end();
    let damage = crate::checksums::pass::Damage {
        offset: CHUNK + 512,
        length: 512,
        kind: DamageKind::Unreadable,
    };
    assert_eq!(pass.damaged(), [damage]);
    // A write mends it.
    keeper.begin_pass();
    read(&mut keeper, CHUNK..CHUNK + PAGE);
    keeper.write_begun(2, CHUNK..CHUNK + PAGE, Vec::new());
    assert_eq!(keeper.pass().expect("begun").unreadable(), [0..0; 0]);
}
