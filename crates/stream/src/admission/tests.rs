//! The form against floating point, against itself, and at its edges.

use super::*;
use crate::head_times::{AccessTimes, SeekBound, WholeTracks};
use proptest::prelude::*;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn rate(bytes: u64) -> Rate {
    Rate::new(bytes).expect("not zero")
}

/// A made-up drive: 8 ms revolutions, 1 to 15 ms seeks, 100 MB/s.
fn times() -> HeadTimes {
    let points = [(0, millis(1)), (1_000, millis(4)), (100_000, millis(15))];
    let access = AccessTimes {
        overhead: Duration::from_micros(100),
        settle: Duration::ZERO,
    };
    HeadTimes {
        revolution: millis(8),
        read: access,
        write: access,
        seek: SeekBound::over(points).expect("there are points"),
        cylinders: 100_001,
        wander: 0,
        change: Duration::ZERO,
        foreground: millis(1),
        stall: Duration::ZERO,
    }
}

const WHOLE: Cylinders = Cylinders {
    low: 0,
    high: 100_000,
};

fn rules() -> Rules {
    Rules {
        foreground_permille: 0,
        latency: Duration::ZERO,
        longest_round: Duration::from_secs(3_600),
        streams: 1_000,
    }
}

fn demand(bytes: u64, memory: u64) -> Demand {
    Demand {
        direction: Direction::Read,
        rate: rate(bytes),
        buffer: 0,
        memory,
        zone: Zone {
            sustained: rate(100_000_000),
            tracks: None,
            cylinders: WHOLE,
            stride: rate(850_000),
        },
        extents: 1,
        page: 4096,
    }
}

fn tracks() -> WholeTracks {
    WholeTracks {
        bytes: 850_000,
        time: Duration::from_micros(8_700),
        sustained: rate(97_000_000),
    }
}

fn cut(demand: Demand) -> Demand {
    Demand {
        zone: Zone {
            tracks: Some(tracks()),
            ..demand.zone
        },
        ..demand
    }
}

/// How many of them are granted before one is refused.
fn granted(rules: Rules, demand: &Demand) -> usize {
    let mut admission = Admission::new(times(), rules);
    let mut count = 0;
    while admission.admit(demand).is_ok() {
        count += 1;
    }
    count
}

#[test]
fn the_form_is_that_of_the_specification() {
    // In floating point, and by trying: FG counted once, as the head of the file says.
    let fits = |n: f64, f: f64, page: f64, latency: f64| {
        let times = times();
        let seconds = |time: Duration| time.as_secs_f64();
        let accesses = n * (seconds(times.access(Direction::Read)) + page / 1e8);
        let (d, u) = ((4e6 - 3.0 * page) / 1e6 - 2.0 * latency, n * 1e6 / 1e8);
        let p = accesses + seconds(times.sweep(n as u64, WHOLE, 2 * n as u64)) + latency * u;
        let fg = seconds(times.foreground_worst());
        d >= p * (1.0 + u) / (1.0 - f - u) + p + fg
    };
    for (permille, page, latency) in [
        (0, 4_096, 0),
        (300, 4_096, 0),
        (500, 4_096, 0),
        (0, 1 << 20, 0),
        (0, 4_096, 400),
    ] {
        let fits = |&n: &u32| {
            let f = f64::from(permille) / 1e3;
            fits(f64::from(n), f, page as f64, latency as f64 / 1e3)
        };
        let expected = (1..100).take_while(fits);
        let rules = Rules {
            foreground_permille: permille,
            latency: millis(latency),
            ..rules()
        };
        let demand = Demand {
            page,
            ..demand(1_000_000, 4_000_000)
        };
        let granted = granted(rules, &demand);
        assert_eq!(granted, expected.count());
        assert!(granted > 5, "{granted}");
    }
}

/// Batches begin before and after where their file does, by as much as a serpentine is wide.
#[test]
fn a_serpentine_is_counted_as_so_much_more_of_the_disk() {
    let place = |low, high| Cylinders { low, high };
    for tracks in [None, Some(tracks())] {
        let granted = |wander, cylinders| {
            let times = HeadTimes { wander, ..times() };
            let demand = demand(1_000_000, 4_000_000);
            let demand = Demand {
                zone: Zone {
                    cylinders,
                    tracks,
                    ..demand.zone
                },
                ..demand
            };
            let mut admission = Admission::new(times, rules());
            while admission.admit(&demand).is_ok() {}
            (admission.streams(), admission.plan())
        };
        let wide = granted(0, place(20_000, 80_000));
        assert_eq!(granted(30_000, place(50_000, 50_000)), wide);
        assert!(granted(0, place(50_000, 50_000)).0 > wide.0);
    }
}

