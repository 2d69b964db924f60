//! Opening a disk for exclusive use.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::exclusive;

use super::sysfs::{DiskProperties, Refused, Writes, users};

/// The kind of a device node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A disk, with its folder in sysfs.
    Disk(PathBuf),
    /// A node for SCSI commands only, and the name of its disk, if the kernel has one.
    Generic(Option<String>),
}

/// Finds the kind of a device node. `system` is the folder of sysfs.
///
/// # Errors
/// If it is no device of either kind.
pub fn node(path: &Path, system: &Path) -> Result<Node, Refused> {
    let metadata = std::fs::metadata(path).map_err(|error| of_open(&error))?;
    let device = metadata.rdev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    let kind = metadata.file_type();
    if kind.is_block_device() {
        return Ok(Node::Disk(
            system.join(format!("dev/block/{major}:{minor}")),
        ));
    }
    let folder = system.join(format!("dev/char/{major}:{minor}"));
    if kind.is_char_device() && is_generic(&folder) {
        let disks = std::fs::read_dir(folder.join("device/block"));
        let disk = disks.ok().and_then(|mut disks| disks.next()?.ok());
        let name = disk.map(|disk| disk.file_name().display().to_string());
        return Ok(Node::Generic(name));
    }
    Err(Refused::Other(
        "it is neither a block device nor a SCSI generic one: expected such as /dev/sdb or /dev/sg1 \
         (a file is of kind \"file\")"
            .to_owned(),
    ))
}

fn is_generic(folder: &Path) -> bool {
    let subsystem = std::fs::read_link(folder.join("subsystem"));
    subsystem.is_ok_and(|link| link.ends_with("scsi_generic"))
}

/// Opens a disk past the page cache. While the file is open, no program can mount the disk or one of its
/// partitions, or claim it.
///
/// # Errors
/// If the disk is in use, or must not be opened.
pub fn claim(path: &Path, folder: &Path, properties: &DiskProperties) -> Result<File, Refused> {
    if properties.access == Writes::Forbidden {
        return Err(Refused::ReadOnly);
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    // Of a block device O_EXCL is a claim on it (open(2)).
    options.custom_flags(libc::O_DIRECT | libc::O_EXCL);
    let opened = exclusive::patiently(
        exclusive::PATIENCE,
        || options.open(path),
        |error| is_ending(error, folder),
    );
    opened.map_err(|error| match of_open(&error) {
        Refused::InUse { .. } => {
            let users = users(folder, &mounts());
            let by = match users.is_empty() {
                true => "by a program or in another namespace".to_owned(),
                false => users.join(", "),
            };
            Refused::InUse { by }
        }
        other => other,
    })
}

/// Whether the disk is in use by a program, which may be about to end. What is mounted stays.
fn is_ending(error: &io::Error, folder: &Path) -> bool {
    error.raw_os_error() == Some(libc::EBUSY) && users(folder, &mounts()).is_empty()
}

/// The mounts that this process sees (proc_pid_mountinfo(5)).
fn mounts() -> String {
    std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default()
}

/// The meaning of an error of open(2) or stat(2) for a disk.
fn of_open(error: &io::Error) -> Refused {
    match error.raw_os_error() {
        Some(libc::EBUSY) => Refused::InUse { by: String::new() },
        Some(libc::EACCES | libc::EPERM) => Refused::Forbidden,
        Some(libc::EROFS) => Refused::ReadOnly,
        Some(libc::ENOMEDIUM) => Refused::Empty,
        Some(libc::ENOENT | libc::ENXIO | libc::ENODEV) => Refused::Missing,
        _ => Refused::Other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_disk_is_refused_with_what_was_expected() {
        let system = Path::new("/sys");
        let file = tempfile::NamedTempFile::new().expect("a file");
        for path in [file.path(), Path::new("/dev/null")] {
            let refused = node(path, system).expect_err("no disk").to_string();
            assert!(refused.contains("expected such as /dev/sdb"), "{refused}");
        }
        let missing = node(&file.path().join("x"), system);
        assert!(missing.is_err());
        assert_eq!(
            node(Path::new("/dev/nothing-of-that-name"), system),
            Err(Refused::Missing)
        );
    }

    #[test]
    fn each_error_of_opening_says_what_to_do() {
        for (number, what) in [
            (libc::EBUSY, "unmount it"),
            (libc::EACCES, "a udev rule"),
            (libc::EROFS, "setrw"),
            (libc::ENOMEDIUM, "no medium"),
            (libc::ENXIO, "it is not there"),
            (libc::EIO, "Input/output error"),
        ] {
            let refused = of_open(&io::Error::from_raw_os_error(number)).to_string();
            assert!(refused.contains(what), "{number}: {refused}");
        }
    }
}
