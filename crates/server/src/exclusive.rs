//! Files and devices that one process uses at a time.
//!
//! The lock of a file is advisory (flock(2)): it holds against other services and commands of Headtime. It ends with the
//! last reference to the open file. After a process was killed that may be a moment later, because the kernel first ends
//! the operations of its rings. So claims are repeated for some seconds before they fail.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tracing::warn;

/// The time for which a claim is repeated at a start. After 600 kills of services with writes in flight the lock lasted
/// for 6 ms (median) and 66 ms (longest) on a virtual machine's disk. The rest is reserve for slow disks. A choice.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The time between two attempts. A choice.
const PAUSE: Duration = Duration::from_millis(10);

/// Opens a file or a device for reading and writing that nobody else uses.
///
/// # Errors
/// If it cannot be opened, or is in use.
pub fn open(path: &Path) -> io::Result<File> {
    let is_device = path.metadata()?.file_type().is_block_device();
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    if is_device {
        // Of a block device O_EXCL is a claim on it (open(2)).
        options.custom_flags(libc::O_EXCL);
    }
    let is_busy = |error: &io::Error| error.raw_os_error() == Some(libc::EBUSY);
    let file = patiently(PATIENCE, || options.open(path), is_busy)?;
    claim(&file, path, PATIENCE)?;
    Ok(file)
}

/// Locks an open file against other services, and waits so long for one that ends. A file system without locks is
/// served all the same, with a warning.
///
/// # Errors
/// If another process has the lock, or it fails.
pub fn claim(file: &File, path: &Path, patience: Duration) -> io::Result<()> {
    let lock = || flock(file, FlockOperation::NonBlockingLockExclusive);
    match patiently(patience, lock, |error| *error == Errno::WOULDBLOCK) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "another service or command uses it: expected that it ends first, or another path \
             (`fuser` names its process)",
        )),
        Err(Errno::OPNOTSUPP | Errno::NOLCK | Errno::NOSYS | Errno::INVAL) => {
            warn!(
                path = %path.display(),
                "the file system has no locks: nothing prevents a second service from using the file"
            );
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Repeats an attempt while it finds something in use: the kernel needs a while after a process was killed.
pub fn patiently<T, E>(
    patience: Duration,
    mut attempt: impl FnMut() -> Result<T, E>,
    is_in_use: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let end = Instant::now() + patience;
    loop {
        match attempt() {
            Err(error) if is_in_use(&error) && Instant::now() < end => sleep(PAUSE),
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_use_is_refused_and_free_again_when_it_is_closed() {
        let used = tempfile::NamedTempFile::new().expect("a file");
        let first = open(used.path()).expect("nobody uses it");
        let second = File::open(used.path()).expect("a file");
        let refused = claim(&second, used.path(), Duration::ZERO);
        let refused = refused.expect_err("it is in use").to_string();
        assert!(refused.contains("another service"), "{refused}");
        drop(first);
        claim(&second, used.path(), Duration::ZERO).expect("nobody uses it");
    }

    #[test]
    fn what_is_in_use_is_tried_again_and_other_errors_are_not() {
        let mut tries = 0;
        let freed = || {
            tries += 1;
            (tries == 3).then_some(tries).ok_or("busy")
        };
        assert_eq!(patiently(PATIENCE, freed, |why| *why == "busy"), Ok(3));
        let mut tries = 0;
        let broken = || {
            tries += 1;
            Err::<(), &str>("broken")
        };
        let result = patiently(PATIENCE, broken, |why| *why == "busy");
        assert_eq!((result, tries), (Err("broken"), 1));
    }
}
