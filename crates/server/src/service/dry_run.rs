//! What a start would do, found out without doing it: for `headtime serve --check`.
//!
//! Nothing is created or opened for writing. A unix socket is connected to and a port is bound for a moment, to see
//! whether another program listens. A start may still fail: a program may claim a disk meanwhile, a server behind NBD
//! is not asked, and a profile is not compared with the size of its disk.

use std::fmt::Display;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde::Serialize;

use super::classifying::usable;
use super::doors::secured;
use super::drives::{believed, emulated_bytes, volumes};
use crate::classify::devices::Sysfs;
use crate::config::{self, BackEnd, Belief, Config, Listen};
use crate::disk::back_end::disk::claim::{Node, node};
use crate::disk::back_end::disk::sysfs::{DiskProperties, users};
use crate::disk::back_end::file::creation;

/// One thing that a start would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedStep {
    /// The part of the configuration, such as `drive disk` or `nbd`.
    pub part: String,
    /// What becomes of it.
    pub outcome: StepOutcome,
    /// The step in words, with the reason of a refusal and what was expected.
    pub step: String,
}

/// What becomes of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StepOutcome {
    /// It uses what is there.
    Uses,
    /// It makes or changes something.
    Changes,
    /// It has no use for it.
    Unused,
    /// The start would fail.
    Refused,
}

impl StepOutcome {
    /// The word in tables.
    pub const fn name(self) -> &'static str {
        match self {
            StepOutcome::Uses => "uses",
            StepOutcome::Changes => "changes",
            StepOutcome::Unused => "unused",
            StepOutcome::Refused => "refused",
        }
    }
}

/// Where the kernel tells of its devices.
const SYSTEM: &str = "/sys";

/// The steps of a start with this configuration, in their order.
pub fn dry_run(config: &Config) -> Vec<PlannedStep> {
    let mut plan = Plan::default();
    for drive in &config.drives {
        plan.part = format!("drive {}", drive.name);
        plan.drive(drive);
    }
    for nbd in &config.nbd {
        "nbd".clone_into(&mut plan.part);
        plan.nbd(nbd);
    }
    if let Some(fuse) = &config.fuse {
        "fuse".clone_into(&mut plan.part);
        plan.device_node(
            Path::new("/dev/fuse"),
            "a kernel with FUSE, and this user's right to it",
        );
        plan.folder(&fuse.mount);
    }
    if let Some(ublk) = &config.ublk {
        "ublk".clone_into(&mut plan.part);
        plan.device_node(
            Path::new("/dev/ublk-control"),
            "`modprobe ublk_drv`, and root",
        );
        for export in &ublk.exports {
            plan.changes(format!("a block device for export {export}"));
        }
    }
    if let Some(export) = (config.drives.iter())
        .flat_map(|drive| &drive.exports)
        .find(|export| export.classify.is_some())
    {
        plan.part = format!("export {}", export.name);
        match usable(&Sysfs::default()) {
            Ok(_) => plan.uses("events of block devices, for I/O priorities".to_owned()),
            Err(problem) => plan.add(StepOutcome::Refused, problem),
        }
    }
    "control".clone_into(&mut plan.part);
    plan.socket(&config.control.socket);
    if let Some(address) = config.control.http {
        plan.port(address, "status page");
    }
    plan.steps
}

#[derive(Default)]
struct Plan {
    part: String,
    steps: Vec<PlannedStep>,
}

impl Plan {
    fn add(&mut self, outcome: StepOutcome, step: String) {
        let part = self.part.clone();
        self.steps.push(PlannedStep {
            part,
            outcome,
            step,
        });
    }

    fn uses(&mut self, step: String) {
        self.add(StepOutcome::Uses, step);
    }

    fn changes(&mut self, step: String) {
        self.add(StepOutcome::Changes, step);
    }

    fn refused(&mut self, path: &Path, why: impl Display) {
        self.add(StepOutcome::Refused, format!("{}: {why}", path.display()));
    }

    fn drive(&mut self, drive: &config::DriveConfig) {
        let bytes = self.back_end(&drive.back_end);
        self.belief(&drive.belief, drive.belief_unchecked);
        self.uses(format!("policy {}", drive.policy.name()));
        if let Some(bytes) = bytes
            && let Err(why) = volumes(drive, bytes)
        {
            self.add(StepOutcome::Refused, why);
        }
        for volume in &drive.volumes {
            for (path, what) in [
                (&volume.checksums, "checksums"),
                (&volume.bitmaps, "dirty bitmaps"),
            ] {
                if let Some(path) = path {
                    self.kept(path, &format!("{what} of volume {}", volume.name));
                }
            }
        }
        if let Some(capture) = &drive.capture {
            self.changes(format!("capture {} is written anew", capture.display()));
        }
        for export in &drive.exports {
            let access = match export.access {
                config::Access::ReadWrite => "read and write",
                config::Access::ReadOnly => "read only",
            };
            self.uses(format!(
                "export {} of volume {}, {access}",
                export.name, export.volume
            ));
        }
    }

