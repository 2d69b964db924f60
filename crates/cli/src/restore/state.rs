//! The file beside an image that is restored: what is left of it.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Image;
use crate::output::Exit;
use crate::state_file;

/// What is left of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoreState {
    /// The [`VERSION`].
    pub version: u32,
    /// The name of the volume.
    pub volume: String,
    /// The first byte in the volume.
    pub at_bytes: u64,
    /// Bytes of the image.
    pub image_bytes: u64,
    /// When the image was changed last, in nanoseconds since 1970.
    pub image_modified_ns: u64,
    /// The ranges of the image that are still to be written.
    pub left: Vec<Range<u64>>,
}

/// The version of the file.
const VERSION: u32 = 1;

impl RestoreState {
    /// All of an image.
    pub(super) fn whole(volume: &str, at_bytes: u64, image: &Image) -> Self {
        RestoreState {
            version: VERSION,
            volume: volume.to_owned(),
            at_bytes,
            image_bytes: image.length,
            image_modified_ns: image.modified_ns,
            left: std::iter::once(0..image.length).collect(),
        }
    }

    /// The state in a file, if there is one.
    ///
    /// # Errors
    /// If the file is not readable, or is of another version.
    pub fn of(path: &Path) -> Result<Option<Self>, Exit> {
        let at = |problem: String| Exit::input(format!("{}: {problem}", path.display()));
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(at(error.to_string())),
        };
        let state: RestoreState =
            serde_json::from_str(&text).map_err(|error| at(error.to_string()))?;
        match state.version {
            VERSION => Ok(Some(state)),
            other => Err(at(format!("version {other}: expected {VERSION}"))),
        }
    }

    /// What is left of `whole`, of which the file at `path` says it.
    ///
    /// # Errors
    /// If the state is of another image or another place, or has ranges outside of the image.
    pub fn rest_of(self, whole: &RestoreState, path: &Path) -> Result<Vec<Range<u64>>, Exit> {
        let refused = |problem: String| {
            Err(Exit::input(format!(
                "{}: {problem}; remove the file to write all of the image",
                path.display()
            )))
        };
        let place =
            |state: &RestoreState| format!("volume {} at byte {}", state.volume, state.at_bytes);
        if place(&self) != place(whole) {
            return refused(format!(
                "a restore to {} was not ended: expected that, and not {}",
                place(&self),
                place(whole)
            ));
        }
        let image = |state: &RestoreState| (state.image_bytes, state.image_modified_ns);
        if image(&self) != image(whole) {
            return refused("the image was changed since a part of it was restored".to_owned());
        }
        let is_inside =
            |range: &Range<u64>| range.start < range.end && range.end <= whole.image_bytes;
        let is_apart = self
            .left
            .windows(2)
            .all(|pair| pair[0].end <= pair[1].start);
        match self.left.iter().all(is_inside) && is_apart {
            true => Ok(self.left),
            false => refused("expected ranges of the image, in their order".to_owned()),
        }
    }

    /// Writes the state durably.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn store(&self, path: &Path) -> Result<(), Exit> {
        let stored = state_file::store(path, self);
        stored.map_err(|error| Exit::failed(format!("{}: {error}", path.display())))
    }
}

/// The file of an image.
pub fn path(image: &Path) -> PathBuf {
    let mut name = image.as_os_str().to_owned();
    name.push(".restore.json");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(left: &[Range<u64>]) -> RestoreState {
        RestoreState {
            version: VERSION,
            volume: "disk".to_owned(),
            at_bytes: 4096,
            image_bytes: 1 << 20,
            image_modified_ns: 7,
            left: left.to_vec(),
        }
    }

    fn range(start: u64, end: u64) -> Range<u64> {
        start..end
    }

    #[test]
    fn a_state_goes_on_with_its_own_image_and_place_only() {
        let whole = state(&[range(0, 1 << 20)]);
        let file = Path::new("disk.raw.restore.json");
        let left = [4096..8192, 65536..1 << 20];
        assert_eq!(state(&left).rest_of(&whole, file).ok(), Some(left.to_vec()));
        let changed = |change: fn(&mut RestoreState)| {
            let mut state = state(&[range(0, 4096)]);
            change(&mut state);
            state
                .rest_of(&whole, file)
                .expect_err("refused")
                .problem()
                .to_owned()
        };
        for (problem, expected) in [
            (
                changed(|one| one.volume = "other".to_owned()),
                "volume other",
            ),
            (changed(|one| one.at_bytes = 0), "at byte 0"),
            (changed(|one| one.image_modified_ns = 8), "was changed"),
            (changed(|one| one.image_bytes = 4096), "was changed"),
            (
                changed(|one| one.left = vec![range(0, 1 << 21)]),
                "ranges of the image",
            ),
            (
                changed(|one| one.left = vec![4096..8192, 0..512]),
                "in their order",
            ),
            (
                changed(|one| one.left = vec![range(4096, 4096)]),
                "ranges of the image",
            ),
        ] {
            assert!(problem.contains(expected), "{problem}");
            assert!(problem.contains("remove the file"), "{problem}");
        }
    }

    #[test]
    fn a_state_is_read_as_it_was_stored_and_damage_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = path(&folder.path().join("disk.raw"));
        assert_eq!(RestoreState::of(&path).expect("none"), None);
        let stored = state(&[range(0, 4096)]);
        stored.store(&path).expect("stored");
        assert_eq!(RestoreState::of(&path).expect("one"), Some(stored));
        for damaged in ["{}", "", "{\"version\":2}"] {
            std::fs::write(&path, damaged).expect("a file");
            assert!(RestoreState::of(&path).is_err(), "{damaged}");
        }
    }
}
