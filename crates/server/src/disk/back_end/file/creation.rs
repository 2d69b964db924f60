//! New images: sparse files that only this user may read.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Checks that the file system supports files of `bytes` bytes. It makes a temporary file without a name, where the
/// file system has those.
///
/// # Errors
/// If it has none so long.
pub fn is_possible(path: &Path, bytes: u64) -> io::Result<()> {
    let parent = path.parent().filter(|path| !path.as_os_str().is_empty());
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let folder = parent.unwrap_or(Path::new("."));
    match rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => File::from(file)
            .set_len(bytes)
            .map_err(|error| too_long(error, bytes)),
        Err(_) => Ok(()),
    }
}

/// Creates a sparse file that only this user may read, if there is none. A file that cannot have the length is
/// removed again.
///
/// # Errors
/// If that fails.
pub(super) fn make(path: &Path, bytes: u64) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    match options.open(path) {
        Ok(file) => {
            if let Err(error) = file.set_len(bytes) {
                std::fs::remove_file(path)?;
                return Err(too_long(error, bytes));
            }
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// The error of a file that cannot be made this long.
fn too_long(error: io::Error, bytes: u64) -> io::Error {
    match error.kind() {
        io::ErrorKind::FileTooLarge => io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!(
                "the file system has no files of {bytes} bytes: expected one that has, such as XFS \
                 (ext4 ends at 16 TiB with blocks of 4 KiB)"
            ),
        ),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_without_files_so_long_is_named() {
        let error = too_long(
            io::Error::from_raw_os_error(libc::EFBIG),
            20_000_588_955_648,
        );
        assert!(
            error
                .to_string()
                .contains("expected one that has, such as XFS")
        );
    }
}
