//! What is promised follows what is believed.

use std::sync::Arc;

use super::*;
use crate::belief::following::Learned;
use crate::guarantees::{Beyond, FOREGROUND_BYTES};
use block::{Duration, Lba, Sectors, Terms};
use drive::{SeekCurve, SeekTable, catalog};
use scheduler::policy::find;
use scheduler::preemption::Landing;
use stream::admission::{Promises, Reason, Rules};
use stream::quota::Quotas;
use stream::streams::Settings;
use stream::{LocationMap, Piece};

const MB: u64 = 1_000_000;

/// The arm, so much slower.
fn slower(arm: &SeekCurve, by: Duration) -> SeekCurve {
    let [read, write] = [arm.read(), arm.write()].map(|table| {
        let points = table.points().map(|(distance, time)| (distance, time + by));
        SeekTable::new(points.collect(), table.cylinders()).expect("as valid as before")
    });
    SeekCurve::new(read, write)
}

fn film(number: u64) -> Attach {
    let extent = Extent::new(Lba(number * 40_000_000), Sectors(25_000));
    let piece = Piece {
        offset: 0,
        extent: extent.expect("blocks"),
    };
    Attach {
        user: 0,
        terms: Terms {
            name: "film".to_owned(),
            memory: Some(4 * MB),
            ..Terms::play(MB, 64 * 1024)
        },
        map: LocationMap::new(vec![piece], 4096, 100 * MB).expect("a valid map"),
    }
}

/// The arm takes as long as `arm` says, as the ends of commands tell.
fn refine(engine: &mut ArmEngine, arm: SeekCurve) {
    engine.belief.refine(arm);
    let learned = Learned {
        policy: None,
        caution: 1.0,
        is_turned: false,
        is_refined: true,
        is_delayed: false,
    };
    engine.stages().adapt(&learned);
}

#[test]
fn what_is_promised_follows_the_arm_and_promises_stand() {
    let entry = catalog::find("modern-20tb").expect("a shipped drive");
    let belief = Arc::new(entry.profile().expect("a valid profile"));
    let arm = belief.seek.clone();
    let policy = find("sptf").expect("a policy of the table");
    let engine = ArmEngine::new(belief, &|| policy.make(), Limits::default());
    let promise = Promise {
        beyond: Beyond::default(),
        rules: Rules {
            foreground_permille: 0,
            latency: Duration::from_millis(10),
            longest_round: Duration::from_secs(10),
            streams: 1_000,
        },
        quotas: Quotas::open(),
        settings: Settings {
            page: 4096,
            fill: FOREGROUND_BYTES,
            priority: 0,
        },
        place: None,
    };
    let engine = engine.with_guarantees(promise).expect("a seek curve");
    let mut engine = engine.with_tracking(policy);
    let fits = |engine: &mut ArmEngine| {
        let number = engine.guarantees().streams().count() as u64;
        engine.attach(Instant::ZERO, film(number))
    };
    while fits(&mut engine).is_ok() {}
    let count = engine.guarantees().streams().count();
    assert_eq!(engine.guarantees().promises(), Some(Promises::Kept));
    let plan = engine.guarantees().plan();

    refine(&mut engine, slower(&arm, Duration::from_millis(1)));
    assert_eq!(engine.guarantees().promises(), Some(Promises::Strained));
    assert_eq!(
        (
            engine.guarantees().plan(),
            engine.guarantees().streams().count()
        ),
        (plan, count)
    );
    let refused = fits(&mut engine).expect_err("what is there is too much");
    let NotGranted::Refused(refusal) = refused else {
        panic!("{refused}");
    };
    assert_eq!(refusal.reason, Reason::Strained);

    refine(&mut engine, arm);
    assert_eq!(engine.guarantees().promises(), Some(Promises::Kept));
    assert_eq!(engine.guarantees().plan(), plan);
}

/// A request that is held back was chosen by what was believed: with another belief the choice is open again.
#[test]
fn what_was_chosen_by_another_belief_is_chosen_again() {
    let entry = catalog::find("modern-20tb").expect("a shipped drive");
    let belief = Arc::new(entry.profile().expect("a valid profile"));
    let policy = find("sptf").expect("a policy of the table");
    let learned = Learned {
        policy: None,
        caution: 1.0,
        is_turned: false,
        is_refined: false,
        is_delayed: false,
    };
    let (refined, delayed, given_up) = (
        Learned {
            is_refined: true,
            ..learned.clone()
        },
        Learned {
            is_delayed: true,
            ..learned.clone()
        },
        Learned {
            policy: find("c-look").ok(),
            ..learned.clone()
        },
    );
    for (learned, is_open) in [
        (refined, true),
        (delayed, true),
        (given_up, true),
        (learned, false),
    ] {
        let rules = Preemption {
            just_in_time: Some(Landing::Fixed(Duration::from_micros(500))),
            ..Transfers::WHOLE
        };
        let engine = ArmEngine::new(Arc::clone(&belief), &|| policy.make(), Limits::default());
        let mut engine = engine.with_preemption(rules);
        // One of some places has slack before its sector.
        let is_held = (0..20).any(|n| {
            let start = Lba(1_000_000_000 + n * 100_000_000);
            let request = Request {
                id: RequestId(n),
                direction: block::Direction::Read,
                extent: Extent::new(start, Sectors(8)).expect("blocks"),
                class: Class::default(),
                durability: block::Durability::Volatile,
                owner: block::Owner::NOBODY,
            };
            engine.submit(Instant::ZERO, request).expect("room");
            let is_held = engine.poll(Instant::ZERO).is_none();
            if !is_held {
                engine = ArmEngine::new(Arc::clone(&belief), &|| policy.make(), Limits::default())
                    .with_preemption(rules);
            }
            is_held
        });
        assert!(is_held && engine.dispatch.chosen_piece().is_some());
        engine.stages().adapt(&learned);
        assert_eq!(
            engine.dispatch.chosen_piece().is_none(),
            is_open,
            "{learned:?}"
        );
        assert_eq!(engine.ordering.waiting(), usize::from(is_open));
    }
}
