//! File systems with media files.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;

/// A mounted file system. Dropping it unmounts the file system.
pub(super) struct MountedFileSystem {
    pub(super) at: PathBuf,
}

impl MountedFileSystem {
    pub(super) fn at(
        at: &Path,
        device: &Path,
        options: &str,
    ) -> Result<MountedFileSystem, Failure> {
        fs::create_dir_all(at).map_err(Failure::failed)?;
        called(
            Command::new("mount")
                .args(["-o", options])
                .arg(device)
                .arg(at),
        )?;
        Ok(MountedFileSystem { at: at.to_owned() })
    }
}

impl Drop for MountedFileSystem {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.at).status();
    }
}

/// Runs a program, whose failure is an error.
pub(super) fn called(command: &mut Command) -> Result<(), Failure> {
    let ran = command.output().map_err(Failure::failed)?;
    if ran.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ran.stderr);
    let program = command.get_program().to_string_lossy();
    Err(Failure::failed(format!(
        "{program}: {}: expected root",
        said.trim()
    )))
}

/// Writes a file of this size without holes.
pub(super) fn film(path: &Path, bytes: usize) -> Result<(), Failure> {
    let piece = vec![0x5a; 1 << 20];
    let mut file = File::create(path).map_err(Failure::failed)?;
    let mut left = bytes;
    while left > 0 {
        let now = left.min(piece.len());
        file.write_all(&piece[..now]).map_err(Failure::failed)?;
        left -= now;
    }
    file.sync_all().map_err(Failure::failed)
}
