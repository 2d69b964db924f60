//! The time line is JSON, its slices do not overlap, and its longest request is the report's.

use serde_json::Value;

use super::*;
use crate::comparison::ComparisonSettings;
use crate::comparison::load::LoadSettings;
use crate::comparison::scan::ScanSettings;

/// The events of a run, and its longest response in microseconds.
fn events(settings: &ComparisonSettings) -> (Vec<Value>, f64, usize) {
    let setup = settings.setup().expect("good settings");
    let mut events = TraceEvents::begin(Vec::new()).expect("memory takes it");
    let run = setup.run(setup.policies[0], &mut events).expect("it runs");
    assert_eq!(events.full_at(), None);
    let bytes = events.finish().expect("memory takes it");
    let text: Value = serde_json::from_slice(&bytes).expect("JSON");
    let list = text["traceEvents"].as_array().expect("events").clone();
    let longest = run.report.all.response.expect("requests").max_ms * 1e3;
    (list, longest, bytes.len())
}

fn settings(policy: &str) -> ComparisonSettings {
    ComparisonSettings {
        drive: "quantum-atlas-10k".to_owned(),
        load: LoadSettings {
            workload: Some("oltp".to_owned()),
            ..LoadSettings::default()
        },
        policies: vec![policy.to_owned()],
        seconds: Some(60.0),
        ..ComparisonSettings::default()
    }
}

fn number(event: &Value, key: &str) -> f64 {
    event[key].as_f64().unwrap_or_default()
}

/// The slices of a thread of the head in the order of their begins: begin, end, name.
fn slices(events: &[Value], thread: u64) -> Vec<(f64, f64, String)> {
    let of_thread = |event: &&Value| event["ph"] == "X" && event["tid"] == thread;
    let slices = events.iter().filter(of_thread).map(|event| {
        let (at, lasts) = (number(event, "ts"), number(event, "dur"));
        let name = event["name"].as_str().unwrap_or_default().to_owned();
        (at, at + lasts, name)
    });
    let mut slices: Vec<_> = slices.collect();
    slices.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
    slices
}

#[test]
fn sixty_seconds_are_small_and_have_the_longest_request() {
    for policy in ["sptf", "drive"] {
        let (events, longest, bytes) = events(&settings(policy));
        assert!(bytes < 50_000_000, "{bytes}");
        let mut open = BTreeMap::new();
        let mut found = 0.0f64;
        for event in &events {
            match event["ph"].as_str() {
                Some("b") => {
                    open.insert(event["id"].as_u64(), number(event, "ts"));
                }
                Some("e") => {
                    let begin = open.remove(&event["id"].as_u64()).expect("it has begun");
                    found = found.max(number(event, "ts") - begin);
                }
                _ => {}
            }
        }
        assert!(open.is_empty());
        assert!((found - longest).abs() < 0.01, "{found} and {longest}");
    }
}

#[test]
fn slices_of_a_head_are_nested_or_apart() {
    let (events, ..) = events(&settings("sptf"));
    let slices = slices(&events, 0);
    assert!(slices.len() > 1000);
    // Rounding to a float of microseconds.
    let slack = 0.002;
    let mut around: Vec<f64> = Vec::new();
    for (begin, end, name) in &slices {
        while around.last().is_some_and(|last| *last <= begin + slack) {
            around.pop();
        }
        let fits = around.last().is_none_or(|last| *end <= last + slack);
        assert!(
            fits,
            "{name} from {begin} to {end} reaches out of {around:?}"
        );
        around.push(*end);
    }
}

#[test]
fn a_scan_s_plans_have_a_track_of_their_own() {
    let scan = ComparisonSettings {
        scan: ScanSettings {
            scan: Some("all".to_owned()),
            ..ScanSettings::default()
        },
        ..settings("sptf")
    };
    let (events, ..) = events(&scan);
    let plans = slices(&events, u64::from(PLANS));
    assert!(
        plans
            .iter()
            .any(|(_, _, name)| name == "in a gap" || name == "before a request"),
        "{}",
        plans.len()
    );
}

#[test]
fn a_full_file_says_from_when_events_are_missing() {
    let mut full = TraceEvents::begin(io::sink()).expect("a sink takes it");
    full.written = MOST_BYTES;
    let setup = ComparisonSettings {
        seconds: None,
        requests: Some(10),
        ..settings("fcfs")
    };
    let setup = setup.setup().expect("good settings");
    setup.run(setup.policies[0], &mut full).expect("it runs");
    assert!(full.full_at().is_some());
    full.finish().expect("a sink takes it");
}
