//! The safe set against serving everything, back to back, by the slowest drive that is possible.

use super::*;
use crate::admission::Cutting;
use crate::head_times::{AccessTimes, SeekBound};
use proptest::prelude::*;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(at: u64) -> Instant {
    Instant::ZERO + millis(at)
}

const SPAN: u32 = 1_000;

fn times() -> HeadTimes {
    let points = [(0, millis(1)), (100, millis(4)), (SPAN, millis(10))];
    let access = AccessTimes {
        overhead: Duration::ZERO,
        settle: Duration::ZERO,
    };
    HeadTimes {
        revolution: millis(8),
        read: access,
        write: access,
        seek: SeekBound::over(points).expect("there are points"),
        cylinders: SPAN + 1,
        wander: 0,
        change: Duration::ZERO,
        foreground: millis(2),
        stall: Duration::ZERO,
    }
}

fn between(low: u32, high: u32) -> Cylinders {
    Cylinders { low, high }
}

fn batch(key: u64, cylinder: u32, deadline: u64) -> Batch {
    Batch {
        key,
        cylinder,
        last: cylinder,
        work: millis(10),
        deadline: at(deadline),
    }
}

fn frozen(batches: &[Batch]) -> (Rounds, Vec<(u64, Slot)>) {
    let mut rounds = Rounds::new(times());
    let mut slots = Vec::new();
    rounds.freeze(batches, None, |key, slot| slots.push((key, slot)));
    (rounds, slots)
}

fn slot_of(slots: &[(u64, Slot)], key: u64) -> Slot {
    slots
        .iter()
        .find(|(k, _)| *k == key)
        .expect("it was frozen")
        .1
}

#[test]
fn without_batches_everything_is_safe() {
    let rounds = Rounds::new(times());
    assert!(rounds.safe(at(0), Duration::from_secs(1_000)));
    assert_eq!((rounds.next_deadline(), rounds.due(at(0), 0)), (None, None));
}

#[test]
fn a_command_is_safe_up_to_the_worst_case_of_the_sweep_and_not_longer() {
    let batches = [batch(1, 0, 500), batch(2, 500, 100), batch(3, 900, 500)];
    let (rounds, _) = frozen(&batches);
    let worst = millis(30) + times().sweep(3, between(0, 900), 0);
    let slack = millis(100).saturating_sub(worst);
    assert!(rounds.safe(at(0), slack));
    assert!(!rounds.safe(at(0), slack + Duration::from_nanos(1)));
    assert_eq!(rounds.next_deadline(), Some(at(100)));
}

#[test]
fn a_sweep_begins_at_its_nearer_end_and_goes_on() {
    let batches = [batch(1, 100, 9), batch(2, 500, 9), batch(3, 900, 9)];
    for (head, order) in [(0, [1, 2, 3]), (499, [1, 2, 3]), (501, [3, 2, 1])] {
        let (mut rounds, slots) = frozen(&batches);
        let mut head = head;
        for key in order {
            let batch = rounds.due(at(0), head).expect("nothing else is safe");
            assert_eq!(batch.key, key);
            head = batch.cylinder;
            rounds.taken(slot_of(&slots, key));
            rounds.done(slot_of(&slots, key));
        }
        assert_eq!((rounds.due(at(0), head), rounds.groups()), (None, 0));
    }
}

#[test]
fn what_may_befall_a_round_is_kept_free() {
    let stalling = HeadTimes {
        stall: millis(30),
        ..times()
    };
    let mut rounds = Rounds::new(stalling);
    rounds.freeze(&[batch(1, 0, 100)], None, |_, _| {});
    let slack = millis(100 - 30 - 10).saturating_sub(times().sweep(1, between(0, 0), 0));
    assert!(rounds.safe(at(0), slack));
    assert!(!rounds.safe(at(0), slack + Duration::from_nanos(1)));
}

/// A group that is in a hurry is to be done sooner, and is late when what was promised is.
#[test]
fn a_group_is_late_when_a_batch_is_not_done_by_its_own_deadline() {
    let mut rounds = Rounds::new(times());
    let mut slots = Vec::new();
    let batches = [batch(1, 0, 100), batch(2, 900, 200)];
    rounds.freeze(&batches, Some(at(50)), |key, slot| slots.push((key, slot)));
    assert_eq!(rounds.next_deadline(), Some(at(50)));
    assert!(!rounds.safe(at(0), millis(20)), "it is in a hurry");
    let late: Vec<bool> = [50, 99, 100, 101].map(|t| rounds.is_late(at(t))).into();
    assert_eq!(late, [false, false, false, true]);
    rounds.taken(slot_of(&slots, 1));
    rounds.taken(slot_of(&slots, 2));
    assert!(rounds.is_late(at(101)), "at the drive is not done");
    rounds.done(slot_of(&slots, 1));
    rounds.done(slot_of(&slots, 2));
    assert!(!rounds.is_late(at(101)));
}

