//! Standing tasks: what they want comes and goes while the engine runs.

use std::collections::BTreeSet;

use block::{Duration, Extent};
use engine::Rules;
use proptest::prelude::*;
use scheduler::background::{MOST_TASKS, NotWanted, TaskPhase, TaskRefused};

use super::scene::{Foreground, Scene, exact, extent, never};
use super::{BUSY, QUIET};

fn blocks(extent: Extent) -> std::ops::Range<u64> {
    extent.start().0..extent.end().0
}

fn read(scene: &Scene) -> BTreeSet<u64> {
    scene.reads.iter().copied().flat_map(blocks).collect()
}

#[test]
fn a_standing_task_gets_what_it_wants_in_gaps_and_idle_time_and_never_ends() {
    let mut scene = Scene::new(exact());
    let task = scene.stand(0);
    scene.run(&QUIET, never);
    assert_eq!(scene.engine.next_wakeup(), None);
    assert!(scene.reads.is_empty());
    for at in [100, 1_000] {
        scene.want(task, extent(at, 50));
        scene.run(&QUIET, never);
    }
    assert_eq!(read(&scene), (100..150).chain(1_000..1_050).collect());
    let whole = extent(0, scene.capacity());
    scene.want(task, whole);
    scene.run(&BUSY, never);
    let progress = scene.engine.background().task(task).expect("a known task");
    assert!(progress.account.free.blocks.0 > progress.asked.0 / 2);
    scene.run(&QUIET, never);
    assert_eq!(
        (scene.state(task), scene.left(task)),
        (TaskPhase::Active, 0)
    );
    assert_eq!(scene.engine.background().gaps().mispredicted, 0);
}

#[test]
fn what_is_no_longer_wanted_is_not_read() {
    let mut scene = Scene::new(exact());
    let task = scene.stand(0);
    scene.want(task, extent(0, 400));
    scene
        .engine
        .change_task(
            scene.now,
            task,
            engine::TaskChange::Unwant(extent(100, 200)),
        )
        .expect("it stands");
    scene.run(&QUIET, never);
    assert_eq!(read(&scene), (0..100).chain(300..400).collect());
    let progress = scene.engine.background().task(task).expect("a known task");
    assert_eq!((progress.asked.0, progress.left.0), (200, 0));
}

#[test]
fn it_is_looked_for_before_others_of_its_priority_and_one_read_serves_both() {
    let mut scene = Scene::new(exact());
    let scan = scene.begin(&[extent(0, 2_000)], 1);
    let task = scene.stand(1);
    scene.want(task, extent(1_500, 100));
    scene.run(&QUIET, |scene| scene.left(task) == 0);
    assert_eq!(scene.left(scan), 1_900);
    scene.run(&QUIET, never);
    assert_eq!(scene.state(scan), TaskPhase::Finished);
    assert_eq!(scene.engine.background().account().blocks().0, 2_000);
    // And behind those of a higher one.
    let scan = scene.begin(&[extent(0, 2_000)], 0);
    scene.want(task, extent(2_100, 20));
    scene.run(&QUIET, |scene| scene.left(task) == 0);
    assert_eq!(scene.left(scan), 0);
}

#[test]
fn it_takes_nobodys_place_and_there_is_one() {
    let mut scene = Scene::new(exact());
    let task = scene.stand(0);
    for _ in 0..MOST_TASKS {
        scene.begin(&[extent(0, 8)], 0);
    }
    let second = scene.engine.begin_standing_task(scene.now, 0);
    assert_eq!(second, Err(TaskRefused::FullOfStanding));
    scene.want(task, extent(0, 8));
    scene.run(&QUIET, never);
    assert_eq!(scene.left(task), 0);
    assert_eq!(scene.engine.background().account().blocks().0, 8);
    scene
        .engine
        .change_task(scene.now, task, engine::TaskChange::Abort)
        .expect("it stands");
    scene.stand(0);
    let unknown = scene
        .engine
        .change_task(scene.now, task, engine::TaskChange::Want(extent(0, 8)));
    assert!(matches!(unknown, Err(NotWanted::Unknown(_))));
}

