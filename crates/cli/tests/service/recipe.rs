//! The recipes of the page "Scrub a volume": their lines as they stand there, but for the length of the load and the size
//! of a volume that is read twice.

use std::path::Path;
use std::process::{Command, Output};

use assert_cmd::cargo::cargo_bin;

use crate::here::are_here;

/// What the page and the tests have for the length of the load, and for the size of the volume.
const LENGTHS: [&str; 2] = ["--runtime=60", "--runtime=3"];
const SIZES: [&str; 2] = ["size = \"512 MiB\"", "size = \"32 MiB\""];

fn has_all() -> bool {
    are_here(
        &["/dev/fuse", "/dev/loop-control"],
        &["bash", "dd", "fio", "losetup"],
    )
}

/// The first commands of the page behind these words, with one of its words replaced.
fn recipe(behind: &str, [shown, ours]: [&str; 2]) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to/scrub-a-volume.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, rest) = page.split_once(behind).expect("these words");
    let (_, recipe) = rest.split_once("```sh\n").expect("commands");
    let (recipe, _) = recipe.split_once("```").expect("their end");
    let replaced = recipe.replacen(shown, ours, 1);
    assert_ne!(replaced, recipe, "{shown}");
    replaced
}

/// What a shell says to these commands, in the folder `home` of this one.
fn run(folder: &Path, commands: &str) -> Output {
    for name in ["home", "run"] {
        std::fs::create_dir(folder.join(name)).expect("a folder");
    }
    let binary = cargo_bin("headtime");
    let mut path = binary.parent().expect("a folder").as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    Command::new("bash")
        .current_dir(folder.join("home"))
        .env("PATH", path)
        .env("XDG_RUNTIME_DIR", folder.join("run"))
        .args(["-euo", "pipefail", "-c", commands])
        .output()
        .expect("bash runs")
}

#[test]
fn a_scrub_beside_a_load_runs_as_the_page_has_it_and_leaves_nothing() {
    if !has_all() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let recipe = recipe("## Try it on an emulated disk", LENGTHS);
    let ran = run(folder.path(), &format!("{recipe}\nwait %1\n"));
    let said = String::from_utf8_lossy(&ran.stdout);
    let problems = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}{problems}");
    assert!(said.contains("scrub disk"), "the tasks: {said}");
    assert!(said.contains("load: (groupid=0"), "the load: {said}");
    let home = folder.path().join("home");
    let left = std::fs::read_dir(&home).expect("a folder");
    let left: Vec<_> = left.map(|file| file.expect("a file").file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("the table");
    assert!(!mounts.contains(&home.display().to_string()), "{mounts}");
}

#[test]
fn a_byte_that_is_changed_as_the_page_has_it_is_found_in_its_place() {
    if !has_all() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let served = recipe("## Try it on an emulated disk", SIZES);
    let (served, _) = served.split_once("loop=").expect("a loop device");
    let changed = recipe("To see damage found", ["scrub disk ", "scrub disk --json "]);
    let script = format!(
        "{served}trap 'headtime ctl drain >/dev/null; wait %1' EXIT\n\
         headtime scrub disk >/dev/null\nset +e\n{changed}echo code $?\n"
    );
    let ran = run(folder.path(), &script);
    let said = String::from_utf8_lossy(&ran.stdout);
    let problems = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("code 1"), "{said}{problems}");
    // The page of 4096 bytes that has the byte 1,000,000.
    assert!(
        said.contains("\"offset_bytes\": 999424"),
        "{said}{problems}"
    );
}