/// From where one batch ends to where the next one begins the arm has to go at least two cylinders, however
/// near to each other they are.
#[test]
fn batches_that_are_near_each_other_are_not_in_the_same_place() {
    let points = [(0, millis(1)), (10, millis(21)), (100_000, millis(30))];
    let seek = SeekBound::over(points).expect("there are points");
    for tracks in [None, Some(tracks())] {
        let demand = demand(100_000, 4_000_000);
        let demand = Demand {
            zone: Zone {
                cylinders: Cylinders { low: 7, high: 7 },
                tracks,
                ..demand.zone
            },
            ..demand
        };
        let times = HeadTimes {
            seek: seek.clone(),
            ..times()
        };
        let rules = Rules {
            longest_round: millis(1),
            ..rules()
        };
        let mut admission = Admission::new(times.clone(), rules);
        for count in 1..=40 {
            let grant = admission.admit(&demand).expect("there is room");
            let overhead = times.read.overhead;
            let each = match grant.plan.cutting {
                Cutting::Anywhere => times.access(Direction::Read),
                // Some of them have no batch in most rounds, and all may have one in the same.
                Cutting::Tracks => overhead,
            };
            let transfer = rate(100_000_000).at_least(grant.batch) * count;
            let least = (seek.at(2) + each) * (count - 1) + transfer;
            assert!(grant.plan.worst >= least, "{count}: {:?}", grant.plan);
        }
    }
}

/// Unless the accesses of a round take so much that it has to be longer: then it is no longer than that.
#[test]
fn rounds_are_no_longer_than_they_may_be() {
    let rules = Rules {
        longest_round: millis(500),
        ..rules()
    };
    let mut admission = Admission::new(times(), rules);
    let (mut shorter, mut longer) = (0, 0);
    while admission.admit(&demand(1_000_000, 8_000_000)).is_ok() {
        let plan = admission.plan().expect("there are streams");
        match plan.round.cmp(&rules.longest_round) {
            std::cmp::Ordering::Less => panic!("{plan:?}"),
            std::cmp::Ordering::Equal => shorter += 1,
            std::cmp::Ordering::Greater => {
                assert!(plan.share >= SECOND - 1_000, "{plan:?}");
                longer += 1;
            }
        }
    }
    assert!(shorter > 5 && longer > 5, "{shorter}, {longer}");
}

#[test]
fn whole_tracks_are_chosen_where_they_take_less_of_the_head() {
    for (memory, better) in [(1_000_000, false), (8_000_000, true)] {
        let demand = demand(1_000_000, memory);
        let anywhere = granted(rules(), &demand);
        let tracks = granted(rules(), &cut(demand));
        assert_eq!(tracks > anywhere, better, "{anywhere} and {tracks}");
        assert!(tracks >= anywhere, "one form more never refuses more");
    }
    let mut admission = Admission::new(times(), rules());
    let first = admission.admit(&cut(demand(1_000_000, 8_000_000)));
    let plan = first.expect("an empty disk").plan;
    assert_eq!(plan.cutting, Cutting::Tracks);
    let second = admission.admit(&demand(1_000_000, 8_000_000));
    let plan = second.expect("an empty disk").plan;
    assert_eq!(plan.cutting, Cutting::Anywhere, "one cannot be cut");
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let mut admission = Admission::new(times(), rules());
    let above = admission.admit(&demand(200_000_000, 8_000_000));
    let above = above.expect_err("more than the disk");
    let expected = Reason::AboveDisk {
        rate: rate(200_000_000),
        sustained: rate(100_000_000),
        left_permille: 1_000,
    };
    assert_eq!(above.reason, expected);
    assert_eq!(above.least_memory, None, "no buffer makes the disk faster");
    assert!(
        above
            .largest_rate
            .is_some_and(|rate| rate.bytes() < 100_000_000)
    );

    let small = admission.admit(&demand(1_000_000, 8_192));
    let small = small.expect_err("less than one read");
    let expected = Reason::BufferTooSmall {
        memory: 8_192,
        least: 12_288,
    };
    assert_eq!((small.reason, small.largest_rate), (expected, None));
    assert!(small.least_memory.is_some_and(|least| least > 12_288));

    let short = admission.admit(&demand(1_000_000, 20_000));
    let short = short.expect_err("twelve milliseconds");
    assert!(
        matches!(short.reason, Reason::HeadTime { extents: 1, .. }),
        "{short}"
    );

    let rules = Rules {
        streams: 1,
        ..rules()
    };
    let mut admission = Admission::new(times(), rules);
    assert!(admission.admit(&demand(1, 2_000_000)).is_ok());
    let full = admission.admit(&demand(1, 2_000_000)).expect_err("full");
    assert_eq!(full.reason, Reason::Full { limit: 1 });
}

