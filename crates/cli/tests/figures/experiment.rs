//! `headtime experiment` as a whole binary: the same figures whatever the number of threads, the
//! same as `headtime simulate`, and what is wrong is said in one line with its place.

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// A directory with one experiment in it, and the binary run in it.
struct Scene {
    directory: TempDir,
}

impl Scene {
    fn with(text: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("try.toml"), text).expect("written");
        Scene { directory }
    }

    fn run(&self, arguments: &str) -> Output {
        Command::new(assert_cmd::cargo::cargo_bin!("headtime"))
            .current_dir(self.directory.path())
            .args(arguments.split_whitespace())
            .output()
            .expect("it ran")
    }

    fn prints(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn json(&self, arguments: &str) -> Value {
        serde_json::from_str(&self.prints(&format!("{arguments} --json"))).expect("JSON")
    }

    fn refuses(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(output.stdout.is_empty(), "nothing on standard output");
        assert_eq!(said.lines().count(), 1, "one line: {said}");
        let said = said.trim_end().strip_prefix("error: ").expect("an error");
        said.into()
    }
}

const GOOD: &str = "\
# A small one.
name = \"small\"
summary = \"throughput over depth\"
drive = \"quantum-atlas-10k\"
workload = \"oltp\"
requests = 300
repeat = 2
[load]
think_ms = 0
[truth]
write_cache = \"off\"
bus_mb_s = 80
[sweep]
policy = [\"fcfs\", \"sptf\"]
tasks = [1, 8]
[figure]
x = \"tasks\"
y = [\"requests_per_second\", \"p99_ms\"]
";

#[test]
fn one_thread_and_two_and_a_second_time_give_the_same_bytes() {
    let scene = Scene::with(GOOD);
    for form in ["", "--json", "--svg plot.svg"] {
        let one = scene.prints(&format!("experiment try.toml --threads 1 {form}"));
        let two = scene.prints(&format!("experiment try.toml --threads 2 {form}"));
        assert_eq!(one, two, "{form}");
    }
    let plot = std::fs::read_to_string(scene.directory.path().join("plot.svg"));
    let plot = plot.expect("a plot");
    assert!(plot.contains("sptf") && plot.trim_end().ends_with("</svg>"));
}

#[test]
fn the_table_has_a_row_for_each_value_and_a_column_for_each_policy() {
    let text = Scene::with(GOOD).prints("experiment try.toml");
    for part in [
        "small: throughput over depth",
        "truth.bus_mb_s        80",
        "belief = truth (in-firmware)",
        "  requests/s\n  tasks",
        "99 % answered within, ms",
        "±",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("  1 ") || line.starts_with("  8 "))
        .collect();
    assert_eq!(rows.len(), 4, "{text}");
}

#[test]
fn a_point_is_what_simulate_says_with_the_same_flags() {
    let scene = Scene::with(&GOOD.replace("repeat = 2", "repeat = 1\nseed = 5"));
    let points = scene.json("experiment try.toml");
    let point = &points["points"][3];
    assert_eq!(point["settings"]["policy"], "sptf");
    assert_eq!(point["settings"]["tasks"], 8);
    assert_eq!(point["seeds"], serde_json::json!([5]));
    let flags = "--drive quantum-atlas-10k --workload oltp --think-ms 0 --requests 300 --tasks 8 \
                 --write-cache off --bus-mb-s 80 --seed 5 --policy sptf";
    let alone = scene.json(&format!("simulate {flags}"));
    let alone = &alone["results"][0];
    let of = |name: &str| point["measures"][name]["mean"].as_f64();
    assert_eq!(
        of("requests_per_second"),
        alone["requests_per_second"].as_f64()
    );
    assert_eq!(of("p99_ms"), alone["all"]["response"]["p99_ms"].as_f64());
}

#[test]
fn seeds_follow_each_other_and_their_mean_is_between_them() {
    let both = Scene::with(GOOD).json("experiment try.toml");
    let single = |seed: u32| {
        let text = GOOD.replace("repeat = 2", &format!("seed = {seed}"));
        Scene::with(&text).json("experiment try.toml")
    };
    let (first, second) = (single(1), single(2));
    for place in 0..4 {
        assert_eq!(both["points"][place]["seeds"], serde_json::json!([1, 2]));
        let of = |json: &Value| {
            let figure = &json["points"][place]["measures"]["mean_ms"]["mean"];
            figure.as_f64().expect("a figure")
        };
        assert!((of(&both) - (of(&first) + of(&second)) / 2.0).abs() < 1e-9);
        assert_ne!(of(&first), of(&second));
    }
}

#[test]
fn in_firmware_and_external_results_have_columns_of_their_own() {
    let text = GOOD
        .replace("tasks = [1, 8]", "seek_noise_us = [0, 60]")
        .replace("x = \"tasks\"", "x = \"seek_noise_us\"");
    let scene = Scene::with(&text);
    let table = scene.prints("experiment try.toml");
    for part in ["sptf, in-firmware", "sptf, noisy", "–"] {
        assert!(table.contains(part), "{part} is not in\n{table}");
    }
    let json = scene.json("experiment try.toml");
    let modes: Vec<_> = (0..4)
        .map(|at| json["points"][at]["mode"].clone())
        .collect();
    assert_eq!(modes, ["in-firmware", "noisy", "in-firmware", "noisy"]);
}

#[test]
fn a_trace_is_replayed_again_and_again() {
    let text = GOOD
        .replace("workload = \"oltp\"", "trace = \"t.csv\"")
        .replace("repeat = 2\n[load]\nthink_ms = 0\n", "")
        .replace("tasks = [1, 8]", "closed = [1, 4]")
        .replace("x = \"tasks\"", "x = \"closed\"");
    let scene = Scene::with(&text);
    let lines: String = (0..200)
        .map(|n| format!("{n},0,R,{},4096\n", n * 7_919 % 1000 * 1_048_576))
        .collect();
    std::fs::write(scene.directory.path().join("t.csv"), lines).expect("written");
    let json = scene.json("experiment try.toml");
    let rate = |at: usize| {
        let rate = &json["points"][at]["measures"]["requests_per_second"]["mean"];
        rate.as_f64().expect("a rate")
    };
    assert!(rate(3) > rate(2), "four pending are more than one: {json}");
    let again = text.replace("requests = 300", "requests = 300\nrepeat = 2");
    std::fs::write(scene.directory.path().join("try.toml"), again).expect("written");
    assert_eq!(
        scene.refuses("experiment try.toml"),
        "try.toml:7: repeat: with --trace: nothing happens by chance: expected --seek-noise-us or \
         --late-seeks"
    );
}

/// Bars stand over words, and a name that ends with .png gives a PNG.
#[test]
fn words_along_the_axis_are_drawn_and_a_drawing_may_be_a_png() {
    let words = GOOD.replace("x = \"tasks\"", "x = \"policy\"");
    let scene = Scene::with(&words);
    scene.prints("experiment try.toml --svg plot.svg");
    let plot = scene.directory.path().join("plot.svg");
    let plot = std::fs::read_to_string(plot).expect("a plot");
    assert!(
        plot.contains("\nsptf\n") && plot.contains("\nfcfs\n"),
        "{plot}"
    );
    scene.prints("experiment try.toml --svg plot.png");
    let png = std::fs::read(scene.directory.path().join("plot.png")).expect("a PNG");
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n", "PNG (ISO/IEC 15948), 5.2");
    let width = u32::from_be_bytes(png[16..20].try_into().expect("four bytes"));
    assert_eq!(width, 2 * 860, "twice the SVG's");
}

#[test]
fn what_is_wrong_is_said_with_file_line_key_and_expectation() {
    for (old, new, said) in REFUSED {
        let text = GOOD.replacen(old, new, 1);
        assert_ne!(text, GOOD, "{old} is not in the file");
        let refused = Scene::with(&text).refuses("experiment try.toml");
        assert!(refused.starts_with(said), "{refused}\nnot\n{said}");
    }
    let scene = Scene::with(GOOD);
    assert!(
        scene
            .refuses("experiment nowhere.toml")
            .starts_with("nowhere.toml: ")
    );
    let said = scene.refuses("experiment try.toml --svg try.toml");
    assert!(
        said.starts_with("--svg try.toml: the experiment itself"),
        "{said}"
    );
    for threads in ["0", "many", "1025"] {
        let output = scene.run(&format!("experiment try.toml --threads {threads}"));
        assert_eq!(output.status.code(), Some(2), "{threads}");
    }
}

#[test]
fn the_experiments_that_we_ship_say_what_they_show_and_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("experiments")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let text = std::fs::read_to_string(&file).expect("text");
        assert!(
            text.starts_with("# "),
            "{file:?} does not say what it shows"
        );
        let short: String = text
            .lines()
            .map(|line| match line.split_once(" = ") {
                Some(("requests", _)) => "requests = 30\n".to_owned(),
                Some(("repeat", _)) => "repeat = 1\n".to_owned(),
                // What only a scan ends.
                Some(("workload", load)) if !text.contains("\nrequests = ") => {
                    format!("workload = {load}\nrequests = 30\n")
                }
                _ => format!("{line}\n"),
            })
            .collect();
        let name = file.file_stem().and_then(|stem| stem.to_str());
        let json = Scene::with(&short).json("experiment try.toml");
        assert_eq!(
            json["experiment"].as_str(),
            name,
            "bears the name of its file"
        );
    }
}