#[test]
fn the_group_to_come_counts() {
    let mut rounds = Rounds::new(times());
    let plan = Plan {
        round: millis(1_000),
        within: millis(500),
        worst: millis(480),
        cutting: Cutting::Anywhere,
        share: 0,
    };
    rounds.expect(Some((at(1_000), plan)));
    assert!(rounds.safe(at(0), millis(1_020)));
    assert!(!rounds.safe(at(0), millis(1_021)));
}

#[test]
fn batches_join_while_there_is_slack() {
    let batches = [batch(1, 0, 200), batch(2, 500, 200)];
    let (mut rounds, slots) = frozen(&batches);
    let second = slot_of(&slots, 2);
    let rest = millis(10) + times().sweep(1, between(0, 0), 0);
    let slack = millis(200).saturating_sub(rest);
    assert!(rounds.may_join(at(0), slack, second));
    assert!(!rounds.may_join(at(0), slack + Duration::from_nanos(1), second));
    rounds.taken(second);
    // What is at the drive is not counted: `now` is when it ends.
    assert_eq!(
        rounds
            .waiting()
            .map(|(_, batch)| batch.key)
            .collect::<Vec<_>>(),
        [1]
    );
    assert!(rounds.safe(at(0), slack));
    assert!(!rounds.safe(at(0), slack + Duration::from_nanos(1)));
    // The last one may not join after its deadline.
    rounds.done(second);
    let first = slot_of(&slots, 1);
    assert!(rounds.may_join(at(0), millis(200), first));
    assert!(!rounds.may_join(at(0), millis(201), first));
}

#[test]
fn a_slot_that_is_done_is_done_once() {
    let (mut rounds, slots) = frozen(&[batch(1, 0, 200), batch(2, 1, 200)]);
    rounds.done(slot_of(&slots, 1));
    rounds.done(slot_of(&slots, 1));
    assert_eq!(rounds.groups(), 1);
    rounds.done(slot_of(&slots, 2));
    rounds.done(slot_of(&slots, 2));
    assert_eq!(rounds.groups(), 0);
}

#[test]
fn what_was_held_up_goes_where_it_makes_no_other_batch_late() {
    let batches = [batch(1, 0, 100), batch(2, 500, 100)];
    let (mut rounds, slots) = frozen(&batches);
    rounds.held_up(slot_of(&slots, 1));
    let rest = millis(10) + times().sweep(1, between(0, 500), 0);
    let slack = millis(100).saturating_sub(rest);
    let more = slack + Duration::from_nanos(1);
    let next = |rounds: &Rounds, worst| {
        let next = rounds.next(at(0), at(0), 0, |_| worst);
        next.map(|batch| batch.key)
    };
    assert_eq!(next(&rounds, slack), Some(1));
    assert_eq!(next(&rounds, more), Some(2));
    // Other requests leave its time alone.
    assert!(!rounds.safe(at(0), slack));
    rounds.taken(slot_of(&slots, 2));
    assert_eq!(next(&rounds, more), Some(1), "nothing else waits");
    rounds.done(slot_of(&slots, 2));
    assert!(!rounds.is_late(at(101)), "its own promise is void");
}

#[test]
fn a_promise_that_is_broken_already_spares_nothing() {
    let (mut rounds, slots) = frozen(&[batch(1, 0, 100), batch(2, 500, 100)]);
    rounds.held_up(slot_of(&slots, 1));
    let next = rounds.next(at(101), at(101), 0, |_| millis(9));
    assert_eq!(next.map(|batch| batch.key), Some(1));
}

#[test]
fn rounds_go_on_beside_any_number_of_batches_that_are_held_up() {
    let mut rounds = Rounds::new(times());
    for key in 0..3 * GROUPS as u64 {
        assert!(rounds.is_open());
        let mut slots = Vec::new();
        let batches = [batch(2 * key, 0, 100), batch(2 * key + 1, 1, 100)];
        rounds.freeze(&batches, None, |key, slot| slots.push((key, slot)));
        rounds.held_up(slot_of(&slots, 2 * key));
        rounds.held_up(slot_of(&slots, 2 * key));
        rounds.done(slot_of(&slots, 2 * key + 1));
    }
    assert_eq!(rounds.groups(), 3 * GROUPS);
}

/// A decision of the hostile driver: whether it wants a foreground command, how long, whether a
/// batch is to join, which, and where the head is then.
type Wish = (bool, u64, bool, usize, u32);

