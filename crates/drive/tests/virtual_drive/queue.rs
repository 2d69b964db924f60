//! The drive's own queue: overlap, order, urgency, limits.

use block::{
    Command, CommandId, Direction, Duration, Extent, Instant, Lba, Refused, Sectors, Status,
    Urgency,
};
use drive::firmware::QueueOrder;
use drive::mechanics::SeekTarget;
use drive::{Position, Profile, VirtualDrive};
use proptest::prelude::*;

use crate::play::{Done, Play};
use crate::small::*;

fn queued(profile: &Profile, order: QueueOrder) -> Play {
    let drive = VirtualDrive::new(arc(profile.clone()));
    Play::new(drive.with_queue(16, order))
}

/// When the arm was free after a read of the bare drive: all but the bus' tail and completion.
fn arm_free(done: &Done) -> Instant {
    let after = done.account().bus + micros(50);
    Instant::from_nanos(done.outcome.at.as_nanos() - after.as_nanos())
}

fn target(profile: &Profile, lba: u64) -> SeekTarget {
    SeekTarget::from(&profile.geometry.locate(Lba(lba)).expect("on the drive"))
}

#[test]
fn a_second_command_overlaps_its_overhead_and_the_bus_of_the_first() {
    let profile = bare();
    let mut play = queued(&profile, QueueOrder::Fcfs);
    let first = play.submit(at(0), read(5, 10));
    let second = play.submit(at(0), read(700, 10));
    play.drain();
    let (first, second) = (play.of(first), play.of(second));
    let begins = arm_free(&first);
    let position = target(&profile, 5).position;
    let way = profile.positioning(position, begins, &target(&profile, 700), Direction::Read);
    let account = second.account();
    assert_eq!((account.seek, account.rotation), (way.seek, way.rotation));
    assert_eq!(
        account.queue,
        begins.since(at(300)),
        "the overhead is hidden"
    );
    assert!(begins < first.outcome.at, "the bus is hidden");
}

#[test]
fn queued_sequential_writes_lose_no_revolution() {
    let mut play = queued(&bare(), QueueOrder::Fcfs);
    let ids = [0, 5, 10].map(|start| play.submit(at(0), write(start, 5)));
    play.drain();
    let ends = ids.map(|id| play.of(id).outcome.at);
    for pair in ends.windows(2) {
        let apart = pair[1].since(pair[0]).as_nanos();
        assert!(apart.abs_diff(5 * SECTOR) <= 16, "{apart} ns apart");
    }
}

#[test]
fn first_come_first_served() {
    let mut play = queued(&bare(), QueueOrder::Fcfs);
    let starts = [1_500, 3, 800, 1_501, 4, 801];
    let ids = starts.map(|start| play.submit(at(0), read(start, 1)));
    play.drain();
    let order: Vec<CommandId> = play.done.iter().map(|done| done.command.id).collect();
    assert_eq!(order, ids);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_shortest_positioning_goes_first(starts in prop::collection::vec(0..BLOCKS, 2..16)) {
        let profile = bare();
        let mut play = queued(&profile, QueueOrder::Sptf);
        for start in &starts {
            play.submit(at(0), read(*start, 1));
        }
        play.drain();
        // The first was alone when it came.
        let mut left: Vec<(u64, u64)> = (0..).zip(starts).collect();
        let (mut free, mut position) = (at(0), Position::default());
        for (turn, done) in play.done.iter().enumerate() {
            let cost = |lba| {
                profile.positioning(position, free, &target(&profile, lba), Direction::Read).total()
            };
            let best = match turn {
                0 => left[0],
                _ => *left.iter().min_by_key(|(id, lba)| (cost(*lba), *id)).expect("one left"),
            };
            prop_assert_eq!(done.command.id, CommandId(best.0));
            left.retain(|other| *other != best);
            free = arm_free(done);
            position = target(&profile, best.1).position;
        }
    }
}

/// How long a far command waits while ten near ones are always outstanding, for ten seconds at
/// most.
fn waits_beside_a_hostile_stream(order: QueueOrder) -> Option<Duration> {
    let mut play = queued(&bare(), order);
    play.submit(at(0), read(0, 1));
    let far = play.submit(at(0), read(BLOCKS - 1, 1));
    let mut near = 0;
    while play.now < at(10_000_000) {
        while play.drive.held() < 11 {
            near = (near + 7) % 40;
            play.submit(play.now, read(near, 1));
        }
        let wakeup = play.drive.next_wakeup().expect("there is always work");
        play.run_until(wakeup);
        if let Some(done) = play.done.iter().find(|done| done.command.id == far) {
            return Some(done.took());
        }
    }
    None
}

