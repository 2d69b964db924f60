//! Granted head time: how much of it is spent; and tasks that go on.

use engine::{Engine, Limits};
use scheduler::policy::find;

use super::*;

/// Four requests at a time.
fn load(requests: u64) -> Foreground {
    Foreground {
        at_once: 4,
        requests,
    }
}

fn granted(paid_ppm: u32) -> Rules {
    Rules {
        idle_after: None,
        paid_ppm,
        ..exact()
    }
}

fn paid(scene: &Scene) -> u64 {
    scene.engine.background().account().paid.reads
}

/// So many revolutions are saved up at most, and each paid read takes one.
const MOST: u64 = 64;

#[test]
fn what_was_granted_in_a_quiet_hour_is_saved_up_to_a_bound_and_then_spent() {
    for (quiet, least, most) in [(0, 0, 0), (1, 6, 8), (3_600, MOST / 2, MOST)] {
        let mut scene = Scene::new(granted(50_000));
        // One request begins the account.
        scene.run(&load(1), never);
        scene.begin(&[extent(0, scene.capacity())], 0);
        scene.run(&load(1), never);
        scene.now += Duration::from_secs(quiet);
        let (began, before) = (scene.now, paid(&scene));
        scene.run(&load(150), never);
        // What is granted meanwhile, a twentieth of the revolutions, comes on top.
        let meanwhile = scene.now.since(began).as_nanos() / 6_000_000 / 20;
        let spent = paid(&scene) - before;
        assert!(spent >= least, "{quiet} s: {spent}");
        assert!(
            spent <= most + meanwhile + 2,
            "{quiet} s: {spent}, {meanwhile} meanwhile"
        );
    }
}

/// Something new to read is looked for at once, although nothing was a moment before.
#[test]
fn a_task_that_goes_on_is_read_without_waiting_for_another_input() {
    let mut scene = Scene::new(exact());
    // An engine that follows its drive rests until it is time to look where the platter is.
    let policy = find("sptf").expect("a policy of the table");
    let profile = std::sync::Arc::clone(scene.engine.profile());
    let engine = Engine::new(profile, &|| policy.make(), Limits::default());
    scene.engine = engine.with_tracking(policy).with_background(exact());
    let standing = scene.stand(0);
    let task = scene.begin(&[extent(0, 200)], 0);
    let suspend = engine::TaskChange::Suspend;
    for id in [standing, task] {
        scene
            .engine
            .change_task(scene.now, id, suspend)
            .expect("under way");
    }
    scene.now += Duration::from_millis(500);
    let resume = engine::TaskChange::Resume;
    let more = engine::TaskChange::Want(extent(1_000, 50));
    for (id, change, is_read) in [
        (task, suspend, false),
        (task, resume, true),
        (standing, resume, false),
        (standing, more, true),
    ] {
        assert_eq!(scene.engine.poll(scene.now), None, "nothing is to be read");
        scene
            .engine
            .change_task(scene.now, id, change)
            .expect("under way");
        let mut reads = 0;
        while let Some(command) = scene.engine.poll(scene.now) {
            scene.drive.submit(scene.now, command).expect("room");
            scene.now = scene.drive.next_wakeup().expect("a read");
            let outcome = scene.drive.poll(scene.now).expect("it has ended");
            scene.engine.complete(scene.now, outcome.id, outcome);
            reads += 1;
        }
        assert_eq!(reads > 0, is_read, "{change:?}");
    }
}