const SCANNING: &str = "[scan]\nblocks = \"0..20000\"\nguard = \"learned\"\nsame_track = \"allowed\"\n\
                        stops = 2\n[sweep]";

#[test]
fn a_scan_is_set_and_swept_and_measured_as_simulate_does_it() {
    let text = GOOD
        .replace("[sweep]", &SCANNING.replace("guard = \"learned\"\n", ""))
        .replace("repeat = 2", "repeat = 1")
        .replace(
            "policy = [\"fcfs\", \"sptf\"]",
            "guard = [0.25, \"learned\"]",
        )
        .replace("drive =", "policy = \"sptf-sw60\"\ndrive =")
        .replace("\"p99_ms\"]", "\"free_mb_s\", \"scan_days\"]");
    let scene = Scene::with(&text);
    let json = scene.json("experiment try.toml");
    let flags = "--drive quantum-atlas-10k --workload oltp --think-ms 0 --requests 300 --tasks 8 \
                 --write-cache off --bus-mb-s 80 --policy sptf-sw60 --scan 0..20000 --same-track \
                 --stops 2";
    for (point, guard) in [(2, "0.25"), (3, "learned")] {
        let alone = scene.json(&format!("simulate {flags} --guard {guard}"));
        let measures = &json["points"][point]["measures"];
        for name in [
            "free_mb_s",
            "foreground_loss_percent",
            "foreground_p99_loss_percent",
        ] {
            assert_eq!(measures[name]["mean"], alone[name], "{guard}: {name}");
        }
        assert!(alone["free_mb_s"].as_f64() > Some(0.0), "{alone}");
        assert!(
            measures["scan_days"].is_null(),
            "300 requests are too few: {measures}"
        );
    }
    let table = scene.prints("experiment try.toml");
    for part in ["guard 0.25", "learned", "scan by free blocks, MB/s"] {
        assert!(table.contains(part), "{part} is not in\n{table}");
    }
}

