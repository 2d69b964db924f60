//! Block devices of this kernel over an export, from sysfs.
//!
//! | door | device |
//! |---|---|
//! | FUSE | loop devices whose backing file is the export's file |
//! | ublk | the device of the export |
//! | NBD | the one that the configuration names |
//!
//! Events name whole devices, and count sectors from their begin. So a partition stands for its device.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, major, minor, stat};

/// A block device over an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceOver {
    /// The number as events have it: major << 20 | minor.
    pub number: u32,
    /// The path, such as `/dev/loop0`.
    pub name: String,
    /// The byte of the export at which the device begins.
    pub offset: u64,
}

/// The file system of the kernel's devices.
#[derive(Clone, Debug)]
pub struct Sysfs(PathBuf);

impl Default for Sysfs {
    fn default() -> Self {
        Sysfs(PathBuf::from("/sys"))
    }
}

impl Sysfs {
    /// The loop devices over a file, in the order of their names.
    ///
    /// # Errors
    /// If sysfs cannot be read.
    pub fn loops_over(&self, file: &Path) -> io::Result<Vec<DeviceOver>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.0.join("block"))? {
            let name = entry?.file_name();
            let Some(name) = name.to_str().filter(|name| name.starts_with("loop")) else {
                continue;
            };
            found.extend(self.loop_over(name, file));
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// A loop device, if it is over the file. It may go away at any time.
    fn loop_over(&self, name: &str, file: &Path) -> Option<DeviceOver> {
        let folder = self.0.join("block").join(name);
        let backing = fs::read_to_string(folder.join("loop/backing_file")).ok()?;
        if Path::new(backing.strip_suffix('\n').unwrap_or(&backing)) != file {
            return None;
        }
        let offset = fs::read_to_string(folder.join("loop/offset")).ok()?;
        Some(DeviceOver {
            number: number(&fs::read_to_string(folder.join("dev")).ok()?)?,
            name: format!("/dev/{name}"),
            offset: offset.trim().parse().ok()?,
        })
    }

    /// The whole device of a path of a block device.
    ///
    /// # Errors
    /// If there is none: what was found, and what was expected.
    pub fn device_at(&self, path: &Path) -> Result<DeviceOver, String> {
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        let found = stat(path).map_err(|error| failed(error.into()))?;
        if FileType::from_raw_mode(found.st_mode) != FileType::BlockDevice {
            return Err(format!("{}: expected a block device", path.display()));
        }
        let (major, minor) = (major(found.st_rdev), minor(found.st_rdev));
        self.whole(path, &format!("{major}:{minor}"))
    }

    /// The device of `major:minor`, or the one that this is a partition of.
    fn whole(&self, path: &Path, numbers: &str) -> Result<DeviceOver, String> {
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        let place = self.0.join("dev/block").join(numbers);
        let place = fs::canonicalize(place).map_err(failed)?;
        let is_part = place.join("partition").exists();
        let folder = place.parent().filter(|_| is_part).unwrap_or(&place);
        let text = fs::read_to_string(folder.join("dev")).map_err(failed)?;
        let Some(number) = number(&text) else {
            return Err(format!(
                "{}/dev: \"{}\": expected numbers such as 7:0",
                folder.display(),
                text.trim()
            ));
        };
        Ok(DeviceOver {
            number,
            name: path.display().to_string(),
            offset: 0,
        })
    }

    /// The processors that are on.
    ///
    /// # Errors
    /// If sysfs cannot be read, or has something else than a list such as `0-3,5`.
    pub fn processors(&self) -> io::Result<Vec<usize>> {
        let text = fs::read_to_string(self.0.join("devices/system/cpu/online"))?;
        list(text.trim()).ok_or_else(|| {
            let problem = format!("processors \"{}\": expected 0-3,5", text.trim());
            io::Error::new(io::ErrorKind::InvalidData, problem)
        })
    }
}

