//! What an engine is made with: limits, actuators, and rules that have names.

use std::sync::Arc;

use drive::invented;
use engine::{Engine, Limits, ReadRule};
use scheduler::policy;

#[test]
fn a_barrier_is_for_one_actuator() {
    let belief = Arc::new(invented::profile());
    let policy = policy::find("sptf").expect("a policy of the table");
    assert!(Engine::new(belief, &|| policy.make(), Limits::default()).has_barriers());
    let mut two = invented::profile();
    two.actuators = 2;
    let two = Engine::new(Arc::new(two), &|| policy.make(), Limits::default());
    assert!(!two.has_barriers());
}

#[test]
fn rules_of_reads_have_names_of_their_own() {
    let rules = [ReadRule::Nearest, ReadRule::RoundRobin];
    assert_eq!(rules.map(ReadRule::name), ["nearest", "round-robin"]);
    assert!(rules.iter().all(|rule| rule.what().starts_with("from ")));
    assert_ne!(rules[0].what(), rules[1].what());
}

#[test]
fn an_engine_that_could_never_serve_anything_is_not_made() {
    let belief = Arc::new(invented::profile());
    let policy = policy::find("sptf").expect("a policy of the table");
    let is_made = |limits: Limits| {
        let new = || Engine::new(Arc::clone(&belief), &|| policy.make(), limits);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(new)).is_ok()
    };
    let of = |requests, reserved_for_real_time, commands_at_drive| Limits {
        requests,
        reserved_for_real_time,
        commands_at_drive,
        ..Limits::default()
    };
    assert!(is_made(of(2, 1, 1)));
    for never in [of(2, 2, 1), of(2, 3, 1), of(2, 1, 0)] {
        assert!(!is_made(never), "{never:?}");
    }
}
