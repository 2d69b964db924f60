//! The page "First contact with a disk": each of its commands, in its order, on a loop device over an emulated drive
//! that has an ext4 with files. The files are the same after each step.
//!
//! The lines with names are those of this test. The profile is that of the emulated drive, because adoption takes longer
//! than CI has time. It needs root, FUSE, loop devices and some programs. Where one is missing, that is said; in CI
//! (`CI=true`) it is an error.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use assert_cmd::cargo::cargo_bin;

use crate::begun::{SERVES, begin_program};
use crate::here::are_here;
use crate::scanned::Service;

/// The emulated drive: the smallest one whose commands take as long as those of others.
const DRIVE: &str = "hp-c2247a";

/// Its bytes.
const BYTES: u64 = 1_052_090_368;

const BENEATH: &str = r#"
[[drive]]
name = "beneath"
[drive.back_end]
kind = "emulated"
drive = "hp-c2247a"
image = "disk.img"
[[drive.volume]]
name = "beneath"
[[drive.export]]
name = "beneath"
volume = "beneath"
[[nbd]]
unix = "nbd.sock"
[fuse]
mount = "beneath"
[control]
socket = "control.sock"
"#;

/// What the page needs besides Headtime.
const PROGRAMS: [&str; 9] = [
    "bash", "debugfs", "fio", "losetup", "lsblk", "mke2fs", "mount", "tar", "umount",
];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to")
}

/// The parts of the script between anchors, in its order.
fn parts() -> Vec<(String, Vec<String>)> {
    let script = std::fs::read_to_string(docs().join("first-contact.sh")).expect("the script");
    let mut parts: Vec<(String, Vec<String>)> = Vec::new();
    let mut is_inside = false;
    for line in script.lines() {
        if let Some(name) = line.strip_prefix("# ANCHOR: ") {
            parts.push((name.to_owned(), vec![String::new()]));
            is_inside = true;
        } else if line.starts_with("# ANCHOR_END: ") {
            parts.last_mut().expect("a part").1.pop();
            is_inside = false;
        } else if is_inside {
            let commands = &mut parts.last_mut().expect("a part").1;
            commands.last_mut().expect("a command").push_str(line);
            match line.ends_with('\\') {
                true => commands.last_mut().expect("a command").push('\n'),
                false => commands.push(String::new()),
            }
        } else {
            assert!(
                line.is_empty() || line.starts_with('#'),
                "{line}: in no part, and so not in the page"
            );
        }
    }
    parts
}

#[test]
fn the_page_has_the_commands_of_the_script_and_no_others() {
    let page = std::fs::read_to_string(docs().join("first-contact.md")).expect("the page");
    let blocks = page.split("```sh\n").skip(1);
    let blocks = blocks.map(|rest| rest.split_once("```").expect("an end").0);
    let included: Vec<String> = parts()
        .iter()
        .map(|(name, _)| format!("{{{{#include first-contact.sh:{name}}}}}\n"))
        .collect();
    assert_eq!(blocks.collect::<Vec<_>>(), included);
}

/// The files of the file system: small, large, empty, and in a folder.
fn files() -> BTreeMap<&'static str, Vec<u8>> {
    let bytes = |seed: u32, count: u32| -> Vec<u8> {
        (0..count)
            .map(|at| (at.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13) as u8)
            .collect()
    };
    BTreeMap::from([
        ("letter", bytes(1, 700)),
        ("photographs/large", bytes(2, 3_000_001)),
        ("photographs/small", bytes(3, 40_000)),
        ("empty", Vec::new()),
    ])
}

fn assert_files_in(folder: &Path, step: &str) {
    for (name, expected) in files() {
        let found = std::fs::read(folder.join(name));
        let found = found.unwrap_or_else(|error| panic!("{name} after {step}: {error}"));
        assert!(found == expected, "{name} after {step}");
    }
}

