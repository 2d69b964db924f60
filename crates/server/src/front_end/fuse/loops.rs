//! Loop devices over our files, and whether a file system or another device is on them.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::disk::back_end::disk::sysfs::{is_claimed, users};

/// Loop devices over files below `place` that are in use: `/dev/loop0 (mounted on /srv)`.
pub(super) fn claimed(place: &Path) -> Vec<String> {
    let Ok(devices) = std::fs::read_dir("/sys/block") else {
        return Vec::new();
    };
    let mut claimed: Vec<String> = devices
        .flatten()
        .filter_map(|device| {
            let folder = device.path();
            let backing = std::fs::read(folder.join("loop/backing_file")).ok()?;
            if !is_below(&backing, place) {
                return None;
            }
            let node = Path::new("/dev").join(device.file_name());
            is_claimed(&node).then(|| named(&node, &folder))
        })
        .collect();
    claimed.sort_unstable();
    claimed
}

/// Whether the text of `backing_file` names something in a folder.
fn is_below(backing: &[u8], place: &Path) -> bool {
    let rest = backing.strip_prefix(place.as_os_str().as_bytes());
    rest.is_some_and(|rest| rest.starts_with(b"/"))
}

/// The device with its users, as far as this mount namespace shows them.
fn named(node: &Path, folder: &Path) -> String {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    match &users(folder, &mounts)[..] {
        [] => node.display().to_string(),
        users => format!("{} ({})", node.display(), users.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_folder_are_told_from_those_of_its_neighbours() {
        let place = Path::new("/run/volumes");
        assert!(is_below(b"/run/volumes/disk\n", place));
        assert!(!is_below(b"/run/volumes2/disk\n", place));
        assert!(!is_below(b"/run/volumes\n", place));
        assert!(!is_below(b"/run/other/run/volumes/disk\n", place));
    }

    #[test]
    fn a_folder_without_loop_devices_is_not_in_use() {
        assert_eq!(claimed(Path::new("/no/such/place")), [""; 0]);
    }
}