#[test]
fn ageing_ends_the_wait_that_a_hostile_stream_makes_endless() {
    assert_eq!(waits_beside_a_hostile_stream(QueueOrder::Sptf), None);
    // Positioning takes at most a seek of 9.6 ms and a revolution; a second is worth 6 ms.
    let most = Duration::from_micros((9_600 + 10_000) * 1_000 / 6) + micros(100_000);
    let aged = waits_beside_a_hostile_stream(QueueOrder::AgedSptf);
    assert!(aged.is_some_and(|waited| waited <= most), "{aged:?}");
    let in_order = waits_beside_a_hostile_stream(QueueOrder::Fcfs);
    assert!(
        in_order.is_some_and(|waited| waited < micros(100_000)),
        "{in_order:?}"
    );
}

#[test]
fn the_urgent_go_before_the_others_in_every_order() {
    for order in [QueueOrder::Fcfs, QueueOrder::Sptf, QueueOrder::AgedSptf] {
        let mut play = queued(&bare(), order);
        play.submit(at(0), read(0, 1));
        for start in 2..8 {
            play.submit(at(0), read(start, 1));
        }
        let urgent = play.submit_as(at(0), read(1_500, 1), |command| {
            command.urgency = Urgency::High;
        });
        play.drain();
        assert_eq!(play.done[1].command.id, urgent);
    }
}

#[test]
fn a_command_that_waits_past_its_limit_ends_at_its_limit() {
    let mut play = queued(&bare(), QueueOrder::Fcfs);
    let first = play.submit(at(0), read(1_000, 20));
    let short = play.submit_as(at(1_000), read(5, 1), |command| {
        command.duration_limit = Some(micros(3_000));
    });
    let long = play.submit_as(at(1_000), read(5, 1), |command| {
        command.duration_limit = Some(micros(300_000));
    });
    play.drain();
    assert_eq!(play.of(short).status(), Status::TimedOut);
    assert_eq!(play.of(short).outcome.at, at(4_000));
    assert_eq!(play.of(short).account().queue, micros(3_000));
    assert_eq!(play.of(long).status(), Status::Good);
    assert_eq!(play.of(first).status(), Status::Good);
}

#[test]
fn a_command_that_is_taken_up_at_its_limit_is_served() {
    let first = queued(&bare(), QueueOrder::Fcfs).serve(at(0), read(1_000, 1));
    let free = arm_free(&first).as_nanos();
    for (limit, status) in [(free, Status::Good), (free - 1, Status::TimedOut)] {
        let mut play = queued(&bare(), QueueOrder::Fcfs);
        play.submit(at(0), read(1_000, 1));
        let second = play.submit_as(at(0), read(0, 1), |command| {
            command.duration_limit = Some(Duration::from_nanos(limit));
        });
        play.drain();
        assert_eq!(play.of(second).status(), status);
    }
}

#[test]
fn a_limit_of_nothing_does_not_hurt_a_drive_that_is_free() {
    let mut play = queued(&bare(), QueueOrder::Sptf);
    let id = play.submit_as(at(7), read(0, 1), |command| {
        command.duration_limit = Some(Duration::ZERO);
    });
    play.drain();
    assert_eq!(play.of(id).status(), Status::Good);
}

#[test]
fn a_full_drive_refuses_and_so_does_one_that_ends_before() {
    let mut drive = VirtualDrive::new(arc(bare())).with_queue(2, QueueOrder::Sptf);
    let mut submit = |id, action| drive.submit(at(0), Command::new(CommandId(id), action));
    assert_eq!(submit(0, read(0, 1)), Ok(()));
    let past = Refused::PastEnd {
        extent: extent(BLOCKS - 1, 2),
        capacity: BLOCKS,
    };
    assert_eq!(submit(1, read(BLOCKS - 1, 2)), Err(past));
    assert_eq!(submit(1, write(BLOCKS - 1, 2)), Err(past));
    let largest = Extent::new(Lba(u64::MAX - 1), Sectors(1)).expect("valid");
    let refused = submit(1, seek(u64::MAX - 1));
    let past = Refused::PastEnd {
        extent: largest,
        capacity: BLOCKS,
    };
    assert_eq!(refused, Err(past));
    assert_eq!(submit(1, read(BLOCKS - 1, 1)), Ok(()));
    assert_eq!(submit(2, read(0, 1)), Err(Refused::Full { limit: 2 }));
}

#[test]
fn the_shortest_seek_of_a_seek_command_is_what_counts() {
    // A seek to a track does not wait for the block to come round: it is the shorter way even if
    // the block has just passed.
    let mut play = queued(&bare(), QueueOrder::Sptf);
    play.submit(at(0), read(0, 1));
    let reading = play.submit(at(0), read(50, 1));
    let seeking = play.submit(at(0), seek(40));
    play.drain();
    assert!(play.of(seeking).outcome.at < play.of(reading).outcome.at);
}

