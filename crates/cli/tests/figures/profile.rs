//! `headtime profile` as a whole binary: what it refuses, what it says, and that others read what it
//! writes.

use crate::scene::Scene;
use serde_json::Value;

/// A command that fails, and what it says.
fn refused(scene: &Scene, arguments: &str) -> (Option<i32>, String) {
    let output = scene.run(arguments);
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success(), "{arguments}: {said}");
    assert_eq!(said.lines().count(), 1, "{arguments}: {said}");
    (output.status.code(), said)
}

#[test]
fn bad_inputs_are_refused() {
    let scene = Scene::with(&[("bad.json", "{\"pieces\": 7}"), ("two.toml", "name = 3")]);
    let small = "profile --drive hp-c2247a";
    for (arguments, words) in [
        ("profile", "--drive"),
        ("profile --drive quantum-atlas-10kk", "quantum-atlas-10k"),
        ("profile --drive two.toml", "two.toml"),
        (&format!("{small} --budget 0s"), "--budget"),
        (&format!("{small} --budget soon"), "such as 90s, 10m or 3h"),
        (&format!("{small} --budget 30d"), "up to a week"),
        (&format!("{small} --seek-noise-us -1"), "--seek-noise-us"),
        (&format!("{small} --seek-noise-us nan"), "--seek-noise-us"),
        (
            &format!("{small} --electronics-noise-us 1e9"),
            "from 0 to 10000",
        ),
        (&format!("{small} -o missing/folder.toml"), "missing"),
        (
            &format!("{small} --drive dec-rz26 -o two.toml"),
            "one --drive",
        ),
        (
            "profile --drive modern-18tb-dual --resume both.json",
            "its two actuators are profiled as two drives",
        ),
        (&format!("{small} --resume bad.json"), "bad.json"),
        (&format!("{small} --device two.toml"), "--device"),
        ("profile --device nothing-there", "nothing-there"),
        ("profile --device two.toml --check", "--check"),
        ("profile --device two.toml --seed 3", "--seed"),
        (
            "profile --device two.toml --allow-writes three.toml",
            "the device's path again, two.toml",
        ),
        (
            &format!("{small} --allow-writes hp-c2247a"),
            "--allow-writes",
        ),
    ] {
        let (code, said) = refused(&scene, arguments);
        assert_eq!(code, Some(2), "{arguments}: {said}");
        assert!(said.contains(words), "{arguments}: {said}");
    }
    assert!(!scene.path("missing").exists());
    assert_eq!(scene.read("two.toml"), "name = 3");
}

#[test]
fn figures_against_the_truth_have_exactly_their_keys() {
    let scene = Scene::with(&[]);
    let text = scene.prints("profile --drive hp-c2247a --drive dec-rz26 --check --json");
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1]["drive"], "dec-rz26");
    for line in &lines {
        let keys: Vec<&String> = line.as_object().expect("an object").keys().collect();
        let mut expected = [
            "drive",
            "head_time",
            "period_ppm",
            "angle_p95_rev",
            "angle_p99_rev",
            "seek_mean_error_us",
            "zones_exact",
            "tracks_exact",
            "known",
            "known_true",
            "usable",
            "commands",
            "drive_seconds",
            "confidence",
        ];
        let mut keys: Vec<&str> = keys.into_iter().map(String::as_str).collect();
        keys.sort_unstable();
        expected.sort_unstable();
        assert_eq!(keys, expected);
        // Five times the permitted error of a seek table, in the mean of all pairs.
        let head_time = &line["head_time"];
        assert_eq!(head_time["pairs"], 10_000, "{line}");
        let mean = head_time["mean_us"].as_f64().expect("a mean");
        assert!(mean > 0.0 && mean < 250.0, "{line}");
        let period_off = line["period_ppm"].as_f64().expect("a period");
        assert!(period_off.abs() < 5.0, "{line}");
        let seconds = line["drive_seconds"].as_f64().expect("seconds");
        assert!(seconds > 1.0 && seconds <= 600.0, "{line}");
    }
}

