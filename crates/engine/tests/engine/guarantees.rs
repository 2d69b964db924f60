//! Streams at the limit of their admission on a simulated 20 TB drive, in its innermost zone, beside
//! a greedy foreground.

use block::Duration;
use drive::Imperfections;
use drive::imperfection::{Chance, Periodic};
use engine::guarantees::Beyond;

mod driver;

mod setup;

use driver::Driver;
use setup::{Mix, Policy, Result, Setup, setup};

fn run(setup: Setup, rate: u64) -> Result {
    let result = Driver::new(setup, rate).run();
    assert!(result.accesses > 100 && result.batches > 10, "{result:?}");
    result
}

const MB: u64 = 1_000_000;

#[test]
fn at_the_limit_nothing_is_late_under_any_policy() {
    for policy in [Policy::Sptf, Policy::Farthest, Policy::Fcfs] {
        for memory in [2 * MB, 8 * MB] {
            let result = run(
                Setup {
                    policy,
                    ..setup(memory)
                },
                MB,
            );
            assert_eq!((result.late, result.waited), (0, 0), "{policy:?}");
            assert!(result.foreground > 0, "{policy:?}");
        }
    }
}

#[test]
fn noise_stalls_and_retries_within_what_is_promised_make_nothing_late() {
    let chance = |per_million, costs| Chance { per_million, costs };
    let imperfections = Imperfections {
        seek_noise: Duration::from_micros(60),
        overhead_noise: Duration::from_micros(10),
        spindle_ppm: 30,
        spindle_drift_ppm: 30,
        recalibration: Periodic {
            every: Duration::from_secs(7),
            costs: Duration::from_millis(50),
        },
        media_retry: chance(1_000, Duration::ZERO),
        settle_retry: chance(1_000, Duration::from_millis(2)),
        ..Imperfections::default()
    };
    let beyond = Beyond {
        // 3.09 deviations.
        seek: Duration::from_micros(186),
        overhead: Duration::from_micros(31),
        // A recalibration, and six retries of a revolution: of the 450 tracks of a round one in
        // a thousand is read twice, and seven of them in one round of a million.
        stall: Duration::from_millis(100),
    };
    for policy in [Policy::Sptf, Policy::Farthest] {
        for memory in [2 * MB, 8 * MB] {
            let result = run(
                Setup {
                    policy,
                    beyond,
                    imperfections: imperfections.clone(),
                    ..setup(memory)
                },
                MB,
            );
            assert_eq!((result.late, result.waited), (0, 0), "{policy:?}");
        }
    }
}

#[test]
fn recorders_at_the_limit_always_find_room() {
    for policy in [Policy::Sptf, Policy::Farthest] {
        let mix = Mix::Recorders;
        let result = run(
            Setup {
                policy,
                mix,
                ..setup(4 * MB)
            },
            MB,
        );
        assert_eq!((result.late, result.waited), (0, 0), "{policy:?}");
    }
}

#[test]
fn cameras_and_readers_leave_most_of_the_head_to_others() {
    let cameras = Setup {
        mix: Mix::Cameras,
        foreground_permille: 300,
        ..setup(2 * MB)
    };
    let result = run(cameras, MB / 2);
    assert_eq!(result.streams, 72);
    assert_eq!((result.late, result.waited), (0, 0));
    let share = result.head.as_secs_f64() / result.time.as_secs_f64();
    assert!(share <= 0.4, "{share:.3} of the head");
}

/// The same test can fail: with four fifths of the buffer. With less memory all streams would have to
/// be due at once for that, as in `crates/simulator/tests/simulator/streams.rs`.
#[test]
fn four_fifths_of_the_buffer_are_not_enough() {
    let memory = 8 * MB;
    let result = run(
        Setup {
            further: memory / 5,
            ..setup(memory)
        },
        MB,
    );
    assert!(result.waited > 0, "{result:?}");
}

/// And with a tenth more streams than the drive admits.
#[test]
fn a_tenth_more_streams_are_too_many() {
    let streams_permille = 1_100;
    let result = run(
        Setup {
            streams_permille,
            ..setup(8 * MB)
        },
        MB,
    );
    assert!(result.waited > 0 && result.late > 0, "{result:?}");
}
