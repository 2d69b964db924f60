//! The kernel's table of mounts, and stale mounts in it.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, unmount};
use tracing::info;

/// The source of our mounts in the kernel's table.
pub(super) const SOURCE: &str = "headtime";

/// The path of a folder on which nothing is mounted. The stale mount of a killed server is unmounted.
///
/// # Errors
/// If it is no folder, or another file system is mounted there. The error says what to do.
pub(super) fn free(folder: &Path) -> io::Result<PathBuf> {
    let place = place(folder).map_err(|error| super::at(folder, &error))?;
    loop {
        let table = std::fs::read("/proc/self/mountinfo")?;
        let on_it = entries(&table).filter(|entry| entry.place == place);
        // The last one is on top.
        let Some(top) = on_it.last().filter(|entry| entry.kind.starts_with("fuse")) else {
            break;
        };
        let shown = place.display();
        let is_dead = match std::fs::metadata(&place) {
            Ok(_) => false,
            Err(error) => error.raw_os_error() == Some(libc::ENOTCONN),
        };
        if !is_dead || top.source != SOURCE {
            return Err(io::Error::new(
                io::ErrorKind::AddrInUse,
                format!(
                    "{shown}: {} is mounted there: expected a folder with nothing mounted on it; \
                     `umount {shown}` unmounts",
                    top.source
                ),
            ));
        }
        info!(folder = %shown, "unmounts what a killed server has left");
        unmount(&place, UnmountFlags::DETACH)?;
    }
    match std::fs::metadata(&place) {
        Ok(found) if found.is_dir() => Ok(place),
        Ok(_) => Err(super::at(&place, &io::ErrorKind::NotADirectory.into())),
        Err(error) => Err(super::at(&place, &error)),
    }
}

/// The path of the folder in the kernel's table. The folder itself is not accessed, because a stale mount
/// would fail.
fn place(folder: &Path) -> io::Result<PathBuf> {
    let folder = std::path::absolute(folder)?;
    match (folder.parent(), folder.file_name()) {
        (Some(parent), Some(name)) => match std::fs::symlink_metadata(&folder) {
            Ok(found) if found.is_symlink() => folder.canonicalize(),
            _ => Ok(parent.canonicalize()?.join(name)),
        },
        _ => folder.canonicalize(),
    }
}

/// The device number of the mount on a place, as the kernel writes it: `0:47`. `None` if nothing of ours is there.
pub(super) fn device(place: &Path) -> Option<String> {
    let table = std::fs::read("/proc/self/mountinfo").ok()?;
    let ours = entries(&table).filter(|entry| entry.place == place && entry.source == SOURCE);
    ours.last().map(|entry| entry.device)
}

/// Processes in whose mount namespaces a device is mounted: `4711 (chrome)`, the first few.
pub(super) fn holders(device: &str) -> Vec<String> {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let holds = processes.flatten().filter_map(|process| {
        let number: u32 = process.file_name().to_str()?.parse().ok()?;
        let table = std::fs::read(process.path().join("mountinfo")).ok()?;
        entries(&table).find(|entry| entry.device == device)?;
        let name = std::fs::read_to_string(process.path().join("comm")).ok()?;
        Some(format!("{number} ({})", name.trim_end()))
    });
    holds.take(MOST_NAMED).collect()
}

/// The most processes that are named. A choice: one tells which container it is.
const MOST_NAMED: usize = 3;

/// A line of the table.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    /// Major and minor number of the file system's device: `0:47`.
    device: String,
    place: PathBuf,
    kind: String,
    source: String,
}

/// The lines of `/proc/self/mountinfo` (proc(5)): the device is the third field, the mount point is the fifth, type and
/// source are the first two after a lone `-`.
fn entries(table: &[u8]) -> impl Iterator<Item = Entry> {
    table.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut fields = line.split(|&byte| byte == b' ');
        let device = fields.nth(2)?;
        let place = fields.nth(1)?;
        fields.find(|&field| field == b"-")?;
        let (kind, source) = (fields.next()?, fields.next()?);
        Some(Entry {
            device: String::from_utf8_lossy(device).into_owned(),
            place: OsString::from_vec(plain(place)).into(),
            kind: String::from_utf8_lossy(kind).into_owned(),
            source: String::from_utf8_lossy(&plain(source)).into_owned(),
        })
    })
}

/// Decodes the kernel's `\040` for a blank and the like.
fn plain(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let octal = match (first, after) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                Some((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'))
            }
            _ => None,
        };
        plain.push(octal.unwrap_or(first));
        rest = &after[if octal.is_some() { 3 } else { 0 }..];
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::{Entry, MOST_NAMED, entries, holders};

    #[test]
    fn processes_that_have_a_mount_are_named() {
        let table = std::fs::read("/proc/self/mountinfo").expect("a table");
        let root = entries(&table).find(|entry| entry.place.as_os_str() == "/");
        let found = holders(&root.expect("a root").device);
        assert!((1..=MOST_NAMED).contains(&found.len()), "{found:?}");
        assert!(
            found
                .iter()
                .all(|one| one.ends_with(')') && one.contains(" (")),
            "{found:?}"
        );
        assert_eq!(holders("0:0"), Vec::<String>::new());
    }

    #[test]
    fn the_table_is_read_with_its_optional_fields_and_blanks() {
        let table = b"36 35 98:0 / /mnt rw,noatime master:1 shared:2 - ext3 /dev/root rw\n\
            37 36 0:47 / /mnt/a\\040b\\134c rw,nosuid - fuse headtime rw,user_id=0\n\
            garbage\n";
        let found: Vec<Entry> = entries(table).collect();
        let expected = [
            ("98:0", "/mnt", "ext3", "/dev/root"),
            ("0:47", "/mnt/a b\\c", "fuse", "headtime"),
        ];
        let expected = expected.map(|(device, place, kind, source)| Entry {
            device: device.to_owned(),
            place: place.into(),
            kind: kind.to_owned(),
            source: source.to_owned(),
        });
        assert_eq!(found, expected);
    }
}
