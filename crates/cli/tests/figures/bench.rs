//! `headtime bench` as a whole binary.

use crate::scene::{Scene, keys};

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
    let run = "bench streams --hours 0.03 --alone-hours 0.03 --policy sptf --memory 2,4 --promised 0 --calm";
    let output = Scene::with(&[]).run(&format!("{run} --json"));
    let said = String::from_utf8(output.stdout).expect("text");
    crate::judged::judge("bench-streams", &said);
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

/// Short, but long enough for coordinators to do something.
const CACHES: &str = "bench caches --prefetch ra --footprint 4096 --requests 400";

/// A case's figures in the simulator.
fn simulated(scene: &Scene, more: &str) -> Vec<serde_json::Value> {
    let told = scene.json(&format!("{CACHES} --only-simulated {more}"));
    let cases = told["cases"].as_array().expect("cases").iter();
    cases
        .map(|case| {
            assert!(case["live"].is_null(), "{case}");
            case["simulated"].clone()
        })
        .collect()
}

#[test]
fn caches_are_simulated_over_the_engine_or_the_elevator_with_readmore_either_way() {
    let scene = Scene::with(&[]);
    let ordinary = simulated(&scene, "");
    assert_eq!(ordinary.len(), 3, "none, pfc, adaptive");
    let mb = |figures: &serde_json::Value, key: &str| figures[key].as_f64().expect("MB");
    for figures in &ordinary {
        assert_eq!(mb(figures, "lower_wished_mb"), 0.0, "{figures}");
    }
    assert_eq!(ordinary, simulated(&scene, "--simulated-disk engine"));
    let free = simulated(&scene, "--readmore free");
    assert_eq!(ordinary[0], free[0], "nobody reads more");
    assert!(mb(&free[1], "lower_wished_mb") > 0.0, "{}", free[1]);
    assert_ne!(ordinary[1], free[1]);
    let elevator = simulated(&scene, "--simulated-disk elevator");
    assert_ne!(ordinary[0]["mean_ms"], elevator[0]["mean_ms"]);
    let head = scene.prints("bench caches --only-simulated --footprint 640 --requests 10");
    assert!(
        head.contains("our engine") && head.contains("readmore ordinary"),
        "{head}"
    );
    let run =
        "bench caches --only-simulated --footprint 640 --requests 10 --simulated-disk elevator";
    let head = scene.prints(run);
    assert!(head.contains("one-way elevator"), "{head}");
}

#[test]
fn caches_that_make_no_sense_are_refused() {
    for wrong in [
        "--readmore free --simulated-disk elevator",
        "--readmore some",
        "--policy best",
        "--coordinator best",
        "--readmore free --policy drive --only-simulated",
    ] {
        let output = Scene::with(&[]).run(&format!("bench caches --only-simulated {wrong}"));
        assert_eq!(output.status.code(), Some(2), "{wrong}: {output:?}");
    }
}

#[test]
fn caches_run_live_in_rounds_beside_what_is_simulated() {
    let run = "bench caches --footprint 640 --requests 10 --time-scale 0.01 --rounds 2 \
               --coordinator pfc --readmore free";
    let told = Scene::with(&[]).json(run);
    let cases = told["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), 2);
    for case in cases {
        let live = &case["live"];
        assert_eq!(
            live["rounds_ms"].as_array().map(Vec::len),
            Some(2),
            "{case}"
        );
        assert!(live["mean_ms"].as_f64() > Some(0.0), "{case}");
    }
    let gain = &cases[1]["live"]["gain"];
    assert!(gain["uncertainty_percent"].is_f64(), "{gain}");
    assert!(cases[0]["live"]["gain"].is_null());
}

#[test]
fn classes_by_priority_are_judged_at_the_doors_of_this_machine() {
    let has = |path: &str| std::path::Path::new(path).exists();
    let is_root = rustix::process::geteuid().is_root();
    if !is_root || !has("/dev/fuse") || !has("/dev/loop-control") {
        let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!is_ci, "CI needs root, /dev/fuse and /dev/loop-control");
        return skipped("no root, /dev/fuse or loop devices");
    }
    let json = Scene::with(&[]).json("bench classify --drive memory --seconds 1 --rounds 1");
    let doors = json.as_array().expect("an array");
    assert_eq!(doors[0]["door"], "fuse");
    for door in doors {
        assert_eq!(keys(door).len(), 6, "{door}");
        let [requests, late] =
            ["requests", "late_events"].map(|key| door[key].as_u64().expect("a number"));
        assert!(requests > 0, "{door}");
        // On a busy machine events may come late. No other request has a wrong class; how many there are is a
        // benchmark's business.
        let wrong = 100.0 - door["right_percent"].as_f64().expect("a number");
        let excused = late as f64 * 100.0 / requests as f64;
        assert!(wrong <= excused + 0.1, "{door}");
        // What it costs is a benchmark's business; here, that something was measured.
        assert!(door["iops_ratio"].as_f64() > Some(0.0), "{door}");
        assert!(door["cpu_percent"].is_f64(), "{door}");
    }
}

#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}
