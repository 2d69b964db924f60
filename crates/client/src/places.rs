//! The location of a file's bytes on a volume of the service.
//!
//! ```text
//!   file  --FIEMAP-->  partition  --start-->  disk = loop device  --offset-->  FUSE file = export
//! ```
//!
//! The file is on a mounted file system. The file system is on a loop device, or on a partition of
//! one, over a file of the service's FUSE folder. `/sys/dev/block` has the chain of devices. For a
//! disk that is attached by nbd or ublk, the caller names the export, because the kernel does not
//! know it.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::fiemap::{self, FileExtent};
use block::StreamMode;

use crate::wire::{FilePiece, PIECES, Places};

/// The location of a file, and its export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The name of the export.
    pub export: String,
    /// The pieces, in bytes of the export's volume.
    pub places: Places,
}

/// The reason that a file's bytes have no location that a stream can use.
#[derive(Debug, thiserror::Error)]
pub enum NotLocated {
    /// The descriptor is not a regular file.
    #[error("not a regular file: expected one on a file system over a volume of the service")]
    NotRegular,
    /// The file system reports no extents.
    #[error("its file system does not tell where it is ({0}): expected one such as ext4 or xfs")]
    Unknown(io::Error),
    /// Some bytes have no location, or differ on the device.
    #[error("bytes {from} to {to} are {what}: expected blocks of its own on the volume")]
    Unusable {
        /// The first such byte.
        from: u64,
        /// The byte after the last one.
        to: u64,
        /// The defect of the bytes.
        what: &'static str,
    },
    /// The file has too many pieces.
    #[error(
        "more than {limit} pieces: expected a file that was written in one go, or preallocated"
    )]
    Fragmented {
        /// The largest number of pieces.
        limit: usize,
    },
    /// The file system is not on exactly one block device.
    #[error("its file system is on no single disk ({device}): expected a disk over a volume")]
    NoDevice {
        /// The device number.
        device: String,
    },
    /// The disk is not known to be a volume.
    #[error(
        "it is on {disk}, which is no loop device over a file of the service's FUSE folder: name \
         the export whose volume that disk is"
    )]
    NoVolume {
        /// The kernel's name of the disk.
        disk: String,
    },
    /// A file of the system could not be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A system call failed.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Locates the bytes of an open file. `export` names the volume if the kernel does not know it.
///
/// Preallocated bytes that were never written are holes when playing, because reads of them need no
/// disk. When recording they are pieces, because writes go there.
///
/// # Errors
/// The reason that the file cannot be located.
pub fn locate(file: &File, mode: StreamMode, export: Option<&str>) -> Result<Located, NotLocated> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(NotLocated::NotRegular);
    }
    let device = find_device(Path::new("/sys/dev/block"), metadata.dev(), export)?;
    let mut extents = found(file)?;
    // Some file systems leave new data unallocated in spite of FIEMAP_FLAG_SYNC.
    if extents
        .iter()
        .any(|extent| extent.flags & fiemap::DELALLOC != 0)
    {
        file.sync_all()?;
        extents = found(file)?;
    }
    let pieces = pieces(&extents, mode, device.offset)?;
    Ok(Located {
        export: device.export,
        places: Places {
            length: metadata.len(),
            pieces,
        },
    })
}

fn found(file: &File) -> Result<Vec<FileExtent>, NotLocated> {
    fiemap::extents(file, PIECES).map_err(NotLocated::Unknown)
}

