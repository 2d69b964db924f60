//! The kernel's properties of a disk (the kernel's documentation, ABI/stable/sysfs-block), and the disks
//! that are refused by them.

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::disk::back_end::scsi::PositioningRange;

/// The kernel's properties of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskProperties {
    /// The number of bytes.
    pub bytes: u64,
    /// Bytes of a block: 512 or 4096.
    pub block_bytes: u32,
    /// Whether the disk rotates.
    pub rotational: bool,
    /// Whether the disk can be trimmed.
    pub trims: bool,
    /// Whether the drive can write zeroes by itself.
    pub zeroes_fast: bool,
    /// The blocks of each of several actuators, in their order; none if the kernel knows of one only.
    pub ranges: Vec<PositioningRange>,
    /// Bytes of the longest command that the disk certainly takes.
    pub most_bytes: usize,
    /// Whether the kernel writes to the disk.
    pub access: Writes,
}

/// Whether the kernel writes to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// It does.
    Allowed,
    /// It does not.
    Forbidden,
}

/// The reason for which a disk is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The device is a partition.
    #[error(
        "a partition of {of}: expected the whole drive, because whoever uses its other parts moves \
         the same head; volumes can be parts of it (offset, size)"
    )]
    Partition {
        /// The disk of the partition.
        of: String,
    },
    /// The disk is zoned: its blocks cannot be written in any order.
    #[error("a zoned drive ({model}): expected one whose blocks can be written in any order")]
    Zoned {
        /// `host-managed` or `host-aware`.
        model: String,
    },
    /// The device has no blocks.
    #[error("no medium is in it: expected a drive with blocks")]
    Empty,
    /// The block size is not supported.
    #[error("blocks of {bytes} bytes: expected 512 or 4096")]
    BlockSize {
        /// The size.
        bytes: u64,
    },
    /// The device is write-protected.
    #[error(
        "the kernel does not write to it: expected a drive that can be written (is there a switch \
         on it? `blockdev --setrw` undoes `--setro`)"
    )]
    ReadOnly,
    /// The device is in use.
    #[error(
        "in use ({by}): expected a drive that nobody else has open; unmount it, or stop what uses it \
         (`lsblk` and `fuser -v` show what that is)"
    )]
    InUse {
        /// The users, as far as they are known.
        by: String,
    },
    /// The user has no permission.
    #[error(
        "this user may not open it: expected a member of its group (`ls -l` shows it, mostly \
         `disk`), or a udev rule that gives it to this user"
    )]
    Forbidden,
    /// The device does not exist.
    #[error("it is not there: expected a block device (`lsblk` lists them)")]
    Missing,
    /// Another reason.
    #[error("{0}")]
    Other(String),
}

/// Bytes of a command if an old kernel states no limit. A choice: SATA took 128 KiB when commands had 28
/// bits.
pub const MOST_BYTES: u64 = 128 << 10;

/// Bytes of a page of memory. A command has at most `max_segments` pages.
const PAGE_BYTES: u64 = 4096;

impl DiskProperties {
    /// Reads the properties of the disk whose folder is `/sys/class/block/sda` or a link to it.
    ///
    /// # Errors
    /// If the disk is refused.
    pub fn read(folder: &Path) -> Result<Self, Refused> {
        if folder.join("partition").exists() {
            let of = fs::canonicalize(folder).ok();
            let disk = of
                .as_deref()
                .and_then(Path::parent)
                .and_then(Path::file_name);
            let of = disk.map_or_else(
                || "a disk".into(),
                |name| format!("/dev/{}", name.display()),
            );
            return Err(Refused::Partition { of });
        }
        if !folder.join("size").exists() {
            return Err(Refused::Missing);
        }
        let number = |name: &str| number(&folder.join(name));
        // The kernel's sectors are 512 bytes whatever the drive's blocks are.
        let bytes = number("size").unwrap_or(0) * 512;
        if bytes == 0 {
            return Err(Refused::Empty);
        }
        let model = text(&folder.join("queue/zoned"));
        if let Some(model) = model.filter(|model| model != "none") {
            return Err(Refused::Zoned { model });
        }
        let block_bytes = match number("queue/logical_block_size") {
            Some(512) => 512,
            Some(4096) => 4096,
            other => {
                let bytes = other.unwrap_or(0);
                return Err(Refused::BlockSize { bytes });
            }
        };
        let kib = number("queue/max_sectors_kb").map_or(MOST_BYTES, |kib| kib << 10);
        // What does not begin with a page lies on one page more.
        let pages = number("queue/max_segments").map_or(u64::MAX, |pages| pages.max(2) - 1);
        let segments = pages.saturating_mul(PAGE_BYTES);
        let is_some = |name: &str| number(name).unwrap_or(0) > 0;
        Ok(DiskProperties {
            bytes,
            block_bytes,
            rotational: is_some("queue/rotational"),
            trims: is_some("queue/discard_max_bytes"),
            zeroes_fast: is_some("queue/write_zeroes_max_bytes"),
            ranges: access_ranges(folder, block_bytes),
            most_bytes: usize::try_from(kib.min(segments)).unwrap_or(usize::MAX),
            access: match number("ro") {
                Some(1) => Writes::Forbidden,
                _ => Writes::Allowed,
            },
        })
    }
}