#[test]
fn tasks_that_end_want_what_they_were_begun_with() {
    let mut scene = Scene::new(exact());
    let scan = scene.begin(&[extent(0, 8)], 0);
    let refused = scene
        .engine
        .change_task(scene.now, scan, engine::TaskChange::Want(extent(0, 8)));
    assert_eq!(refused, Err(NotWanted::Ordered(scan)));
    let task = scene.stand(0);
    let past_end = extent(scene.capacity() - 1, 2);
    let refused = scene
        .engine
        .change_task(scene.now, task, engine::TaskChange::Want(past_end));
    assert!(matches!(refused, Err(NotWanted::PastEnd(_))));
}

#[test]
fn head_time_is_not_paid_for_it() {
    let mut scene = Scene::new(Rules {
        idle_after: None,
        paid_ppm: 50_000,
        ..exact()
    });
    let half = scene.capacity() / 2;
    let task = scene.stand(0);
    scene.want(task, extent(0, half));
    // As long as there is much left nobody has to pay.
    let foreground = Foreground {
        requests: 300,
        ..BUSY
    };
    let paid = |scene: &Scene, task| {
        let account = scene
            .engine
            .background()
            .task(task)
            .expect("a known task")
            .account;
        assert!(account.free.reads > 0);
        account.paid.reads
    };
    scene.run(&foreground, never);
    assert_eq!(paid(&scene, task), 0);
    // Nor where somebody else is behind, and could have some of it.
    let scan = scene.begin(&[extent(half, scene.capacity() - half)], 0);
    scene.want(task, extent(0, half));
    scene.run(&foreground, never);
    assert_eq!(paid(&scene, task), 0);
    assert!(paid(&scene, scan) > 0);
}

#[test]
fn the_blocks_that_a_command_reads_in_the_background_are_told() {
    let mut scene = Scene::new(Rules {
        idle_after: None,
        ..exact()
    });
    let task = scene.stand(0);
    scene.want(task, extent(0, scene.capacity()));
    scene.run(&BUSY, never);
    let told: u64 = scene.told.iter().map(|told| told.length().0).sum();
    let account = scene.engine.background().account();
    assert!(
        account.blocks().0 > 0 && told >= account.blocks().0,
        "{told}"
    );
    assert!(
        scene.engine.background().gaps().planned[0] > 0,
        "none was merged"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Against a set of blocks: what is left is what was wanted, not taken back and not given.
    #[test]
    fn it_wants_what_a_naive_set_does(
        changes in prop::collection::vec((any::<bool>(), 0u64..2_200, 1u64..300, 0u64..6), 1..60),
        paid_ppm in prop::sample::select(vec![0, 100_000]),
    ) {
        let mut scene = Scene::new(Rules { paid_ppm, ..exact() });
        scene.begin(&[extent(500, 900)], 0);
        let task = scene.stand(0);
        let mut naive = BTreeSet::new();
        for (is_wanted, at, length, requests) in changes {
            let extent = extent(at, length.min(scene.capacity() - at));
            match is_wanted {
                true => {
                    scene.want(task, extent);
                    naive.extend(blocks(extent));
                }
                false => {
                    scene.engine.change_task(scene.now, task, engine::TaskChange::Unwant(extent)).expect("it stands");
                    naive.retain(|block| !blocks(extent).contains(block));
                }
            }
            let before = scene.told.len();
            let (now, at_once) = (scene.now, 1 + requests);
            let foreground = Foreground { at_once, requests };
            scene.run(&foreground, |scene| scene.now > now + Duration::from_millis(50));
            for read in &scene.told[before..] {
                naive.retain(|block| !blocks(*read).contains(block));
            }
            let left = scene.engine.background().left(task).expect("it stands");
            let wanted: BTreeSet<u64> = left.extents().flat_map(blocks).collect();
            prop_assert_eq!(&wanted, &naive);
            let progress = scene.engine.background().task(task).expect("it stands");
            prop_assert!(progress.left <= progress.asked);
            prop_assert_eq!(progress.left.0, wanted.len() as u64);
        }
        scene.run(&QUIET, never);
        prop_assert_eq!(scene.ended.len() as u64, scene.submitted);
        prop_assert_eq!(scene.left(task), 0);
        prop_assert_eq!(scene.state(task), TaskPhase::Active);
    }
}