/// An emulated drive with files, its loop device, and what was begun over them.
struct Scene {
    /// Of the user who reads the page.
    home: PathBuf,
    /// The loop device of the emulated drive.
    disk: String,
    parts: BTreeMap<String, Vec<String>>,
    /// The service over the disk.
    serving: Option<Child>,
    /// The drive beneath. Dropped last.
    beneath: Service,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let planted = folder.path().join("planted");
        for (name, bytes) in files() {
            let path = planted.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, bytes).expect("a file");
        }
        let image = folder.path().join("disk.img");
        let made = Command::new("mke2fs")
            .args(["-q", "-t", "ext4", "-d"])
            .args([&planted, &image])
            .arg(format!("{}k", BYTES / 1024))
            .output();
        let made = made.expect("mke2fs runs");
        assert!(made.status.success(), "{made:?}");
        let home = folder.path().join("home");
        for name in ["beneath", "home/run", "home/srv", "home/other"] {
            std::fs::create_dir_all(folder.path().join(name)).expect("a folder");
        }
        let beneath = Service::start_in(folder, BENEATH);
        let mut scene = Scene {
            home,
            disk: String::new(),
            parts: parts().into_iter().collect(),
            serving: None,
            beneath,
        };
        let export = scene.beneath.path("beneath/beneath");
        let shown = scene.says(
            &format!(
                "losetup --find --show --direct-io=on '{}'",
                export.display()
            ),
            &[0],
        );
        shown.1.trim().clone_into(&mut scene.disk);
        let names = format!(
            "disk={}\nfiles=srv\nbackup=other/srv.tar\nvolumes=volumes\nminutes=0.5\nseconds=1\n",
            scene.disk
        );
        std::fs::write(scene.home.join("names"), names).expect("the names");
        scene.says("mount \"$disk\" \"$files\"", &[0]);
        scene
    }

    /// A shell of the user, with the names of the page and what an earlier command has set.
    fn shell(&self, command: &str) -> Command {
        let binary = cargo_bin("headtime");
        let mut path = binary.parent().expect("a folder").as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut shell = Command::new("bash");
        shell
            .current_dir(&self.home)
            .env("PATH", path)
            .env("XDG_RUNTIME_DIR", self.home.join("run"))
            .env("XDG_DATA_HOME", self.home.join("data"))
            .env("HEADTIME_PROGRESS_S", "0")
            .args(["-euo", "pipefail", "-c"])
            .arg(format!(
                "for set in names loop; do [ ! -e $set ] || . ./$set; done\n{command}"
            ));
        shell
    }

    /// The exit code of a command, which is one of these, and what it prints.
    fn says(&self, command: &str, codes: &[i32]) -> (i32, String) {
        let output = self.shell(command).output().expect("bash runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let problem = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code().unwrap_or(-1);
        assert!(codes.contains(&code), "{command}: {code}\n{said}{problem}");
        (code, said)
    }

    /// Does a part of the page, and returns the exit codes and what was printed.
    fn does(&self, part: &str) -> Vec<(i32, String)> {
        let commands = &self.parts[part];
        commands
            .iter()
            .map(|command| {
                let codes: &[i32] = match command {
                    command if command.starts_with("headtime doctor") => &[0, 3],
                    command if command.starts_with("headtime adopt") => &[0, 3, 4],
                    _ => &[0],
                };
                let keeps = "\n[ -z \"${loop:-}\" ] || printf 'loop=%q\\n' \"$loop\" >loop";
                match command.starts_with("loop=") {
                    true => self.says(&format!("{command}{keeps}"), codes),
                    false => self.says(command, codes),
                }
            })
            .collect()
    }

    /// Does a part, after which the file system is mounted, or not.
    fn step(&self, part: &str) -> Vec<(i32, String)> {
        let said = self.does(part);
        match self.is_mounted() {
            true => assert_files_in(&self.home.join("srv"), part),
            false => self.assert_files_on_the_drive(part),
        }
        said
    }

    fn is_mounted(&self) -> bool {
        let table = std::fs::read_to_string("/proc/self/mounts").expect("the table");
        let place = format!(" {} ", self.home.join("srv").display());
        table.contains(&place)
    }

    /// What the emulated drive has on its medium, read without any service.
    fn assert_files_on_the_drive(&self, step: &str) {
        let to = self.beneath.path("dumped");
        std::fs::create_dir(&to).expect("a folder");
        let image = self.beneath.path("disk.img");
        let request = format!("rdump / {}", to.display());
        let ran = Command::new("debugfs")
            .args(["-R", &request])
            .arg(&image)
            .output();
        ran.expect("debugfs runs");
        assert_files_in(&to, step);
        std::fs::remove_dir_all(&to).expect("a folder");
    }

    /// Begins the service of the page.
    fn serve(&mut self) {
        let [command] = &self.parts["serve"][..] else {
            panic!("expected one command");
        };
        let mut shell = self.shell(&format!("exec {command}"));
        let log = File::create(self.home.join("log")).expect("a log");
        let serving = begin_program(shell.stderr(log), SERVES);
        self.serving = Some(serving.unwrap_or_else(|_| panic!("{}", self.log())));
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.home.join("log")).unwrap_or_default()
    }

    /// The service, which ends.
    fn serving(&mut self) -> Child {
        self.serving.take().expect("it serves")
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for command in [
            "umount \"$files\"",
            "losetup --detach \"$loop\"",
            "umount --lazy \"$volumes\"",
        ] {
            let _ = self.shell(command).stderr(Stdio::null()).status();
        }
        if let Some(mut serving) = self.serving.take() {
            let _ = serving.kill();
            let _ = serving.wait();
        }
        for command in ["losetup --detach \"$disk\"", "umount --lazy ../beneath"] {
            let _ = self.shell(command).stderr(Stdio::null()).status();
        }
    }
}

