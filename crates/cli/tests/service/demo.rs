//! `headtime demo` as a whole binary: few requests, and a drive so slow that no busy machine makes its belief fail.

use std::net::TcpListener;
use std::process::{Command, Stdio};

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;

fn number(json: &Value, name: &str) -> f64 {
    json[name]
        .as_f64()
        .unwrap_or_else(|| panic!("no number {name} in {json}"))
}

/// Runs it in a folder of its own; what it printed, what it said beside that, and the plots.
fn demo(time_scale: &str, words: &[&str]) -> (String, String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(cargo_bin("headtime"))
        .current_dir(folder.path())
        .env("TMPDIR", folder.path())
        .args(["demo", "--requests", "300", "--time-scale", time_scale])
        .args(words)
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{said}");
    let plots = std::fs::read_to_string(folder.path().join("out/demo.svg")).expect("plots");
    let left = folder.path().read_dir().expect("a folder").count();
    assert_eq!(left, 1, "nothing but the plots stays");
    (String::from_utf8(output.stdout).expect("text"), said, plots)
}

#[test]
fn a_load_is_shown_alone_and_beside_a_scan_that_reads() {
    // Whoever has the port, the page has another.
    let _usual = TcpListener::bind("127.0.0.1:8384");
    let run = |scale| {
        let (printed, said, plots) = demo(scale, &["--json"]);
        let json = crate::judged::judge("demo", &printed);
        (json, said, plots)
    };
    // A machine that is too late for one drive to be as believed is in time for a slower one.
    let mut scales = ["2", "8", "32"].into_iter();
    let (scale, (json, said, plots)) = loop {
        let scale = scales.next().expect("one of them reads");
        let ran = run(scale);
        if number(&ran.0["scan"], "free_bytes") > 0.0 {
            break (scale, ran);
        }
    };
    for name in ["alone", "beside"] {
        let load = &json[name];
        assert_eq!(load["requests"], 300, "{json}");
        for figure in ["seconds", "requests_per_s", "mb_per_s", "mean_ms"] {
            assert!(number(load, figure) > 0.0, "{json}");
        }
        let order = ["p50_ms", "p99_ms", "p999_ms"].map(|name| number(load, name));
        assert!(order.is_sorted(), "{json}");
    }
    let scan = &json["scan"];
    assert!(number(scan, "bytes") > 0.0, "{json}");
    assert!(number(scan, "bytes") <= number(scan, "of_bytes"), "{json}");
    assert!(number(scan, "mb_per_s") > 0.0, "{json}");
    assert_eq!(json["impact"]["budget_percent"], 2.0);
    for name in ["mean_percent", "p99_percent", "measured_percent"] {
        number(&json["impact"], name);
    }
    for name in ["p50_us", "p99_us", "max_us"] {
        assert!(number(&json["lateness"], name) >= 0.0, "{json}");
    }
    assert_eq!(json["label"], "noisy");
    assert_eq!(json["time_scale"], scale.parse::<f64>().expect("a number"));
    assert_eq!(json["bus_mb_s"], 80.0);
    let page = json["page"].as_str().expect("an address");
    assert!(page.starts_with("http://127.0.0.1:"), "{page}");
    assert!(!page.contains(":8384/"), "{page}");
    assert!(said.contains(page), "{said}");
    assert!(plots.starts_with("<svg") && plots.contains("beside the scan"));
}

#[test]
fn people_read_both_columns_and_what_was_granted() {
    let (printed, _, _) = demo("2", &[]);
    for part in [
        "status page: http://127.0.0.1:",
        "requests/s ",
        "99.9 %, ms ",
        "scan ",
        "2.00 % are granted",
        "later than the model by ",
        "300 and 300 requests of one seed",
        "Plots: out/demo.svg",
    ] {
        assert!(printed.contains(part), "{part} is not in\n{printed}");
    }
}
