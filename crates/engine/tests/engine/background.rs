//! Background tasks in an engine: what is read, for whom, at whose cost.

use std::collections::BTreeSet;

use block::{Class, Direction, Duration, Instant, Request, RequestId};
use engine::Rules;
use proptest::prelude::*;
use scheduler::background::{Order, TaskPhase, TaskRefused};
use scheduler::freeblock::{Caution, Ranges, SameTrack, WantedBlocks};

mod granted;
mod in_gaps;
mod partly_known;
mod scene;
mod standing;

use scene::{Foreground, Scene, exact, extent, never};

const BUSY: Foreground = Foreground {
    at_once: 4,
    requests: 2_000,
};

const QUIET: Foreground = Foreground {
    at_once: 1,
    requests: 0,
};

#[test]
fn a_busy_disk_is_scanned_in_its_gaps_and_no_request_is_later_for_it() {
    let mut scene = Scene::new(Rules {
        idle_after: None,
        ..exact()
    });
    let task = scene.begin(&[extent(0, scene.capacity())], 0);
    scene.run(&BUSY, never);
    let progress = scene.engine.background().task(task).expect("a known task");
    assert!(progress.account.free.blocks.0 > progress.asked.0 / 2);
    assert_eq!(progress.account.idle.reads + progress.account.paid.reads, 0);
    assert_eq!(scene.engine.background().gaps().mispredicted, 0);
    assert_eq!(scene.ended.len() as u64, BUSY.requests);
}

#[test]
fn what_is_being_written_is_not_read_in_the_background() {
    let mut scene = Scene::new(Rules {
        idle_after: None,
        same_track: SameTrack::Allowed,
        ranges: Ranges::Two,
        paid_ppm: 200_000,
        ..exact()
    });
    for _ in 0..20 {
        // Again and again: blocks that are wanted have to be met.
        let task = scene.begin(&[extent(0, scene.capacity())], 0);
        let foreground = Foreground {
            requests: 100,
            ..BUSY
        };
        scene.run(&foreground, never);
        let _ = scene
            .engine
            .change_task(scene.now, task, engine::TaskChange::Abort);
    }
    let [.., source, destination] = scene.engine.background().gaps().planned;
    assert!(source > 100 && destination > 100, "{source} {destination}");
}

#[test]
fn an_idle_disk_is_read_to_the_end_and_then_left_alone() {
    let mut scene = Scene::new(exact());
    let wanted = [extent(100, 300), extent(2_000, 17)];
    let task = scene.begin(&wanted, 0);
    scene.run(&QUIET, never);
    assert_eq!(scene.state(task), TaskPhase::Finished);
    let account = scene.engine.background().account();
    assert_eq!(account.idle.blocks.0, 317);
    assert_eq!(account.free.blocks.0, 0);
    let read: BTreeSet<u64> = scene
        .reads
        .iter()
        .flat_map(|read| read.start().0..read.end().0)
        .collect();
    for extent in wanted {
        assert!((extent.start().0..extent.end().0).all(|lba| read.contains(&lba)));
    }
}

#[test]
fn idle_reads_wait_until_the_disk_has_been_idle_for_long_enough() {
    let mut scene = Scene::new(exact());
    scene.run(
        &Foreground {
            at_once: 1,
            requests: 1,
        },
        never,
    );
    let idle_since = scene.now;
    scene.begin(&[extent(0, 8)], 0);
    scene.run(&QUIET, |scene| scene.engine.dispatch().at_drive() > 0);
    let after = exact().idle_after.expect("an idle time");
    assert_eq!(scene.now, idle_since + after);
}

#[test]
fn one_read_serves_every_task_that_wants_its_blocks() {
    let mut scene = Scene::new(exact());
    let first = scene.begin(&[extent(0, 400)], 1);
    let second = scene.begin(&[extent(200, 400)], 1);
    scene.run(&QUIET, never);
    for task in [first, second] {
        let progress = scene.engine.background().task(task).expect("a known task");
        assert_eq!(progress.state, TaskPhase::Finished);
        assert_eq!(progress.account.blocks().0, 400);
    }
    // Each block once, although 200 were asked for twice.
    assert_eq!(scene.engine.background().account().blocks().0, 600);
}

