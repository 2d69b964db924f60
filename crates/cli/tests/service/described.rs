//! One file describes a system: it is simulated, swept and served.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;

use crate::begun::{SERVES, begin};

/// An emulated drive with two volumes, and clients of both.
pub const SYSTEM: &str = r#"
[[drive]]
name = "disk"
back_end = { kind = "emulated", drive = "dec-rz26", image = "disk.img", time_scale = 0.01 }
volume = [{ name = "db", size = "256 MiB" }, { name = "films", offset = "512 MiB", size = "256 MiB" }]
export = [{ name = "db", volume = "db" }, { name = "films", volume = "films", class = "best-effort-2" }]
[drive.streams]
foreground_percent = 20
latency_ms = 5
[[nbd]]
unix = "nbd.sock"
[control]
socket = "control.sock"

[[load]]
export = "db"
workload = "oltp"
tasks = 2
[[stream]]
export = "films"
name = "film"
mode = "play"
count = 2
rate = "100 kB"
[[task]]
volume = "db"
"#;

const EXPERIMENT: &str = "name = \"e\"\nsummary = \"s\"\nsystem = \"system.toml\"\nseconds = 20\nrepeat = 2\n\
                          [sweep]\npolicy = [\"fcfs\", \"sptf\"]\n[figure]\nx = \"policy\"\ny = [\"mean_ms\"]\n";

fn headtime(folder: &Path, words: &str) -> Output {
    Command::new(cargo_bin("headtime"))
        .current_dir(folder)
        .args(words.split(' '))
        .output()
        .expect("it runs")
}

fn json(folder: &Path, words: &str) -> (Value, String) {
    let output = headtime(folder, words);
    let problems = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{words}: {problems}");
    let value = serde_json::from_slice(&output.stdout).expect("JSON");
    (value, problems)
}

/// A reader of runs who thinks between requests, beside a background reader that never pauses.
#[test]
fn the_background_waits_for_a_grace_period_in_a_simulation_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (name, more) in [("reader", "think_ms = 3"), ("audit", "")] {
        let load = format!(
            "name = \"{name}\"\nread_fraction = 1.0\n[arrivals]\nmodel = \"closed\"\ntasks = 1\n{more}\n\
             [size]\nkind = \"fixed\"\nkib = 64\n[placement]\nkind = \"sequential\"\nmean_run = 6\nalign_kib = 4\n"
        );
        fs::write(folder.join(format!("{name}.toml")), load).expect("a load");
    }
    let mean_ms = |keys: &str| {
        let system = format!(
            "[[drive]]\nname = \"disk\"\n{keys}\n\
             back_end = {{ kind = \"emulated\", drive = \"quantum-atlas-10k\", image = \"disk.img\", bus_mb_s = 80 }}\n\
             volume = [{{ name = \"db\", size = \"4 GiB\" }}, {{ name = \"cold\", offset = \"4 GiB\", size = \"4 GiB\" }}]\n\
             export = [{{ name = \"db\", volume = \"db\" }}, {{ name = \"cold\", volume = \"cold\", class = \"background\" }}]\n\
             [[nbd]]\nunix = \"nbd.sock\"\n[control]\nsocket = \"control.sock\"\n\
             [[load]]\nexport = \"db\"\nworkload = \"reader.toml\"\n[[load]]\nexport = \"cold\"\nworkload = \"audit.toml\"\n"
        );
        fs::write(folder.join("system.toml"), system).expect("a system");
        let (simulated, _) = json(folder, "simulate system.toml --seconds 20 --json");
        let reader = &simulated["results"][0]["parts"][0];
        assert_eq!(reader["name"], "db", "{simulated:#}");
        reader["response"]["mean_ms"].as_f64().expect("a mean")
    };
    let [usual, off] = ["", "background_grace_ms = 0"].map(mean_ms);
    assert!(1.5 * usual < off, "{usual} ms, and {off} ms without it");
    // Without a belief nobody knows whether a head moves.
    let plain = "belief = \"nothing\"\npolicy = \"c-look\"\n";
    let [usual, off] =
        [plain.to_owned(), format!("{plain}background_grace_ms = 0")].map(|keys| mean_ms(&keys));
    assert_eq!(usual, off);
}

/// A service without a belief has no free blocks and no guarantees: neither has its simulation.
#[test]
fn tasks_and_streams_without_a_belief_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let plain = SYSTEM.replacen(
        "name = \"disk\"\n",
        "name = \"disk\"\nbelief = \"nothing\"\n",
        1,
    );
    let promise = "[drive.streams]\nforeground_percent = 20\nlatency_ms = 5\n";
    let (loads, rest) = plain.split_once("[[stream]]").expect("streams");
    let (streams, task) = rest.split_once("[[task]]").expect("a task");
    let loads = loads.replace(promise, "");
    for (text, refused) in [
        (
            plain.clone(),
            "drive[0].streams: nothing is believed of the drive",
        ),
        (
            format!("{loads}[[stream]]{streams}"),
            "[[stream]] on drive disk, which promises nothing",
        ),
        (
            format!("{loads}[[task]]{task}"),
            "[[task]] on drive disk with belief = \"nothing\"",
        ),
    ] {
        fs::write(folder.join("system.toml"), text).expect("a system");
        let output = headtime(folder, "simulate system.toml --seconds 1");
        let problem = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{problem}");
        assert!(problem.contains(refused), "{problem}");
    }
    fs::write(folder.join("system.toml"), loads).expect("a system");
    json(folder, "simulate system.toml --seconds 1 --json");
}

