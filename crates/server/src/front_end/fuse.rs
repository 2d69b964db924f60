//! Exports as files. `losetup --direct-io=on` makes a file a block device, where the kernel has neither nbd
//! nor ublk.
//!
//! ```text
//!   kernel --/dev/fuse--> session's thread --letter--> event loop
//!      ^                                                   |
//!      '------------- reply, on the loop's thread ---------'
//! ```
//!
//! One thread reads requests and posts them. Replies are written where operations end. The bytes of a write
//! are copied twice: the session reuses its buffer at once, and the arena is aligned for direct I/O. Those
//! of a read are not copied.
//!
//! A request need not have whole blocks of the drive. The volume orders partial writes of all front ends.
//! Writers of different bytes of one block lose nothing, through one file, two files of one volume, or a
//! file and NBD.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use tracing::{info, warn};

use crate::event_loop::mailbox::Mailbox;
use crate::volume::operation::Reply;
use crate::volume::posted::{Contents, Posted};
use block::Owner;
use block::operation::Ask;

mod folder;
mod gate;
mod loops;
mod mount_table;
mod zeroes;

/// A volume as a file.
#[derive(Clone)]
pub struct ExportedFile {
    /// The name of the file: no `/`, not `.` or `..`, at most 255 bytes.
    pub name: String,
    /// The number of bytes, a multiple of `block_bytes`.
    pub bytes: u64,
    /// Whether the file is read-only.
    pub read_only: bool,
    /// The mailbox of the drive's event loop.
    pub mailbox: Mailbox,
    /// The index of the export in the loop.
    pub export: usize,
    /// Bytes of a block of the drive.
    pub block_bytes: u32,
}

impl ExportedFile {
    /// Posts an operation of a process on a range of the volume. `reply` is called in any case.
    fn post(&self, owner: Owner, ask: Ask, bytes: Range<u64>, contents: Vec<u8>, reply: Reply) {
        self.mailbox.submit(Posted {
            export: self.export,
            ask,
            offset: bytes.start,
            length: bytes.end - bytes.start,
            contents: Contents::Owned(contents),
            owner,
            reply,
        });
    }
}

/// A mounted folder of volumes. Dropping it unmounts.
pub struct Mount {
    place: PathBuf,
    /// The files in the order of their inodes.
    files: Vec<(String, Size)>,
    session: Option<BackgroundSession>,
}

/// The size of a file, which may grow.
#[derive(Clone, Default)]
struct Size(Arc<AtomicU64>);