    /// What a back end would open or make. Returns its bytes, as far as they are known.
    fn back_end(&mut self, back_end: &BackEnd) -> Option<u64> {
        match back_end {
            BackEnd::Memory { size } => {
                self.uses(format!(
                    "{size} bytes of memory, whose content ends with the service"
                ));
                Some(*size)
            }
            BackEnd::File { path, size, .. } => self.file(path, *size),
            BackEnd::Emulated(emulated) => match emulated_bytes(emulated) {
                Ok(bytes) => self.file(&emulated.image, Some(bytes)),
                Err(why) => {
                    self.add(StepOutcome::Refused, why);
                    None
                }
            },
            BackEnd::Device(device) => self.device(device),
            BackEnd::Nbd(remote) => {
                self.uses(format!("{}, which was not asked", remote.uri));
                None
            }
            BackEnd::Mirror(mirror) => {
                let bytes = mirror.legs.iter().map(|leg| {
                    let bytes = self.back_end(&leg.back_end);
                    self.belief(&leg.belief, leg.belief_unchecked);
                    bytes
                });
                // The smaller leg decides; None is the smallest.
                bytes.min().flatten()
            }
        }
    }

    fn file(&mut self, path: &Path, size: Option<u64>) -> Option<u64> {
        match (path.metadata(), size) {
            (Ok(found), _) if found.is_file() => {
                self.uses(format!("{}, {} bytes", path.display(), found.len()));
                Some(found.len())
            }
            (Ok(_), _) => {
                self.refused(
                    path,
                    "expected a regular file; a disk has kind = \"device\"",
                );
                None
            }
            (Err(_), Some(size)) => match creation::is_possible(path, size) {
                Ok(()) => {
                    self.made(path, &format!("sparse, {size} bytes"));
                    Some(size)
                }
                Err(problem) => {
                    self.refused(path, problem);
                    None
                }
            },
            (Err(error), None) => {
                self.refused(
                    path,
                    format!("{error}: expected a file, or a size for a new one"),
                );
                None
            }
        }
    }

    /// A file that is made, where its folder can be had.
    fn made(&mut self, path: &Path, what: &str) {
        let above = path.ancestors().skip(1);
        let mut there = above.filter(|folder| folder.symlink_metadata().is_ok());
        match there.next() {
            Some(folder) if !folder.is_dir() => {
                self.refused(path, format!("{} is no folder", folder.display()));
            }
            _ => self.changes(format!("{} is made: {what}", path.display())),
        }
    }

    /// A file or folder that is used, or made if it is not there.
    fn kept(&mut self, path: &Path, what: &str) {
        match path.exists() {
            true => self.uses(format!("{what} in {}", path.display())),
            false => self.made(path, what),
        }
    }

    fn device(&mut self, device: &config::Device) -> Option<u64> {
        let path = &device.path;
        let folder = match node(path, Path::new(SYSTEM)) {
            Ok(Node::Disk(folder)) => folder,
            Ok(Node::Generic(disk)) => {
                let disk = disk.unwrap_or_else(|| "no disk of the kernel".to_owned());
                self.uses(format!("{} by SCSI commands ({disk})", path.display()));
                return None;
            }
            Err(refused) => {
                self.refused(path, refused);
                return None;
            }
        };
        let found = match DiskProperties::read(&folder) {
            Ok(found) => found,
            Err(refused) => {
                self.refused(path, refused);
                return None;
            }
        };
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let users = users(&folder, &mounts);
        if users.is_empty() {
            self.uses(format!("{}, {} bytes", path.display(), found.bytes));
        } else {
            self.refused(
                path,
                format!(
                    "in use ({}): expected a disk that nobody uses",
                    users.join(", ")
                ),
            );
        }
        for (switch, name) in [
            (device.write_cache, "write cache"),
            (device.look_ahead, "look-ahead"),
        ] {
            if switch == block::Switch::Off {
                self.changes(format!("the drive's {name} is off until the service ends"));
            }
        }
        Some(found.bytes)
    }

    fn belief(&mut self, belief: &Belief, unchecked: block::Switch) {
        match believed(belief, unchecked) {
            Ok(Some(belief)) => self.uses(format!("profile {}", belief.name)),
            Ok(None) if *belief == Belief::Emulated => {
                self.uses("the emulated drive's own profile".to_owned());
            }
            Ok(None) => self.uses("no profile: no free blocks, no positions".to_owned()),
            Err(why) => self.add(StepOutcome::Refused, why),
        }
    }

    fn nbd(&mut self, nbd: &config::Nbd) {
        if let Err(why) = secured(nbd) {
            self.add(StepOutcome::Refused, why.to_string());
        }
        match &nbd.listen {
            Listen::Unix(path) => self.socket(path),
            Listen::Tcp(address) => self.port(*address, "NBD"),
            Listen::Activated(name) => self.uses(format!("socket {name} of systemd")),
        }
    }

    fn socket(&mut self, path: &Path) {
        match path.symlink_metadata() {
            Ok(found) if !found.file_type().is_socket() => {
                self.refused(path, "expected a socket, or nothing");
            }
            Ok(_) if UnixStream::connect(path).is_ok() => {
                self.refused(
                    path,
                    "another program listens there: is the service running?",
                );
            }
            Ok(_) => self.changes(format!("{}, in place of a dead one", path.display())),
            Err(_) => self.made(path, "a unix socket"),
        }
    }

