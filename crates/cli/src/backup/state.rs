//! The file beside an image, which says what the image is.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::output::Exit;
use crate::state_file;

/// What an image is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageState {
    /// The [`VERSION`].
    pub version: u32,
    /// The name of the volume.
    pub volume: String,
    /// Bytes of the volume.
    pub volume_bytes: u64,
    /// The name of the dirty bitmap, if one counts changes since the image.
    pub bitmap: Option<String>,
    /// The number of the bitmap.
    pub bitmap_id: Option<String>,
    /// The checkpoint in the image, or on its way there.
    pub checkpoint: Option<String>,
    /// The base of the bitmap at the checkpoint.
    pub since: Option<String>,
    /// Whether the image is of one moment.
    pub phase: Phase,
}

/// Whether an image is of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// It is.
    Whole,
    /// An incremental backup was interrupted: the next one completes it.
    Writing,
}

/// The version of the file.
pub const VERSION: u32 = 1;

impl ImageState {
    /// The state of an image, if it has one.
    ///
    /// # Errors
    /// If the file is not readable, or is of another version.
    pub fn of(image: &Path) -> Result<Option<Self>, Exit> {
        let path = path(image);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Exit::input(format!("{}: {error}", path.display()))),
        };
        let state: ImageState = serde_json::from_str(&text)
            .map_err(|error| Exit::input(format!("{}: {error}", path.display())))?;
        match state.version {
            VERSION => Ok(Some(state)),
            other => Err(Exit::input(format!(
                "{}: version {other}: expected {VERSION}",
                path.display()
            ))),
        }
    }

    /// Writes the state of an image durably.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn store(&self, image: &Path) -> Result<(), Exit> {
        let path = path(image);
        let stored = state_file::store(&path, self);
        stored.map_err(|error| Exit::failed(format!("{}: {error}", path.display())))
    }

    /// Whether a bitmap with this base has all changes since the image.
    ///
    /// An image whose release was lost has the base that it was made with: its changes are still in the bitmap.
    pub fn precedes(&self, bitmap_id: &str, base: Option<&str>) -> bool {
        let is_at = |checkpoint: &Option<String>| checkpoint.as_deref() == base;
        let is_of_bitmap = self.bitmap_id.as_deref() == Some(bitmap_id);
        is_of_bitmap
            && match self.phase {
                Phase::Whole => is_at(&self.checkpoint) || is_at(&self.since),
                Phase::Writing => is_at(&self.since),
            }
    }
}

fn path(image: &Path) -> PathBuf {
    let mut name = image.as_os_str().to_owned();
    name.push(".backup.json");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(phase: Phase, checkpoint: &str, since: Option<&str>) -> ImageState {
        ImageState {
            version: VERSION,
            volume: "disk".to_owned(),
            volume_bytes: 1 << 20,
            bitmap: Some("daily".to_owned()),
            bitmap_id: Some("b".to_owned()),
            checkpoint: Some(checkpoint.to_owned()),
            since: since.map(str::to_owned),
            phase,
        }
    }

    #[test]
    fn a_bitmap_follows_an_image_only_if_it_has_all_changes_since() {
        for (state, base, expected) in [
            (state(Phase::Whole, "2", Some("1")), Some("2"), true),
            // The release was lost.
            (state(Phase::Whole, "2", Some("1")), Some("1"), true),
            (state(Phase::Whole, "2", Some("1")), Some("3"), false),
            // The first release was lost.
            (state(Phase::Whole, "2", None), None, true),
            (state(Phase::Whole, "2", None), Some("1"), false),
            (state(Phase::Writing, "2", Some("1")), Some("1"), true),
            (state(Phase::Writing, "2", Some("1")), Some("2"), false),
        ] {
            assert_eq!(state.precedes("b", base), expected, "{state:?} {base:?}");
            assert!(!state.precedes("another", base));
        }
    }

    #[test]
    fn a_state_is_read_as_it_was_stored_and_damage_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let image = folder.path().join("disk.raw");
        assert_eq!(ImageState::of(&image).expect("none"), None);
        let stored = state(Phase::Writing, "2", Some("1"));
        stored.store(&image).expect("stored");
        assert_eq!(ImageState::of(&image).expect("one"), Some(stored));
        std::fs::write(path(&image), "{}").expect("a file");
        assert!(ImageState::of(&image).is_err());
    }
}
