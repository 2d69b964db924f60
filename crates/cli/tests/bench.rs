//! `headtime bench` as a whole binary.

#[path = "scene/scene.rs"]
mod scene;

use scene::{Scene, keys};

#[test]
fn json_has_the_promised_keys() {
    let json = Scene::with(&[]).json("bench simulate --requests 10000");
    let cases = json.as_array().expect("an array");
    let names: Vec<_> = cases.iter().map(|case| case["case"].as_str()).collect();
    assert_eq!(
        names,
        [Some("cheetah-9lp-fcfs"), Some("cheetah-9lp-sptf-in-drive")]
    );
    for case in cases {
        assert_eq!(
            keys(case).len(),
            3,
            "case, requests_per_cpu_second, peak_rss_mb: {case}"
        );
        // How fast is a benchmark's business; here, that something was measured.
        assert!(case["requests_per_cpu_second"].as_u64() > Some(0), "{case}");
        let peak = &case["peak_rss_mb"];
        assert!(
            peak.as_f64().is_some_and(|mb| mb > 0.5) || peak.is_null(),
            "{case}"
        );
    }
}

#[test]
fn a_run_without_requests_is_refused() {
    let output = Scene::with(&[]).run("bench simulate --requests 0");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn streams_at_the_limit_are_a_line_each() {
    let run = "bench streams --hours 0.03 --alone-hours 0.03 --policy sptf --memory 2,4 --promised 0 --quiet";
    let output = Scene::with(&[]).run(&format!("{run} --json"));
    let said = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<serde_json::Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 2, "{said}");
    for line in lines {
        assert_eq!(
            (line["late"].as_u64(), line["waited"].as_u64()),
            (Some(0), Some(0))
        );
        assert!(line["streams"].as_u64() > Some(40) && line["accesses"].as_u64() > Some(1_000));
    }
}

#[test]
fn streams_that_make_no_sense_are_refused() {
    for wrong in [
        "--promised 2",
        "--memory 0",
        "--hours 0",
        "--policy best",
        "--missing=-1",
    ] {
        let output = Scene::with(&[]).run(&format!("bench streams {wrong}"));
        assert_eq!(output.status.code(), Some(2), "{wrong}");
    }
}