impl Size {
    fn of(bytes: u64) -> Self {
        Size(Arc::new(AtomicU64::new(bytes)))
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

impl Mount {
    /// Mounts on an existing folder. The stale mount of a killed server is unmounted first.
    ///
    /// The files belong to the user of this process: `losetup` needs root, and so has this process to be.
    ///
    /// # Errors
    /// If the folder does not exist, another file system is mounted there, a name or size is invalid, or
    /// the kernel refuses.
    pub fn begin(folder: &Path, files: Vec<ExportedFile>) -> io::Result<Self> {
        check(&files)?;
        let place = mount_table::free(folder)?;
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName(mount_table::SOURCE.to_owned()),
            MountOption::DefaultPermissions,
            MountOption::NoExec,
        ];
        config.acl = SessionACL::Owner;
        let folder = folder::Folder::new(files);
        let files = folder.sizes();
        let session = Session::new(folder, &place, &config)
            .and_then(Session::spawn)
            .map_err(|error| at(&place, &error))?;
        info!(folder = %place.display(), "volumes are files");
        Ok(Mount {
            place,
            files,
            session: Some(session),
        })
    }

    /// Changes the size of a file after that of its export. The kernel drops its cached size. `losetup
    /// --set-capacity` passes it to a loop device.
    pub fn resize(&self, name: &str, bytes: u64) {
        let mut places = 0..self.files.len();
        let Some(place) = places.find(|&place| self.files[place].0 == name) else {
            return;
        };
        if self.files[place].1.0.swap(bytes, Ordering::AcqRel) == bytes {
            return;
        }
        let Some(session) = &self.session else { return };
        // An offset below zero means the attributes alone.
        let told = session
            .notifier()
            .inval_inode(folder::inode_of(place), -1, 0);
        if let Err(error) = told
            && error.kind() != io::ErrorKind::NotFound
        {
            warn!(name, %error, "the kernel does not hear that a file has become longer");
        }
    }

    /// Loop devices over its files that a file system or another device uses: `/dev/loop0 (mounted on /srv)`. The kernel
    /// may have acknowledged writes to them that have not come here yet.
    pub fn mounted_loops(&self) -> Vec<String> {
        loops::claimed(&self.place)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.place
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        let folder = self.place.display();
        // The device's number is that of the mount, so it is looked up before the mount is gone.
        let device = mount_table::device(&self.place);
        let unmounted = match unmount(&self.place, UnmountFlags::empty()) {
            // An invalid argument: somebody else has unmounted it.
            Ok(()) | Err(Errno::INVAL) => return end(session, &self.place, device),
            // The helper of FUSE unmounts for users without the right to.
            Err(Errno::PERM) => session.umount_and_join(),
            Err(error) => {
                // Dropped, it would unmount again.
                std::mem::forget(session);
                Err(error.into())
            }
        };
        let Err(error) = unmounted else { return };
        warn!(
            %folder, %error,
            "still in use: the files are gone from the folder, and are served to who has them open \
             as long as the service runs; `losetup -a` shows loop devices"
        );
        if let Err(error) = unmount(&self.place, UnmountFlags::DETACH) {
            warn!(%folder, %error, "cannot be unmounted: `umount -l` on it does so");
        }
    }
}

/// Waits for the end of an unmounted session. It has none while processes in other mount namespaces keep a copy of the
/// mount: then it says who they are, and leaves the session to the end of this process.
fn end(session: BackgroundSession, place: &Path, device: Option<String>) {
    let until = Instant::now() + LINGER;
    while !session.guard.is_finished() && Instant::now() < until {
        thread::sleep(GLANCE);
    }
    if session.guard.is_finished() {
        // Its errors are those of a connection that the kernel has closed.
        drop(session.join());
        return;
    }
    let holders = device.map(|device| mount_table::holders(&device));
    let holders = holders.unwrap_or_default().join(", ");
    warn!(
        folder = %place.display(), holders,
        "unmounted here, but copied into other mount namespaces (containers, services with a private /tmp): \
         who has its files open there gets errors from now on"
    );
    // Dropped, it would unmount what is below it now.
    std::mem::forget(session);
}

fn check(files: &[ExportedFile]) -> io::Result<()> {
    for (place, file) in files.iter().enumerate() {
        let name = &file.name;
        let is_name = !name.is_empty()
            && name.len() <= LONGEST_NAME
            && !name.contains(['/', '\0'])
            && name != "."
            && name != "..";
        if !is_name {
            return Err(invalid(&format!(
                "{name:?}: expected a file's name of 1 to {LONGEST_NAME} bytes without /"
            )));
        }
        if files[..place].iter().any(|before| before.name == *name) {
            return Err(invalid(&format!("{name:?}: a second file of this name")));
        }
        let block = u64::from(file.block_bytes);
        if block == 0 || !file.bytes.is_multiple_of(block) || file.bytes > MOST_BYTES {
            return Err(invalid(&format!(
                "{name:?} has {} bytes: expected whole blocks of {block}, at most {MOST_BYTES}",
                file.bytes
            )));
        }
    }
    Ok(())
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

fn at(place: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", place.display()))
}

/// The limit of Linux (`NAME_MAX`).
const LONGEST_NAME: usize = 255;

/// How long an unmounted session may take to end. A choice: the kernel closes it within milliseconds unless somebody else
/// has the mount.
const LINGER: Duration = Duration::from_secs(1);

/// The pause between two looks whether it has ended. A choice.
const GLANCE: Duration = Duration::from_millis(2);

/// The largest offset of a file, which is signed (`loff_t`).
const MOST_BYTES: u64 = i64::MAX as u64;
