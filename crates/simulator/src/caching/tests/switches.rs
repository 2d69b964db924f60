//! Every reading of PFC's ambiguities, and every one of its actions, changes what some system does.

use block::{Direction, Instant, Interval};
use cache::coordinator;
use cache::settings::Values;

use super::{ALL, ArrivalTiming, CacheArrival, CachingReport, System, run};

/// Requests of a long run: A10 begins anew after a thousand that are much longer than the mean.
const REQUESTS: u64 = 5_000;

/// Short runs, and their requests: whether the mean has this request in it shows while it changes.
const SHORT: (u64, u64) = (40, 60);

/// Where they begin to be, and end to be, much longer.
const LONG: std::ops::Range<u64> = 1_500..3_500;

/// What was let past is asked for again and again, at first: A2.
const AGAIN: [u64; 11] = [5, 100, 200, 5, 100, 200, 5, 100, 300, 301, 302];

/// When streams begin elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Jumps {
    Always,
    /// Not while requests are long: a short one, where L1 has the rest, would end the row of outliers.
    Seldom,
}

/// Four streams that are continued or begin elsewhere, a quarter of them writes.
fn arrivals(seed: u64, requests: u64, jumps: Jumps) -> impl Iterator<Item = CacheArrival> {
    let mut state = seed;
    let mut roll = move |bound: u64| {
        // Knuth's MMIX generator: any would do.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let mut streams = [0, 500, 1_000, 1_500];
    (0..requests).map(move |at| {
        let stream = roll(4) as usize;
        if roll(5) == 0 && (jumps == Jumps::Always || !LONG.contains(&at)) {
            streams[stream] = roll(2_000);
        }
        let count = match LONG.contains(&at) {
            true => 9 + roll(3),
            false => 1 + roll(4),
        };
        let blocks = Interval::of(streams[stream], count);
        streams[stream] = blocks.last + 1;
        CacheArrival {
            at: Instant::from_nanos(at * 4_000_000),
            client: 0,
            file: stream as u64,
            blocks,
            within: ALL,
            direction: match roll(4) {
                0 => Direction::Write,
                _ => Direction::Read,
            },
        }
    })
}

/// What three levels with this coordinator do, in some compositions: all that is counted.
fn all_counts(coordinator: &str) -> Vec<String> {
    let compositions = [
        ("none", (2, 60), ArrivalTiming::Closed, Jumps::Always),
        ("none", (16, 60), ArrivalTiming::Closed, Jumps::Seldom),
        ("amp", (60, 120), ArrivalTiming::Closed, Jumps::Always),
        ("linux-2.6", (100, 60), ArrivalTiming::Open, Jumps::Always),
        ("linux-6", (60, 120), ArrivalTiming::Open, Jumps::Always),
    ];
    let each = compositions.map(|(prefetch, (upper, below), pace, jumps)| {
        let mut system = three_levels((upper, below), prefetch, coordinator);
        let again = AGAIN.iter().map(|&block| super::read(0, block, block));
        let mut load = again.chain(arrivals(1, REQUESTS, jumps));
        counts(&run(&mut system, &mut load, pace).expect("a run"))
    });
    let short = (0..SHORT.0).map(|seed| {
        let mut system = three_levels((16, 60), "none", coordinator);
        let mut load = arrivals(seed, SHORT.1, Jumps::Always);
        counts(&run(&mut system, &mut load, ArrivalTiming::Closed).expect("a run"))
    });
    each.into_iter().chain(short).collect()
}

fn counts(report: &CachingReport) -> String {
    format!("{:?} {:?} {:?}", report.levels, report.disk, report.ended)
}

fn three_levels(frames: (u64, u64), prefetch: &str, coordinator: &str) -> System {
    let mut setup = super::two_levels(frames, prefetch, coordinator);
    setup.lower.push(setup.lower[0].clone());
    System::new(&setup).expect("a system")
}

#[test]
fn every_switch_of_pfc_changes_what_a_system_does() {
    let literal = all_counts("pfc");
    let (mut others, mut idle) = (0, Vec::new());
    let entry = coordinator::ALL.iter().find(|entry| entry.name == "pfc");
    for parameter in entry.expect("a line").parameters {
        let Values::Words(words) = parameter.values else {
            continue;
        };
        for word in &words[1..] {
            let text = format!("pfc({}={word})", parameter.key);
            others += 1;
            if all_counts(&text) == literal {
                idle.push(text);
            }
        }
    }
    assert!(idle.is_empty(), "they change nothing: {idle:?}");
    assert_eq!(others, 31);
}

/// A17: what goes past a level and what it keeps come in one message where they touch.
#[test]
fn one_submission_is_one_message_to_the_level_below() {
    let requests = |coordinator: &str| {
        let mut setup = super::two_levels((100, 100), "none", coordinator);
        let mut third = setup.lower[0].clone();
        third.coordinator = "none".to_owned();
        setup.lower.push(third);
        let mut system = System::new(&setup).expect("a system");
        let mut load = [super::read(0, 1_000, 1_003)].into_iter();
        let report = run(&mut system, &mut load, ArrivalTiming::Closed).expect("a run");
        // One block goes past L2, three are kept there: all four come through L3.
        assert_eq!((report.levels[1].bypassed, report.levels[2].asked), (1, 4));
        report.levels[2].requests
    };
    assert_eq!(requests("pfc"), 2);
    assert_eq!(requests("pfc(a17=otherwise)"), 1);
}
