//! The sentences of runs with known figures.

use block::{
    Class, Direction, Durability, Duration, Extent, Finished, Instant, Lba, Owner, Request,
    RequestId, Sectors, Status,
};
use simulator::ledger::{BatchMeans, Ledger, RunTotals};
use simulator::load::LoadPart;

use super::facts::{Facts, OpenLoad, Pace, Part};
use super::*;

/// A drive of 5 ms a command, half idle, with short queues.
fn calm(name: &str) -> Facts {
    Facts {
        name: name.to_owned(),
        requests: 1_000,
        mean_ms: 10.0,
        margin_ms: Some(0.3),
        batches: BatchMeans::default(),
        p999_ms: 60.0,
        parts: vec![
            (Part::Waiting, 4.5),
            (Part::Rotation, 2.9),
            (Part::Seek, 2.0),
            (Part::Transfer, 0.6),
        ],
        idle: 0.5,
        transfer: 0.1,
        buffered: 0.0,
        head_ms: 5.0,
        residual_ms: 3.0,
        arrivals_ms: 9_990.0,
        span_ms: 10_000.0,
    }
}

/// The same with a mean that is mostly waiting.
fn waiting(name: &str, mean_ms: f64) -> Facts {
    Facts {
        mean_ms,
        parts: vec![(Part::Waiting, mean_ms - 5.5), (Part::Rotation, 2.9)],
        ..calm(name)
    }
}

const TRACE: Pace = Pace::Open(OpenLoad::Trace);

fn verdict(pace: Pace, runs: Vec<Facts>) -> ComparisonVerdict {
    let verdict = ComparisonVerdict::on(pace, runs).expect("a verdict");
    assert_eq!(verdict.sentences.len(), 2);
    for sentence in &verdict.sentences {
        let words = sentence.split_whitespace().count();
        assert!(
            words <= 40 && sentence.ends_with('.'),
            "{words}: {sentence}"
        );
    }
    verdict
}

#[test]
fn waits_beside_an_idle_disk_are_bursts() {
    let bursty = Facts {
        idle: 0.94,
        ..waiting("sptf", 34_200.0)
    };
    let said = verdict(TRACE, vec![bursty]);
    assert_eq!((said.finding, said.dominant), ("bursts", "waiting"));
    assert_eq!(
        said.sentences,
        [
            "Waiting for other requests is 99.9 % of the mean response of 34.2 s.",
            "Requests come in bursts: the disk is idle 94 % of the time, yet one finds about 6839 ahead of it; try \
             --closed.",
        ]
    );
}

#[test]
fn waits_as_of_independent_arrivals_are_no_bursts() {
    // Ten times 3 ms × 0.5 / 0.5 is 30 ms.
    assert_eq!(verdict(TRACE, vec![calm("sptf")]).finding, "nothing");
    assert_eq!(
        verdict(TRACE, vec![waiting("sptf", 35.0)]).finding,
        "nothing"
    );
    assert_eq!(
        verdict(TRACE, vec![waiting("sptf", 36.0)]).finding,
        "bursts"
    );
    // A closed load has no such law.
    let closed = verdict(Pace::ClosedLoad(16), vec![waiting("sptf", 36.0)]);
    assert_eq!(closed.finding, "closed-queue");
}

#[test]
fn arrivals_faster_than_service_are_an_overload() {
    let slow = Facts {
        idle: 0.0,
        arrivals_ms: 5_000.0,
        ..waiting("fcfs", 2_500.0)
    };
    let said = verdict(TRACE, vec![slow.clone()]);
    assert_eq!(
        said.sentences[1],
        "Requests arrive 2.00 times as fast as fcfs serves them, so the queue grows with the run; try --closed, or \
         --scale-time 2.5."
    );
    let rate = Pace::Open(OpenLoad::Synthetic(200.0));
    let said = verdict(rate, vec![slow.clone()]);
    assert!(said.sentences[1].ends_with("try --rate 80."), "{said:?}");
    let said = verdict(TRACE, vec![slow, calm("sptf")]);
    assert_eq!((said.finding, &*said.policy), ("others-overloaded", "sptf"));
}

