//! Folders and sockets that no other user of the machine can prepare as a trap.
//!
//! `/tmp/headtime-UID` has a name that anybody can guess and, in `/tmp`, anybody can make first. A service
//! or a client that used another user's folder would hand its socket, images and answers to that user.
//!
//! | checked | refused |
//! |---|---|
//! | the temporary folder | another owner, a mode other than 0700, a symbolic link, anything that is no folder |
//! | the service behind a socket | a process of another user, except for root and the owner of the socket's folder |

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

/// The folder of a user's files where the session has none of its own (no `XDG_RUNTIME_DIR`).
pub fn temporary_folder(user: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/headtime-{user}"))
}

/// Creates a folder and its missing parents with mode 0700. Folders that exist keep their mode.
///
/// # Errors
/// If the file system refuses, or the path lies in a temporary folder that is not this user's alone.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    check_place(folder)
}

/// Creates a file that only this user may read, or empties one that exists, which keeps its mode.
///
/// # Errors
/// If the file system refuses.
pub fn create_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)
}

/// Connects to a service's socket.
///
/// # Errors
/// If no service listens there, the path lies in a temporary folder that is not this user's alone, or the
/// service belongs to a user who may not run it there.
pub fn connect(socket: &Path) -> io::Result<UnixStream> {
    check_place(socket)?;
    let stream = UnixStream::connect(socket)?;
    let peer = socket_peercred(&stream)?.uid.as_raw();
    let owner = socket.parent().and_then(exclusive_owner);
    match is_trusted(peer, geteuid().as_raw(), owner) {
        true => Ok(stream),
        false => Err(refusal(format!(
            "the service there runs as user {peer}: expected this user, root or the owner of the folder"
        ))),
    }
}

/// Whether a service of `peer` may answer `user` behind a socket in a folder that `owner` alone can write to.
fn is_trusted(peer: u32, user: u32, owner: Option<u32>) -> bool {
    peer == user || peer == 0 || owner == Some(peer)
}

/// The owner of a folder that nobody else can write to.
fn exclusive_owner(folder: &Path) -> Option<u32> {
    let found = fs::metadata(folder).ok()?;
    (found.mode() & 0o022 == 0).then_some(found.uid())
}

/// Checks the temporary folder, if this path lies in it.
fn check_place(path: &Path) -> io::Result<()> {
    let user = geteuid().as_raw();
    let folder = temporary_folder(user);
    match path.starts_with(&folder) {
        true => check_folder(&folder, user),
        false => Ok(()),
    }
}

/// Checks that a folder is `user`'s alone. A folder that does not exist passes.
fn check_folder(folder: &Path, user: u32) -> io::Result<()> {
    let found = match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    let problem = if found.is_symlink() {
        String::from("it is a symbolic link")
    } else if !found.is_dir() {
        String::from("it is no folder")
    } else if found.uid() != user {
        format!("it belongs to user {}", found.uid())
    } else if found.mode() & 0o777 != 0o700 {
        format!("it has mode {:04o}", found.mode() & 0o777)
    } else {
        return Ok(());
    };
    Err(refusal(format!(
        "{}: {problem}: expected a folder of user {user} with mode 0700; remove it, or set XDG_RUNTIME_DIR",
        folder.display()
    )))
}

fn refusal(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, problem)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn problem(folder: &Path, user: u32) -> Option<String> {
        check_folder(folder, user)
            .err()
            .map(|error| error.to_string())
    }

    #[test]
    fn a_folder_of_this_user_alone_passes_and_any_other_is_refused() {
        let root = tempfile::tempdir().expect("a folder");
        let user = geteuid().as_raw();
        let folder = root.path().join("headtime");
        assert_eq!(problem(&folder, user), None, "nothing is there yet");
        create_folder(&folder).expect("it is made");
        assert_eq!(problem(&folder, user), None);
        assert!(problem(&folder, user + 1).is_some_and(|it| it.contains("it belongs to user")));
        for mode in [0o755, 0o770, 0o701, 0o600] {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).expect("a mode");
            let expected = format!("it has mode {mode:04o}");
            assert!(problem(&folder, user).is_some_and(|it| it.contains(&expected)));
        }
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("a mode");
        let link = root.path().join("link");
        symlink(&folder, &link).expect("a link");
        assert!(problem(&link, user).is_some_and(|it| it.contains("it is a symbolic link")));
        let file = root.path().join("file");
        fs::write(&file, "").expect("a file");
        assert!(problem(&file, user).is_some_and(|it| it.contains("it is no folder")));
    }

    #[test]
    fn files_are_of_this_user_alone() {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join("state");
        create_file(&path).expect("a file");
        let mode = fs::metadata(&path).expect("it is there").mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_service_of_this_user_of_root_or_of_the_folders_owner_is_trusted() {
        assert!(is_trusted(1000, 1000, None));
        assert!(is_trusted(0, 1000, None));
        assert!(
            is_trusted(990, 1000, Some(990)),
            "a service user's own folder"
        );
        assert!(
            !is_trusted(666, 1000, None),
            "a folder that anybody may write to"
        );
        assert!(!is_trusted(666, 1000, Some(0)));
        assert!(!is_trusted(666, 0, None), "root asks");
    }

    #[test]
    fn a_folder_that_others_can_write_to_has_no_exclusive_owner() {
        let root = tempfile::tempdir().expect("a folder");
        let owner = geteuid().as_raw();
        for (mode, expected) in [(0o755, Some(owner)), (0o775, None), (0o1777, None)] {
            fs::set_permissions(root.path(), fs::Permissions::from_mode(mode)).expect("a mode");
            assert_eq!(exclusive_owner(root.path()), expected, "{mode:o}");
        }
    }

    #[test]
    fn a_service_of_this_user_is_reached_in_any_folder() {
        let root = tempfile::tempdir().expect("a folder");
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o1777)).expect("a mode");
        let path = root.path().join("control.sock");
        let listener = UnixListener::bind(&path).expect("a socket");
        connect(&path).expect("this user's own service");
        drop(listener);
        assert!(connect(&path).is_err(), "nobody listens");
    }
}