    fn port(&mut self, address: std::net::SocketAddr, what: &str) {
        match std::net::TcpListener::bind(address) {
            Ok(_) => self.changes(format!("{what} at {address}")),
            Err(error) => self.add(
                StepOutcome::Refused,
                format!("{what} at {address}: {error}"),
            ),
        }
    }

    fn device_node(&mut self, path: &Path, expected: &str) {
        if let Err(error) = path.metadata() {
            self.refused(path, format!("{error}: expected {expected}"));
        }
    }

    fn folder(&mut self, path: &Path) {
        match path.symlink_metadata() {
            Ok(found) if found.is_dir() => {
                self.changes(format!("volumes as files in {}", path.display()));
            }
            Ok(_) => self.refused(path, "expected a folder"),
            Err(_) => self.made(
                path,
                "a folder with the volumes as files, until the service ends",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{StepOutcome, dry_run};
    use crate::config::{Config, Places};
    use std::path::Path;

    fn outcomes(folder: &Path, text: &str) -> Vec<(StepOutcome, String)> {
        let places = Places::of_this_user(folder);
        let config = Config::parse("test.toml", text, &places).expect("a configuration");
        let steps = dry_run(&config);
        steps
            .into_iter()
            .map(|step| (step.outcome, step.step))
            .collect()
    }

    const FILE: &str = "[[drive]]\nname = \"d\"\nback_end = { kind = \"file\", path = \"disk.img\", size = \"1 MiB\" }\n\
                        [[drive.volume]]\nname = \"v\"\n[[drive.export]]\nname = \"e\"\nvolume = \"v\"\n\
                        [control]\nsocket = \"control\"\n";

    /// No file system has a file of so many bytes: the largest offset is below 2^63.
    #[test]
    fn a_file_that_is_too_long_for_the_file_system_is_refused_before_the_start() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = FILE.replace("1 MiB", "8388607 TiB");
        let found = outcomes(folder.path(), &text);
        let refused = found
            .iter()
            .find(|(outcome, _)| *outcome == StepOutcome::Refused);
        let (_, why) = refused.unwrap_or_else(|| panic!("{found:?}"));
        assert!(why.contains("expected one that has"), "{why}");
        assert_eq!(std::fs::read_dir(folder.path()).expect("it").count(), 0);
    }

    #[test]
    fn a_new_file_is_made_by_the_start_and_not_by_the_look_at_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let before = outcomes(folder.path(), FILE);
        let image = folder.path().join("disk.img");
        let made = format!("{} is made: sparse, 1048576 bytes", image.display());
        assert!(before.contains(&(StepOutcome::Changes, made)), "{before:?}");
        assert!(!image.exists());
        std::fs::write(&image, vec![0; 1 << 20]).expect("a file");
        let after = outcomes(folder.path(), FILE);
        let used = format!("{}, 1048576 bytes", image.display());
        assert!(after.contains(&(StepOutcome::Uses, used)), "{after:?}");
        assert!(
            after
                .iter()
                .all(|(outcome, _)| *outcome != StepOutcome::Refused),
            "{after:?}"
        );
    }

    #[test]
    fn what_a_start_would_refuse_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let refused = |text: &str, expected: &str| {
            let steps = outcomes(folder.path(), text);
            let said = |step: &&(StepOutcome, String)| step.0 == StepOutcome::Refused;
            let found: Vec<&str> = steps
                .iter()
                .filter(said)
                .map(|step| step.1.as_str())
                .collect();
            assert!(
                found.iter().any(|step| step.contains(expected)),
                "{expected}: {steps:?}"
            );
        };
        refused(
            &FILE.replace(", size = \"1 MiB\"", ""),
            "expected a file, or a size for a new one",
        );
        std::fs::write(folder.path().join("disk.img"), vec![0; 1 << 20]).expect("a file");
        let larger = FILE.replace(", size = \"1 MiB\"", "").replace(
            "name = \"v\"\n[[drive.export",
            "name = \"v\"\nsize = \"2 MiB\"\n[[drive.export",
        );
        refused(&larger, "expected it to end on the drive");
        let busy =
            std::os::unix::net::UnixListener::bind(folder.path().join("busy")).expect("a socket");
        refused(
            &FILE.replace("\"control\"", "\"busy\""),
            "another program listens there",
        );
        drop(busy);
        std::fs::write(folder.path().join("file"), "").expect("a file");
        refused(
            &FILE.replace("\"control\"", "\"file\""),
            "expected a socket, or nothing",
        );
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = tcp.local_addr().expect("an address");
        refused(
            &format!("{FILE}[[nbd]]\ntcp = \"{address}\"\n"),
            &address.to_string(),
        );
        refused(
            &FILE.replace(
                "kind = \"file\", path = \"disk.img\", size = \"1 MiB\"",
                "kind = \"device\", path = \"/dev/null\", confirm = \"/dev/null\"",
            ),
            "expected such as /dev/sdb",
        );
    }
}
