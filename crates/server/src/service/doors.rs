//! The sockets on which NBD clients connect, and folders for mounts.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use block::Switch;
use headtime_client::private;
use tracing::warn;

use super::ServeError;
use super::drives::Drive;
use crate::clients::Seats;
use crate::config::{self, Config, Listen};
use crate::control::notify::Activated;
use crate::front_end::fuse;
use crate::listener::{Directory, Listener, Shown, Terms};
use crate::tls::{Papers, Security};

/// The state that all listeners share: the limit of clients, and the count of rejected ones.
pub(super) struct Welcome<'a> {
    pub(super) seats: &'a Seats,
    pub(super) refused: &'a Arc<AtomicU64>,
}

/// Opens all NBD sockets.
///
/// # Errors
/// The first socket that does not open, with its name.
pub(super) fn listen(
    config: &Config,
    shown: &Shown,
    mut activated: Activated,
    welcome: &Welcome<'_>,
) -> Result<Vec<Listener>, ServeError> {
    let mut listeners = Vec::new();
    for nbd in &config.nbd {
        let shown = Arc::clone(shown);
        let terms = Terms {
            security: secured(nbd)?,
            rights: nbd.rights,
            longest: Duration::from_secs(u64::from(config.limits.handshake_s)),
            seats: welcome.seats.clone(),
            refused: Arc::clone(welcome.refused),
        };
        let (what, listener) = match &nbd.listen {
            Listen::Unix(path) => {
                let made = path.parent().map_or(Ok(()), private::create_folder);
                let listener = made.and_then(|()| Listener::unix(path, shown, terms));
                (path.display().to_string(), listener)
            }
            Listen::Tcp(address) => (address.to_string(), Listener::tcp(*address, shown, terms)),
            Listen::Activated(name) => (
                format!("socket {name} of systemd"),
                inherited(&mut activated, name, shown, terms),
            ),
        };
        let listener = listener.and_then(|listener| checked(nbd, listener));
        listeners.push(listener.map_err(|error| ServeError::Listen { what, error })?);
    }
    for name in activated.names() {
        warn!(
            name,
            "a socket of systemd is not used: expected [[nbd]] with activated = its name"
        );
    }
    Ok(listeners)
}

/// Refuses a listener that other machines reach without TLS, unless the configuration allows it. A socket of
/// systemd has its address only now.
fn checked(nbd: &config::Nbd, listener: Listener) -> io::Result<Listener> {
    let Some(address) = listener.address().filter(|address| nbd.is_open(*address)) else {
        return Ok(listener);
    };
    match nbd.insecure {
        Switch::On => {
            warn!(%address, "other machines may read and write the exports without TLS (insecure = true)");
            Ok(listener)
        }
        Switch::Off => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "other machines reach {address} without TLS: expected [nbd.tls] with required = true, \
                 an address of this machine, or insecure = true"
            ),
        )),
    }
}

fn inherited(
    activated: &mut Activated,
    name: &str,
    shown: Shown,
    terms: Terms,
) -> io::Result<Listener> {
    match activated.take_named(name) {
        Some(socket) => Listener::inherited(socket, shown, terms),
        None => Err(io::Error::new(
            io::ErrorKind::NotFound,
            "systemd opened no socket of that name: expected it as FileDescriptorName=",
        )),
    }
}

/// The security of a listener's clients.
pub(super) fn secured(nbd: &config::Nbd) -> Result<Security, ServeError> {
    Security::load(nbd.tls.as_ref()).map_err(|unusable| ServeError::Listen {
        what: "[nbd.tls]".to_owned(),
        error: io::Error::other(unusable),
    })
}

/// The certificates of each listener, read again.
///
/// # Errors
/// The first file that cannot be used.
pub(super) fn papers(config: &Config) -> Result<Vec<Option<Papers>>, String> {
    let all = config
        .nbd
        .iter()
        .map(|nbd| nbd.tls.as_ref().map(Papers::read).transpose());
    all.collect::<Result<_, _>>()
        .map_err(|unusable| format!("[nbd.tls]: {unusable}"))
}

/// The exports of all drives.
pub(super) fn directory(drives: &[Drive]) -> Directory {
    let (mut offers, mut places) = (Vec::new(), Vec::new());
    for drive in drives {
        for (offer, place) in drive.offers() {
            offers.push(offer);
            places.push((drive.mailbox().clone(), place));
        }
    }
    Directory {
        offers: offers.into(),
        places: places.into(),
    }
}

/// Mounts one folder a drive, so that a slow drive holds up no other. Returns the mounts, and the folders that
/// were made for them.
pub(super) fn mount(
    config: &Config,
    drives: &[Drive],
) -> Result<(Vec<fuse::Mount>, Vec<PathBuf>), ServeError> {
    let (mut mounts, mut made) = (Vec::new(), Vec::new());
    let Some(fuse) = &config.fuse else {
        return Ok((mounts, made));
    };
    for drive in drives {
        let folder = match drives.len() {
            1 => fuse.mount.clone(),
            _ => fuse.mount.join(drive.name()),
        };
        made.extend(missing_folders(&folder));
        let mounted = create(&folder).and_then(|()| fuse::Mount::begin(&folder, drive.files()));
        mounts.push(mounted.map_err(|error| ServeError::Listen {
            what: folder.display().to_string(),
            error,
        })?);
    }
    Ok((mounts, made))
}

/// Creates a folder and its parents. What is there and is no folder may be the stale mount of a killed service, which
/// [`fuse::Mount::begin`] unmounts; it refuses anything else.
fn create(folder: &Path) -> io::Result<()> {
    match std::fs::create_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created,
    }
}

/// A folder and its parents, as far as they do not exist: parents first.
fn missing_folders(folder: &Path) -> Vec<PathBuf> {
    let above = folder.ancestors();
    let missing = above.take_while(|folder| {
        // A dead mount is there, although its metadata are not.
        std::fs::symlink_metadata(folder)
            .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    });
    let mut missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
    missing.retain(|folder| !folder.as_os_str().is_empty());
    missing.reverse();
    missing
}