#[test]
fn the_higher_priority_is_read_first_until_another_is_promoted() {
    let mut scene = Scene::new(exact());
    let late = scene.begin(&[extent(2_000, 600)], 2);
    let first = scene.begin(&[extent(0, 600)], 1);
    scene.run(&QUIET, |scene| scene.left(first) < 300);
    assert_eq!(scene.left(late), 600);
    scene
        .engine
        .change_task(scene.now, late, engine::TaskChange::Promote(0))
        .expect("under way");
    let left = scene.left(first);
    scene.run(&QUIET, |scene| scene.left(late) == 0);
    assert_eq!(scene.left(first), left);
    scene.run(&QUIET, never);
    assert_eq!(scene.state(first), TaskPhase::Finished);
}

#[test]
fn the_earlier_deadline_is_read_first_among_equals() {
    let mut scene = Scene::new(exact());
    let mut begin = |at: u64, seconds: Option<u64>| {
        let order = Order {
            deadline: seconds.map(|seconds| Instant::ZERO + Duration::from_secs(seconds)),
            ..scene.order(&[extent(at, 200)], 1)
        };
        scene.engine.begin_task(scene.now, order).expect("a task")
    };
    let (none, late, soon) = (
        begin(0, None),
        begin(1_000, Some(60)),
        begin(2_000, Some(30)),
    );
    scene.run(&QUIET, |scene| scene.left(soon) == 0);
    assert_eq!((scene.left(late), scene.left(none)), (200, 200));
    scene.run(&QUIET, |scene| scene.left(late) == 0);
    assert_eq!(scene.left(none), 200);
}

#[test]
fn a_suspended_task_is_not_looked_for_but_taken_along() {
    let mut scene = Scene::new(exact());
    assert!(!scene.engine.fills_gaps());
    let task = scene.begin(&[extent(0, 400)], 0);
    assert!(scene.engine.fills_gaps());
    scene
        .engine
        .change_task(scene.now, task, engine::TaskChange::Suspend)
        .expect("under way");
    assert!(!scene.engine.fills_gaps());
    scene.run(&QUIET, never);
    assert_eq!(scene.left(task), 400);
    let other = scene.begin(&[extent(0, 100)], 0);
    scene.run(&QUIET, never);
    assert_eq!(scene.state(other), TaskPhase::Finished);
    assert!(scene.left(task) <= 300);
    scene
        .engine
        .change_task(scene.now, task, engine::TaskChange::Resume)
        .expect("under way");
    assert!(scene.engine.fills_gaps());
    scene.run(&QUIET, never);
    assert_eq!(scene.state(task), TaskPhase::Finished);
    assert!(!scene.engine.fills_gaps());
}

#[test]
fn a_request_of_the_background_class_waits_for_gaps() {
    let mut scene = Scene::new(exact());
    let request = |id, class| Request {
        id: RequestId(id),
        class,
        owner: block::Owner::NOBODY,
        extent: extent(1_000 * id, 8),
        direction: Direction::Read,
        durability: block::Durability::Volatile,
    };
    let [urgent, background] = [request(1, Class::default()), request(2, Class::Background)];
    scene.engine.submit(scene.now, urgent).expect("room");
    assert!(!scene.engine.fills_gaps());
    scene.engine.submit(scene.now, background).expect("room");
    assert!(scene.engine.fills_gaps());
}

#[test]
fn an_aborted_task_is_read_no_further_and_cannot_be_resumed() {
    let mut scene = Scene::new(exact());
    let task = scene.begin(&[extent(0, 2_000)], 0);
    scene.run(&QUIET, |scene| scene.left(task) < 1_500);
    scene
        .engine
        .change_task(scene.now, task, engine::TaskChange::Abort)
        .expect("under way");
    let left = scene.left(task);
    scene.run(&QUIET, never);
    assert_eq!(scene.left(task), left);
    assert_eq!(scene.state(task), TaskPhase::Aborted);
    let unknown = scene
        .engine
        .change_task(scene.now, task, engine::TaskChange::Resume);
    assert_eq!(
        unknown.expect_err("aborted").to_string(),
        "no task 0 is under way"
    );
}

