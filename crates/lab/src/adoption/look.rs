//! A path as the kernel describes it, without opening it: for a first configuration and for `headtime doctor`.
//!
//! Nothing is read from the medium and no switch is touched. A block device needs no permission for this.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use profiler::belief::kebab;
use server::config::Remote;
use server::disk::back_end::disk::claim::{Node, node};
use server::disk::back_end::disk::sysfs::DiskProperties;

use super::facts::{PathFacts, PathKind};
use crate::Failure;
use crate::profiling::control;

/// A path that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathLook {
    /// What is known of it. The capacity of an NBD export is 0: the server is not asked.
    pub facts: PathFacts,
    /// A name for its files, in kebab case.
    pub name: String,
    /// The path or URI with which a service finds it again, also after a restart of the machine.
    pub target: String,
    /// The reason for which a service does not take it, with what was expected.
    pub refused: Option<String>,
    /// What a device is made of, if it is no disk by itself.
    pub beneath: Option<Beneath>,
}

/// What a device is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beneath {
    /// The file of a loop device.
    File(String),
    /// The devices of RAID, LVM or encryption, with commas.
    Devices(String),
}

impl Beneath {
    /// What the kernel says of a device whose folder this is (ABI/stable/sysfs-block: `loop/backing_file`, `slaves`).
    fn of(folder: &Path) -> Option<Self> {
        if let Ok(file) = fs::read_to_string(folder.join("loop/backing_file")) {
            return Some(Beneath::File(file.trim().to_owned()));
        }
        let names = fs::read_dir(folder.join("slaves")).ok()?.flatten();
        let mut names: Vec<String> = names
            .map(|entry| entry.file_name().display().to_string())
            .collect();
        names.sort();
        (!names.is_empty()).then(|| Beneath::Devices(names.join(", ")))
    }
}

/// Where the kernel tells of its devices.
const SYSTEM: &str = "/sys";

/// Where udev makes names of disks that stay (systemd's `60-persistent-storage.rules`).
const BY_ID: &str = "/dev/disk/by-id";

impl PathLook {
    /// Looks at a block device, a regular file or the URI of an NBD export.
    ///
    /// # Errors
    /// If there is no such path, or it is of another kind.
    pub fn at(path: &str) -> Result<Self, Failure> {
        match path.contains("://") {
            true => of_uri(path),
            false => of_path(Path::new(path)),
        }
    }

    /// The path in words: size, model, sector format.
    pub fn described(&self) -> String {
        let facts = &self.facts;
        let size = match facts.kind {
            PathKind::Nbd => "an export of an NBD server, which was not asked".to_owned(),
            _ => format!("{} bytes", facts.capacity_bytes),
        };
        let rotation = facts.rotational.map(|rotates| match rotates {
            true => "it rotates",
            false => "it does not rotate",
        });
        let kind = match facts.kind {
            PathKind::Loop => Some("a loop device"),
            PathKind::File => Some("a regular file"),
            PathKind::Partition => Some("a partition"),
            PathKind::Device | PathKind::Nbd => None,
        };
        let format = match facts.kind {
            PathKind::Device => Some(facts.sector_format()),
            _ => None,
        };
        let parts = [Some(size.as_str()), facts.model.as_deref(), kind, format];
        let parts: Vec<&str> = parts.into_iter().chain([rotation]).flatten().collect();
        parts.join(", ")
    }
}

fn of_uri(uri: &str) -> Result<PathLook, Failure> {
    let remote = Remote::of_uri(uri).ok_or_else(|| {
        Failure::input(format!(
            "{uri}: expected \"nbd://HOST[:PORT]/NAME\" or \"nbd+unix:///NAME?socket=PATH\", without TLS"
        ))
    })?;
    Ok(PathLook {
        facts: PathFacts::of_unasked_export(),
        name: match remote.export.as_str() {
            "" => "disk".to_owned(),
            export => kebab(export),
        },
        target: uri.to_owned(),
        refused: None,
        beneath: None,
    })
}

fn of_path(path: &Path) -> Result<PathLook, Failure> {
    let wrong = |error| Failure::input(format!("{}: {error}", path.display()));
    let real = control::disk_of(&path.canonicalize().map_err(wrong)?)?;
    let found = real.metadata().map_err(wrong)?;
    if found.file_type().is_block_device() {
        return of_device(&real);
    }
    if !found.is_file() {
        return Err(Failure::input(format!(
            "{}: expected a block device (`lsblk` lists them), a regular file, or the URI of an NBD export",
            path.display()
        )));
    }
    let stem = real.file_stem().unwrap_or_default().to_string_lossy();
    Ok(PathLook {
        facts: PathFacts::of_file(&real, found.len()),
        name: kebab(&stem),
        target: real.display().to_string(),
        refused: (found.len() % FILE_GRAIN != 0 || found.len() == 0).then(|| {
            format!(
                "{} bytes: expected a multiple of {FILE_GRAIN} bytes, and not an empty file",
                found.len()
            )
        }),
        beneath: None,
    })
}

