//! The findings about the folders of a service: who owns them, and who may write to them.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::Finding;

/// The use of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderUse {
    /// Permanent files: images, checksums, states.
    Data,
    /// Sockets and records of switches.
    Runtime,
}

impl FolderUse {
    /// The name in findings.
    const fn name(self) -> &'static str {
        match self {
            FolderUse::Data => "data folder",
            FolderUse::Runtime => "runtime folder",
        }
    }
}

/// What is wrong with a folder for a service of this user. A folder that is not there is made by the next start.
pub fn of_folder(folder: &Path, its_use: FolderUse, user: u32) -> Option<Finding> {
    let found = match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => return Some(finding(folder, its_use, user, &error.to_string())),
        Ok(found) => found,
    };
    let mode = found.mode() & 0o7777;
    let problem = if !found.is_dir() && !folder.is_dir() {
        "it is no folder".to_owned()
    } else if found.uid() != user && user != ROOT {
        format!("it belongs to user {}", found.uid())
    } else if !found.is_symlink() && mode & WRITABLE_BY_OTHERS != 0 {
        format!("others may write to it (mode {mode:04o})")
    } else {
        return None;
    };
    Some(finding(folder, its_use, user, &problem))
}

/// The user who may use every folder.
const ROOT: u32 = 0;

/// The bits of a mode that let the group and all users write (chmod(2)).
const WRITABLE_BY_OTHERS: u32 = 0o022;

fn finding(folder: &Path, its_use: FolderUse, user: u32, problem: &str) -> Finding {
    let path = folder.display();
    Finding::wrong(
        "folder",
        format!("{} {path}", its_use.name()),
        problem.to_owned(),
        "a service cannot use it, or another user can replace its sockets and images",
        format!(
            "as root: `chown {user} {path}` and `chmod 0700 {path}`; or remove it: the next start makes it"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_folder_is_the_users_own_and_nobody_else_writes_to_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let user = fs::metadata(folder.path()).expect("a folder").uid();
        let place = folder.path().join("data");
        let found = |user| of_folder(&place, FolderUse::Data, user).map(|finding| finding.what);
        assert_eq!(found(user), None, "it is made by the start");
        fs::create_dir(&place).expect("a folder");
        let set = |mode| fs::set_permissions(&place, fs::Permissions::from_mode(mode));
        set(0o700).expect("a mode");
        assert_eq!(found(user), None);
        let another = format!("it belongs to user {user}");
        assert_eq!(found(user + 1), Some(another));
        for (mode, expected) in [
            (0o755, None),
            (0o770, Some("others may write to it (mode 0770)")),
            (0o702, Some("others may write to it (mode 0702)")),
        ] {
            set(mode).expect("a mode");
            assert_eq!(found(user).as_deref(), expected, "{mode:o}");
        }
        fs::remove_dir(&place).expect("a folder");
        fs::write(&place, "").expect("a file");
        assert_eq!(found(user).as_deref(), Some("it is no folder"));
    }
}
