//! What `--json` prints is what its schema says. Schemas permit no other keys, so that a new key needs a line there.
//!
//! The helpers of the other tests judge what they print, too. No test runs `bench densities`, `partial`, `peers`, `players`,
//! `preemption`, `priorities`, `schedulers`, `serve` and `sets`, which need minutes or other programs: their schemas are
//! checked for being valid ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};

use assert_cmd::cargo::cargo_bin;
use serde_json::{Value, json};

use crate::judged::{ORDERS, judge};
use crate::known::known_service;
use crate::scanned::{Service, config, contents};

fn headtime(folder: &Path, words: &str) -> Output {
    Command::new(cargo_bin("headtime"))
        .current_dir(folder)
        .env("XDG_RUNTIME_DIR", folder)
        .env("HEADTIME_PROGRESS_S", "0")
        .args(words.split(' '))
        .output()
        .expect("it runs")
}

fn printed(folder: &Path, words: &str) -> String {
    let output = headtime(folder, words);
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code().is_some_and(|code| code != 2),
        "{words}: {problem}"
    );
    String::from_utf8(output.stdout).expect("text")
}

/// All schemas by name, as the program prints them.
fn schemas() -> BTreeMap<String, Value> {
    let list = printed(Path::new("."), "schema");
    let names = list.lines().skip(1);
    let names = names.map(|line| line.split(' ').next().expect("a name").to_owned());
    names
        .map(|name| {
            let text = printed(Path::new("."), &format!("schema {name}"));
            (name, serde_json::from_str(&text).expect("JSON"))
        })
        .collect()
}

#[test]
fn schemas_are_valid_named_and_those_of_the_reference() {
    let all = schemas();
    for (name, schema) in &all {
        assert!(jsonschema::meta::is_valid(schema), "{name}");
        let id = schema["$id"].as_str().expect("an id");
        let version = id.strip_prefix(&format!("urn:headtime:json:{name}:"));
        let version = version.unwrap_or_else(|| panic!("{name}: {id}"));
        assert!(version.parse::<u32>().is_ok_and(|version| version > 0));
        let title = schema["title"].as_str().expect("a title");
        assert!(title.starts_with("headtime "), "{name}: {title}");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schemas");
    let files = std::fs::read_dir(folder).expect("the folder");
    let files = files.map(|file| file.expect("a file").path());
    let stems = files.map(|file| file.file_stem().expect("a name").display().to_string());
    let names: BTreeSet<String> = all.into_keys().collect();
    assert_eq!(stems.collect::<BTreeSet<_>>(), names);
    let unknown = headtime(Path::new("."), "schema none");
    assert_eq!(unknown.status.code(), Some(2));
}

/// Every command with `--json` in its help has a schema, unless it is an order.
#[test]
fn each_command_with_json_has_a_schema() {
    let titles: Vec<String> = schemas()
        .values()
        .map(|schema| schema["title"].as_str().expect("a title").to_owned())
        .collect();
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/commands");
    for page in std::fs::read_dir(pages).expect("the folder") {
        let text = std::fs::read_to_string(page.expect("a page").path()).expect("text");
        let commands = text.split("\n## `");
        for part in commands.filter(|part| part.contains("  --json ")) {
            let usage = part.lines().find_map(|line| line.strip_prefix("Usage: "));
            let words = usage.expect("a usage").split(' ').take_while(|word| {
                word.chars()
                    .all(|letter| letter.is_ascii_lowercase() || letter == '-')
            });
            let command = words.collect::<Vec<_>>().join(" ");
            let known = ORDERS.contains(&command.as_str())
                || titles.iter().any(|title| title.contains(&command));
            assert!(known, "{command}: expected a schema");
        }
    }
}

#[test]
fn a_key_that_is_not_in_the_schema_is_an_error() {
    let all = schemas();
    let of = |name: &str| jsonschema::validator_for(&all[name]).expect("a schema");
    let check = json!([{ "part": "drive disk", "outcome": "uses", "step": "x" }]);
    assert!(of("serve-check").is_valid(&check));
    for (key, value) in [
        ("outcome", json!("maybe")),
        ("step", Value::Null),
        ("new", json!(1)),
    ] {
        let mut other = check.clone();
        other[0][key] = value;
        assert!(!of("serve-check").is_valid(&other), "{key}");
    }
}

const EXPERIMENT: &str = "name = \"e\"\nsummary = \"s\"\ndrive = \"dec-rz26\"\nworkload = \"oltp\"\nrequests = 200\n\
                          [sweep]\npolicy = [\"fcfs\", \"sptf\"]\n[figure]\nx = \"policy\"\ny = [\"mean_ms\"]\n";

const TRACE: &str = "0.000000,0,R,0,4096\n0.500000,0,W,8192,1024\n0.700000,1,R,4096,4096\n";

#[test]
fn what_simulations_print_is_what_their_schemas_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("a file");
    };
    write("e.toml", EXPERIMENT);
    write("t.csv", TRACE);
    write("system.toml", crate::described::SYSTEM);
    let load = "simulate --drive dec-rz26 --workload oltp";
    for (name, words) in [
        ("simulate", format!("{load} --requests 200 --policy fcfs,sptf --why 2")),
        ("simulate", format!("{load} --scan --scan-until 1 --preempt")),
        ("simulate", format!("{load} --scan 0..5000 --requests 500 --seek-noise-us 50 --mirror")),
        ("simulate", "simulate --drive dec-rz26 --trace t.csv --device all".to_owned()),
        ("simulate", "simulate system.toml --seconds 5".to_owned()),
        ("simulate-cache", "simulate --trace t.csv --cache 1MiB,lru".to_owned()),
        ("cache", "cache --trace t.csv --size 64KiB".to_owned()),
        ("cache", "cache --trace t.csv --size 64KiB --replacement lru --prefetch ra".to_owned()),
        ("trace-stat", "trace stat t.csv".to_owned()),
        ("drives", "drives".to_owned()),
        ("experiment", "experiment e.toml".to_owned()),
        ("streams-plan", "streams plan --drive modern-20tb --play 4x1M".to_owned()),
        ("streams-plan", "streams plan --drive modern-20tb --record 4000x10M".to_owned()),
        ("bench-simulate", "bench simulate --requests 1000".to_owned()),
        (
            "bench-caches",
            "bench caches --prefetch ra --footprint 640 --requests 10 --only-simulated".to_owned(),
        ),
        ("bench-soak", "bench soak --minutes 0.05 --time-scale 0.01".to_owned()),
        ("bench-impact", "bench impact --drive dec-rz26 --truth none --seconds 20".to_owned()),
        (
            "bench-fail-slow",
            "bench fail-slow --drive quantum-atlas-10k --drive-days 1 --rate 0.05 --seeds 1 --slow-rate 20".to_owned(),
        ),
        (
            "bench-streams",
            "bench streams --hours 0.03 --alone-hours 0.03 --policy sptf --memory 2 --promised 0 --calm".to_owned(),
        ),
        ("doctor", "doctor none.sock".to_owned()),
    ] {
        judge(name, &printed(folder.path(), &format!("{words} --json")));
    }
}