proptest! {
    /// Whatever is put in where it is safe, and wherever the head then is: if a group could be
    /// served in time when it was frozen, no batch of it is late, by a drive that takes every
    /// batch's whole work and every seek's whole time.
    #[test]
    fn what_is_safe_makes_nothing_late(
        groups in prop::collection::vec(
            (prop::collection::vec((0u32..SPAN, 1u64..20, 0u32..30), 1..12), 0u64..400), 1..4),
        wishes in prop::collection::vec(
            (any::<bool>(), 1u64..60, any::<bool>(), 0usize..64, 0u32..SPAN), 60),
    ) {
        let mut rounds = Rounds::new(times());
        let mut slots = Vec::new();
        let mut deadlines = Vec::new();
        let mut key = 0;
        let mut end = at(0);
        for (batches, slack) in groups {
            let worst: Duration = batches.iter().map(|batch| millis(batch.1)).sum();
            let low = batches.iter().map(|batch| batch.0).min().unwrap_or(0);
            let high = batches.iter().map(|batch| batch.0).max().unwrap_or(0);
            let strays = batches.iter().map(|batch| u64::from(batch.2)).sum();
            end = end + worst + times().sweep(batches.len() as u64, between(low, high), strays);
            let deadline = end + millis(slack);
            end = deadline;
            let batches: Vec<Batch> = batches
                .into_iter()
                .map(|(cylinder, work, stray)| {
                    key += 1;
                    deadlines.push(deadline);
                    let last = match key % 2 {
                        0 => cylinder + stray,
                        _ => cylinder.saturating_sub(stray),
                    };
                    Batch { key, cylinder, last, work: millis(work), deadline }
                })
                .collect();
            rounds.freeze(&batches, None, |key, slot| slots.push((key, slot)));
        }
        let (mut now, mut head) = (at(0), SPAN / 2);
        let mut wishes: Vec<Wish> = wishes;
        let mut inserted = 0;
        while rounds.groups() > 0 {
            let wish = wishes.pop();
            if let Some((true, length, ..)) = wish
                && rounds.safe(now, millis(length))
            {
                now += millis(length);
                head = wish.map_or(head, |wish| wish.4);
                inserted += 1;
                continue;
            }
            let count = rounds.waiting().count();
            let joining = wish.filter(|wish| wish.2).and_then(|wish| rounds.waiting().nth(wish.3 % count));
            let joining = joining.filter(|(slot, batch)| {
                let worst = batch.work + times().seek.at(head.abs_diff(batch.cylinder));
                rounds.may_join(now, worst, *slot)
            });
            let batch = joining.map(|(_, batch)| batch).or_else(|| rounds.first(head));
            let batch = batch.expect("a group has batches");
            now = now + times().seek.at(head.abs_diff(batch.cylinder)) + batch.work;
            head = batch.last;
            // Rounded up to whole nanoseconds, seek by seek.
            let late = now > deadlines[batch.key as usize - 1] + Duration::from_nanos(100);
            prop_assert!(!late, "batch {} at {now:?}, {inserted} inserted", batch.key);
            rounds.done(slot_of(&slots, batch.key));
        }
    }

    /// However many commands some batches wait for, and wherever the head is after each: if all batches could
    /// be served in time when they were frozen, none is late that waits for nothing, and all go in the end.
    #[test]
    fn what_is_held_up_makes_nothing_else_late(
        batches in prop::collection::vec((0u32..SPAN, 1u64..20, 0u32..4), 1..24),
        slack in 0u64..100,
        places in prop::collection::vec(0u32..SPAN, 100),
    ) {
        let mut rounds = Rounds::new(times());
        let worst: Duration = batches.iter().map(|batch| millis(batch.1)).sum();
        let low = batches.iter().map(|batch| batch.0).min().unwrap_or(0);
        let high = batches.iter().map(|batch| batch.0).max().unwrap_or(0);
        let sweep = times().sweep(batches.len() as u64, between(low, high), 0);
        let deadline = at(slack) + worst + sweep;
        let mut before: Vec<u32> = batches.iter().map(|batch| batch.2 / 2 * batch.2 * 10).collect();
        let frozen: Vec<Batch> = (0..).zip(&batches).map(|(key, &(cylinder, work, _))| Batch {
            key, cylinder, last: cylinder, work: millis(work), deadline,
        }).collect();
        let mut slots = Vec::new();
        rounds.freeze(&frozen, None, |key, slot| slots.push((key, slot)));
        for (key, before) in before.iter().enumerate() {
            if *before > 0 {
                rounds.held_up(slot_of(&slots, key as u64));
            }
        }
        let is_held_up: Vec<bool> = before.iter().map(|&before| before > 0).collect();
        let (mut now, mut head) = (at(0), SPAN / 2);
        let mut places = places.into_iter().cycle();
        while rounds.groups() > 0 {
            let of_others = times().foreground_worst();
            let next = rounds.next(now, now, head, |batch| match before[batch.key as usize] {
                0 => times().seek.at(head.abs_diff(batch.cylinder)) + batch.work,
                _ => of_others,
            });
            let batch = next.expect("something waits");
            let key = batch.key as usize;
            if before[key] > 0 {
                before[key] -= 1;
                now += of_others;
                head = places.next().unwrap_or(0);
                continue;
            }
            now = now + times().seek.at(head.abs_diff(batch.cylinder)) + batch.work;
            head = batch.last;
            // Rounded up to whole nanoseconds, seek by seek.
            let is_late = now > deadline + Duration::from_nanos(100);
            prop_assert!(!is_late || is_held_up[key], "batch {key} at {now:?}");
            rounds.done(slot_of(&slots, batch.key));
        }
    }
}
