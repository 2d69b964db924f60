//! What the ends of commands teach: nothing about the arm where there is only noise.

use std::sync::Arc;

use block::{
    Class, Direction, Durability, Duration, Extent, Instant, Lba, Request, RequestId, Sectors,
};
use drive::{Imperfections, VirtualDrive};
use engine::explanation::Known;
use engine::{Engine, Limits};
use profiler::tracker::BeliefMode;
use scheduler::policy::find;

use crate::forecast::profile;

/// Serves random requests one after the other on a drive that differs from its belief; the engine then. Each
/// response is explained to the nanosecond.
fn served(is: Imperfections, requests: u64) -> Engine {
    let belief = Arc::new(profile(80.0, 0));
    let policy = find("fcfs").expect("a policy of the table");
    let limits = Limits::suited_to(policy, &belief);
    let engine = Engine::new(Arc::clone(&belief), &|| policy.make(), limits);
    let engine = engine.with_tracking(policy);
    let mut engine = engine.with_explanations(Known::Profile);
    let mut drive = VirtualDrive::imperfect(Arc::clone(&belief), is, 3);
    let (mut now, mut submitted) = (Instant::ZERO, 0_u64);
    let capacity = belief.geometry.sectors().0;
    loop {
        while let Some(outcome) = drive.poll(now) {
            engine.complete(now, outcome.id, outcome);
        }
        while let Some(finished) = engine.poll_finished() {
            let found = engine.explain(&finished, finished.submitted);
            let found = found.expect("explanations");
            let waited = found.order + found.others() + found.held_back + found.drive.total();
            assert_eq!(waited, found.response());
        }
        if engine.held() == 0 && submitted == requests {
            return engine;
        }
        if engine.held() == 0 {
            let dice = submitted.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24;
            let request = Request {
                id: RequestId(submitted),
                direction: Direction::Read,
                extent: Extent::new(Lba(dice % (capacity - 8)), Sectors(8)).expect("blocks"),
                class: Class::default(),
                durability: Durability::Volatile,
                owner: block::Owner::NOBODY,
            };
            engine.submit(now, request).expect("room");
            submitted += 1;
        }
        while let Some(command) = engine.poll(now) {
            drive.submit(now, command).expect("room");
        }
        let next = [drive.next_wakeup(), engine.next_wakeup()];
        now = next.into_iter().flatten().min().expect("something is held");
    }
}

#[test]
fn noise_of_the_electronics_teaches_nothing_about_the_arm() {
    let noise = Imperfections {
        overhead_noise: Duration::from_micros(20),
        ..Imperfections::default()
    };
    let engine = served(noise, 3_000);
    let told = engine.tallies().expect("it is tracked");
    assert_eq!(engine.mode(), BeliefMode::Positioning);
    assert!(told.as_believed > 2_500, "{told:?}");
    assert_eq!(told.refinements, 0, "{told:?}");
    assert_eq!(engine.belief().profile().seek, profile(80.0, 0).seek);
}