/// The number of `major:minor`, as events have it (`MKDEV` of linux/kdev_t.h).
fn number(text: &str) -> Option<u32> {
    let (major, minor) = text.trim().split_once(':')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    let fits = major < 1 << (u32::BITS - MINOR_BITS) && minor < 1 << MINOR_BITS;
    fits.then_some(major << MINOR_BITS | minor)
}

/// `MINORBITS` of linux/kdev_t.h.
const MINOR_BITS: u32 = 20;

/// Numbers and ranges.
fn list(text: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MOST_PROCESSORS {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

/// `CONFIG_NR_CPUS` is at most 8192 (arch/x86/Kconfig).
const MOST_PROCESSORS: usize = 8192;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn put(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    #[test]
    fn loop_devices_are_found_by_their_file() {
        let home = tempfile::tempdir().expect("a folder");
        let sys = home.path();
        for (name, file, numbers, offset) in [
            ("loop0", "/mnt/other\n", "7:0\n", "0\n"),
            ("loop10", "/mnt/db\n", "7:10\n", "0\n"),
            ("loop2", "/mnt/db\n", "7:2\n", "1048576\n"),
            ("loop4", "/mnt/db\n", "7\n", "0\n"),
            ("sda", "/mnt/db\n", "8:0\n", "0\n"),
        ] {
            put(sys, &format!("block/{name}/loop/backing_file"), file);
            put(sys, &format!("block/{name}/loop/offset"), offset);
            put(sys, &format!("block/{name}/dev"), numbers);
        }
        fs::create_dir_all(sys.join("block/loop3")).expect("one without a file");
        let found = Sysfs(sys.to_owned()).loops_over(Path::new("/mnt/db"));
        let found = found.expect("sysfs");
        let all: Vec<_> = found
            .iter()
            .map(|device| (device.name.as_str(), device.number, device.offset))
            .collect();
        let expected = [
            ("/dev/loop10", 7 << 20 | 10, 0),
            ("/dev/loop2", 7 << 20 | 2, 1 << 20),
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn a_partition_stands_for_its_device() {
        let home = tempfile::tempdir().expect("a folder");
        let sys = home.path();
        put(sys, "devices/nbd0/dev", "43:0\n");
        put(sys, "devices/nbd0/nbd0p1/dev", "259:4\n");
        put(sys, "devices/nbd0/nbd0p1/partition", "1\n");
        fs::create_dir_all(sys.join("dev/block")).expect("a folder");
        for (numbers, place) in [("43:0", "nbd0"), ("259:4", "nbd0/nbd0p1")] {
            let place = sys.join("devices").join(place);
            symlink(place, sys.join("dev/block").join(numbers)).expect("a link");
        }
        let sysfs = Sysfs(sys.to_owned());
        for numbers in ["43:0", "259:4"] {
            let found = sysfs.whole(Path::new("/dev/nbd0"), numbers);
            assert_eq!(found.map(|device| device.number), Ok(43 << 20), "{numbers}");
        }
        put(sys, "devices/nbd0/dev", "x\n");
        let problem = sysfs.whole(Path::new("/dev/nbd0"), "43:0");
        assert!(
            problem
                .expect_err("no number")
                .contains("\"x\": expected numbers")
        );
        let problem = sysfs.device_at(Path::new("/dev/null")).expect_err("none");
        assert_eq!(problem, "/dev/null: expected a block device");
        assert!(sysfs.device_at(Path::new("/dev/there-is-none")).is_err());
    }

    #[test]
    fn lists_of_processors_are_read_or_refused() {
        for (text, expected) in [
            ("0", Some(vec![0])),
            ("0-2,5", Some(vec![0, 1, 2, 5])),
            ("", None),
            ("2-1", None),
            ("0-9999999999", None),
            ("a", None),
        ] {
            assert_eq!(list(text), expected, "{text}");
        }
        for (text, expected) in [
            ("7:3\n", Some(7 << 20 | 3)),
            ("4095:1048575", Some(u32::MAX)),
            ("4096:0", None),
            ("0:1048576", None),
            ("7", None),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
    }
}
