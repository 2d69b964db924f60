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

#[test]
fn a_sequential_write_asks_for_few_intents() {
    let mut keeper = Keeper::new(1 << 30, Trimmed::Fixed, &[]);
    let mut asked = 0;
    for chunk in 0..16_384_u64 {
        let range = chunk * CHUNK..(chunk + 1) * CHUNK;
        while keeper.readiness(&range) == Readiness::Waiting {
            let order = keeper.poll().expect("an intent");
            let Order::Intend(intents) = order else {
                panic!("{order:?}");
            };
            asked += 1;
            keeper.answer(Instant::ZERO, &Report::Intended(intents));
        }
    }
    assert_eq!(asked, 1 + 16, "a flush for each 64 MiB");
}

/// A volume becomes shorter and longer again while a write past its shorter end is in flight.
#[test]
fn a_write_past_the_end_is_awaited() {
    let mut world = World::of(40 * CHUNK, 0);
    world.scrub();
    world.submit(39 * CHUNK..40 * CHUNK, Some(9), Moment::Late);
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