#[test]
fn differences_that_vary_are_not_told_as_if_they_were_one() {
    let text = GOOD.replace("tasks = [1, 8]", "seek_noise_us = [20, 60]");
    let text = text.replace("x = \"tasks\"", "x = \"seek_noise_us\"");
    let table = Scene::with(&text).prints("experiment try.toml");
    let said = "mode                  noisy, by differences that vary";
    assert!(table.contains(said), "{table}");
}

#[test]
fn turns_of_reads_and_writes_are_set_and_swept() {
    let text = GOOD
        .replace("[truth]", "tasks = 16\n[truth]")
        .replace("tasks = [1, 8]", "phases = [\"mixed\", \"alternate\"]")
        .replace("x = \"tasks\"", "x = \"phases\"")
        .replace("requests = 300", "requests = 2000");
    let json = Scene::with(&text).json("experiment try.toml");
    let of = |at: usize, name: &str| {
        let measure = &json["points"][at]["measures"][name]["mean"];
        measure.as_f64().expect("a figure")
    };
    // Under SPTF: reads are quick because writes wait.
    let (mixed, alternate) = (2, 3);
    assert_eq!(json["points"][alternate]["settings"]["phases"], "alternate");
    assert!(
        of(alternate, "read_mean_ms") < 0.7 * of(mixed, "read_mean_ms"),
        "{json}"
    );
    assert!(
        of(alternate, "write_mean_ms") > 1.5 * of(mixed, "write_mean_ms"),
        "{json}"
    );
}

