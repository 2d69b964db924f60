//! Volumes of `headtime serve` as files, over loop devices of this kernel: file systems, fsx and
//! fio.
//!
//! `FSX=n` for more operations of fsx, which `make suites-long` wants.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::served::{has, skipped, succeeds};
use super::service::{DOORS, Service, WHOLE, emulated, file};

/// The least that `mkfs.xfs` takes.
const BYTES: u64 = 320 << 20;

/// A service, and its volume as a block device.
struct Device {
    /// `/dev/loopN`.
    name: String,
    /// There until it is stopped.
    service: Option<Service>,
}

/// Whether this machine has what is needed.
fn can(programs: &[&str]) -> bool {
    let me = std::fs::metadata("/proc/self").expect("this process");
    let is_root = me.uid() == 0;
    let is_here = Path::new("/dev/fuse").exists() && Path::new("/dev/loop-control").exists();
    if !is_root || !is_here {
        return skipped("no root, /dev/fuse or loop devices");
    }
    ["losetup", "mount", "umount"]
        .iter()
        .chain(programs)
        .all(|program| has(program))
}

fn operations() -> u64 {
    // A choice: a second or two of each.
    std::env::var("FSX").map_or(2000, |n| n.parse().expect("a number of operations"))
}

/// Bytes behind a file system, on the same volume, for a client over NBD.
const BESIDE: u64 = 32 << 20;

/// A client over NBD that writes parts of blocks and reads them again while a file system is used.
struct Beside(Child);

impl Beside {
    fn begin(device: &Device) -> Beside {
        let words = format!(
            "fio --name=beside --ioengine=nbd --uri={} --rw=randrw --bsrange=512-16k --iodepth=8 \
             --offset={BYTES} --size={BESIDE} --verify=crc32c --verify_fatal=1 --do_verify=1 \
             --randseed=7 --fsync=16 --verify_state_save=0",
            device.service().uri("disk")
        );
        let mut words = words.split_whitespace();
        let mut fio = Command::new(words.next().expect("a program"));
        fio.args(words).current_dir(device.service().folder());
        fio.stdout(Stdio::piped()).stderr(Stdio::piped());
        Beside(fio.spawn().expect("it runs"))
    }

    /// Waits until it has found all that it wrote.
    fn end(self) {
        let output = self.0.wait_with_output().expect("it runs");
        let said = succeeds("fio", &output);
        assert!(said.contains("err= 0"), "{said}");
    }
}

impl Device {
    fn of(drive: &str) -> Device {
        Device::of_part(drive, "")
    }

    /// The first bytes of the volume, as options of losetup say.
    fn of_part(drive: &str, options: &str) -> Device {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("volumes")).expect("a folder");
        let config = format!("{drive}{DOORS}[fuse]\nmount = \"volumes\"\n");
        let service = Service::start_in(folder, &config).expect("it serves");
        let shown = service.prints(&format!(
            "losetup --find --show --direct-io=on {options} volumes/disk"
        ));
        let name = shown.trim().to_owned();
        let service = Some(service);
        Device { name, service }
    }

    fn service(&self) -> &Service {
        self.service.as_ref().expect("it was not stopped")
    }

    /// What a program prints that has to succeed, with the device where `DEV` stands.
    fn prints(&self, words: &str) -> String {
        self.service().prints(&words.replace("DEV", &self.name))
    }

    fn mount(&self) -> Mounted {
        let at = self.service().path("mounted");
        std::fs::create_dir_all(&at).expect("a folder");
        self.prints("mount DEV mounted");
        Mounted { at }
    }

    fn fsx(&self, what: &str, config: &str) {
        let count = operations();
        std::fs::write(self.service().path("fsx.toml"), config).expect("a configuration");
        let said = self.prints(&format!("fsx -S 7 -N {count} -P . -f fsx.toml {what}"));
        assert!(said.contains("A-OK"), "{said}");
    }

    fn stop(mut self) {
        self.prints("losetup --detach DEV");
        if let Some(service) = self.service.take() {
            service.stop();
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // It is gone already if all went well.
        if let Some(service) = &self.service {
            let mut detach = Command::new("losetup");
            let _ = detach.args(["--detach", &self.name]).status();
            let volumes = service.path("volumes");
            let _ = Command::new("umount").arg(volumes).status();
        }
    }
}

/// A mounted file system.
struct Mounted {
    at: PathBuf,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.at).output();
    }
}

#[test]
fn fsx_finds_on_the_block_device_what_it_wrote() {
    if !can(&["fsx"]) {
        return;
    }
    // Where the drive turns, zeroes take as long as other bytes, and the kernel's holes are refused.
    for (drive, holes) in [(emulated(WHOLE), 0), (file(64 << 20, WHOLE), 1)] {
        let device = Device::of(&drive);
        let config = "blockmode = true\n[opsize]\nalign = 4096\n[weights]\ntruncate = 0\n\
                      invalidate = 1\nfsync = 0.2\n";
        device.fsx("DEV", &format!("{config}punch_hole = {holes}\n"));
        device.stop();
    }
}

#[test]
fn fio_finds_on_the_block_device_what_it_wrote() {
    if !can(&["fio"]) {
        return;
    }
    let device = Device::of(&emulated(WHOLE));
    let said = device.prints(
        "fio --name=verify --filename=DEV --ioengine=libaio --direct=1 --rw=randrw \
         --bsrange=4k-64k --iodepth=32 --numjobs=4 --size=8M --offset_increment=8M \
         --verify=crc32c --verify_fatal=1 --do_verify=1 --randseed=7 --fsync=64 \
         --verify_state_save=0 --group_reporting",
    );
    assert!(said.contains("err= 0"), "{said}");
    device.stop();
}

