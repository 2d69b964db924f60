//! Extents of a moment into an image, and the verification of the image.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use rustix::fs::{Advice, fadvise};
use server::checksums::record::crc;

use super::moment::{DEPTH, Moment};
use crate::bar::ProgressLines;
use crate::output::Exit;
use crate::state_file::sync_folder;
use crate::verbosity::bar_target;

/// An image that is being written.
pub struct Target {
    file: File,
    path: PathBuf,
    /// Whether the image is new, and goes if it does not become whole.
    is_new: bool,
}

/// What was copied.
#[derive(Clone, Copy, Debug, Default)]
pub struct Copied {
    /// Bytes of the extents.
    pub asked_bytes: u64,
    /// Bytes that were read from the volume.
    pub read_bytes: u64,
    /// Bytes that were read again from the image.
    pub verified_bytes: u64,
}

impl Target {
    /// A new image of `bytes` bytes, under another name until it is whole.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn begin(image: &Path, bytes: u64) -> Result<Self, Exit> {
        let mut name = image.as_os_str().to_owned();
        name.push(".part");
        let path = PathBuf::from(name);
        let made = || {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(true);
            let file = options.open(&path)?;
            file.set_len(bytes)?;
            Ok::<_, io::Error>(file)
        };
        let file = made().map_err(|error| problem(&path, &error))?;
        Ok(Target {
            file,
            path,
            is_new: true,
        })
    }

    /// An image that gets changes, and `bytes` bytes.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(image: &Path, bytes: u64) -> Result<Self, Exit> {
        let opened = || {
            let file = File::options().read(true).write(true).open(image)?;
            file.set_len(bytes)?;
            Ok::<_, io::Error>(file)
        };
        let file = opened().map_err(|error| problem(image, &error))?;
        Ok(Target {
            file,
            path: image.to_owned(),
            is_new: false,
        })
    }

    /// Gives a new image its name.
    ///
    /// # Errors
    /// If the file cannot be renamed.
    pub fn finish(mut self, image: &Path) -> Result<(), Exit> {
        let renamed = std::fs::rename(&self.path, image).and_then(|()| sync_folder(image));
        renamed.map_err(|error| problem(image, &error))?;
        self.is_new = false;
        Ok(())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if self.is_new {
            // A part of an image is of no use: the next backup starts anew.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Copies extents, and verifies them.
///
/// # Errors
/// If the moment is lost, the image cannot be written or holds other bytes, or the user stops it.
pub fn copy(
    moment: &mut Moment,
    target: &Target,
    extents: &[Range<u64>],
    stop: &AtomicBool,
) -> Result<Copied, Exit> {
    let asked = extents.iter().map(|extent| extent.end - extent.start).sum();
    let bar = bar(asked);
    let _lines = ProgressLines::of(&bar);
    let (mut pieces, mut sums) = (pieces(extents, moment.longest()), Vec::new());
    let mut copied = Copied {
        asked_bytes: asked,
        ..Copied::default()
    };
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Exit::failed("stopped: the next backup starts anew"));
        }
        while moment.under_way() < DEPTH
            && let Some(piece) = pieces.next()
        {
            let begun = moment.read(piece.start, piece.end - piece.start);
            begun.map_err(|error| lost(&error))?;
        }
        if moment.under_way() == 0 {
            break;
        }
        let part = moment.next_end().map_err(|error| lost(&error))?;
        let written = target.file.write_all_at(&part.bytes, part.offset);
        written.map_err(|error| problem(&target.path, &error))?;
        sums.push((part.offset, part.bytes.len(), crc(&part.bytes)));
        copied.read_bytes += part.bytes.len() as u64;
        bar.set_position(copied.read_bytes);
    }
    bar.finish_and_clear();
    let synced = target.file.sync_all();
    synced.map_err(|error| problem(&target.path, &error))?;
    copied.verified_bytes = verify(target, &sums)?;
    Ok(copied)
}

/// Reads the bytes again, as far as the system allows from the medium. The answer is their number.
fn verify(target: &Target, sums: &[(u64, usize, u32)]) -> Result<u64, Exit> {
    // The system may keep some pages all the same.
    let _ = fadvise(&target.file, 0, None, Advice::DontNeed);
    let (mut bytes, mut all) = (Vec::new(), 0);
    for &(offset, length, sum) in sums {
        bytes.resize(length, 0);
        let read = target.file.read_exact_at(&mut bytes, offset);
        read.map_err(|error| problem(&target.path, &error))?;
        if crc(&bytes) != sum {
            return Err(Exit::failed(format!(
                "{}: {length} bytes at {offset} differ from those that were written",
                target.path.display()
            )));
        }
        all += length as u64;
    }
    Ok(all)
}

/// The pieces of extents, none longer than `longest`.
fn pieces(extents: &[Range<u64>], longest: u64) -> impl Iterator<Item = Range<u64>> {
    extents.iter().flat_map(move |extent| {
        let starts = (extent.start..extent.end).step_by(longest as usize);
        starts.map(move |start| start..(start + longest).min(extent.end))
    })
}

fn lost(error: &io::Error) -> Exit {
    Exit::failed(format!(
        "the checkpoint: {error}: `headtime ctl checkpoint list` has the reason; the next backup starts anew"
    ))
}

fn problem(path: &Path, error: &io::Error) -> Exit {
    Exit::failed(format!("{}: {error}", path.display()))
}

fn bar(bytes: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(bytes), bar_target(4));
    if let Ok(style) = ProgressStyle::with_template(
        "backup {bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta}",
    ) {
        bar.set_style(style);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_extents() {
        let extents = [0..10, 12..13, 20..40];
        let pieces: Vec<_> = pieces(&extents, 10).collect();
        assert_eq!(pieces, [0..10, 12..13, 20..30, 30..40]);
    }
}
