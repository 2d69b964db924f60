//! A service of a file, or of a mirror of two, in a machine whose power goes: what the page cache and the journal of the file system had not
//! written is lost.
//!
//! ```text
//!   load --> serve --> file --> ext4 or xfs --> loop device
//!                                 ^-- shutdown without a flush, within the load; kill -9; mounted again
//! ```
//!
//! The shutdown of a file system (XFS_IOC_GOINGDOWN, which ext4 has, too) stops its writes at once, as a power cut does.

use std::path::PathBuf;
use std::process::Command;

use nbd::Style;

use crate::behind::process::{Folder, Server, has};
use crate::client::{Client, End};
use crate::ledger::Ledger;
use crate::mirrored;

/// `CUTS=n` for more or fewer.
fn cuts() -> u64 {
    std::env::var("CUTS").map_or(12, |n| n.parse().expect("a number of power cuts"))
}

/// A mounted file system in a file of the folder. Unmounted when it is dropped.
struct Disk {
    image: PathBuf,
    at: PathBuf,
}

impl Disk {
    fn make(folder: &Folder, make: &str) -> Disk {
        let disk = Disk {
            image: folder.path("file-system"),
            at: folder.path("at"),
        };
        let image = std::fs::File::create(&disk.image).expect("a file");
        image.set_len(1 << 30).expect("a gibibyte");
        folder.runs(&format!("{make} {}", disk.image.display()));
        std::fs::create_dir(&disk.at).expect("a folder");
        disk.mount(folder);
        disk
    }

    fn mount(&self, folder: &Folder) {
        folder.runs(&format!(
            "mount -o loop {} {}",
            self.image.display(),
            self.at.display()
        ));
    }

    /// Waits for the kernel, which closes files of a killed program's io_uring later.
    fn unmount(&self, folder: &Folder) {
        let unmount = format!("umount {}", self.at.display());
        let goes = |_| folder.output(&unmount).status.success();
        assert!((0..10_000).any(goes), "it stays busy");
    }

    /// Nothing is written any more, and nothing is flushed.
    fn cut(&self) {
        let cut = Command::new("xfs_io")
            .args(["-x", "-c", "shutdown"])
            .arg(&self.at)
            .output()
            .expect("xfs_io runs");
        assert!(cut.status.success() && cut.stderr.is_empty(), "{cut:?}");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A program that was just killed may still have files there: they go with it.
        let _ = Command::new("umount").arg("--lazy").arg(&self.at).output();
    }
}

fn submit(client: &mut Client, ledger: &mut Ledger) {
    while client.under_way() < 8 {
        let (rule, unit) = ledger.next();
        ledger.submit(client, rule, unit);
    }
}

/// Whether it ended well.
fn book(end: &End, ledger: &mut Ledger) -> bool {
    match end.result {
        Ok(()) => ledger.ended(end),
        Err(_) => ledger.failed(end),
    }
    end.result.is_ok()
}

/// What is served from such a file system.
#[derive(Clone, Copy)]
enum Served {
    File,
    Mirror,
}

impl Served {
    /// The back end, and the legs of a mirror.
    fn back_end(self, direct: bool) -> String {
        let file = |name| {
            let path = format!("path = \"at/{name}\", size = \"256 MiB\"");
            format!("{{ kind = \"file\", {path}, direct = {direct} }}")
        };
        match self {
            Served::File => file("image"),
            Served::Mirror => format!(
                "{{ kind = \"mirror\", degraded = false }}\n\
                 [[drive.leg]]\nback_end = {}\n[[drive.leg]]\nback_end = {}",
                file("one"),
                file("two")
            ),
        }
    }
}

/// A service on such a file system.
struct Machine {
    folder: Folder,
    disk: Disk,
    back_end: String,
    /// While it runs.
    service: Option<Server>,
}

impl Machine {
    /// Unless a program is missing, which is said.
    fn boot(make: &str, served: Served, direct: bool) -> Option<Machine> {
        let first = make.split(' ').next().expect("a program");
        if !["xfs_io", "mount", first].into_iter().all(has) {
            return None;
        }
        let folder = Folder::new();
        let disk = Disk::make(&folder, make);
        let back_end = served.back_end(direct);
        if matches!(served, Served::Mirror) {
            folder.configure("s", &back_end, DOOR);
            let program = env!("CARGO_BIN_EXE_headtime");
            folder.runs(&format!("{program} mirror create s.toml d --confirm d"));
        }
        let service = serve(&folder, &back_end);
        Some(Machine {
            folder,
            disk,
            back_end,
            service: Some(service),
        })
    }

