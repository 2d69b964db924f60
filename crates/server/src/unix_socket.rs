//! Listening unix sockets. No user but the configured ones reaches them at any moment.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};
use tracing::warn;

use crate::config::SocketRights;

/// Connections that the kernel holds until they are accepted. A choice: as std.
const BACKLOG: i32 = 128;

/// Listens at a path. A socket that a former service has left is replaced.
///
/// ```text
///   bind -- group and mode of the file -- listen: only now can anybody connect
/// ```
///
/// # Errors
/// If another service listens there, the file is no socket, or group or mode cannot be set.
pub(crate) fn listen(path: &Path, rights: SocketRights) -> io::Result<UnixListener> {
    remove_stale(path)?;
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    let listening = open_to(&socket, path, rights);
    if listening.is_err() {
        // It was made above.
        let _ = std::fs::remove_file(path);
    }
    listening?;
    Ok(UnixListener::from(socket))
}

fn open_to(socket: &OwnedFd, path: &Path, rights: SocketRights) -> io::Result<()> {
    if let Some(group) = rights.group {
        chown(path, None, Some(group)).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("group {group}: {error}: expected a group of the service's user"),
            )
        })?;
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(rights.mode))?;
    if let Some(folder) = path.parent()
        && let Ok(found) = std::fs::metadata(folder)
        && !rights.may_enter(found.gid(), found.mode())
    {
        warn!(
            socket = %path.display(),
            mode = format!("{:04o}", found.mode() & 0o7777),
            "the users who may open the socket may not enter its folder: expected a folder of that group, or another place"
        );
    }
    rustix::net::listen(socket, BACKLOG)?;
    Ok(())
}

fn remove_stale(path: &Path) -> io::Result<()> {
    let Ok(found) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "something that is no socket is there: expected a free name",
        ));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        _ => Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "somebody listens there: expected a socket of its own (is another server running?)",
        )),
    }
}
