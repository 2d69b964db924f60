//! Beliefs that know a part of a drive's tracks: free blocks between those, and nothing else.

use block::Extent;
use drive::{Certainty, Confidence, Profile, invented};
use engine::Rules;
use scheduler::policy::find;

use super::scene::{Foreground, Scene, exact, extent, never};

const BUSY: Foreground = Foreground {
    at_once: 4,
    requests: 2_000,
};

/// The invented drive, of which only these blocks are known.
fn knowing(known: Vec<Extent>) -> Profile {
    let mut profile = invented::profile();
    profile.confidence = Some(Confidence::default().with_known(known));
    profile
}

fn rules() -> Rules {
    Rules {
        idle_after: None,
        ..exact()
    }
}

#[test]
fn free_reads_come_from_known_tracks_between_known_blocks_only() {
    let blocks = invented::profile().geometry.sectors().0;
    // Whole tracks of the outer zone.
    let known = vec![extent(0, blocks / 4), extent(blocks / 2, blocks / 10)];
    let mut scene = Scene::believing(knowing(known), rules());
    scene.begin(&[extent(0, blocks)], 0);
    scene.run(&BUSY, never);
    let belief = scene.engine.belief().profile();
    assert!(scene.told.len() > 50, "{} free reads", scene.told.len());
    for read in &scene.told {
        assert_eq!(belief.certainty(*read), Certainty::Known, "{read}");
    }
    // A third of the blocks are known, and a ninth of all pairs.
    let seen = scene.engine.background().gaps().seen;
    assert!(
        (100..400).contains(&seen),
        "{seen} gaps of 2,000 have known ends"
    );
    assert_eq!(scene.engine.background().gaps().mispredicted, 0);
    assert_eq!(scene.ended.len() as u64, BUSY.requests);
}

#[test]
fn where_nothing_is_known_nothing_is_planned_and_nothing_learned() {
    let blocks = invented::profile().geometry.sectors().0;
    let policy = find("sptf").expect("a policy of the table");
    let mut scene = Scene::believing(knowing(Vec::new()), Rules::default());
    scene.engine =
        std::mem::replace(&mut scene.engine, Scene::new(rules()).engine).with_tracking(policy);
    scene.begin(&[extent(0, blocks)], 0);
    let before = scene.engine.belief().profile().spindle;
    scene.run(&BUSY, |scene| scene.ended.len() as u64 == BUSY.requests);
    assert!(scene.told.is_empty(), "{:?}", scene.told);
    let tallies = scene.engine.belief().tallies().expect("it is tracked");
    assert_eq!(tallies.silent, BUSY.requests);
    assert_eq!(
        (tallies.late, tallies.elsewhere, tallies.changes),
        (0, 0, 0)
    );
    assert_eq!(scene.engine.belief().profile().spindle, before);
    // In idle time they are read all the same.
    scene.run(
        &Foreground {
            at_once: 1,
            requests: 0,
        },
        |scene| scene.told.len() > 20,
    );
    assert!(scene.told.len() > 20);
}
