//! What a path is before any timing: what the kernel's files say of it, or an NBD server's offer.

use std::fs;
use std::path::Path;

use nbd::offer::Offer;
use rustix::fs::statfs;
use serde::Serialize;
use server::disk::back_end::disk::sysfs;

/// The kind of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathKind {
    /// A whole block device.
    Device,
    /// A partition of a block device.
    Partition,
    /// A loop device.
    Loop,
    /// A regular file.
    File,
    /// An export of an NBD server.
    Nbd,
}

/// What is known of a path without any timing. Unknown properties are `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathFacts {
    /// The kind.
    pub kind: PathKind,
    /// Whether the path says that it rotates.
    pub rotational: Option<bool>,
    /// Bytes of a logical block.
    pub logical_block: u32,
    /// Bytes of a sector of the medium.
    pub physical_block: Option<u32>,
    /// The size.
    pub capacity_bytes: u64,
    /// Vendor, model and revision; never a serial number.
    pub model: Option<String>,
    /// The bus: `ata`, `usb`, `nvme`, `virtio`, `sas`, `loop`, `nbd`.
    pub transport: Option<String>,
    /// Commands that the device holds.
    pub queue_depth: Option<u32>,
    /// The kernel's scheduler.
    pub scheduler: Option<String>,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
    /// Mounts, holders, and who has it open exclusively.
    pub users: Vec<String>,
    /// The reason for which no timing is needed to say that it is no disk.
    pub no_disk: Option<String>,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

impl PathFacts {
    /// The sector format: 512n, 512e or 4Kn, if the path states both block sizes.
    pub fn sector_format(&self) -> &'static str {
        match (self.logical_block, self.physical_block) {
            (512, Some(512)) => "512n",
            (512, Some(4096)) => "512e",
            (4096, _) => "4Kn",
            _ => "physical blocks unknown",
        }
    }

    /// What an NBD server offers. Its smallest block is the logical one.
    pub fn of_offer(offer: &Offer) -> Self {
        PathFacts {
            kind: PathKind::Nbd,
            rotational: offer.features.rotational.then_some(true),
            logical_block: match offer.block.min() {
                0..=512 => 512,
                _ => 4096,
            },
            physical_block: None,
            capacity_bytes: offer.size,
            model: None,
            transport: Some("nbd".to_owned()),
            queue_depth: None,
            scheduler: None,
            write_cache: None,
            users: Vec::new(),
            no_disk: None,
            notes: vec![
                "the server says neither the physical block size nor the state of the write cache"
                    .to_owned(),
            ],
        }
    }

    /// What is known of an export of an NBD server that was not asked.
    pub fn of_unasked_export() -> Self {
        PathFacts {
            kind: PathKind::Nbd,
            rotational: None,
            logical_block: 512,
            physical_block: None,
            capacity_bytes: 0,
            model: None,
            transport: Some("nbd".to_owned()),
            queue_depth: None,
            scheduler: None,
            write_cache: None,
            users: Vec::new(),
            no_disk: None,
            notes: Vec::new(),
        }
    }

    /// What the file system says of a regular file of this size.
    pub fn of_file(path: &Path, bytes: u64) -> Self {
        let kind = statfs(path).ok().map(|found| found.f_type as u64);
        let is_fuse = kind == Some(FUSE_MAGIC);
        let stored = fs::metadata(path).map_or(bytes, |found| {
            use std::os::unix::fs::MetadataExt as _;
            found.blocks() * STAT_BLOCK
        });
        let no_disk = match kind {
            Some(TMPFS_MAGIC | RAMFS_MAGIC) => {
                Some("the file is on a file system in memory".to_owned())
            }
            _ if !is_fuse && stored < bytes / 10 * 9 => Some(format!(
                "{:.0} % of the file are holes (it is sparse): no disk is asked for them",
                100.0 - stored as f64 / bytes.max(1) as f64 * 100.0
            )),
            _ => None,
        };
        PathFacts {
            kind: PathKind::File,
            rotational: None,
            // Direct reads of files are aligned to pages.
            logical_block: 4096,
            physical_block: None,
            capacity_bytes: bytes,
            model: None,
            transport: None,
            queue_depth: None,
            scheduler: None,
            write_cache: None,
            users: Vec::new(),
            no_disk,
            notes: match is_fuse {
                true => Vec::new(),
                false => vec![
                    "a file of a file system: its blocks may lie anywhere on its disk".to_owned(),
                ],
            },
        }
    }

    /// What sysfs says of the block device `name`; `system` is `/sys`, and `mounts` the text of
    /// `/proc/self/mountinfo`.
    pub fn of_device(name: &str, bytes: u64, system: &Path, mounts: &str) -> Self {
        let folder = system.join("class/block").join(name);
        let is_partition = folder.join("partition").exists();
        // A partition has the queue of its drive.
        let disk = match (is_partition, folder.canonicalize()) {
            (true, Ok(real)) => real.parent().map_or(folder.clone(), Path::to_path_buf),
            _ => folder.clone(),
        };
        let number = |file: &str| text(&disk.join(file)).and_then(|text| text.parse::<u32>().ok());
        let logical_block = number("queue/logical_block_size").unwrap_or(512);
        let is_loop = disk.join("loop").exists();
        let mut notes = Vec::new();
        if is_partition {
            let start = text(&folder.join("start")).unwrap_or_else(|| "?".to_owned());
            notes.push(format!(
                "a partition from sector {start} of its disk on: who uses the rest moves the same arm, and \
                 `headtime serve` takes whole disks only"
            ));
        }
        PathFacts {
            kind: match (is_partition, is_loop) {
                (true, _) => PathKind::Partition,
                (false, true) => PathKind::Loop,
                (false, false) => PathKind::Device,
            },
            rotational: number("queue/rotational").map(|value| value == 1),
            logical_block,
            physical_block: number("queue/physical_block_size"),
            capacity_bytes: bytes,
            model: model(&disk.join("device")),
            transport: transport(&disk),
            queue_depth: number("device/queue_depth").or_else(|| number("queue/nr_requests")),
            scheduler: text(&disk.join("queue/scheduler")).and_then(|all| chosen(&all)),
            write_cache: text(&disk.join("queue/write_cache")),
            users: sysfs::users(&folder, mounts),
            no_disk: None,
            notes,
        }
    }
}

