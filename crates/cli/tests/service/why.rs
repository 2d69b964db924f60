//! `headtime why`: of a service with known values, of a real one, and of a simulation.

use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use crate::fake::Fake;
use crate::scanned::Service;
use assert_cmd::Command;
use block::operation::Ask;
use nbd::Style;
use nbd::request::Asked;
use serde_json::Value;
use server::config::SocketRights;
use server::control::{Bounds, Listeners, Plane, listen};
use server::why::Slow;

fn why(socket: &Path, words: &str) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin!("headtime"))
        .arg("why")
        .arg("--socket")
        .arg(socket)
        .args(words.split_whitespace())
        .output()
        .unwrap()
}

const TOLD: &str = "\
request 1841 of export db on disk: read of 4 KiB at block 5,000,000, foreground, ended 3.2 s ago
  41.873 ms in all; most of it, 41 %, it waited for others' head time: 1 command, at the drive when it came
      17.002 ms  it waited for others' head time: 1 command, at the drive when it came
       8.000 ms  it waited for others' head time: 1 command, as urgent and chosen before
       3.110 ms  it waited for others' head time: 1 command, of background tasks
       0.002 ms  it was held back on purpose: the drive had nothing to do
      13.759 ms  it was served by the drive, in 1 command
                 believed: electronics 0.100, seek 6.334, rotation 5.125, transfer 0.031, bus 0.200 ms
                 it ended 1.969 ms later than believed
  first before it       17.002 ms  read of 2,048 blocks at 900 of export bulk (best-effort-6), given to the drive 4.200 ms before it came
  and of the others      3.110 ms  a background task's read (free), given to the drive 12.800 ms after it had come
";

#[test]
fn the_account_of_a_slow_request_is_told_in_words_and_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("control.sock");
    let fake = Fake::new(crate::fake::status());
    let listeners = Listeners {
        sockets: vec![listen(&socket, SocketRights::default()).unwrap()],
        ..Listeners::default()
    };
    let _plane = Plane::begin(Arc::new(fake.clone()), listeners, Bounds::default()).unwrap();
    let said = |words: &str| String::from_utf8(why(&socket, words).stdout).unwrap();
    assert_eq!(said(""), TOLD);
    assert_eq!(said("1841"), TOLD);
    let json = crate::judged::judge("why", &said("--json --export db --slowest 7"));
    let json: Vec<Slow> = serde_json::from_value(json).unwrap();
    assert_eq!(json, [crate::fake::slow()]);
    let asked = [
        "why Query { export: None, slowest: Some(3), request: None }",
        "why Query { export: None, slowest: None, request: Some(1841) }",
        "why Query { export: Some(\"db\"), slowest: Some(7), request: None }",
    ];
    assert_eq!(fake.told(), asked);
    for (words, problem) in [
        ("17", "error: request 17 is not kept\n"),
        (
            "--slowest 0",
            "error: invalid value '0' for '--slowest <N>'",
        ),
        (
            "17 --slowest 2",
            "error: the argument '[REQUEST]' cannot be used with '--slowest <N>'",
        ),
    ] {
        let output = why(&socket, words);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words}: {errors}");
        assert!(errors.starts_with(problem), "{words}: {errors}");
        assert_eq!(errors.matches('\n').count(), 1, "{errors}");
    }
}

#[test]
fn a_service_says_why_its_requests_were_slow_or_what_to_do() {
    let service = Service::start(&[], "");
    let none = service.refuses(&["why"]);
    assert_eq!(
        none,
        "error: no request has ended in the last 5 minutes: expected some load, and the question \
         again\n"
    );
    let mut client = crate::client::Client::connect(&service.path("nbd.sock"), Style::Structured);
    for block in [0, 900, 1800, 40] {
        let end = client.ask(Asked::Of(Ask::Read), block * 4096, 4096, &[]);
        assert_eq!(end.result, Ok(()));
    }
    let all = service.json(&["why", "--json", "--slowest", "100"]);
    let all = all.as_array().expect("a list");
    assert_eq!(all.len(), 4);
    let number = |slow: &Value, key: &str| slow[key].as_f64().expect("a number");
    for pair in all.windows(2) {
        assert!(number(&pair[0], "response_us") >= number(&pair[1], "response_us"));
    }
    for slow in all {
        assert_eq!(slow["export"], "small");
        assert_eq!(slow["drive"], "rz26");
        let others = slow["others"].as_array().expect("a list");
        let others: f64 = others.iter().map(|one| number(one, "us")).sum();
        let waits = ["outside_us", "order_us", "held_back_us", "forgotten_us"];
        let waited: f64 = waits.iter().map(|key| number(slow, key)).sum();
        let sum = waited + others + number(&slow["in_drive"], "us");
        let response = number(slow, "response_us");
        assert!((sum - response).abs() < 0.01, "{sum} of {response}: {slow}");
    }
    let (is_good, text) = service.run(&["why", "2"]);
    assert!(is_good, "{text}");
    let first = "request 2 of export small on rz26: read of 4 KiB at block 7,200, foreground";
    assert!(text.starts_with(first), "{text}");
    assert!(text.contains("believed: electronics "), "{text}");
    for (words, problem) in [
        (
            vec!["why", "99"],
            "request 99 is not kept: the 16 slowest of",
        ),
        (
            vec!["why", "--export", "nosuch"],
            "no export nosuch: expected one of small",
        ),
    ] {
        let text = service.refuses(&words);
        assert!(text.contains(problem), "{text}");
    }
    service.end();
}

#[test]
fn a_simulation_says_it_in_the_same_words_and_the_same_ones() {
    let words = "simulate --drive quantum-atlas-10k --workload random --tasks 8 --requests 400";
    let run = |more: &str| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("headtime"));
        let output = command
            .args(words.split_whitespace())
            .args(more.split_whitespace())
            .output()
            .unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let text = run("--why 2");
    assert_eq!(
        text.matches(" ms in all; most of it, ").count(),
        2,
        "{text}"
    );
    assert!(text.contains("as urgent and chosen before"), "{text}");
    let json: Value = serde_json::from_str(&run("--why 2 --json")).unwrap();
    let result = &json["results"][0];
    let slow: Vec<Slow> = serde_json::from_value(result["slow"].clone()).unwrap();
    assert_eq!(slow.len(), 2);
    let slowest = &result["all"]["response"]["max_ms"];
    let slowest = slowest.as_f64().expect("a number");
    assert!(
        (slowest - slow[0].response_us / 1e3).abs() < 1e-5,
        "{result}"
    );
    let json: Value = serde_json::from_str(&run("--json")).unwrap();
    assert_eq!(json["results"][0].get("slow"), None, "nobody asked");
}