#[test]
fn means_differ_only_beyond_the_noise() {
    let first = |margin_ms, mean_ms| {
        let one = Facts {
            margin_ms,
            ..calm("sptf")
        };
        let other = Facts {
            margin_ms,
            ..waiting("fcfs", mean_ms)
        };
        verdict(TRACE, vec![other, one]).sentences[0].clone()
    };
    let parts = "waiting for other requests is 45 % and rotation 29 % of it.";
    for (margin, mean, text) in [
        (
            Some(1.0),
            11.0,
            "The means of sptf and fcfs cannot be told apart: 10.0 ms and 11.0 ms, a difference of 9.1 % with a noise \
             of 12.9 %; ",
        ),
        (
            Some(0.3),
            11.0,
            "sptf has the shortest mean response, 10.0 ms: 9.1 % below fcfs (noise 3.9 %); ",
        ),
        (
            None,
            20.0,
            "sptf has the shortest mean response, 10.0 ms: 50.0 % below fcfs (too few requests to tell the noise); ",
        ),
    ] {
        assert_eq!(first(margin, mean), format!("{text}{parts}"));
    }
}

/// A run of a trace whose load comes in waves, under which one policy always takes a little longer.
fn in_waves(name: &str, longer_us: u64) -> Facts {
    let mut ledger = Ledger::new(512, 1);
    for number in 0..4096 {
        let response = 5_000 + number / 256 % 7 * 2_000 + longer_us;
        ledger.record(LoadPart::ONLY, &finished(number, response));
    }
    let report = ledger.report(&RunTotals::default());
    let mean_ms = report.all.response.expect("there are requests").mean_ms;
    Facts {
        margin_ms: report.mean_margin_ms,
        batches: report.batch_means,
        ..waiting(name, mean_ms)
    }
}

/// A read that waited for so long.
fn finished(number: u64, micros: u64) -> Finished {
    let submitted = Instant::from_nanos(number * 1_000_000);
    let waited = Duration::from_micros(micros);
    Finished {
        request: Request {
            id: RequestId(number),
            direction: Direction::Read,
            extent: Extent::new(Lba(0), Sectors(8)).expect("blocks"),
            class: Class::default(),
            durability: Durability::Volatile,
            owner: Owner::NOBODY,
        },
        submitted,
        at: submitted + waited,
        status: Status::Good,
        waited_order: Duration::ZERO,
        waited,
        account: None,
    }
}

#[test]
fn policies_are_compared_request_by_request_if_both_serve_the_same() {
    let first = |pace| {
        let runs = vec![in_waves("fcfs", 300), in_waves("sptf", 0)];
        verdict(pace, runs).sentences[0].clone()
    };
    let same = first(TRACE);
    assert!(same.starts_with("sptf has the shortest"), "{same}");
    let said = first(Pace::ClosedTrace(8));
    assert!(said.starts_with("sptf has the shortest"), "{said}");
    let other = first(Pace::ClosedLoad(8));
    assert!(
        other.starts_with("The means of sptf and fcfs cannot be told apart"),
        "{other}"
    );
}

#[test]
fn each_finding_has_its_own_condition() {
    let once = Facts {
        arrivals_ms: 0.0,
        ..waiting("sptf", 40.0)
    };
    let busy = Facts {
        idle: 0.1,
        ..waiting("sptf", 20.0)
    };
    let idle = Facts {
        idle: 0.9,
        ..calm("sptf")
    };
    let buffered = Facts {
        buffered: 0.8,
        ..calm("sptf")
    };
    let transfer = Facts {
        transfer: 0.6,
        ..calm("sptf")
    };
    let bus = Facts {
        parts: vec![(Part::Waiting, 4.5), (Part::Bus, 1.5)],
        ..calm("sptf")
    };
    for (facts, finding) in [
        (bus, "bus"),
        (once, "one-burst"),
        (busy, "busy"),
        (idle, "idle"),
        (buffered, "buffered"),
        (transfer, "transfer"),
        (calm("sptf"), "nothing"),
    ] {
        assert_eq!(verdict(TRACE, vec![facts]).finding, finding);
    }
    let tail = Facts {
        p999_ms: 200.0,
        ..calm("sptf")
    };
    let said = verdict(
        TRACE,
        vec![
            tail,
            Facts {
                mean_ms: 12.0,
                ..calm("c-look")
            },
        ],
    );
    assert_eq!(said.finding, "long-tail");
}

#[test]
fn numbers_have_as_many_digits_as_they_need() {
    assert_eq!(
        [0.0, 0.042, 0.7, 0.996, 0.99999, 1.0].map(percent),
        ["0.0 %", "4.2 %", "70 %", "99.6 %", "99.9 %", "100 %"]
    );
    assert_eq!(
        [0.314, 18.94, 314.4, 34_200.0].map(time),
        ["0.31 ms", "18.9 ms", "314 ms", "34.2 s"]
    );
    assert_eq!(
        [0.0123, 1.26, 96.4, 1234.0].map(two_digits),
        ["0.012", "1.3", "96", "1200"]
    );
}
