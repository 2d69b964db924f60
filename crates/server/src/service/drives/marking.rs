//! The dirty bitmaps of a drive's volumes: a folder with a file each.

use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use headtime_client::private;
use tracing::info;

use super::checking::claimed;
use crate::checkpoint::bitmap::BitmapFile;
use crate::checkpoint::bits::Bits;
use crate::checkpoint::{CHUNK, bitmap};
use crate::checksums::region::Identity;
use crate::config;
use crate::exclusive;
use crate::volume::OpenBitmap;

/// The drive of a bitmap's volume.
pub(super) struct BitmapPlace<'a> {
    pub(super) drive: &'a str,
    pub(super) block_bytes: u32,
    pub(super) blocks: u64,
}

/// Opens the bitmaps of the volumes.
///
/// # Errors
/// If one is of another volume, or damaged.
pub(super) fn bitmaps(
    place: &BitmapPlace<'_>,
    volumes: &[(config::Volume, u64)],
) -> Result<Vec<OpenBitmap>, String> {
    let mut all = Vec::new();
    for (volume, length) in volumes {
        let Some(folder) = &volume.bitmaps else {
            continue;
        };
        let problem = |error: io::Error| format!("{}: {error}", folder.display());
        private::create_folder(folder).map_err(problem)?;
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
            .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
            .map_err(problem)?;
        files.retain(|file| file.extension().is_some_and(|kind| kind == ENDING));
        files.sort();
        for file in files {
            let opened = open(place, (volume, *length), &file);
            all.push(opened.map_err(|problem| format!("{}: {problem}", file.display()))?);
        }
    }
    Ok(all)
}

fn open(
    place: &BitmapPlace<'_>,
    (volume, length): (&config::Volume, u64),
    path: &Path,
) -> Result<OpenBitmap, String> {
    let file = claimed(path, exclusive::PATIENCE).map_err(|error| error.to_string())?;
    let opened = BitmapFile::open(file, &identity(place, volume), length);
    let (file, opened) = opened.map_err(|error| error.to_string())?;
    info!(
        volume = volume.name,
        bitmap = file.name(),
        dirty_bytes = opened.dirty.count() * CHUNK,
        "a dirty bitmap"
    );
    Ok(OpenBitmap {
        volume: volume.name.clone(),
        bytes: volume.offset..volume.offset + length,
        file,
        opened,
    })
}

/// Makes the file of a new bitmap.
///
/// # Errors
/// If the volume keeps none, or the file is there or cannot be made.
pub(super) fn make(
    place: &BitmapPlace<'_>,
    (volume, length): (&config::Volume, u64),
    name: &str,
) -> Result<OpenBitmap, String> {
    let path = path(volume, name)?;
    let problem = |error: io::Error| format!("{}: {error}", path.display());
    // A crash leaves an unfinished file under another name.
    let unfinished = path.with_extension("new");
    let file = claimed(&unfinished, Duration::ZERO).map_err(problem)?;
    let number = std::hash::RandomState::new().build_hasher().finish();
    let named = (name.to_owned(), length);
    let file = BitmapFile::create(file, identity(place, volume), named, number).map_err(problem)?;
    if path.exists() {
        return Err(format!(
            "{}: there is a file already: expected another name",
            path.display()
        ));
    }
    std::fs::rename(&unfinished, &path).map_err(problem)?;
    sync_folder(&path).map_err(problem)?;
    Ok(OpenBitmap {
        volume: volume.name.clone(),
        bytes: volume.offset..volume.offset + length,
        file,
        opened: bitmap::Opened {
            dirty: Bits::none(length.div_ceil(CHUNK)),
            assumed: 0,
        },
    })
}

/// Removes the file of a bitmap.
///
/// # Errors
/// If it is not there, or cannot be removed.
pub(super) fn remove(volume: &config::Volume, name: &str) -> Result<(), String> {
    let path = path(volume, name)?;
    let removed = std::fs::remove_file(&path).and_then(|()| sync_folder(&path));
    removed.map_err(|error| format!("{}: {error}", path.display()))
}

fn path(volume: &config::Volume, name: &str) -> Result<PathBuf, String> {
    let Some(folder) = &volume.bitmaps else {
        return Err(format!(
            "volume {} keeps no dirty bitmaps: expected the key `bitmaps` in its table",
            volume.name
        ));
    };
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let is_good = (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(is_plain);
    match is_good && !name.starts_with('.') {
        true => Ok(folder.join(format!("{name}.{ENDING}"))),
        false => Err(format!(
            "bitmap {name:?}: expected 1 to {LONGEST_NAME} letters, digits, `-`, `_` or `.`, and no `.` first"
        )),
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

fn identity(place: &BitmapPlace<'_>, volume: &config::Volume) -> Identity {
    Identity {
        drive: place.drive.to_owned(),
        volume: volume.name.clone(),
        block_bytes: place.block_bytes,
        offset: volume.offset,
        capacity: place.blocks * u64::from(place.block_bytes),
    }
}

/// The ending of files of bitmaps.
const ENDING: &str = "bitmap";

/// Bytes of the longest name: as of volumes.
const LONGEST_NAME: usize = 64;