#[test]
fn a_task_of_which_enough_was_read_is_finished_and_read_no_further() {
    let mut scene = Scene::new(exact());
    let task = scene.begin(&[extent(0, 2_000)], 0);
    scene.run(&QUIET, |scene| scene.left(task) < 1_500);
    let mut change = |change| scene.engine.change_task(scene.now, task, change);
    change(engine::TaskChange::Finish).expect("under way");
    assert!(change(engine::TaskChange::Hasten).is_err());
    let left = scene.left(task);
    scene.run(&QUIET, never);
    assert_eq!(scene.left(task), left);
    assert_eq!(scene.state(task), TaskPhase::Finished);
}

/// Ten requests are always there: a gap brings a few blocks, and the turn of a hastened task many.
#[test]
fn a_hastened_task_takes_turns_with_a_busy_foreground() {
    let busy = Foreground {
        at_once: 10,
        requests: 400,
    };
    let served = |haste: Option<engine::TaskChange>| {
        let mut scene = Scene::new(exact());
        let task = scene.begin(&[extent(0, 1_500)], 1);
        let other = scene.begin(&[extent(1_500, 1_300)], 0);
        if let Some(haste) = haste {
            let done = scene.engine.change_task(scene.now, task, haste);
            done.expect("under way");
        }
        scene.run(&busy, |scene| scene.left(task) == 0);
        assert_eq!(scene.left(task), 0);
        let requests = scene.ended.len() as u64;
        let progress = scene.engine.background().task(task).expect("a task");
        let reads = progress.account.paid.reads;
        (scene.now, reads, requests, scene.left(other))
    };
    let (hastened, reads, requests, other) = served(Some(engine::TaskChange::Hasten));
    // It was hastened before the other task's higher priority, and no request waits for three reads.
    assert!(other > 0, "the other task was served first");
    let most = 2 * (requests + 2);
    assert!(reads <= most, "{requests} requests, {reads} reads");
    assert!(reads > requests, "{requests} requests, {reads} reads");
    let (alone, ..) = served(None);
    assert!(hastened < alone, "{hastened:?}, without haste {alone:?}");
}

/// A client waits for a hastened task: it is read track by track.
#[test]
fn a_hastened_task_is_read_in_long_reads() {
    let mut scene = Scene::new(exact());
    let task = scene.begin(&[extent(0, 1_500)], 1);
    let hasten = engine::TaskChange::Hasten;
    let hastened = scene.engine.change_task(scene.now, task, hasten);
    hastened.expect("under way");
    scene.run(&QUIET, |scene| scene.left(task) == 0);
    let blocks: u64 = scene.reads.iter().map(|read| read.length().0).sum();
    let reads = scene.reads.len() as u64;
    assert!(
        blocks >= 1_500 && blocks > 10 * reads,
        "{blocks} blocks in {reads} reads"
    );
}

#[test]
fn what_cannot_be_done_is_refused() {
    let mut scene = Scene::new(exact());
    scene.run(
        &Foreground {
            at_once: 1,
            requests: 3,
        },
        never,
    );
    let late = Order {
        deadline: Some(Instant::ZERO),
        ..scene.order(&[extent(0, 8)], 0)
    };
    let refused = scene.engine.begin_task(scene.now, late);
    assert!(matches!(refused, Err(TaskRefused::Late { .. })));
    let past_end = extent(scene.capacity() - 1, 2);
    let mut wanted = WantedBlocks::none(&scene.engine.belief().profile().geometry);
    assert!(wanted.add(past_end).is_err());
    for _ in 0..8 {
        scene.begin(&[extent(0, 8)], 0);
    }
    let order = scene.order(&[extent(0, 8)], 0);
    let refused = scene.engine.begin_task(scene.now, order);
    assert_eq!(refused, Err(TaskRefused::Full));
}