/// The sizes of drives are multiples of it (the reference of the configuration, "size").
const FILE_GRAIN: u64 = 4096;

fn of_device(real: &Path) -> Result<PathLook, Failure> {
    let name = real.file_name().unwrap_or_default().to_string_lossy();
    let folder = match node(real, Path::new(SYSTEM)) {
        Ok(Node::Disk(folder)) => folder,
        _ => Path::new(SYSTEM).join("class/block").join(&*name),
    };
    let properties = DiskProperties::read(&folder);
    let bytes = fs::read_to_string(folder.join("size")).ok();
    let sectors: Option<u64> = bytes.and_then(|text| text.trim().parse().ok());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    // The kernel's sectors are 512 bytes whatever the drive's blocks are.
    let bytes = sectors.unwrap_or(0).saturating_mul(512);
    let facts = PathFacts::of_device(&name, bytes, Path::new(SYSTEM), &mounts);
    let stable = stable_name(real, Path::new(BY_ID));
    Ok(PathLook {
        facts,
        name: kebab(&name),
        target: stable
            .unwrap_or_else(|| real.to_owned())
            .display()
            .to_string(),
        refused: properties.err().map(|refused| refused.to_string()),
        beneath: Beneath::of(&folder),
    })
}

/// The name of a disk that stays the same after a restart, if udev has made one. One with model and serial number
/// comes before a bare number (`wwn-`).
fn stable_name(real: &Path, by_id: &Path) -> Option<PathBuf> {
    let links = fs::read_dir(by_id).ok()?.flatten();
    let links = links.map(|link| link.path());
    let same = links.filter(|link| link.canonicalize().is_ok_and(|target| target == real));
    let is_bare = |link: &Path| {
        let name = link.file_name().unwrap_or_default().to_string_lossy();
        ["wwn-", "nvme-eui.", "nvme-nvme."]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    };
    same.min_by_key(|link| (is_bare(link), link.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_name_that_stays_is_preferred_and_one_for_people_most() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("a folder");
        let disk = folder.join("sdb");
        fs::write(&disk, "").expect("a file");
        let by_id = folder.join("by-id");
        fs::create_dir(&by_id).expect("a folder");
        assert_eq!(stable_name(&disk, &by_id), None);
        assert_eq!(stable_name(&disk, &folder.join("none")), None);
        symlink(folder.join("gone"), by_id.join("ata-OTHER")).expect("a link");
        symlink(&disk, by_id.join("wwn-0x5000")).expect("a link");
        assert_eq!(stable_name(&disk, &by_id), Some(by_id.join("wwn-0x5000")));
        symlink(&disk, by_id.join("ata-ST4000_ABC")).expect("a link");
        assert_eq!(
            stable_name(&disk, &by_id),
            Some(by_id.join("ata-ST4000_ABC"))
        );
    }

    #[test]
    fn what_a_device_is_made_of_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(Beneath::of(folder.path()), None);
        fs::create_dir_all(folder.path().join("slaves/sdb")).expect("a folder");
        fs::create_dir_all(folder.path().join("slaves/sda")).expect("a folder");
        let devices = Beneath::Devices("sda, sdb".to_owned());
        assert_eq!(Beneath::of(folder.path()), Some(devices));
        fs::create_dir(folder.path().join("loop")).expect("a folder");
        fs::write(folder.path().join("loop/backing_file"), "/x.img\n").expect("a file");
        let file = Beneath::File("/x.img".to_owned());
        assert_eq!(Beneath::of(folder.path()), Some(file));
    }

    #[test]
    fn a_file_is_looked_at_and_its_size_is_judged() {
        let file = tempfile::NamedTempFile::with_prefix("My Disk").expect("a file");
        let path = file.path().display().to_string();
        let empty = PathLook::at(&path).expect("a look");
        assert!(empty.refused.expect("a refusal").contains("expected"));
        file.as_file().set_len(1 << 20).expect("a length");
        let look = PathLook::at(&path).expect("a look");
        assert_eq!((look.facts.kind, look.refused), (PathKind::File, None));
        assert!(look.name.starts_with("my-disk"), "{}", look.name);
        file.as_file().set_len((1 << 20) + 512).expect("a length");
        let odd = PathLook::at(&path).expect("a look");
        assert!(odd.refused.expect("a refusal").contains("multiple"));
    }

    #[test]
    fn what_is_neither_device_nor_file_is_refused() {
        for path in ["/dev/null", "/", "/no/such/path", "nbd:///"] {
            assert!(PathLook::at(path).is_err(), "{path}");
        }
    }
}
