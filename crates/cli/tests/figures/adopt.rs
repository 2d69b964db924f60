//! `headtime adopt` as a whole binary: what it refuses, what is no disk, and that nothing is written then.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::scene::Scene;
use serde_json::Value;

/// The names in a folder.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).expect("the folder");
    entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect()
}

/// A file of zeroes that takes no space.
fn sparse(scene: &Scene, name: &str) {
    let file = std::fs::File::create(scene.path(name)).expect("a file");
    file.set_len(64 << 20).expect("a length");
}

#[test]
fn bad_input_is_refused_in_one_line_and_nothing_is_written() {
    let scene = Scene::with(&[
        ("there.toml", "x"),
        ("there-serve.toml", "x"),
        ("small", "x"),
    ]);
    sparse(&scene, "disk");
    symlink("nowhere", scene.path("dangling")).expect("a link");
    let before = names(&scene.path("."));
    for (arguments, words) in [
        ("adopt", "<PATH>"),
        ("adopt missing", "No such file"),
        ("adopt dangling", "No such file"),
        ("adopt .", "expected a block device, a file"),
        ("adopt /dev/null", "expected a block device, a file"),
        ("adopt small", "expected at least"),
        ("adopt disk --minutes 0", "0.5 to 10080"),
        ("adopt disk --minutes soon", "0.5 to 10080"),
        ("adopt disk -o there", "ends with .toml"),
        (
            "adopt disk -o there.toml",
            "there.toml: it is there already",
        ),
        ("adopt disk -o missing/new.toml", "no folder missing"),
        ("adopt disk --report there.toml", "it is there already"),
        ("adopt nbds://host/name", "without TLS"),
        ("adopt http://host/name", "expected \"nbd://HOST"),
        ("adopt nbd+unix:///?socket=/no/such/socket", "No such file"),
    ] {
        let output = scene.run(arguments);
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(said.contains(words), "{arguments}: {said}");
        assert_eq!(said.lines().count(), 1, "{arguments}: {said}");
    }
    assert_eq!(names(&scene.path(".")), before);
    assert_eq!(scene.read("there.toml"), "x");
}

/// A configuration beside the profile is not overwritten either.
#[test]
fn a_configuration_that_is_there_stays() {
    let scene = Scene::with(&[("other-serve.toml", "mine")]);
    sparse(&scene, "disk");
    let output = scene.run("adopt disk -o other.toml");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(scene.read("other-serve.toml"), "mine");
}

/// A sparse file and a file in memory are told before any read; the JSON has exactly its keys.
#[test]
fn files_without_a_disk_are_told_and_nothing_is_written() {
    let scene = Scene::with(&[]);
    sparse(&scene, "disk");
    let memory = tempfile::Builder::new()
        .prefix("headtime-")
        .tempfile_in("/dev/shm")
        .expect("a file in memory");
    memory.as_file().set_len(8 << 20).expect("a length");
    let before = names(&scene.path("."));
    for (path, words) in [
        ("disk".to_owned(), "no single hard disk"),
        (
            memory.path().display().to_string(),
            "a file system in memory",
        ),
    ] {
        let output = scene.run(&format!("adopt {path} --json"));
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(3), "{path}: {said}");
        assert!(
            said.contains(words) && said.contains("no profile is written"),
            "{said}"
        );
        let json = crate::judged::judge("adopt", &String::from_utf8_lossy(&output.stdout));
        assert_eq!(json["path"], path);
        assert_eq!(json["usable"], false);
        assert_eq!(json["confidence"]["seek"], 0.0);
        keys_are(
            &json,
            &[
                "path",
                "rotational",
                "logical_block",
                "capacity_bytes",
                "confidence",
                "period_ms",
                "jitter_us",
                "free_mb_s_predicted",
                "seconds",
                "usable",
            ],
        );
        keys_are(
            &json["confidence"],
            &["spindle", "map", "seek", "electronics"],
        );
    }
    assert_eq!(names(&scene.path(".")), before);
}

fn keys_are(json: &Value, expected: &[&str]) {
    let found: BTreeSet<&str> = json
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(found, expected.iter().copied().collect(), "{json}");
}

#[test]
fn a_state_of_another_disk_is_refused() {
    let state = "{\"blocks\": 7, \"block_bytes\": 512, \"tracks\": {}}";
    let scene = Scene::with(&[("disk.adopting", state), ("broken.adopting", "{")]);
    sparse(&scene, "disk");
    for (arguments, words) in [
        ("adopt disk", "the state of another disk"),
        ("adopt disk -o broken.toml", "broken.adopting"),
    ] {
        let output = scene.run(arguments);
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    }
    assert_eq!(scene.read("disk.adopting"), state);
}

#[test]
fn the_bench_refuses_what_makes_no_sense() {
    let scene = Scene::with(&[]);
    for (wrong, words) in [
        ("--drive quantum-atlas-10kk", "did you mean"),
        ("--minutes 0", "0.5 to 10080"),
        ("--seek-noise-us=-1", "seek-noise-us"),
        ("--seconds 0", "seconds"),
        ("--via usb", "possible values"),
    ] {
        let output = scene.run(&format!("bench adopt {wrong}"));
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{wrong}: {said}");
        assert!(said.contains(words), "{wrong}: {said}");
    }
}
