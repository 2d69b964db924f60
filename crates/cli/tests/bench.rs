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