#[test]
fn what_is_simulated_is_swept_and_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("system.toml"), SYSTEM).expect("a system");
    fs::write(folder.join("e.toml"), EXPERIMENT).expect("an experiment");

    let (simulated, warned) = json(folder, "simulate system.toml --seconds 20 --json");
    assert!(
        warned.contains("not simulated: [[nbd]], [control]"),
        "{warned}"
    );
    assert_eq!(simulated["load"]["source"], "system");
    assert_eq!(simulated["load"]["clients"][0]["name"], "db");
    let run = &simulated["results"][0];
    assert_eq!(run["policy"], "sptf-sw60");
    assert_eq!(run["streams"]["granted"], 2);
    assert!(run["all"]["requests"].as_u64() > Some(100) && run["scan"].is_object());

    let (swept, _) = json(folder, "experiment e.toml --json");
    assert_eq!(swept["points"].as_array().map(Vec::len), Some(2), "{swept}");

    let (steps, _) = json(folder, "serve system.toml --check --json");
    let steps = steps.as_array().expect("steps");
    let unused = steps.iter().find(|step| step["outcome"] == "unused");
    let step = unused.expect("tables of the simulation")["step"].as_str();
    assert!(step.is_some_and(|step| step.starts_with("[[load]], [[stream]], [[task]]: ")));

    let log = fs::File::create(folder.join("log")).expect("a log");
    let mut service = begin(folder, &["serve", "system.toml"], log, SERVES).expect("it serves");
    let (status, _) = json(folder, "ctl status --json --socket control.sock");
    let drained = headtime(folder, "ctl drain --socket control.sock");
    let ended = service.wait().expect("its end");
    assert!(drained.status.success() && ended.success());
    assert_eq!(status["drives"][0]["policy"], run["policy"]);
    assert_eq!(status["drives"][0]["model"], simulated["drive"]["model"]);
    let log = fs::read_to_string(folder.join("log")).expect("a log");
    assert!(log.contains("[[load]], [[stream]], [[task]]"), "{log}");
}

#[test]
fn a_mistake_in_a_client_is_one_for_the_service_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let wrong = SYSTEM.replace("tasks = 2", "task = 2");
    fs::write(folder.join("system.toml"), wrong).expect("a system");
    for words in [
        "simulate system.toml",
        "serve system.toml",
        "serve system.toml --check",
    ] {
        let mut command = Command::new(cargo_bin("headtime"));
        let command = command.current_dir(folder).args(words.split(' '));
        let refused = command.stdin(Stdio::null()).output().expect("it runs");
        let said = String::from_utf8(refused.stderr).expect("text");
        assert_eq!(refused.status.code(), Some(2), "{words}: {said}");
        assert!(
            said.contains("system.toml:18: load[0].task: unknown key"),
            "{words}: {said}"
        );
    }
    for words in [
        "simulate system.toml --drive dec-rz26",
        "simulate system.toml --workload oltp",
        "simulate system.toml --seek-noise-us 5",
        "simulate system.toml --scan all",
    ] {
        let refused = headtime(folder, words);
        let said = String::from_utf8(refused.stderr).expect("text");
        assert!(said.contains("cannot be used with"), "{words}: {said}");
    }
}

/// A trace on the cache of a volume is the run that `--cache` has.
#[test]
fn a_volume_s_cache_is_that_of_the_flags() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let lines = (0..3000u64).map(|at| {
        let block = at * at % 977 * (at % 13);
        format!(
            "{}.{:03},disk,R,{},4096\n",
            at / 100,
            at % 100 * 10,
            block * 4096
        )
    });
    fs::write(folder.join("mine.csv"), lines.collect::<String>()).expect("a trace");
    let system = "[[drive]]\nname = \"disk\"\npolicy = \"sptf\"\n\
                  back_end = { kind = \"emulated\", drive = \"quantum-atlas-10k\", image = \"d.img\" }\n\
                  volume = [{ name = \"v\", cache = { size = \"4 MiB\", replacement = \"lru\", prefetch = \"ra(p=8)\", \
                  coordinator = \"pfc\" } }]\nexport = [{ name = \"v\", volume = \"v\" }]\n\
                  [[load]]\nexport = \"v\"\ntrace = \"mine.csv\"\ncache = [\"1 MiB,arc,linux-6\"]\n";
    fs::write(folder.join("system.toml"), system).expect("a system");
    let (described, _) = json(folder, "simulate system.toml --json");
    let mut command = Command::new(cargo_bin("headtime"));
    let flags = "simulate --drive quantum-atlas-10k --policy sptf --trace mine.csv --json";
    let flagged = command
        .current_dir(folder)
        .args(flags.split(' '))
        .args(["--cache", "1 MiB,arc,linux-6"])
        .args(["--cache", "4 MiB,lru,ra(p=8),pfc"])
        .output()
        .expect("it runs");
    let flagged: Value = serde_json::from_slice(&flagged.stdout).expect("JSON");
    assert_eq!(described, flagged);
    assert!(described["levels"][1]["readmore"].is_u64());
    let refused = headtime(folder, "simulate system.toml --seconds 3");
    let said = String::from_utf8(refused.stderr).expect("text");
    assert!(said.contains("caches, with --seconds"), "{said}");
}