#[test]
fn the_same_seed_finds_the_same_and_the_budget_ends_it() {
    let scene = Scene::with(&[]);
    let run = |flags: &str| scene.prints(&format!("profile --drive hp-c2247a {flags}"));
    assert_eq!(run("--seed 5"), run("--seed 5"));
    // So much that revolutions are missed, now and then.
    let noisy = |seed| run(&format!("--seek-noise-us 4000 --seed {seed} --json"));
    assert_ne!(noisy(5), noisy(6));
    // Nothing was found in so short a time: it is said, and is no success.
    let output = scene.run("profile --drive hp-c2247a --budget 5s --json");
    assert_eq!(output.status.code(), Some(1));
    let short: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(short["finished"], false);
    assert_eq!(short["drive_seconds"], 5.0);
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.contains("too small for any profile"), "{said}");
    assert!(run("--budget 60s").contains("the budget is spent"));
    let (code, said) = refused(&scene, "profile --drive hp-c2247a --budget 50MB -o no.toml");
    assert!(said.contains("--budget"), "{said}");
    assert_eq!(code, Some(2));
    let (code, said) = refused(&scene, "profile --drive hp-c2247a --budget 0.1s -o no.toml");
    assert!(said.contains("too small"), "{said}");
    assert_eq!(code, Some(1));
    let (code, said) = refused(
        &scene,
        "profile --drive hp-c2247a --budget 20s --behind random -o no.toml",
    );
    assert_eq!(code, Some(1), "there is no profile: {said}");
    assert!(!scene.path("no.toml").exists());
}

/// A profile that does not predict the head is not written, whatever path the profiler has.
#[test]
fn a_profile_without_seeks_is_not_written() {
    let scene = Scene::with(&[]);
    for flags in ["--budget 20s", "--reads-only --budget 30s"] {
        let arguments = format!("profile --drive quantum-atlas-10k {flags} -o no.toml");
        let (code, said) = refused(&scene, &arguments);
        assert!(said.contains("seek 0.0 %"), "{said}");
        assert_eq!(code, Some(1));
        assert!(!scene.path("no.toml").exists());
    }
}

/// Reads alone, behind a host that delays: the period is found, and not from answers of the buffer.
#[test]
fn reads_alone_find_the_period_behind_a_host_with_jitter() {
    let scene = Scene::with(&[]);
    for (drive, jitter) in [
        ("quantum-atlas-10k", 0),
        ("quantum-atlas-10k", 30),
        ("seagate-cheetah-15k5", 30),
    ] {
        let figures: Value = scene.json(&format!(
            "profile --drive {drive} --reads-only --host-jitter-us {jitter} --budget 60s --check"
        ));
        let off = figures["period_ppm"].as_f64().expect("a period");
        assert!(off.abs() < 5.0, "{drive}, {jitter} us: {figures}");
    }
}

/// A service does not schedule by a profile without confidence in its seeks, unless it is told to.
#[test]
fn a_service_refuses_a_doubtful_belief() {
    let scene = Scene::with(&[]);
    scene.prints("profile --drive hp-c2247a -o found.toml");
    let doubtful: Vec<String> = scene
        .read("found.toml")
        .lines()
        .map(|line| match line.starts_with("seek = 0.") {
            true => "seek = 0.2".to_owned(),
            false => line.to_owned(),
        })
        .collect();
    std::fs::write(scene.path("doubtful.toml"), doubtful.join("\n")).expect("room");
    let config = |belief: &str| {
        format!(
            "[[drive]]\nname = \"one\"\nback_end = {{ kind = \"emulated\", drive = \"hp-c2247a\", image = \"one.img\" }}\n{belief}\n\
             [[drive.volume]]\nname = \"v\"\n[[drive.export]]\nname = \"v\"\nvolume = \"v\"\n\
             [[drive]]\nname = \"two\"\nback_end = {{ kind = \"file\", path = \"missing.img\" }}\n\
             [[drive.volume]]\nname = \"w\"\n[[drive.export]]\nname = \"w\"\nvolume = \"w\"\n"
        )
    };
    // The second drive is missing: what is refused tells whether the first one was accepted.
    for (belief, words) in [
        (
            "belief = \"doubtful.toml\"",
            "drive one: the belief hp-c2247a: too little confidence (seek 20.0 %)",
        ),
        (
            "belief = \"doubtful.toml\"\nbelief_unchecked = true",
            "drive two: ",
        ),
        ("belief = \"found.toml\"", "drive two: "),
    ] {
        std::fs::write(scene.path("service.toml"), config(belief)).expect("room");
        let (code, said) = refused(&scene, "serve service.toml");
        assert!(said.contains(words), "{belief}: {said}");
        assert_eq!(code, Some(2), "{belief}: {said}");
    }
}