/// The users of the disk and its partitions: holders and mount points. `mounts` is the text of
/// `/proc/self/mountinfo`.
pub fn users(folder: &Path, mounts: &str) -> Vec<String> {
    let mut users = Vec::new();
    let parts = entries(folder).into_iter();
    let parts = parts.filter(|entry| entry.join("partition").exists());
    for place in std::iter::once(folder.to_path_buf()).chain(parts) {
        for holder in entries(&place.join("holders")) {
            users.extend(holder.file_name().map(|name| format!("{}", name.display())));
        }
        let Some(device) = text(&place.join("dev")) else {
            continue;
        };
        for line in mounts.lines() {
            // proc_pid_mountinfo(5): the third field is the device, the fifth the place.
            let fields: Vec<&str> = line.split(' ').collect();
            if fields.get(2) == Some(&device.as_str())
                && let Some(place) = fields.get(4)
            {
                users.push(format!("mounted on {place}"));
            }
        }
    }
    users
}

/// Whether a file system or another device uses a block device.
pub fn is_claimed(device: &Path) -> bool {
    // Devices that are claimed cannot be opened exclusively (open(2), O_EXCL without O_CREAT).
    let opened = fs::File::options()
        .read(true)
        .custom_flags(libc::O_EXCL)
        .open(device);
    opened.is_err_and(|error| error.kind() == std::io::ErrorKind::ResourceBusy)
}

/// The independent access ranges of a disk with blocks of `block_bytes` bytes, in their order; none if the
/// kernel knows of none.
pub fn access_ranges(folder: &Path, block_bytes: u32) -> Vec<PositioningRange> {
    let ranges = entries(&folder.join("queue/independent_access_ranges"));
    // The kernel's sectors are 512 bytes whatever the drive's blocks are.
    let blocks = |path: PathBuf| Some(number(&path)? * 512 / u64::from(block_bytes.max(512)));
    let ranges = ranges.iter().filter_map(|range| {
        Some(PositioningRange {
            first: blocks(range.join("sector"))?,
            blocks: blocks(range.join("nr_sectors"))?,
        })
    });
    let mut ranges: Vec<PositioningRange> = ranges.collect();
    ranges.sort_unstable_by_key(|range| range.first);
    ranges
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    paths
}

fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}

fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder like that of a disk in sysfs, with some other files.
    fn disk(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let usual = [
            ("size", "131072\n"),
            ("ro", "0\n"),
            ("dev", "8:0\n"),
            ("queue/zoned", "none\n"),
            ("queue/logical_block_size", "512\n"),
            ("queue/rotational", "1\n"),
            ("queue/discard_max_bytes", "0\n"),
            ("queue/write_zeroes_max_bytes", "0\n"),
            ("queue/max_sectors_kb", "1280\n"),
            ("queue/max_segments", "168\n"),
        ];
        for (name, contents) in usual.iter().chain(files) {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder above")).expect("a folder");
            fs::write(path, contents).expect("a file");
        }
        folder
    }

    fn refused(files: &[(&str, &str)]) -> String {
        let refused = DiskProperties::read(disk(files).path()).expect_err("a refusal");
        refused.to_string()
    }

    #[test]
    fn a_disk_is_what_the_kernel_says() {
        let expected = DiskProperties {
            bytes: 64 << 20,
            block_bytes: 512,
            rotational: true,
            trims: false,
            zeroes_fast: false,
            ranges: Vec::new(),
            most_bytes: 167 * 4096,
            access: Writes::Allowed,
        };
        assert_eq!(DiskProperties::read(disk(&[]).path()), Ok(expected.clone()));
        let other = [
            ("ro", "1\n"),
            ("queue/logical_block_size", "4096\n"),
            ("queue/independent_access_ranges/0/sector", "0\n"),
            ("queue/independent_access_ranges/0/nr_sectors", "65536\n"),
            ("queue/independent_access_ranges/1/sector", "65536\n"),
            ("queue/independent_access_ranges/1/nr_sectors", "65536\n"),
            ("queue/max_sectors_kb", "64\n"),
            ("queue/discard_max_bytes", "4096\n"),
        ];
        let other_than = DiskProperties {
            block_bytes: 4096,
            ranges: [0, 8192]
                .map(|first| PositioningRange {
                    first,
                    blocks: 8192,
                })
                .into(),
            most_bytes: 64 << 10,
            trims: true,
            access: Writes::Forbidden,
            ..expected
        };
        assert_eq!(DiskProperties::read(disk(&other).path()), Ok(other_than));
    }

    #[test]
    fn disks_that_are_not_served_are_refused_with_what_was_expected() {
        for (file, contents, complaint) in [
            ("partition", "1\n", "a partition of /dev/"),
            ("size", "0\n", "no medium is in it"),
            (
                "queue/zoned",
                "host-managed\n",
                "a zoned drive (host-managed)",
            ),
            ("queue/zoned", "host-aware\n", "a zoned drive (host-aware)"),
            ("queue/logical_block_size", "520\n", "blocks of 520 bytes"),
        ] {
            let text = refused(&[(file, contents)]);
            assert!(text.starts_with(complaint), "{text}");
            assert!(text.contains(": expected "), "{text}");
        }
        let nothing = tempfile::tempdir().expect("a folder");
        assert_eq!(DiskProperties::read(nothing.path()), Err(Refused::Missing));
    }

    #[test]
    fn who_uses_a_disk_or_its_partitions_is_named() {
        let folder = disk(&[
            ("holders/md0", ""),
            ("sda1/partition", "1\n"),
            ("sda1/dev", "8:1\n"),
            ("sda1/holders/dm-3", ""),
            ("queue/dev", "8:2\n"),
        ]);
        let mounts = "22 1 8:1 / /srv rw - ext4 /dev/sda1 rw\n23 1 8:2 / /other rw - ext4 x rw\n";
        let expected = ["md0", "dm-3", "mounted on /srv"];
        assert_eq!(users(folder.path(), mounts), expected);
        assert!(users(disk(&[]).path(), mounts).is_empty());
    }
}