#[test]
fn what_others_hold_may_leave_no_room_whatever_the_memory() {
    let mut admission = Admission::new(times(), rules());
    while admission.admit(&demand(1_000_000, 1_000_000)).is_ok() {}
    let refusal = admission.admit(&demand(1_000_000, 64_000_000));
    let refusal = refusal.expect_err("the others' buffers are too short");
    assert_eq!(refusal.least_memory, None, "{refusal}");
}

proptest! {
    /// What is said to be granted is granted, and a little more is not.
    #[test]
    fn the_largest_rate_and_the_least_memory_are_exact(
        present in prop::collection::vec((100_000u64..3_000_000, 1_000_000u64..8_000_000), 0..20),
        bytes in 1_000u64..150_000_000,
        memory in 10_000u64..8_000_000,
        tracks in any::<bool>(),
        foreground_permille in 0u32..800,
    ) {
        let zoned = |demand: Demand| if tracks { cut(demand) } else { demand };
        let rules = Rules { foreground_permille, latency: millis(10), ..rules() };
        let mut admission = Admission::new(times(), rules);
        for (bytes, memory) in present {
            let _ = admission.admit(&zoned(demand(bytes, memory)));
        }
        let asked = zoned(demand(bytes, memory));
        let Err(refusal) = admission.clone().admit(&asked) else {
            return Ok(());
        };
        if let Some(largest) = refusal.largest_rate {
            let slower = Demand { rate: largest, ..asked };
            let more = Demand { rate: rate(largest.bytes() + 1), ..asked };
            prop_assert!(admission.clone().admit(&slower).is_ok());
            prop_assert!(admission.clone().admit(&more).is_err());
        }
        if let Some(least) = refusal.least_memory {
            let larger = Demand { memory: least, ..asked };
            let less = Demand { memory: least - least / 1_000 - 64, ..asked };
            prop_assert!(admission.clone().admit(&larger).is_ok());
            prop_assert!(admission.clone().admit(&less).is_err());
        }
    }

    /// Sums are as if whoever has left had never been there.
    #[test]
    fn what_is_given_back_is_gone(
        demands in prop::collection::vec((1_000u64..3_000_000, 100_000u64..8_000_000), 1..20),
        leaves in prop::collection::vec(any::<bool>(), 20),
    ) {
        let mut admission = Admission::new(times(), rules());
        let mut helds = Vec::new();
        for &(bytes, memory) in &demands {
            let demand = cut(demand(bytes, memory));
            if let Ok(grant) = admission.admit(&demand) {
                helds.push((demand, grant.held));
            }
        }
        let mut fresh = Admission::new(times(), rules());
        for ((demand, held), leaves) in helds.into_iter().zip(leaves) {
            if leaves {
                admission.release(held);
            } else {
                prop_assert!(fresh.admit(&demand).is_ok());
            }
        }
        prop_assert_eq!(admission.plan(), fresh.plan());
        prop_assert_eq!(admission.streams(), fresh.streams());
    }

    /// The two conditions of the drawing hold for every plan, in exact fractions.
    #[test]
    fn every_plan_keeps_its_two_conditions(
        count in 1usize..60,
        bytes in 10_000u64..3_000_000,
        memory in 500_000u64..8_000_000,
        tracks in any::<bool>(),
        foreground_permille in 0u32..800,
    ) {
        let rules = Rules { foreground_permille, ..rules() };
        let mut admission = Admission::new(times(), rules);
        let demand = demand(bytes, memory);
        let demand = if tracks { cut(demand) } else { demand };
        for _ in 0..count {
            let Ok(grant) = admission.admit(&demand) else { break };
            let Plan { round, within, worst, share, .. } = grant.plan;
            prop_assert!(admission.times().foreground_worst() + worst <= within + Duration::from_nanos(2));
            prop_assert!(share + u64::from(foreground_permille) * 1_000_000 <= SECOND);
            prop_assert!(grant.needed <= grant.memory);
            prop_assert!(grant.batch >= bytes * round.as_nanos() / SECOND);
        }
    }
}