#[test]
fn what_is_written_is_read_as_drive_and_as_belief() {
    let scene = Scene::with(&[]);
    scene.prints("profile --drive hp-c2247a -o found.toml");
    let written = scene.read("found.toml");
    assert!(written.contains("provenance = \"profiled\""), "{written}");
    let load = "--workload random --requests 300 --json";
    let json = |flags: &str| -> Value {
        serde_json::from_str(&scene.prints(&format!("simulate {flags} {load}"))).expect("JSON")
    };
    json("--drive found.toml");
    let plain = json("--drive hp-c2247a");
    assert_eq!(plain["mode"], "in-firmware");
    let believed = json("--drive hp-c2247a --belief found.toml");
    assert_eq!(believed["mode"], "external");
    assert_eq!(believed["truth"]["belief"], "found.toml");
    assert_eq!(plain["truth"].get("belief"), None);
    // Who believes the truth, if for a phase that is found by reads, is not much slower.
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../drives/hp-c2247a.toml");
    let text = std::fs::read_to_string(shipped).expect("a shipped profile");
    std::fs::write(scene.path("true.toml"), text).expect("written");
    let rate = |json: &Value| json["results"][0]["requests_per_second"].as_f64();
    let assumed = json("--drive hp-c2247a --belief true.toml");
    assert_eq!(assumed["mode"], "assumed");
    let (all, read) = (rate(&plain), rate(&assumed));
    let tracking = &assumed["results"][0]["tracking"];
    assert_eq!(tracking["mode"], "positioning");
    // Its bus is slower than its medium, and is followed where it was free.
    let count = |key: &str| tracking[key].as_u64().expect("a count");
    assert!(count("as_believed") > 200, "{tracking}");
    assert!(20 * count("elsewhere") < count("as_believed"), "{tracking}");
    let share = read.expect("a rate") / all.expect("a rate");
    assert!((0.98..1.02).contains(&share), "{share}");
    let report = scene
        .prints("simulate --drive hp-c2247a --belief found.toml --workload random --requests 200");
    assert!(
        report.contains("the belief is that of found.toml (external)"),
        "{report}"
    );
    assert!(report.contains("mode positioning (0 changes)"), "{report}");
    let (_, said) = refused(
        &scene,
        "simulate --drive dec-rz26 --belief found.toml --workload random",
    );
    assert!(said.contains("expected the"), "{said}");
    let (_, said) = refused(
        &scene,
        "simulate --drive dec-rz26 --belief none.toml --workload random",
    );
    assert!(said.contains("none.toml"), "{said}");
}

#[test]
fn what_is_known_is_kept_and_gone_on_from() {
    let scene = Scene::with(&[]);
    let run = "profile --drive hp-c2247a --resume known.json --json";
    scene.prints(run);
    let kept: Value = serde_json::from_str(&scene.read("known.json")).expect("JSON");
    assert!(kept["pieces"].is_array());
    // One track, as of a run before.
    let track = r#"{"pieces":[{"first":0,"angle":0,"repeats":3,"step":5,"cycle":[[1,56,57,0,0]]}],
                    "slips":[],"elsewhere":[]}"#;
    std::fs::write(scene.path("known.json"), track).expect("written");
    let figures: Value = serde_json::from_str(&scene.prints(run)).expect("JSON");
    // The drive has no such tracks, so that nothing is kept of them.
    assert!(
        figures["failed"]
            .to_string()
            .contains("not where they were"),
        "{figures}"
    );
    assert!(!scene.read("known.json").contains("[1,56,57,0,0]"));
    let far = track.replace("\"first\":0", "\"first\":2054800");
    std::fs::write(scene.path("known.json"), far).expect("written");
    let (_, said) = refused(&scene, run);
    assert!(said.contains("past the end"), "{said}");
}

#[test]
fn a_file_as_a_device_is_only_read() {
    let scene = Scene::with(&[]);
    let contents: Vec<u8> = (0..4u32 << 20).map(|byte| (byte % 251) as u8).collect();
    std::fs::write(scene.path("small.img"), &contents).expect("written");
    let output = scene.run("profile --device small.img --budget 2s -o small.toml");
    let said = String::from_utf8(output.stderr).expect("text");
    if said.contains("Invalid argument") {
        println!("skipped: this file system has no direct reads");
        return;
    }
    // A file that is no disk has no spindle; one on a disk may have.
    assert!(
        output.status.success() || said.contains("no profile") || said.contains("budget"),
        "{said}"
    );
    assert_eq!(output.status.success(), scene.path("small.toml").exists());
    assert!(std::fs::read(scene.path("small.img")).expect("it is there") == contents);
    let (_, said) = refused(&scene, "profile --device small.toml --budget 2s");
    assert!(said.contains("small.toml"), "{said}");
}

