//! Options with units: the result is that of the number in the option's own unit.

use crate::scene::Scene;

#[test]
fn an_option_with_a_unit_is_its_number() {
    let scene = Scene::with(&[]);
    // One after the other: words of a scene are separated by blanks.
    let load = "simulate --drive dec-rz26 --workload oltp --requests 300";
    for (number, unit) in [
        ("--think-ms 20", "--think-ms=20ms"),
        ("--think-ms 20", "--think-ms=0.02s"),
        ("--size-kib 8", "--size-kib=8KiB"),
        ("--read-fraction 0.5", "--read-fraction=50%"),
        ("--seek-noise-us 30", "--seek-noise-us=30us"),
        ("--bus-mb-s 2", "--bus-mb-s=2MB/s"),
        ("--seconds 3", "--seconds=3000ms"),
        (
            "--scan 0..999 --impact-percent 1 --idle-ms 20 --paid-percent 2 --deadline 60",
            "--scan 0..999 --impact-percent 1% --idle-ms 20ms --paid-percent 2% --deadline 1min",
        ),
    ] {
        let plain = scene.json(&format!("{load} {number}"));
        assert_eq!(plain, scene.json(&format!("{load} {unit}")), "{unit}");
    }
    // The default budget is that of a service.
    let scan = format!("{load} --scan 0..999");
    let usual = scene.json(&scan);
    assert_eq!(usual, scene.json(&format!("{scan} --impact-percent 2")));
    assert_ne!(usual, scene.json(&format!("{scan} --impact-percent 1")));
}

#[test]
fn streams_may_be_said_with_units() {
    let scene = Scene::with(&[]);
    let plan = "streams plan --drive modern-20tb --play";
    let usual = scene.json(&format!("{plan} 4x1M,memory=3M"));
    assert_eq!(usual, scene.json(&format!("{plan} 4x1MB/s,memory=3MB")));
    let bench = "bench streams --policy sptf --calm --drive dec-rz26 --readers 1 --recorders 0";
    let run = |words: &str| scene.prints(&format!("{bench} {words} --json"));
    assert_eq!(
        run("--hours 0.03 --alone-hours 0.03 --memory 2 --promised 0.3 --rate 0.1 --kib 64"),
        run(
            "--hours 108s --alone-hours 108s --memory 2000kB --promised 30% --rate 100kB/s --kib 64KiB"
        ),
    );
}

#[test]
fn a_unit_of_another_quantity_is_refused() {
    let scene = Scene::with(&[]);
    for (words, expected) in [
        ("--think-ms=5MB", "expected milliseconds"),
        ("--seconds=5%", "expected seconds"),
        ("--size-kib=3ms", "expected KiB"),
        ("--scan --impact-percent=1ms", "expected per cent"),
    ] {
        let refused = scene.refuses(&format!(
            "simulate --drive dec-rz26 --workload oltp {words}"
        ));
        assert!(refused.contains(expected), "{words}: {refused}");
    }
}

/// KiB that a header takes for bytes, and a header that says so.
#[test]
fn what_replays_a_trace_warns_of_sizes_in_another_unit() {
    let lines = |header: &str| {
        let lines = (0..20).map(|at| format!("{at};R;{};8\n", at * 65_536));
        format!("{header}\n{}", lines.collect::<String>())
    };
    let (wrong, right) = (
        lines("time_ms;op;offset;size"),
        lines("time_ms;op;offset;size_kib"),
    );
    let scene = Scene::with(&[("wrong.csv", &wrong), ("right.csv", &right)]);
    let warning = "warning: the longest request has 8 bytes: sizes look like a number of blocks";
    for command in [
        "simulate --drive dec-rz26 --skip-bad --trace",
        "simulate --drive dec-rz26 --cache 1MiB --trace",
        "cache --trace",
    ] {
        let complains = |file: &str| {
            let output = scene.run(&format!("{command} {file}"));
            String::from_utf8_lossy(&output.stderr).into_owned()
        };
        let wrong = complains("wrong.csv");
        assert!(wrong.contains(warning), "{command}: {wrong}");
        let right = complains("right.csv");
        assert!(!right.contains("warning"), "{command}: {right}");
    }
    let figures = scene.json("trace stat right.csv");
    assert_eq!(figures["size_bytes"]["p50"], 8192);
}