/// Made, mounted, worked on by fsx, trimmed, unmounted, checked; mounted again, it is as it was. Meanwhile a client
/// over NBD works behind it on the same volume.
fn holds_a_file_system(make: &str, check: &str) {
    let first = |words: &str| words.split(' ').next().unwrap_or_default().to_owned();
    let (maker, checker) = (first(make), first(check));
    if !can(&["fsx", "fstrim", "fio", &maker, &checker]) {
        return;
    }
    let device = Device::of_part(
        &file(BYTES + BESIDE, WHOLE),
        &format!("--sizelimit {BYTES}"),
    );
    let beside = Beside::begin(&device);
    device.prints(make);
    let mounted = device.mount();
    device.fsx(
        "mounted/x",
        "[weights]\ninvalidate = 1\nfsync = 0.2\npunch_hole = 1\nclose_open = 0.2\n",
    );
    std::fs::write(mounted.at.join("removed"), vec![7; 8 << 20]).expect("a file");
    device.prints("sync --file-system mounted");
    std::fs::remove_file(mounted.at.join("removed")).expect("removed");
    let kept = std::fs::read(mounted.at.join("x")).expect("a file");
    let trimmed = device.prints("fstrim --verbose mounted");
    assert!(!trimmed.contains(": 0 B"), "{trimmed}");
    drop(mounted);
    beside.end();
    device.prints(check);
    let mounted = device.mount();
    assert!(std::fs::read(mounted.at.join("x")).expect("a file") == kept);
    drop(mounted);
    device.stop();
}

#[test]
fn ext4_is_made_worked_on_trimmed_and_checked() {
    holds_a_file_system("mkfs.ext4 -q DEV", "fsck.ext4 -f -n DEV");
}

#[test]
fn xfs_is_made_worked_on_trimmed_and_checked() {
    holds_a_file_system("mkfs.xfs -q DEV", "xfs_repair -n DEV");
}

#[test]
fn btrfs_is_made_worked_on_trimmed_and_checked() {
    holds_a_file_system("mkfs.btrfs -q DEV", "btrfs check --readonly DEV");
}

/// The kernel has acknowledged writes to a file system that the service does not have yet.
#[test]
fn a_drain_waits_until_a_file_system_is_unmounted() {
    if !can(&["mkfs.ext4", "debugfs"]) {
        return;
    }
    let mut device = Device::of(&file(64 << 20, WHOLE));
    device.prints("mkfs.ext4 -q DEV");
    let mounted = device.mount();
    let [before, after] = [7, 8].map(|byte| vec![byte; 8 << 20]);
    std::fs::write(mounted.at.join("before"), &before).expect("a file");
    let headtime = assert_cmd::cargo::cargo_bin!("headtime")
        .display()
        .to_string();
    let said = device.prints(&format!("{headtime} ctl --socket control.sock drain"));
    let name = &device.name;
    let expected = format!("it waits for {name} (mounted on {})", mounted.at.display());
    assert!(said.contains(&expected), "{said}");
    // Who asks again is told again.
    let said = device.prints(&format!("{headtime} ctl --socket control.sock drain"));
    assert!(said.contains(&expected), "{said}");
    std::fs::write(mounted.at.join("after"), &after).expect("a file");
    drop(mounted);
    device.prints("losetup --detach DEV");
    let mut service = device.service.take().expect("it was not stopped");
    service.ends();
    assert!(service.log().contains("waits, because they are in use"));
    for (file, bytes) in [("before", before), ("after", after)] {
        // The image of the drive has the file system from its first byte on.
        let dumped = Command::new("debugfs")
            .args(["-R", &format!("dump {file} dumped"), "image"])
            .current_dir(service.folder())
            .output();
        assert!(dumped.expect("it runs").status.success());
        let found = std::fs::read(service.path("dumped")).expect("a file");
        assert!(found == bytes, "{file}: {} bytes", found.len());
    }
}

/// The page cache of a reader that reads each of its blocks once keeps what its group may have, and no
/// request is lost on the way: `bench caches` fails if fio reads fewer than were written for it.
#[test]
fn the_page_cache_is_an_upper_level_of_the_size_that_was_set() {
    if !can(&["mkfs.ext4", "fio"]) || !Path::new("/sys/fs/cgroup").is_dir() {
        return;
    }
    // 4,096 blocks of 4 KiB, in a footprint of 16,384: a hundredth of the drive's time.
    let output = Command::new(assert_cmd::cargo::cargo_bin!("headtime"))
        .args(["bench", "caches", "--above", "page-cache", "--json"])
        .args(["--coordinator", "pfc", "--time-scale", "0.01"])
        .args(["--upper", "4096", "--lower", "1024", "--requests", "3000"])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(told["above"], "page-cache");
    let cases = told["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), 2);
    for case in cases {
        let live = &case["live"];
        // Two readers; the kernel evicts in batches and keeps pages of the file system itself.
        let kept = live["upper_mb"].as_f64().expect("the page cache");
        let bound = 2.0 * 4096.0 * 4096.0 / 1e6;
        assert!(
            (0.5 * bound..=1.1 * bound).contains(&kept),
            "{kept} of {bound}"
        );
        assert!(live["mean_ms"].as_f64() > Some(0.0), "{case}");
        assert!(live["lower_ahead_mb"].as_f64() > Some(0.0), "{case}");
    }
}