#[test]
fn the_urgent_go_in_the_drives_order_among_themselves() {
    for (order, expected) in [
        (QueueOrder::Fcfs, [1_500, 40]),
        (QueueOrder::Sptf, [40, 1_500]),
    ] {
        let mut play = queued(&bare(), order);
        play.submit(at(0), read(0, 1));
        play.submit(at(0), read(20, 1));
        for start in [1_500, 40] {
            play.submit_as(at(0), read(start, 1), |command| {
                command.urgency = Urgency::High;
            });
        }
        play.drain();
        let urgent = play.done[1..3].iter();
        let starts: Vec<u64> = urgent.map(|done| start(&done.command)).collect();
        assert_eq!(starts, expected, "{order:?}");
        assert_eq!(start(&play.done[3].command), 20);
    }
}

/// Where a command begins.
fn start(command: &Command) -> u64 {
    command.action.extent().map_or(0, |extent| extent.start().0)
}

#[test]
fn one_that_times_out_makes_room_and_is_not_served() {
    let drive = VirtualDrive::new(arc(bare())).with_queue(2, QueueOrder::Sptf);
    let mut play = Play::new(drive);
    play.submit(at(0), read(1_000, 20));
    let short = play.submit_as(at(0), read(1_500, 1), |command| {
        command.urgency = Urgency::High;
        command.duration_limit = Some(micros(2_000));
    });
    play.run_until(at(1_999));
    assert_eq!(play.drive.held(), 2);
    play.run_until(at(2_000));
    assert_eq!(play.drive.held(), 1);
    assert_eq!(play.of(short).status(), Status::TimedOut);
    // The arm has not gone there: the next command finds it where the first one left it.
    let next = play.submit(at(2_000), read(1_019, 1));
    play.drain();
    assert_eq!(play.of(next).account().seek, Duration::ZERO);
}

/// When a command that had to wait was taken up.
fn taken(done: &Done) -> Option<Instant> {
    let account = done.account();
    let overhead = micros(300).min(account.overhead);
    (!account.queue.is_zero()).then(|| done.submitted + overhead + account.queue)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Greedy readers keep eight commands at the drive, urgent ones come in between, some with a
    /// limit.
    #[test]
    fn none_goes_before_an_urgent_one_that_is_there_nor_waits_past_its_limit(
        starts in prop::collection::vec(0..BLOCKS - 20, 40..80),
        urgents in prop::collection::vec((0..900_000u64, 0..BLOCKS, any::<bool>()), 1..12),
        order in 0..3usize,
    ) {
        let orders = [QueueOrder::Fcfs, QueueOrder::Sptf, QueueOrder::AgedSptf];
        let mut play = queued(&bare(), orders[order]);
        let mut urgents = urgents;
        urgents.sort_unstable();
        let mut urgents = urgents.into_iter().peekable();
        let limit = micros(25_000);
        for start in starts {
            while play.drive.held() >= 8 {
                let wakeup = play.drive.next_wakeup().expect("there is work");
                while let Some((_, lba, limited)) =
                    urgents.next_if(|&(when, ..)| play.drive.held() < 16 && at(when) <= wakeup)
                {
                    let now = play.now;
                    play.submit_as(now, read(lba, 1), |command| {
                        command.urgency = Urgency::High;
                        command.duration_limit = limited.then_some(limit);
                    });
                }
                let wakeup = play.drive.next_wakeup().expect("there is work");
                play.run_until(wakeup);
            }
            let now = play.now;
            play.submit(now, read(start, 20));
        }
        play.drain();
        let (urgent, normal): (Vec<Done>, Vec<Done>) =
            play.done.iter().partition(|done| done.command.urgency == Urgency::High);
        for done in &urgent {
            match (done.status(), done.command.duration_limit) {
                (Status::TimedOut, Some(limit)) => prop_assert_eq!(done.took(), limit),
                (Status::Good, Some(limit)) => {
                    let waited = taken(done).map_or(Duration::ZERO, |at| at.since(done.submitted));
                    prop_assert!(waited <= limit, "{waited:?}");
                }
                (status, _) => prop_assert_eq!(status, Status::Good),
            }
        }
        for (later, first) in normal.iter().filter_map(|done| Some((done, taken(done)?))) {
            let passed = urgent.iter().find(|urgent| {
                urgent.submitted < first && urgent.outcome.at > later.outcome.at
            });
            prop_assert!(passed.is_none(), "{later:?} before {passed:?}");
        }
    }
}
