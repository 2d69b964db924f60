//! What is promised follows what is believed.

use std::sync::Arc;

use super::*;
use crate::belief::following::Learned;
use crate::guarantees::{Beyond, FOREGROUND_BYTES};
use block::{Duration, Lba, Sectors, Terms};
use drive::{SeekCurve, SeekTable, catalog};
use scheduler::policy::find;
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