#[test]
fn tracks_are_found_behind_a_load_and_the_cost_is_said() {
    // Five requests a second leave the drive idle for most of the time.
    let quiet = r#"
name = "quiet"
summary = "five a second"
read_fraction = 1.0

[arrivals]
model = "open"
per_second = 5
gaps = "exponential"

[size]
kind = "fixed"
kib = 4

[placement]
kind = "uniform"
align_kib = 4
"#;
    let scene = Scene::with(&[("quiet.toml", quiet)]);
    let behind = |flags: &str| {
        let text = scene.prints(&format!("profile --drive hp-c2247a --json {flags}"));
        let line: Value = serde_json::from_str(&text).expect("JSON");
        line
    };
    let idle = behind("--behind quiet.toml --budget 5m --resume map.json -o quiet-drive.toml");
    assert_eq!(idle["usable"], true, "{idle}");
    assert!(scene.path("quiet-drive.toml").exists());
    let alone = behind("--behind quiet.toml --budget 10m --reads-only");
    assert_eq!(alone["usable"], true, "by reads alone: {alone}");
    let known = |line: &Value| line["known"].as_f64().expect("a share");
    let progress = idle["progress"].as_array().expect("moments");
    assert!(progress.len() > 5, "{idle}");
    let shares: Vec<f64> = progress.iter().map(known).collect();
    assert!(shares.is_sorted(), "{shares:?}");
    assert!(known(&idle) > 0.9, "{idle}");
    let cost = idle["mean_percent"].as_f64().expect("a share");
    // A request may wait for the probe that is under way: here, for three quarters of the time there is one,
    // which takes some 12 ms of a request's 22.
    assert!((0.0..40.0).contains(&cost), "{idle}");
    // A busy drive has no time for probes but what they are granted.
    let busy = behind("--behind random --budget 60s");
    assert_eq!(busy["probes"], 0, "{busy}");
    assert_eq!(busy["mean_percent"], 0.0, "{busy}");
    let granted = behind("--behind random --budget 60s --behind-percent 10");
    assert!(granted["probes"].as_u64() > Some(50), "{granted}");
    let cost = granted["mean_percent"].as_f64().expect("a share");
    assert!((2.0..15.0).contains(&cost), "{granted}");
    // What is kept is gone on from.
    let again = behind("--behind quiet.toml --budget 60s --resume map.json");
    assert!(known(&again) >= known(&idle), "{again}");
    let text = scene.prints("profile --drive hp-c2247a --budget 20s --behind quiet.toml");
    assert!(
        text.contains("impact") && text.contains("the budget is spent"),
        "{text}"
    );
    for (flags, words) in [
        ("--behind nothing-of-it", "nothing-of-it"),
        ("--behind random --behind-percent 90", "from 0 to 50"),
        ("--behind-percent 5", "--behind"),
        ("--behind random --check", "--check"),
        ("--behind random --drive dec-rz26", "one --drive"),
    ] {
        let (code, said) = refused(&scene, &format!("profile --drive hp-c2247a {flags}"));
        assert_eq!(code, Some(2), "{flags}: {said}");
        assert!(said.contains(words), "{flags}: {said}");
    }
    assert!(!scene.path("no.toml").exists());
}

/// Each of the two actuators of a drive is profiled by itself, and the one file of both is a belief: each arm
/// works as if it were alone, and a service takes it.
#[test]
fn two_actuators_are_profiled_into_one_belief() {
    let one = drive::catalog::find("dec-rz26").expect("a drive").text();
    // Each arm has a whole stroke of its own.
    let ranges = [one.to_owned(), one.to_owned()];
    let two = profiler::belief::of_ranges("two", &ranges);
    let scene = Scene::with(&[("one.toml", one), ("two.toml", &two)]);
    let checked = scene.prints("profile --drive two.toml --check --json --budget 5m -o found.toml");
    for line in checked.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["usable"], true, "{line}");
        let off = line["seek_mean_error_us"].as_f64().expect("a seek table");
        assert!(off < 60.0, "{line}");
    }
    assert_eq!(checked.lines().count(), 2, "{checked}");
    let found = scene.read("found.toml");
    assert!(found.contains("actuators = 2") && found.matches("[[range]]").count() == 2);
    let per_second = |flags: &str| {
        let text = scene.prints(&format!(
            "simulate {flags} --workload uniform-4k --requests 4000 --policy sptf --json"
        ));
        let report: Value = serde_json::from_str(&text).expect("JSON");
        let rate = report["results"][0]["requests_per_second"].as_f64();
        rate.unwrap_or_else(|| panic!("no rate in {report}"))
    };
    let alone = per_second("--drive one.toml --tasks 8");
    let both = per_second("--drive two.toml --belief found.toml --tasks 16");
    assert!(both > 1.9 * alone, "{both} of {alone} requests a second");
    for (flags, words) in [
        ("--resume tracks.json", "--resume"),
        ("--behind oltp", "--behind"),
    ] {
        let (code, said) = refused(&scene, &format!("profile --drive two.toml {flags}"));
        assert_eq!(code, Some(2), "{said}");
        assert!(
            said.contains(words) && said.contains("two actuators"),
            "{said}"
        );
    }
}
