//! `headtime paper` as a whole binary: the promised keys, the two modes apart, the same bytes again,
//! drawings, and one line where something is wrong.

use std::collections::BTreeSet;
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

mod coordinated;

fn run(arguments: &str) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin!("headtime"))
        .env_remove("HEADTIME_SHARED")
        // Without the lent traces, which `paper pfc` then only says.
        .env_remove("CI")
        .args(arguments.split_whitespace())
        .output()
        .expect("it ran")
}

/// What it prints on standard output when it succeeds.
fn prints(arguments: &str) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn rows(arguments: &str) -> Vec<Value> {
    rows_of("freeblock", arguments)
}

fn rows_of(paper: &str, arguments: &str) -> Vec<Value> {
    let text = prints(&format!("paper {paper} {arguments} --json"));
    crate::judged::judge("paper", &text);
    serde_json::from_str(&text).expect("an array")
}

/// The one line on standard error, with exit code 2.
fn refuses(arguments: &str) -> String {
    let output = run(arguments);
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
    assert!(output.stdout.is_empty(), "nothing on standard output");
    assert_eq!(said.lines().count(), 1, "one line: {said}");
    said.trim_end().to_owned()
}

/// A number, or an object of numbers.
fn is_figures(value: &Value) -> bool {
    let in_object = |all: &serde_json::Map<String, Value>| all.values().all(Value::is_number);
    value.is_number() || value.as_object().is_some_and(in_object)
}

const NO_SCHEDULER: [&str; 3] = ["vio.example", "vio.chunk-size", "vio.cpu"];
/// All claims but that about CPU time, which has no mode.
const NOT_CPU: &str = "fb.latency-share fb.prediction fb.sptf fb.simulated fb.external fb.conservatism \
                       fb.policy fb.external-vs-firmware fb.external-vs-no-track-simulation \
                       --requests 100";

const KEYS: &str = "holds id mode note ours reading reason setups theirs unit verdict";

#[test]
fn json_has_the_promised_keys() {
    let mut seen = BTreeSet::new();
    for row in rows("--requests 200") {
        let keys = row.as_object().expect("an object").keys();
        let keys = keys.map(String::as_str).collect::<Vec<_>>().join(" ");
        assert_eq!(keys, KEYS);
        let verdict = row["verdict"].as_str().expect("a text");
        assert!(["holds", "differs", "not comparable"].contains(&verdict));
        assert_eq!(row["holds"] == true, verdict == "holds", "{row}");
        assert_eq!(row["reason"].is_null(), verdict == "holds", "{row}");
        assert!(row["reading"].is_string() && row["setups"].is_array());
        let id = row["id"].as_str().expect("a text");
        let mode = row["mode"].as_str();
        assert!(
            [None, Some("in-firmware"), Some("external")].contains(&mode),
            "{row}"
        );
        assert!(
            is_figures(&row["theirs"]) && is_figures(&row["ours"]),
            "{row}"
        );
        assert!(
            row["unit"].is_string() && row["holds"].is_boolean(),
            "{row}"
        );
        let note = row["note"].as_str().expect("a text");
        assert!(note.starts_with("200 requests in each run; "), "{note}");
        let both = (id.to_owned(), mode.map(str::to_owned));
        assert!(seen.insert(both), "{id} is there twice in one mode");
    }
    assert!(!seen.is_empty());
}

#[test]
fn external_figures_say_under_which_noise_and_in_firmware_ones_that_there_is_none() {
    let rows = rows(NOT_CPU);
    let mut modes = BTreeSet::new();
    for row in &rows {
        let note = row["note"].as_str().expect("a text");
        let (belief, other) = match row["mode"].as_str() {
            Some("external") => ("seek noise sigma", "belief = truth"),
            _ => ("belief = truth", "sigma"),
        };
        assert!(note.contains(belief) && !note.contains(other), "{note}");
        for said in ["at the drive", "head switch", "bus 80 MB/s"] {
            assert!(note.contains(said), "{said}: {note}");
        }
        modes.insert(row["mode"].as_str());
    }
    assert_eq!(modes.len(), 2);
}

#[test]
fn quick_scans_say_that_they_are_only_a_start() {
    for row in rows("fb.simulated fb.external-vs-firmware --requests 100") {
        let note = row["note"].as_str().expect("a text");
        assert!(note.contains("START ONLY"), "{note}");
    }
}

#[test]
fn the_shares_of_latency_are_the_papers_already_with_few_requests() {
    let rows = rows("fb.latency-share --quick");
    let holds = |id: &str| {
        let row = rows.iter().find(|row| row["id"] == id).expect("measured");
        row["holds"] == true
    };
    for id in ["random-small", "256k", "local", "seek-reducing"] {
        assert!(holds(&format!("fb.latency-share.{id}")), "{id}: {rows:?}");
    }
}

#[test]
fn the_same_claims_give_the_same_bytes() {
    let arguments = "paper freeblock fb.latency-share fb.prediction --requests 200";
    let text = prints(arguments);
    assert_eq!(text, prints(arguments));
    assert!(text.contains("theirs") && text.contains("200 requests in each run"));
}