#[test]
fn granted_head_time_is_spent_and_not_overspent() {
    let paid = |paid_ppm| {
        let mut scene = Scene::new(Rules {
            idle_after: None,
            paid_ppm,
            ..exact()
        });
        let task = scene.begin(&[extent(0, scene.capacity())], 0);
        scene.run(&BUSY, |scene| scene.left(task) == 0);
        let reads = scene.engine.background().account().paid.reads;
        (reads, scene.now.since(Instant::ZERO))
    };
    assert_eq!(paid(0).0, 0);
    let (reads, took) = paid(50_000);
    let revolutions = took.as_nanos() / 6_000_000;
    assert!(reads > 0, "nothing was paid for");
    assert!(reads <= revolutions / 20 + 1, "{reads} of {revolutions}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn tasks_and_requests_all_end_whatever_is_done_to_them(
        actions in prop::collection::vec((0u8..7, 0u64..2_200, 1u64..600), 1..40),
        misses in prop::option::of(2u64..20),
        learned in prop::bool::ANY,
    ) {
        let rules = Rules {
            caution: if learned { Caution::default() } else { exact().caution },
            paid_ppm: if learned { 100_000 } else { 0 },
            ..exact()
        };
        let mut scene = Scene::new(rules);
        scene.drive.misses_every = misses;
        let mut tasks = Vec::new();
        for (action, at, length) in actions {
            let chosen = tasks.get(at as usize % tasks.len().max(1)).copied();
            let now = scene.now;
            match (action, chosen) {
                (0 | 1, _) => {
                    let order = scene.order(&[extent(at, length)], (length % 3) as u8);
                    tasks.extend(scene.engine.begin_task(now, order).ok());
                }
                (2, Some(task)) => {
                    let _ = scene.engine.change_task(now, task, engine::TaskChange::Suspend);
                },
                (3, Some(task)) => {
                    let _ = scene.engine.change_task(now, task, engine::TaskChange::Resume);
                },
                (4, Some(task)) => {
                    let _ = scene.engine.change_task(now, task, engine::TaskChange::Abort);
                },
                (5, Some(task)) => {
                    let _ = scene.engine.change_task(now, task, engine::TaskChange::Promote(0));
                },
                _ => {}
            }
            let foreground = Foreground { at_once: 1 + at % 6, requests: length % 30 };
            scene.run(&foreground, |scene| scene.now > now + Duration::from_millis(200));
        }
        for &task in &tasks {
            {
                    let _ = scene.engine.change_task(scene.now, task, engine::TaskChange::Resume);
                };
        }
        scene.run(&QUIET, never);
        prop_assert_eq!(scene.ended.len() as u64, scene.submitted);
        for task in tasks {
            if let Some(progress) = scene.engine.background().task(task) {
                prop_assert!(matches!(progress.state, TaskPhase::Finished | TaskPhase::Aborted));
                if progress.state == TaskPhase::Finished {
                    prop_assert_eq!(progress.account.blocks(), progress.asked);
                }
            }
        }
    }
}

#[test]
fn a_real_time_request_overtakes_one_that_was_chosen_and_not_given() {
    let mut scene = Scene::new(Rules {
        idle_after: None,
        ..exact()
    });
    scene.begin(&[extent(0, scene.capacity())], 0);
    scene.run(&BUSY, |scene| {
        let background = scene
            .last
            .filter(|&id| scene.engine.dispatch().is_background(id));
        scene.submitted > 100 && scene.engine.dispatch().at_drive() == 2 && background.is_some()
    });
    // A request was chosen, and the drive was given what comes before it.
    let waiting = scene.engine.ordering().waiting();
    let urgent = Request {
        id: RequestId(1_000_000),
        direction: Direction::Read,
        extent: extent(scene.capacity() - 1, 1),
        class: Class::RealTime {
            deadline: Instant::ZERO,
        },
        durability: block::Durability::Volatile,
        owner: block::Owner::NOBODY,
    };
    scene.engine.submit(scene.now, urgent).expect("room");
    let mut next = None;
    while next.is_none() {
        scene.now = scene.drive.next_wakeup().expect("commands at the drive");
        while let Some(outcome) = scene.drive.poll(scene.now) {
            scene.engine.complete(scene.now, outcome.id, outcome);
        }
        while let Some(command) = scene.engine.poll(scene.now) {
            next = next.or(scene.engine.request_of(command.id));
            scene.hear(&command);
            scene.drive.submit(scene.now, command).expect("room");
        }
    }
    assert_eq!(next, Some(urgent));
    assert!(
        scene.engine.ordering().waiting() > waiting,
        "the other one waits again"
    );
    scene.run(&QUIET, never);
    assert_eq!(scene.engine.held(), 0);
}
