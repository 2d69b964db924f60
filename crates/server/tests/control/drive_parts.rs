//! Parts of a known drive's status.

use headtime_client::wire::{Listed, StreamStatus, Terms};
use server::status::{
    Classified, Flow, HeadComparison, Latency, RESPONSE_BOUNDS_US, Responses, SlowHead, Traffic,
    TrafficClass,
};

pub(super) fn classified() -> Vec<Classified> {
    let export = r#"{"export":"db","devices":["/dev/loop0"],"requests_total":81001,"unmatched_total":83,"lost_events_total":89}"#;
    vec![serde_json::from_str(export).expect("a status")]
}

pub(super) fn heads() -> HeadComparison {
    HeadComparison {
        compared_total: 91_009,
        late_total: 2_003,
        lost_percent: 2.25,
        recent_percent: Some(4.5),
        past_percent: Some(0.75),
        found_total: 1,
        slow: vec![SlowHead {
            head: 3,
            arm: 1,
            slower_percent: 21.25,
            before_percent: Some(0.5),
            found_s: 7_261.0,
            reads: 4_001,
            late: 797,
            first_cylinder: Some(2_048),
            last_cylinder: Some(4_095),
        }],
    }
}

pub(super) fn traffic(class: TrafficClass, share: f64) -> Traffic {
    let flow = |mb_per_s: f64, requests_per_s: f64, requests_total: u64| Flow {
        mb_per_s: mb_per_s * share,
        requests_per_s: requests_per_s * share,
        requests_total: (requests_total as f64 * share) as u64,
        bytes_total: (requests_total as f64 * share) as u64 * 8192,
    };
    Traffic {
        class,
        read: flow(1.27, 155.0, 640_000),
        write: flow(0.61, 74.0, 320_000),
        latency: Some(Latency {
            requests: 2290,
            p50_us: 31_400.0 * share,
            p95_us: 96_100.0 * share,
            p99_us: 141_700.0 * share,
            p999_us: 388_900.0 * share,
            max_us: 401_000.0 * share,
        }),
        responses: Responses {
            counts: (1..=RESPONSE_BOUNDS_US.len() as u64 + 1).collect(),
            sum_us: 8_280_000.0 * share,
        },
    }
}

pub(super) fn stream() -> Listed {
    Listed {
        stream: 7,
        drive: "disk".to_owned(),
        user: 1000,
        terms: Terms {
            name: "<i>camera</i>".to_owned(),
            memory: Some(2_101_920),
            ..Terms::play(1_000_000, 65_536)
        },
        standing: StreamStatus::Serving,
        from: 65_536,
        to: 2_162_688,
        from_memory_total: 977,
        waited_total: 3,
        late_total: 1,
        lapsed_total: 0,
    }
}
