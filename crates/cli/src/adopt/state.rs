//! The state of an interrupted adoption: the tracks that are known.

use std::path::Path;

use lab::profiling::found;
use lab::text_file;
use profiler::{DriveIdentity, Findings};
use serde_json::{Value, json};

use crate::output::{Exit, NewFile};

/// The tracks of a disk, with what tells it from others.
pub struct SavedTracks {
    blocks: u64,
    block_bytes: u32,
}

impl SavedTracks {
    /// The state of a disk.
    pub fn of(device: &DriveIdentity) -> Self {
        SavedTracks {
            blocks: device.blocks,
            block_bytes: device.block_bytes,
        }
    }

    /// Reads the tracks of an earlier run; none without a file.
    ///
    /// # Errors
    /// If the file is of another disk, or no state.
    pub fn read(&self, path: &Path) -> Result<Findings, Exit> {
        if !path.exists() {
            return Ok(Findings::default());
        }
        let at = |problem: String| Exit::input(format!("{}: {problem}", path.display()));
        let state: Value =
            serde_json::from_str(&text_file::read(path)?).map_err(|error| at(error.to_string()))?;
        let size = (state["blocks"].as_u64(), state["block_bytes"].as_u64());
        if size != (Some(self.blocks), Some(u64::from(self.block_bytes))) {
            return Err(at(format!(
                "the state of another disk: expected one of {} blocks of {} bytes; remove it to begin anew",
                self.blocks, self.block_bytes
            )));
        }
        Ok(found::resumed(path, &state["tracks"].to_string())?)
    }

    /// Writes the known tracks, if there are any.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn write(&self, path: &Path, findings: &Findings) -> Result<(), Exit> {
        if findings.map.pieces.is_empty() {
            return Ok(());
        }
        let tracks: Value = serde_json::from_str(&found::kept(findings)?).map_err(Exit::failed)?;
        let state = json!({
            "blocks": self.blocks,
            "block_bytes": self.block_bytes,
            "tracks": tracks,
        });
        NewFile::begin(path)?.write(&format!("{state}\n"))
    }
}