/// `TMPFS_MAGIC`, `RAMFS_MAGIC` and `FUSE_SUPER_MAGIC` of linux/magic.h.
const TMPFS_MAGIC: u64 = 0x0102_1994;
const RAMFS_MAGIC: u64 = 0x8584_58f6;
const FUSE_MAGIC: u64 = 0x6573_5546;

/// The unit of `st_blocks` (stat(2)).
const STAT_BLOCK: u64 = 512;

/// Vendor, model and revision from a device's folder.
fn model(device: &Path) -> Option<String> {
    let parts = ["vendor", "model", "rev", "firmware_rev"];
    let parts: Vec<String> = parts
        .iter()
        .filter_map(|part| text(&device.join(part)))
        .filter(|part| !part.is_empty())
        .collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// The bus that the real folder of a device names.
fn transport(disk: &Path) -> Option<String> {
    let real = disk.canonicalize().ok()?;
    let names = real
        .components()
        .map(|part| part.as_os_str().to_string_lossy());
    let names: Vec<String> = names.map(std::borrow::Cow::into_owned).collect();
    let begins = |word: &str| names.iter().any(|name| name.starts_with(word));
    // A USB bridge is below a SCSI host as well: the nearest bus to the computer counts.
    [
        ("usb", "usb"),
        ("nvme", "nvme"),
        ("virtio", "virtio"),
        ("end_device", "sas"),
        ("ata", "ata"),
        ("loop", "loop"),
        ("nbd", "nbd"),
        ("host", "scsi"),
    ]
    .into_iter()
    .find(|(prefix, _)| begins(prefix))
    .map(|(_, bus)| bus.to_owned())
}

/// The scheduler in brackets: `none [mq-deadline] bfq`.
fn chosen(all: &str) -> Option<String> {
    let (_, rest) = all.split_once('[')?;
    let (name, _) = rest.split_once(']')?;
    Some(name.to_owned())
}

fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder like `/sys` with one disk `sdq`.
    fn system(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, contents) in files {
            let path = folder.path().join("class/block").join(name);
            fs::create_dir_all(path.parent().expect("a folder above")).expect("a folder");
            fs::write(path, contents).expect("a file");
        }
        folder
    }

    #[test]
    fn a_device_is_what_its_files_say_and_never_its_serial_number() {
        let system = system(&[
            ("sdq/dev", "8:0\n"),
            ("sdq/queue/rotational", "1\n"),
            ("sdq/queue/logical_block_size", "512\n"),
            ("sdq/queue/physical_block_size", "4096\n"),
            ("sdq/queue/scheduler", "none [mq-deadline] bfq\n"),
            ("sdq/queue/write_cache", "write back\n"),
            ("sdq/device/queue_depth", "32\n"),
            ("sdq/device/vendor", "ATA     \n"),
            ("sdq/device/model", "ST1000 \n"),
            ("sdq/device/serial", "SECRET\n"),
            ("sdq/sdq1/partition", "1\n"),
            ("sdq/sdq1/dev", "8:1\n"),
        ]);
        let mounts = "22 1 8:1 / /srv rw - ext4 /dev/sdq1 rw\n";
        let found = PathFacts::of_device("sdq", 1 << 40, system.path(), mounts);
        assert_eq!(
            (found.kind, found.rotational),
            (PathKind::Device, Some(true))
        );
        assert_eq!(
            (found.sector_format(), found.queue_depth),
            ("512e", Some(32))
        );
        assert_eq!(found.scheduler.as_deref(), Some("mq-deadline"));
        assert_eq!(found.model.as_deref(), Some("ATA ST1000"));
        assert_eq!(found.users, ["mounted on /srv"]);
        assert!(!format!("{found:?}").contains("SECRET"));
    }

    #[test]
    fn formats_follow_from_both_block_sizes() {
        for (logical, physical, format) in [
            (512, Some(512), "512n"),
            (512, Some(4096), "512e"),
            (4096, Some(4096), "4Kn"),
            (512, None, "physical blocks unknown"),
        ] {
            let facts = PathFacts {
                logical_block: logical,
                physical_block: physical,
                ..PathFacts::of_file(Path::new("/nowhere"), 0)
            };
            assert_eq!(facts.sector_format(), format);
        }
    }

    #[test]
    fn a_sparse_file_is_told_before_any_read() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(64 << 20).expect("a length");
        let facts = PathFacts::of_file(file.path(), 64 << 20);
        let why = facts.no_disk.expect("no disk");
        assert!(why.contains("hole") || why.contains("memory"), "{why}");
    }
}
