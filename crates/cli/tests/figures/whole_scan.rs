//! The time of a whole scan in `headtime simulate --scan` as a whole binary: known, or estimated with a range.

use crate::scene::Scene;
use serde_json::Value;

/// A small drive of none of the shapes from which whole scans are estimated. It was looked at when they were chosen, so
/// that the factors below are those that hold for it, and no evidence for others.
const NO_SHAPE: &str =
    "simulate --drive dec-rz26 --workload oltp --think-ms 0 --write-cache off --policy sptf-sw60";

/// The course of a scan: percent, seconds, and the range.
fn course(figures: &Value) -> Vec<(f64, [f64; 3])> {
    let curve = figures["whole"]["curve"].as_array().expect("a curve");
    let point = |point: &Value| {
        let number = |name: &str| point[name].as_f64().expect("a number");
        let seconds = ["seconds", "least_seconds", "most_seconds"].map(number);
        (number("percent"), seconds)
    };
    curve.iter().map(point).collect()
}

#[test]
fn a_whole_scan_is_estimated_from_a_part_within_a_factor_of_the_truth() {
    let scene = Scene::with(&[]);
    let whole = scene.json(&format!("{NO_SHAPE} --scan"));
    assert_eq!(whole["whole"]["estimated"], false);
    let truth = course(&whole);
    let last = whole["progress"][99]["seconds"].as_f64();
    assert_eq!(Some(truth[5].1[0]), last, "100 %");
    // Left out in turn, the small drives of the shapes are estimated within 1.3 from 30 % on.
    for (until, factor) in [(3, 1.5), (30, 1.3), (60, 1.3)] {
        let part = scene.json(&format!("{NO_SHAPE} --scan --scan-until {until}"));
        assert_eq!(part["whole"]["estimated"], true);
        for (estimate, truth) in course(&part).iter().zip(&truth) {
            let (percent, [seconds, least, most]) = *estimate;
            let known = truth.1[0];
            assert_eq!(percent, truth.0);
            assert!(least <= seconds && seconds <= most, "{estimate:?}");
            let is_near = (known / factor..=known * factor).contains(&seconds);
            assert!(
                is_near,
                "at {until} %: {percent} % after {seconds}, not {known}"
            );
            let is_in_range = (least..=most * 1.001).contains(&known);
            assert!(
                is_in_range,
                "at {until} %: {known} is not in {least}..{most}"
            );
        }
    }
}

#[test]
fn the_report_says_how_long_a_whole_scan_takes_and_that_it_is_estimated() {
    let scene = Scene::with(&[]);
    let report = scene.prints(
        "simulate --drive modern-20tb --workload modern --policy sptf-sw60 --scan --seconds 30",
    );
    let line = report.lines().find(|line| line.starts_with("  whole scan"));
    let line = line.expect("a line");
    for part in [
        " days (",
        " to ",
        "estimated from the 0.01 % that were read",
    ] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    for percent in [50, 80, 90, 95, 99, 100] {
        assert!(report.contains(&format!("{percent} % after ")), "{report}");
    }
    // The shapes hold for whole drives: of a part nothing is estimated.
    let part = scene.json(&format!("{NO_SHAPE} --scan 0..20000 --requests 100"));
    assert!(part["whole"].is_null());
}