#[test]
fn the_papers_figures_are_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().join("drawn/here");
    let arguments = format!(
        "paper freeblock fb.prediction fb.sptf fb.policy --requests 100 --svg-dir {}",
        to.display()
    );
    prints(&arguments);
    for name in "figure-7 figure-8 figure-9 figure-10 scan-progress".split(' ') {
        let svg = std::fs::read_to_string(to.join(format!("{name}.svg"))).expect(name);
        assert!(
            svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"),
            "{name}"
        );
    }
}

#[test]
fn virtual_io_stands_beside_its_paper_by_what_was_profiled() {
    let rows = rows_of("virtual-io", "--requests 1500");
    let row = |id: &str| rows.iter().find(|row| row["id"] == id).expect(id);
    for row in &rows {
        let id = row["id"].as_str().expect("a text");
        let is_about_a_scheduler = !NO_SCHEDULER.iter().any(|of| id.starts_with(of));
        let note = row["note"].as_str().expect("a text");
        assert_eq!(row["mode"] == "external", is_about_a_scheduler, "{row}");
        assert_eq!(
            note.contains("belief profiled, seek noise sigma"),
            is_about_a_scheduler,
            "{note}"
        );
        assert_eq!(note.contains("SHORT RUNS"), is_about_a_scheduler, "{note}");
        assert!(
            is_figures(&row["theirs"]) && is_figures(&row["ours"]),
            "{row}"
        );
        assert!(!note.contains("ENDED WITH AN ERROR"), "{note}");
    }
    // What hangs on no luck, already with few requests.
    for id in [
        "vio.example",
        "vio.chunk-size",
        "vio.throughput",
        "vio.components",
    ] {
        assert_eq!(row(id)["holds"], true, "{}", row(id));
    }
    assert_eq!(row("vio.cpu.chunk-size")["verdict"], "not comparable");
    let cells = row("vio.expected-wait.table2");
    assert_eq!(
        cells["ours"].as_object().map(serde_json::Map::len),
        Some(20)
    );
    let large = |way: &str| {
        cells["ours"][format!("{way}_read_2000kb")]
            .as_f64()
            .expect("a time")
    };
    assert!(large("vio") * 10.0 < large("npio"), "{cells}");
    for table in [1, 3] {
        for size in [50, 500, 2000] {
            let cells = row(&format!("vio.table{table}.{size}kb"));
            let count = if table == 1 { 30 } else { 24 };
            assert_eq!(
                cells["ours"].as_object().map(serde_json::Map::len),
                Some(count)
            );
        }
    }
}

#[test]
fn the_figures_of_virtual_io_are_drawn_and_the_same_again() {
    let folder = tempfile::tempdir().expect("a folder");
    // All but the CPU time, which is another one each time.
    let claims = "vio.example vio.chunk-size vio.expected-wait vio.response vio.table1 vio.table3";
    let to = folder.path().display();
    let arguments =
        |sub: &str| format!("paper virtual-io {claims} --requests 300 --svg-dir {to}/{sub}");
    let text = prints(&arguments("once"));
    assert_eq!(text, prints(&arguments("again")));
    assert!(
        text.contains("  off\n"),
        "cells that are off are marked: {text}"
    );
    let names = "figures-3-5-and-6 figures-5-and-6-ide figure-9 figure-10 \
                 figure-11 figure-12 figure-13 figure-14 figure-15";
    for name in names.split(' ') {
        let read =
            |to: &str| std::fs::read_to_string(folder.path().join(to).join(format!("{name}.svg")));
        let svg = read("once").expect(name);
        assert!(
            svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"),
            "{name}"
        );
        assert_eq!(svg, read("again").expect(name), "{name}");
        let png = std::fs::read(folder.path().join(format!("once/{name}.png"))).expect(name);
        assert!(png.starts_with(b"\x89PNG\r\n"), "{name}");
    }
}

#[test]
fn beyond_virtual_io_stands_on_both_drives_beside_the_drive_s_own_queue() {
    let rows = rows_of("virtual-io-beyond", "--requests 2000");
    assert_eq!(rows.len(), 7);
    for row in &rows {
        assert_eq!(row["mode"], "external", "{row}");
        let note = row["note"].as_str().expect("a text");
        let is_modern = row["id"].as_str().is_some_and(|id| id.contains("20tb"));
        assert_eq!(note.contains("modern-20tb"), is_modern, "{note}");
    }
    let beside = rows.last().expect("seven")["note"]
        .as_str()
        .expect("a text");
    for said in [
        "told nothing",
        "with priority:",
        "a duration limit of",
        "Poisson",
    ] {
        assert!(beside.contains(said), "{said}: {beside}");
    }
}

/// A figure of ours.
fn ours(row: &Value, name: &str) -> f64 {
    let figure = row["ours"][name].as_f64();
    figure.unwrap_or_else(|| panic!("{name}: {row}"))
}

