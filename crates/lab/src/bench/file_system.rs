//! File systems of the kernel, with files that have no holes.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::rig::Needed;
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

/// A place in an image for a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    /// The first byte.
    pub(super) offset: u64,
    /// Bytes, in whole blocks of 4 KiB.
    pub(super) bytes: u64,
}

impl Area {
    /// Makes an ext4 here.
    pub(super) fn format(self, image: &Path) -> Result<(), Failure> {
        let lazy = format!(
            "lazy_itable_init=1,lazy_journal_init=1,nodiscard,offset={}",
            self.offset
        );
        called(
            Command::new(MKFS.program)
                .args(["-q", "-F", "-b", "4096", "-E", &lazy])
                .arg(image)
                .arg((self.bytes / 4096).to_string()),
        )
    }

    /// Mounts the file system of an image, without the delays of a drive.
    pub(super) fn mount(self, image: &Path, at: &Path) -> Result<MountedFileSystem, Failure> {
        let inside = format!("loop,offset={},sizelimit={}", self.offset, self.bytes);
        MountedFileSystem::at(at, image, &inside)
    }
}

/// Creates a sparse image.
pub(super) fn sparse_image(path: &Path, bytes: u64) -> Result<(), Failure> {
    let made = File::create(path).and_then(|file| file.set_len(bytes));
    made.map_err(Failure::failed)
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
pub(super) fn filled_file(path: &Path, bytes: u64) -> Result<(), Failure> {
    let piece = vec![0x5a; 1 << 20];
    let mut file = File::create(path).map_err(Failure::failed)?;
    let mut left = bytes;
    while left > 0 {
        let now = left.min(piece.len() as u64);
        file.write_all(&piece[..now as usize])
            .map_err(Failure::failed)?;
        left -= now;
    }
    file.sync_all().map_err(Failure::failed)
}

/// The program that makes file systems.
pub(super) const MKFS: Needed = Needed {
    program: "mkfs.ext4",
    package: "e2fsprogs",
};
