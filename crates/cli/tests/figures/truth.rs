//! Drives that differ from what is believed of them, as a whole binary: the label says so, the same
//! seed gives the same bytes, and senseless differences are refused.

use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

fn run(flags: &str) -> Output {
    let load = "simulate --drive quantum-atlas-10k --workload oltp --think-ms 0 --requests 2000";
    Command::new(assert_cmd::cargo::cargo_bin!("headtime"))
        .args(load.split_whitespace().chain(flags.split_whitespace()))
        .output()
        .expect("it ran")
}

fn prints(flags: &str) -> String {
    let output = run(flags);
    assert!(output.status.success(), "{flags}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn json(flags: &str) -> Value {
    serde_json::from_str(&prints(&format!("{flags} --json"))).expect("JSON")
}

fn rate(json: &Value) -> f64 {
    let rate = json["results"][0]["requests_per_second"].as_f64();
    rate.expect("a rate")
}

#[test]
fn what_the_belief_does_not_know_makes_results_noisy_and_slower() {
    let plain = json("");
    assert_eq!(plain["mode"], "in-firmware");
    assert_eq!(plain["truth"]["seek_noise_us"], 0.0);
    for flags in ["--seek-noise-us 400", "--late-seeks 200:2.5"] {
        let other = json(flags);
        assert_eq!(other["mode"], "noisy", "{flags}");
        assert_eq!(other["truth"]["seed"], 1);
        assert!(rate(&other) < rate(&plain), "{flags}");
    }
    let report = prints("--seek-noise-us 60 --late-seeks 10:1.5");
    let label = "the belief does not know: seek noise of 60 us, 10 in 1,000 seeks 1.5 ms late \
                 (noisy)";
    assert!(report.contains(label), "{report}");
    assert!(!report.contains("in-firmware"), "{report}");
    for none in ["--seek-noise-us 0", "--late-seeks 0:9", "--late-seeks 5:0"] {
        let none = json(none);
        assert_eq!(none["mode"], "in-firmware");
        assert_eq!(none["results"], plain["results"]);
    }
}

#[test]
fn what_the_host_commands_and_builds_is_known_and_in_firmware() {
    let plain = json("");
    for flags in ["--write-cache off", "--bus-mb-s 80"] {
        let other = json(flags);
        assert_eq!(other["mode"], "in-firmware", "{flags}");
        assert_ne!(rate(&other), rate(&plain), "{flags}");
    }
    let report = prints("--write-cache off --look-ahead off --bus-mb-s 80");
    let said = "look-ahead off, write cache off, a bus of 80 MB/s";
    assert!(report.contains(said), "{report}");
    let sequential = "--workload sequential --requests 500";
    let run = |switch: &str| {
        let load = "simulate --drive quantum-atlas-10k --json --bus-mb-s 80 --look-ahead";
        let arguments = format!("{load} {switch} {sequential}");
        let output = Command::new(assert_cmd::cargo::cargo_bin!("headtime"))
            .args(arguments.split_whitespace())
            .output();
        let output = output.expect("it ran");
        rate(&serde_json::from_slice(&output.stdout).expect("JSON"))
    };
    assert!(run("on") > 1.5 * run("off"), "a reader of runs needs it");
    assert_eq!(json("--write-cache on")["results"], plain["results"]);
}

#[test]
fn the_same_seed_gives_the_same_drive_and_another_seed_another() {
    let of = |seed: u32| prints(&format!("--seek-noise-us 100 --json --seed {seed}"));
    assert_eq!(of(3), of(3));
    assert_ne!(of(3), of(4));
}

#[test]
fn differences_that_make_no_sense_are_refused() {
    for (flags, said) in [
        (
            "--seek-noise-us -1",
            "--seek-noise-us -1: expected a number from 0 to 10000",
        ),
        (
            "--seek-noise-us nan",
            "--seek-noise-us NaN: expected a number from 0 to 10000",
        ),
        (
            "--late-seeks 1001:1",
            "--late-seeks 1001: expected a number from 0 to 1000",
        ),
        (
            "--late-seeks 1:1e9",
            "--late-seeks 1000000000: expected a number from 0 to 1000",
        ),
        (
            "--late-seeks 1",
            "invalid value '1' for '--late-seeks <PERMILLE:MS>': expected PERMILLE:MS",
        ),
        (
            "--bus-mb-s 0",
            "--bus-mb-s 0: expected a number from 0.1 to 1000000",
        ),
        (
            "--look-ahead maybe",
            "invalid value 'maybe' for '--look-ahead <on|off>'",
        ),
    ] {
        let output = run(flags);
        let problem = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{flags}: {problem}");
        assert!(output.stdout.is_empty(), "{flags}");
        assert_eq!(problem.lines().count(), 1, "{flags}: {problem}");
        let begins = format!("error: {said}");
        assert!(problem.starts_with(&begins), "{flags}: {problem}");
    }
}

#[test]
fn a_trace_has_no_use_for_a_seed_unless_the_drive_does_things_by_chance() {
    let directory = tempfile::tempdir().expect("a directory");
    let trace = directory.path().join("t.csv");
    let lines: String = (0..50)
        .map(|n| format!("{n},0,R,{},4096\n", n * 7_919 % 1000 * 1_048_576))
        .collect();
    std::fs::write(&trace, lines).expect("written");
    let replay = |flags: &str| {
        let arguments = format!("simulate --drive quantum-atlas-10k --json {flags} --trace");
        Command::new(assert_cmd::cargo::cargo_bin!("headtime"))
            .args(arguments.split_whitespace())
            .arg(&trace)
            .output()
            .expect("it ran")
    };
    let refused = replay("--seed 3");
    assert_eq!(refused.status.code(), Some(2));
    let problem = String::from_utf8(refused.stderr).expect("text");
    let said = "error: --seed with --trace: nothing happens by chance";
    assert!(problem.starts_with(said), "{problem}");
    let of = |seed: u32| replay(&format!("--seek-noise-us 100 --seed {seed}")).stdout;
    assert_eq!(of(3), of(3));
    assert_ne!(of(3), of(4));
}