/// What is changed into what, and how the complaint begins.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "quantum-atlas-10k",
        "quantum-atlas-11k",
        "try.toml:4: drive: no drive is called \"quantum-atlas-11k\"",
    ),
    (
        "\"sptf\"]",
        "\"sptff\"]",
        "try.toml:14: sweep.policy: no policy is called \"sptff\": expected one of ",
    ),
    (
        "\"oltp\"",
        "\"olpt\"",
        "try.toml:5: workload: no built-in load is called \"olpt\"",
    ),
    (
        "think_ms = 0",
        "think_ms = -1",
        "try.toml:9: load.think_ms: -1: expected a number from 0 to 86400000",
    ),
    (
        "think_ms = 0",
        "rate = 5",
        "try.toml:9: load.rate: a load is open (--rate) or closed (--tasks, --think-ms), not both",
    ),
    (
        "think_ms = 0",
        "fit = \"wrap\"",
        "try.toml:9: load.fit: means nothing to a synthetic load: expected none",
    ),
    (
        "write_cache = \"off\"",
        "write_cache = \"of\"",
        "try.toml:11: truth.write_cache: \"of\": expected \"on\" or \"off\"",
    ),
    (
        "write_cache = \"off\"",
        "late_seeks = \"10\"",
        "try.toml:11: truth.late_seeks: \"10\": expected PERMILLE:MS, such as 10:1.5",
    ),
    (
        "bus_mb_s = 80",
        "bus_mb_s = 0",
        "try.toml:12: truth.bus_mb_s: 0: expected a number from 0.1 to 1000000",
    ),
    (
        "requests = 300",
        "requests = 300\ndepth = 1000",
        "try.toml:7: depth: 1000: expected at most 64, which quantum-atlas-10k holds",
    ),
    (
        "\"p99_ms\"]",
        "\"p98_ms\"]",
        "try.toml:18: figure.y: no measure is called \"p98_ms\": expected one of ",
    ),
    (
        "requests = 300",
        "seconds = -3",
        "try.toml:6: seconds: -3: expected more than 0",
    ),
    (
        "think_ms = 0",
        "phases = \"turns\"",
        "try.toml:9: load.phases: \"turns\": expected \"mixed\" or \"alternate\"",
    ),
    (
        "[sweep]",
        "[scan]\npaid_percent = 5\n[sweep]",
        "try.toml:14: scan.paid_percent: nothing is scanned: expected scan.blocks, too",
    ),
    (
        "[sweep]",
        "[scan]\nblocks = \"all\"\npaid_percent = 101\n[sweep]",
        "try.toml:15: scan.paid_percent: 101: expected a share of head time, 0 to 100",
    ),
    (
        "[sweep]",
        "[scan]\nblocks = \"5..1\"\n[sweep]",
        "try.toml:14: scan.blocks: 5..1: expected FIRST..END, two block numbers, the second larger",
    ),
    (
        "[sweep]",
        "[scan]\nblocks = \"0..99999999\"\n[sweep]",
        "try.toml:14: scan.blocks: 0..99999999: blocks 0..99999999 of a drive of 17938986",
    ),
    (
        "[sweep]",
        "[scan]\nblocks = \"all\"\nguard = -0.1\n[sweep]",
        "try.toml:15: scan.guard: -0.1: expected milliseconds, or learned, 0 to 60",
    ),
    (
        "[sweep]",
        "[scan]\nblocks = \"all\"\nsame_track = \"yes\"\n[sweep]",
        "try.toml:15: scan.same_track: \"yes\": expected \"auto\", \"never\" or \"allowed\"",
    ),
    (
        "[sweep]\n",
        "[scan]\nblocks = \"all\"\n[sweep]\ndepth = [2, 1]\n",
        "try.toml:16: sweep.depth: 1: a scan's reads are given while another command is in service",
    ),
    (
        "[sweep]",
        "[swoop]",
        "try.toml:13: swoop: unknown key: did you mean `sweep`?",
    ),
];

/// A scan of a whole small drive until 2 %, with the policy fixed.
const PART_OF_A_SCAN: &str = "name = \"part\"\nsummary = \"a part of a scan\"\ndrive = \"dec-rz26\"\n\
                              workload = \"oltp\"\npolicy = \"sptf-sw60\"\n[load]\nthink_ms = 0\n[truth]\n\
                              write_cache = \"off\"\n[scan]\nblocks = \"all\"\nuntil_percent = 2\n[sweep]\n\
                              tasks = [4, 8]\n[figure]\nx = \"tasks\"\ny = [\"scan_days\", \"whole_scan_days\"]\n";

#[test]
fn days_of_a_scan_say_of_what_and_a_column_names_the_policy() {
    let scene = Scene::with(PART_OF_A_SCAN);
    let table = scene.prints("experiment try.toml");
    for title in [
        "days until until_percent of the scan\n  tasks   sptf-sw60\n",
        "days of a whole scan, estimated if less was read\n  tasks   sptf-sw60\n",
    ] {
        assert!(table.contains(title), "{title} is not in\n{table}");
    }
    for point in scene.json("experiment try.toml")["points"]
        .as_array()
        .expect("points")
    {
        let days = |name: &str| point["measures"][name]["mean"].as_f64().expect("days");
        assert!(
            days("whole_scan_days") > 50.0 * days("scan_days"),
            "{point}"
        );
    }
    // With the policy along the axis, the number is of the load.
    let by_policy = PART_OF_A_SCAN
        .replace("policy = \"sptf-sw60\"\n", "")
        .replace("tasks = [4, 8]", "policy = [\"sptf\", \"sptf-sw60\"]")
        .replace("x = \"tasks\"", "x = \"policy\"");
    let table = Scene::with(&by_policy).prints("experiment try.toml");
    assert!(table.contains("\n  policy      oltp\n"), "{table}");
}

#[test]
fn the_scrub_of_a_large_drive_asks_for_the_days_of_the_whole() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/modern-scrub.toml");
    let text = std::fs::read_to_string(path).expect("the experiment");
    assert!(text.contains("until_percent = 1") && text.contains("\"whole_scan_days\""));
    assert!(!text.contains("\"scan_days\""), "it is only of one percent");
}