/// The extents as pieces of the volume, which begins `offset` bytes before the file system's
/// device.
fn pieces(
    extents: &[FileExtent],
    mode: StreamMode,
    offset: u64,
) -> Result<Vec<FilePiece>, NotLocated> {
    let mut pieces: Vec<FilePiece> = Vec::new();
    for extent in extents {
        let to = extent.logical.saturating_add(extent.length);
        let unusable = |what| NotLocated::Unusable {
            from: extent.logical,
            to,
            what,
        };
        let has = |flags: u32| extent.flags & flags != 0;
        if has(fiemap::DELALLOC) {
            return Err(unusable("not yet on the disk"));
        }
        if has(fiemap::ENCODED) {
            return Err(unusable("compressed or encrypted"));
        }
        if has(fiemap::NO_PLACE) {
            return Err(unusable("within the file system's own blocks"));
        }
        if has(fiemap::SHARED) && mode != StreamMode::Play {
            return Err(unusable(
                "shared with another file, so that writes go elsewhere",
            ));
        }
        if has(fiemap::UNWRITTEN) && mode == StreamMode::Play {
            continue;
        }
        let start = extent.physical.saturating_add(offset);
        match pieces.last_mut() {
            Some(last) if last.0 + last.2 == extent.logical && last.1 + last.2 == start => {
                last.2 += extent.length;
            }
            _ => pieces.push(FilePiece(extent.logical, start, extent.length)),
        }
    }
    match pieces.len() {
        0..=PIECES => Ok(pieces),
        _ => Err(NotLocated::Fragmented { limit: PIECES }),
    }
}

/// The block device of a file system, as a part of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileSystemDevice {
    export: String,
    /// The device's offset on the volume, in bytes.
    offset: u64,
}

/// The sector size of sysfs, for all disks.
const SECTOR: u64 = 512;

/// Finds the volume of a device number.
fn find_device(
    sysfs: &Path,
    number: u64,
    export: Option<&str>,
) -> Result<FileSystemDevice, NotLocated> {
    let name = format!("{}:{}", libc::major(number), libc::minor(number));
    let link = sysfs.join(&name);
    let Ok(mut folder) = fs::canonicalize(&link) else {
        return Err(NotLocated::NoDevice { device: name });
    };
    let mut offset = 0;
    if folder.join("partition").exists() {
        offset += read_number(&folder.join("start"))? * SECTOR;
        folder.pop();
    }
    let backing = folder.join("loop/backing_file");
    if backing.exists() {
        offset += read_number(&folder.join("loop/offset"))?;
    }
    if let Some(export) = export {
        return Ok(FileSystemDevice {
            export: export.to_owned(),
            offset,
        });
    }
    let disk = folder
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let no_volume = || NotLocated::NoVolume {
        disk: disk.clone().unwrap_or_default(),
    };
    if !backing.exists() {
        return Err(no_volume());
    }
    let file = PathBuf::from(read(&backing)?.trim_end());
    let export = file.file_name().and_then(|name| name.to_str());
    match export {
        Some(export) if is_fuse(&file) => Ok(FileSystemDevice {
            export: export.to_owned(),
            offset,
        }),
        _ => Err(no_volume()),
    }
}

fn read(path: &Path) -> Result<String, NotLocated> {
    fs::read_to_string(path).map_err(|error| NotLocated::Unreadable {
        path: path.to_owned(),
        error,
    })
}

fn read_number(path: &Path) -> Result<u64, NotLocated> {
    let text = read(path)?;
    text.trim().parse().map_err(|_| NotLocated::Unreadable {
        path: path.to_owned(),
        error: io::Error::new(io::ErrorKind::InvalidData, "expected a number"),
    })
}

/// `FUSE_SUPER_MAGIC` of linux/magic.h.
const FUSE: u32 = 0x6573_5546;

