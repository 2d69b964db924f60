//! Volumes that grow or shrink while clients use them.
//!
//! ```text
//!   before    |<--- a client's --->|
//!   grown     |<--- the volume's ------------>|    the client keeps the size of its handshake
//!   shrunk    |<---------->|                       refused while that client is there
//! ```

use super::{Export, Volumes};
use crate::disk::Disk;

/// A volume and its new length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resize {
    /// The name of the volume.
    pub volume: String,
    /// The first byte of the volume on the drive.
    pub offset: u64,
    /// The present length in bytes.
    pub from: u64,
    /// The new length in bytes.
    pub to: u64,
}

impl Volumes {
    /// Changes the length of a volume, as checked by [`Volumes::may_resize`].
    pub(crate) fn resize(&mut self, resize: &Resize) {
        self.caches.resize(resize.offset, resize.to);
        let Resize {
            offset, from, to, ..
        } = *resize;
        self.operations.exports.resize(offset, from, to);
        self.checkpoints.bitmaps.resize(offset, to);
    }

    /// Checks a new length of a volume that `connections` connections use.
    ///
    /// # Errors
    /// The reason, and what the user can do.
    pub(crate) fn may_resize(
        &self,
        disk: &Disk,
        resize: &Resize,
        connections: usize,
    ) -> Result<(), String> {
        let Resize {
            volume, from, to, ..
        } = resize;
        if resize.offset + to > disk.shape.bytes() {
            return Err(format!(
                "volume {volume} would end past the drive, which has {} bytes",
                disk.shape.bytes()
            ));
        }
        self.checkpoints.may_resize(resize)?;
        if to >= from {
            return Ok(());
        }
        let mut exports = self.operations.exports.all().iter().enumerate();
        let is_streamed =
            exports.any(|(place, export)| resize.is_of(export) && self.streams.uses(place));
        match connections {
            0 if is_streamed => Err(format!(
                "volume {volume} would have {to} bytes instead of {from}, and streams are on it: \
                 close them, then reload again"
            )),
            0 => Ok(()),
            count => Err(format!(
                "volume {volume} would have {to} bytes instead of {from}, and {count} connections \
                 use it: make what is on it smaller, have them disconnect, then reload again"
            )),
        }
    }
}

impl Resize {
    /// Whether an export is of the volume at its present length.
    pub(crate) fn is_of(&self, export: &Export) -> bool {
        export.offset == self.offset && export.length == self.from
    }
}