/// Writes a file that is durable when this returns.
fn write_durably(folder: &Path, bytes: &[u8]) {
    use std::io::Write as _;
    let mut file = File::create(folder.join("written")).expect("a file");
    file.write_all(bytes).expect("room");
    file.sync_all().expect("it is durable");
}

#[test]
fn each_command_of_the_page_leaves_the_files_as_they_were() {
    if !are_here(&["/dev/fuse", "/dev/loop-control"], &PROGRAMS) {
        return;
    }
    let mut scene = Scene::new();
    let looked = scene.step("look");
    assert_eq!(looked[1].0, 3, "it is mounted: {}", looked[1].1);
    scene.step("back-up");
    scene.step("before");
    let adopted = scene.step("adopt");
    if adopted[0].0 != 0 {
        let profile = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../drives");
        let profile = profile.join(format!("{DRIVE}.toml"));
        std::fs::copy(profile, scene.home.join("profile.toml")).expect("the drive's own");
    }
    let unmounted = scene.step("unmount");
    assert_eq!(unmounted[1].0, 0, "nobody uses it: {}", unmounted[1].1);
    scene.step("init");
    scene.step("init-plain");
    let checked = scene.step("check");
    assert_eq!(checked[1].0, 0, "it may be started: {}", checked[1].1);

    scene.serve();
    scene.step("mount");
    let watched = scene.step("watch");
    assert!(watched[1].1.contains("disk"), "{}", watched[1].1);
    scene.step("with");
    scene.step("scan");

    let files = scene.home.join("srv");
    let folder = File::open(&files).expect("the folder");
    let time = folder.metadata().and_then(|found| found.modified());
    write_durably(&files, b"flushed before the kill");
    let mut serving = scene.serving();
    serving.kill().expect("it runs");
    serving.wait().expect("it ends");
    drop(folder);
    scene.step("after-kill");
    scene.serve();
    scene.step("mount-again");
    let written = std::fs::read(files.join("written")).expect("it was flushed");
    assert_eq!(written, b"flushed before the kill");
    std::fs::remove_file(files.join("written")).expect("a file");
    let folder = File::open(&files).expect("the folder");
    folder.set_modified(time.expect("a time")).expect("a time");
    drop(folder);

    scene.step("undo");
    assert!(scene.serving().wait().expect("its end").success());
    scene.step("undone");
    scene.says("umount \"$files\"", &[0]);
    scene.assert_files_on_the_drive("all of it");
}