#[allow(unsafe_code, reason = "statfs, which std does not offer")]
fn is_fuse(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    let mut found = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the kernel fills the structure if it answers 0, and it is read only then.
    let found = unsafe {
        if libc::statfs(path.as_ptr(), found.as_mut_ptr()) != 0 {
            return false;
        }
        found.assume_init()
    };
    found.f_type as u32 == FUSE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(logical: u64, physical: u64, length: u64, flags: u32) -> FileExtent {
        FileExtent {
            logical,
            physical,
            length,
            flags,
        }
    }

    #[test]
    fn neighbours_are_one_piece_and_the_offset_is_added() {
        let extents = [
            extent(0, 40_960, 4096, 0),
            extent(4096, 45_056, 4096, 0),
            extent(12_288, 8192, 4096, 1),
        ];
        let expected = vec![
            FilePiece(0, 1_089_536, 8192),
            FilePiece(12_288, 1_056_768, 4096),
        ];
        let found = pieces(&extents, StreamMode::Play, 1 << 20).expect("usable");
        assert_eq!(found, expected);
    }

    #[test]
    fn preallocated_bytes_are_written_to_and_not_read() {
        let extents = [
            extent(0, 4096, 4096, 0),
            extent(4096, 8192, 8192, fiemap::UNWRITTEN),
        ];
        let found = |mode| pieces(&extents, mode, 0).expect("usable");
        assert_eq!(found(StreamMode::Play), [FilePiece(0, 4096, 4096)]);
        assert_eq!(found(StreamMode::Record), [FilePiece(0, 4096, 12_288)]);
    }

    #[test]
    fn what_is_not_a_blocks_own_place_is_refused_and_says_what_it_is() {
        let cases = [
            (fiemap::DELALLOC, StreamMode::Play, "not yet on the disk"),
            (0x8, StreamMode::Play, "compressed"),
            (0x80, StreamMode::Record, "encrypted"),
            (0x200, StreamMode::Play, "file system's own"),
            (0x2, StreamMode::Play, "file system's own"),
            (fiemap::SHARED, StreamMode::Record, "shared"),
        ];
        for (flags, mode, part) in cases {
            let refused = pieces(&[extent(0, 0, 4096, flags)], mode, 0);
            let text = refused.expect_err("unusable").to_string();
            assert!(text.contains(part), "{text}");
        }
        assert!(pieces(&[extent(0, 0, 4096, fiemap::SHARED)], StreamMode::Play, 0).is_ok());
    }

    /// A fake sysfs for tests: a loop device with a partition, and a plain disk.
    fn sysfs(backing: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        let disk = root.path().join("devices/loop7");
        let folders = [
            "devices/loop7/loop",
            "devices/loop7/loop7p2",
            "devices/sda",
            "block",
        ];
        for folder in folders {
            fs::create_dir_all(root.path().join(folder)).expect("a folder");
        }
        let put = |name: &str, text: &str| fs::write(disk.join(name), text).expect("a file");
        put("loop/backing_file", backing);
        put("loop/offset", "4096\n");
        put("loop7p2/partition", "2\n");
        put("loop7p2/start", "2048\n");
        let numbers = [("7:7", "loop7"), ("259:3", "loop7/loop7p2"), ("8:0", "sda")];
        for (number, device) in numbers {
            let target = root.path().join("devices").join(device);
            let link = root.path().join("block").join(number);
            std::os::unix::fs::symlink(target, link).expect("a link");
        }
        root
    }

    #[test]
    fn the_way_to_the_volume_adds_partition_and_offset() {
        let root = sysfs("/nowhere/disk\n");
        let sysfs = root.path().join("block");
        let find = |major, minor, export| find_device(&sysfs, libc::makedev(major, minor), export);
        let offset = |found: Result<FileSystemDevice, NotLocated>| found.expect("found").offset;
        assert_eq!(offset(find(7, 7, Some("disk"))), 4096);
        assert_eq!(offset(find(259, 3, Some("disk"))), 4096 + 2048 * 512);
        assert_eq!(offset(find(8, 0, Some("disk"))), 0);
    }

    #[test]
    fn a_disk_that_is_no_volume_is_refused_with_its_name() {
        let root = sysfs("/nowhere/disk\n");
        let sysfs = root.path().join("block");
        let refused = |major, minor| {
            let found = find_device(&sysfs, libc::makedev(major, minor), None);
            found.expect_err("no volume").to_string()
        };
        assert!(refused(8, 0).contains("sda"), "{}", refused(8, 0));
        assert!(refused(7, 7).contains("loop7"), "{}", refused(7, 7));
        assert!(refused(0, 40).contains("0:40"), "{}", refused(0, 40));
    }
}