#[test]
fn abiss_stands_beside_its_paper_with_the_host_model_of_its_machine() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = format!("--requests 300 --svg-dir {}", folder.path().display());
    let rows = rows_of("abiss", &arguments);
    assert_eq!(rows.len(), 7);
    for row in &rows {
        assert_eq!(row["mode"], "in-firmware", "{row}");
        let note = row["note"].as_str().expect("a text");
        for said in [
            "SHORT RUNS",
            "an approximate profile",
            "a link of 25 MB/s",
            "limited to 11.2 MB/s in all",
            "windows of 128 kB",
        ] {
            assert!(note.contains(said), "{said}: {note}");
        }
    }
    let row = |id: &str| rows.iter().find(|row| row["id"] == id).expect(id);
    // Who has a buffer never waits for the disk; who has none does, under every elevator.
    for id in [
        "abiss.service",
        "abiss.delay.realtime",
        "abiss.delay.outlier",
    ] {
        assert_eq!(row(id)["holds"], true, "{}", row(id));
    }
    let service = row("abiss.service");
    assert!(ours(service, "their_way_reads") > 5_000.0, "{service}");
    assert!(ours(service, "ours_reads") > 5_000.0, "{service}");
    for (id, figures) in [("abiss.background", 20), ("abiss.background.fitted", 10)] {
        let cells = row(id);
        let count = cells["ours"].as_object().map(serde_json::Map::len);
        assert_eq!(count, Some(figures));
        let left = |pages| ours(cells, &format!("abiss_rt_{pages}_pages_4_streams"));
        for pair in [10, 20, 40, 80, 160].windows(2) {
            assert!(left(pair[0]) < left(pair[1]), "{cells}");
        }
    }
    for name in ["figure-18", "table-1"] {
        let svg = std::fs::read_to_string(folder.path().join(format!("{name}.svg")));
        let svg = svg.expect(name);
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("our guarantees"), "{name}");
    }
}

#[test]
fn beyond_abiss_nothing_is_late_and_the_reader_is_left_what_was_set_as_a_goal() {
    let rows = rows_of("abiss-beyond", "--requests 300");
    assert_eq!(rows.len(), 7);
    let row = |id: &str| {
        let id = format!("abiss-beyond.{id}");
        rows.iter()
            .find(|row| row["id"] == id.as_str())
            .expect("measured")
    };
    for id in ["host-limit", "adjacent", "greedy.travelstar", "greedy.20tb"] {
        assert_eq!(row(id)["holds"], true, "{}", row(id));
    }
    for id in [
        "host-limit",
        "adjacent",
        "spread",
        "spread.large",
        "greedy.travelstar",
        "greedy.20tb",
    ] {
        assert!(ours(row(id), "late") == 0.0, "{}", row(id));
    }
    assert!(ours(row("spread"), "background_mb_s") > 4.0);
    for id in ["greedy.travelstar", "greedy.20tb"] {
        let note = row(id)["note"].as_str().expect("a text");
        for tasks in [1, 4, 16, 64] {
            assert!(
                note.contains(&format!("; {tasks} task(s): "))
                    || note.contains(&format!(": {tasks} task(s): ")),
                "{note}"
            );
        }
        assert_eq!(note.matches("without streams").count(), 4, "{note}");
    }
    let text = prints("paper abiss-beyond abiss-beyond.adjacent --requests 100");
    assert_eq!(
        text,
        prints("paper abiss-beyond abiss-beyond.adjacent --requests 100")
    );
}

#[test]
fn what_is_wrong_is_said_in_one_line_with_what_was_expected() {
    for (arguments, said) in [
        (
            "paper freeblok",
            "no paper is called \"freeblok\": expected one of freeblock, freeblock-beyond, pfc, pfc-beyond, virtual-io, virtual-io-beyond, abiss, abiss-beyond; did you mean \"freeblock\"?",
        ),
        (
            "paper freeblock fb.sptff",
            "no measured claim is called \"fb.sptff\": expected one of fb.latency-share",
        ),
        ("paper freeblock --requests 5", "5 is not in 100.."),
        (
            "paper freeblock --quick --requests 500",
            "cannot be used with",
        ),
        (
            "paper pfc --requests 100 --readings queue=101",
            "pfc: queue = \"101\": expected a whole number, 1 to 100",
        ),
        (
            "paper pfc --requests 100 --readings a1=no",
            "pfc: a1 = \"no\": expected one of on-use, rm, n",
        ),
        (
            "paper pfc --requests 100 --readings a1",
            "expected NAME or NAME(KEY=VALUE,KEY=VALUE)",
        ),
        (
            "paper freeblock fb.sptf --readings a1=rm",
            "--readings: freeblock has no ambiguities; expected paper pfc",
        ),
        (
            "paper freeblock fb.sptf --seed 3",
            "--seed: freeblock has seeds of its own; expected paper pfc or pfc-beyond",
        ),
        (
            "paper freeblock fb.sptf --requests 100 --svg-dir /dev/null/x",
            "/dev/null/x",
        ),
    ] {
        let error = refuses(arguments);
        assert!(error.contains(said), "{error}");
    }
}
