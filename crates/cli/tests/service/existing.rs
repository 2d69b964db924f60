//! A file system that was there before: it is mounted through the service, and it is whole after it.
//!
//! It needs root, `/dev/fuse`, loop devices and e2fsprogs. Where one is missing, that is said; in CI (`CI=true`) it is
//! an error.

use std::path::Path;
use std::process::Command;

use crate::here::are_here;
use crate::scanned::Service;

const CONFIG: &str = "[[drive]]\nname = \"disk\"\nback_end = { kind = \"file\", path = \"disk.img\" }\n\
                      [[drive.volume]]\nname = \"all\"\n[[drive.export]]\nname = \"all\"\nvolume = \"all\"\n\
                      [[nbd]]\nunix = \"nbd.sock\"\n[fuse]\nmount = \"volumes\"\n[control]\nsocket = \"control.sock\"\n";

/// What a program prints.
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {problem}"
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A loop device over a file, mounted. It goes with its test.
struct MountedFile {
    device: String,
    at: String,
}

impl MountedFile {
    fn new(file: &Path, at: &Path) -> MountedFile {
        std::fs::create_dir_all(at).expect("a folder");
        let file = file.to_str().expect("UTF-8");
        let device = run("losetup", &["--find", "--show", "--direct-io=on", file]);
        let mounted = MountedFile {
            device: device.trim().to_owned(),
            at: at.to_str().expect("UTF-8").to_owned(),
        };
        run("mount", &[&mounted.device, &mounted.at]);
        mounted
    }
}

impl Drop for MountedFile {
    fn drop(&mut self) {
        for (program, arguments) in [
            ("umount", [self.at.as_str()].to_vec()),
            ("losetup", ["--detach", &self.device].to_vec()),
        ] {
            let _ = Command::new(program).args(arguments).output();
        }
    }
}

#[test]
fn a_file_system_that_was_there_is_served_and_stays_whole() {
    if !are_here(&["/dev/fuse", "/dev/loop-control"], &["mke2fs"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let old: Vec<u8> = (0..3_000_000_u32).map(|place| (place >> 7) as u8).collect();
    let planted = folder.path().join("planted");
    std::fs::create_dir(&planted).expect("a folder");
    std::fs::write(planted.join("old"), &old).expect("a file");
    let image = folder.path().join("disk.img");
    let image = image.to_str().expect("UTF-8").to_owned();
    let from = planted.to_str().expect("UTF-8");
    run("mke2fs", &["-q", "-t", "ext4", "-d", from, &image, "64M"]);

    let service = Service::start_in(folder, CONFIG);
    let mounted = MountedFile::new(&service.path("volumes/all"), &service.path("mounted"));
    let read = std::fs::read(service.path("mounted/old")).expect("the file of before");
    assert!(read == old, "what was there is read through the service");
    std::fs::write(service.path("mounted/new"), &old[1..]).expect("a new file");
    drop(mounted);
    let folder = service.end();

    // Without the service.
    run("e2fsck", &["-f", "-n", &image]);
    let dumped = folder.path().join("dumped");
    for (name, expected) in [("old", &old[..]), ("new", &old[1..])] {
        let request = format!("dump /{name} {}", dumped.display());
        run("debugfs", &["-R", &request, &image]);
        let found = std::fs::read(&dumped).expect("a file");
        assert!(found == expected, "{name} after the service");
    }
}
