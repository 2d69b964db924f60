//! The file as a kernel block device: file systems that others wrote, and a load that verifies.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;

use rustix::mount::{MountFlags, mount};

use crate::scene::{Medium, Mounted, Scene, has, run};

/// The least that `mkfs.xfs` takes.
const BYTES: u64 = 320 << 20;

/// Files in folders, some of them long; the same each time.
fn plant(root: &Path) {
    for folder in 0..8u32 {
        let folder_path = root.join(format!("folder-{folder}"));
        fs::create_dir(&folder_path).expect("a folder");
        for file in 0..12u32 {
            let length = (folder * 37 + file * 8191) as usize % 90_000 + 1;
            fs::write(
                folder_path.join(format!("file-{file}")),
                bytes(file, length),
            )
            .expect("a file");
        }
    }
    fs::write(root.join("long"), bytes(77, 30 << 20)).expect("a long file");
}

fn bytes(seed: u32, length: usize) -> Vec<u8> {
    let byte = |place: usize| {
        (place as u32)
            .wrapping_mul(2_654_435_761)
            .wrapping_add(seed)
            >> 13
    };
    (0..length).map(|place| byte(place) as u8).collect()
}

/// Whether it is all there.
fn inspect(root: &Path) {
    for folder in 0..8u32 {
        for file in 0..12u32 {
            let length = (folder * 37 + file * 8191) as usize % 90_000 + 1;
            let path = root.join(format!("folder-{folder}/file-{file}"));
            assert!(
                fs::read(&path).expect("a file") == bytes(file, length),
                "{path:?}"
            );
        }
    }
    assert!(fs::read(root.join("long")).expect("a file") == bytes(77, 30 << 20));
}

/// A file system is made, filled, trimmed, checked, and is all there when everything else was taken
/// away and made again.
fn holds_a_file_system(medium: Medium, make: &[&str], check: &[&str]) {
    if !has(make[0]) || !has(check[0]) || !has("fstrim") {
        return;
    }
    let Some(mut scene) = Scene::new(medium, BYTES) else {
        return;
    };
    let Some(device) = scene.loop_device() else {
        return;
    };
    let at = scene.home.path().join("mounted");
    run(make[0], &[&make[1..], &[device.device.as_str()]].concat());
    let mounted = device.mount(&at);
    plant(&mounted.at);
    fs::write(mounted.at.join("removed"), vec![1; 8 << 20]).expect("a file");
    run("sync", &["--file-system", at.to_str().expect("UTF-8")]);
    fs::remove_file(mounted.at.join("removed")).expect("removed");
    let trimmed = run("fstrim", &["--verbose", at.to_str().expect("UTF-8")]);
    assert!(!trimmed.contains(": 0 B"), "{trimmed}");
    inspect(&mounted.at);
    mounted.unmount();
    run(check[0], &[&check[1..], &[device.device.as_str()]].concat());
    device.detach();
    scene.mount = None;
    let file = scene.file(medium, BYTES);
    let begun = server::front_end::fuse::Mount::begin(&scene.folder(), vec![file]);
    scene.mount = Some(begun.expect("mounted again"));
    let device = scene.loop_device().expect("as before");
    let mounted = device.mount(&at);
    inspect(&mounted.at);
    mounted.unmount();
    device.detach();
}

#[test]
fn ext4_in_memory() {
    let make = ["mkfs.ext4", "-q"];
    holds_a_file_system(Medium::Ram, &make, &["fsck.ext4", "-f", "-n"]);
}

/// With sectors of 512 bytes on a drive with blocks of 4096.
#[test]
fn ext4_in_an_image() {
    let make = ["mkfs.ext4", "-q", "-b", "1024"];
    holds_a_file_system(Medium::Image, &make, &["fsck.ext4", "-f", "-n"]);
}

#[test]
fn xfs_in_memory() {
    holds_a_file_system(Medium::Ram, &["mkfs.xfs", "-q"], &["xfs_repair", "-n"]);
}

/// With sectors of 512 bytes on a drive with blocks of 4096.
#[test]
fn xfs_in_an_image() {
    holds_a_file_system(Medium::Image, &["mkfs.xfs", "-q"], &["xfs_repair", "-n"]);
}

#[test]
fn btrfs_in_memory() {
    let check = ["btrfs", "check", "--readonly"];
    holds_a_file_system(Medium::Ram, &["mkfs.btrfs", "-q"], &check);
}

fn verifies(medium: Medium, block_bytes: &str) {
    if !has("fio") {
        return;
    }
    let Some(scene) = Scene::new(medium, 64 << 20) else {
        return;
    };
    let Some(device) = scene.loop_device() else {
        return;
    };
    let file = format!("--filename={}", device.device);
    let block_bytes = format!("--bsrange={block_bytes}");
    let arguments = [
        "--name=verify",
        &file,
        "--ioengine=libaio",
        "--direct=1",
        "--rw=randwrite",
        &block_bytes,
        "--iodepth=32",
        "--verify=crc32c",
        "--verify_fatal=1",
        "--do_verify=1",
        "--size=24m",
        "--randseed=7",
        "--verify_state_save=0",
    ];
    let report = run("fio", &arguments);
    assert!(report.contains("err= 0"), "{report}");
    device.detach();
}

#[test]
fn fio_finds_what_it_wrote_in_memory() {
    verifies(Medium::Ram, "4k-128k");
}

/// Sectors of 512 bytes, eight writers of which meet in one block of the drive.
#[test]
fn fio_finds_what_it_wrote_in_an_image_in_parts_of_blocks() {
    verifies(Medium::Image, "512-4k");
}

/// While the drive does nothing, all that the client has asked for is under way, as the kernel
/// counts it.
#[test]
fn requests_of_a_loop_device_are_under_way_side_by_side() {
    const DEPTH: usize = 32;
    /// How often it is looked before the test has failed. A choice: some seconds.
    const LOOKS: usize = 1_000_000;
    if !has("fio") {
        return;
    }
    let Some(scene) = Scene::new(Medium::Ram, 16 << 20) else {
        return;
    };
    let Some(device) = scene.loop_device() else {
        return;
    };
    let at = scene.home.path().join("control");
    fs::create_dir(&at).expect("a folder");
    mount("none", &at, "fusectl", MountFlags::empty(), c"").expect("mounted");
    let control = Mounted { at };
    let number = fs::metadata(scene.folder()).expect("a folder").dev();
    let waiting = control
        .at
        .join(format!("{}/waiting", rustix::fs::minor(number)));
    let (release, held) = mpsc::channel::<()>();
    let station = scene.station.as_ref().expect("a drive");
    let stopped = station.mailbox().call(move |_| {
        let _ = held.recv();
    });
    stopped.expect("a loop");
    let mut fio = Command::new("fio")
        .args([
            "--name=deep",
            "--ioengine=libaio",
            "--direct=1",
            "--rw=randread",
        ])
        .args(["--bs=4k", "--iodepth=32", "--number_ios=64", "--size=16m"])
        .arg(format!("--filename={}", device.device))
        .stdout(Stdio::null())
        .spawn()
        .expect("fio");
    let mut most = 0;
    for _ in 0..LOOKS {
        let count = fs::read_to_string(&waiting).expect("a number");
        most = most.max(count.trim().parse().expect("a number"));
        if most >= DEPTH {
            break;
        }
        std::thread::yield_now();
    }
    drop(release);
    assert!(fio.wait().expect("fio").success());
    assert!(most >= DEPTH, "{most} at once");
    control.unmount();
    device.detach();
}
