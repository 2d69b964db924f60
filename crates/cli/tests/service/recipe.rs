//! The recipe of the page "Scrub a volume": its lines as they stand there, but for the length of the load.

use std::path::Path;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;

use crate::here::are_here;

/// What the page and the test have for the length of the load.
const LENGTHS: [&str; 2] = ["--runtime=60", "--runtime=3"];

#[test]
fn the_recipe_for_a_scrub_on_an_emulated_disk_runs_and_leaves_nothing() {
    if !are_here(
        &["/dev/fuse", "/dev/loop-control"],
        &["bash", "fio", "losetup"],
    ) {
        return;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to/scrub-a-volume.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, recipe) = page
        .split_once("## Try it on an emulated disk\n\n```sh\n")
        .expect("the recipe");
    let (recipe, _) = recipe.split_once("```").expect("its end");
    assert_eq!(recipe.matches(LENGTHS[0]).count(), 1);
    let recipe = recipe.replace(LENGTHS[0], LENGTHS[1]);

    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path().join("home");
    for name in ["home", "run"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    let binary = cargo_bin("headtime");
    let mut path = binary.parent().expect("a folder").as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let ran = Command::new("bash")
        .current_dir(&home)
        .env("PATH", path)
        .env("XDG_RUNTIME_DIR", folder.path().join("run"))
        .args(["-euo", "pipefail", "-c"])
        .arg(format!("{recipe}\nwait %1\n"))
        .output()
        .expect("bash runs");
    let said = String::from_utf8_lossy(&ran.stdout);
    let problems = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}{problems}");
    assert!(said.contains("scrub disk"), "the tasks: {said}");
    assert!(said.contains("load: (groupid=0"), "the load: {said}");
    let left = std::fs::read_dir(&home).expect("a folder");
    let left: Vec<_> = left.map(|file| file.expect("a file").file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("the table");
    assert!(!mounts.contains(&home.display().to_string()), "{mounts}");
}