    fn connect(&self) -> Client {
        Client::connect_unaware(&self.folder.path("s"), Style::Structured)
    }

    /// Cuts the power behind so many answers, and a dozen before the service is killed. Returns how many of these failed.
    fn lose_power(
        &mut self,
        ledger: &mut Ledger,
        answers: u64,
        before: impl FnOnce(&mut Ledger),
    ) -> u64 {
        let mut client = self.connect();
        for _ in 0..answers {
            submit(&mut client, ledger);
            let end = client.end().expect("the service answers");
            assert!(book(&end, ledger), "{:?}", end.result);
        }
        submit(&mut client, ledger);
        before(ledger);
        self.disk.cut();
        let mut failed = 0;
        // What the kernel acknowledges from here on may be lost: an fdatasync that overlaps the shutdown can end well
        // (Linux 6.18; a program of pwrite and fdatasync alone lost 6 in 40 shutdowns of ext4, 1 in 20 of xfs). After a
        // power cut nobody hears an acknowledgement.
        for _ in 0..12 {
            submit(&mut client, ledger);
            let end = client.end().expect("the service answers");
            failed += u64::from(end.result.is_err());
            ledger.failed(&end);
        }
        if let Some(service) = self.service.take() {
            service.kill();
        }
        while let Some(end) = client.end() {
            ledger.failed(&end);
        }
        ledger.nobody_answers();
        self.disk.unmount(&self.folder);
        self.disk.mount(&self.folder);
        self.service = Some(serve(&self.folder, &self.back_end));
        failed
    }
}

fn serve(folder: &Folder, back_end: &str) -> Server {
    folder.serve("s", back_end, DOOR)
}

const DOOR: &str = "[[nbd]]\nunix = \"s\"\n";

/// Cuts the power so often, each time within a load.
fn survives(make: &str, served: Served, direct: bool, seed: u64) {
    let Some(mut machine) = Machine::boot(make, served, direct) else {
        return;
    };
    let mut ledger = Ledger::new(seed);
    let mut failed = 0;
    for round in 0..cuts() {
        failed += machine.lose_power(&mut ledger, 5 + round * 7 % 60, |_| ());
        let broken = ledger.verify(&mut machine.connect()).0;
        assert_eq!(broken, [""; 0], "round {round}");
    }
    assert!(failed > 0, "no cut was noticed, so that this tests nothing");
    if matches!(served, Served::Mirror) {
        mirrored::wait_for_sync_by(&machine.folder.path(""), "s.control");
    }
    machine.service.take().expect("it runs").stop();
    if matches!(served, Served::Mirror) {
        let legs = ["one", "two"];
        assert_eq!(
            mirrored::difference(&machine.disk.at, legs, ledger.bytes()),
            None
        );
    }
}

#[test]
fn a_file_through_the_page_cache_loses_nothing_flushed() {
    survives("mkfs.ext4 -q", Served::File, false, 61);
    survives("mkfs.xfs -q", Served::File, false, 62);
}

#[test]
fn a_file_past_the_page_cache_loses_nothing_flushed() {
    survives("mkfs.ext4 -q", Served::File, true, 63);
    survives("mkfs.xfs -q", Served::File, true, 64);
}

#[test]
fn a_mirror_whose_legs_lose_power_together_loses_nothing_flushed() {
    survives("mkfs.ext4 -q", Served::Mirror, true, 66);
    survives("mkfs.xfs -q", Served::Mirror, false, 67);
}

#[test]
fn what_was_not_flushed_is_lost_and_found_out() {
    let Some(mut machine) = Machine::boot("mkfs.ext4 -q", Served::File, false) else {
        return;
    };
    let mut ledger = Ledger::new(65);
    machine.lose_power(&mut ledger, 40, |ledger| ledger.imagine(0));
    assert_ne!(ledger.verify(&mut machine.connect()).0, [""; 0]);
}