#[test]
fn what_a_full_status_prints_is_what_its_schema_says() {
    let (folder, _socket, _plane) = known_service();
    let status = printed(folder.path(), "ctl --json --socket x.sock status");
    let status = judge("ctl-status", &status);
    let said = serde_json::to_value(crate::fake::status()).expect("JSON");
    assert_eq!(status, said);
    judge("doctor", &printed(folder.path(), "doctor x.sock --json"));
}

#[test]
fn what_a_service_prints_is_what_its_schemas_say() {
    let bitmaps = "\n[[drive]]\nname = \"other\"\n\
                   back_end = { kind = \"emulated\", drive = \"dec-rz26\", image = \"kept.img\", time_scale = 0.01 }\n\
                   [[drive.volume]]\nname = \"kept\"\nsize = \"1 MiB\"\nbitmaps = \"bitmaps\"\nchecksums = \"kept.sums\"\n\
                   [[drive.export]]\nname = \"kept\"\nvolume = \"kept\"\n";
    let service = Service::start_with(&contents(), &(config("") + bitmaps));
    let says = |name: &str, words: &[&str]| {
        let (is_good, said) = service.run(words);
        assert!(is_good, "{words:?}: {said}");
        judge(name, &said);
    };
    says("scan", &["scan", "small", "--json"]);
    says("ctl-tasks", &["ctl", "--json", "tasks"]);
    says("ctl-status", &["ctl", "--json", "status"]);
    says("streams", &["streams", "--json"]);
    says("ctl-reload", &["ctl", "--json", "reload"]);
    let (is_good, said) = service.run(&["ctl", "--json", "bitmap", "add", "kept", "nightly"]);
    assert!(is_good && said == "true\n", "{said}");
    says("ctl-bitmap-list", &["ctl", "--json", "bitmap", "list"]);
    says(
        "backup",
        &[
            "backup", "kept", "--to", "b.raw", "--bitmap", "nightly", "--json",
        ],
    );
    says(
        "restore",
        &[
            "restore",
            "kept",
            "--from",
            "b.raw",
            "--foreground",
            "--json",
        ],
    );
    says(
        "ctl-checkpoint-list",
        &["ctl", "--json", "checkpoint", "list"],
    );
    let create = ["ctl", "--json", "checkpoint", "create", "kept"];
    says("ctl-checkpoint-create", &create);
    let (is_good, said) = service.run(&["ctl", "checkpoint", "release", "kept"]);
    assert!(is_good, "{said}");
    says(
        "ctl-checkpoint-create",
        &[&create[..], &["--bitmap", "nightly"]].concat(),
    );
    says("scrub", &["scrub", "kept", "--json"]);
    // A second start is refused, because the first one uses the sockets.
    let check = headtime(&service.path(""), "serve --check c.toml --json");
    judge("serve-check", &String::from_utf8_lossy(&check.stdout));
    says("ctl-drain", &["ctl", "--json", "drain"]);
}
