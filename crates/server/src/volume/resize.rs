//! Volumes that become larger or smaller while they are in use.
//!
//! ```text
//!   told      |<--- a client's --->|
//!   grown     |<--- the volume's ------------>|    that client keeps what it was told
//!   shrunk    |<---------->|                       refused while that client is there
//! ```

use super::{Export, Volumes};
use crate::disk::Disk;

/// A volume and its new length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resize {
    /// Its name.
    pub volume: String,
    /// Where it begins, in bytes of the drive.
    pub offset: u64,
    /// How many bytes it has.
    pub from: u64,
    /// How many it is to have.
    pub to: u64,
}

impl Volumes {
    /// Gives a volume another length, which was checked.
    pub(crate) fn resize(&mut self, resize: &Resize) {
        self.caches.resize(resize.offset, resize.to);
        let Resize {
            offset, from, to, ..
        } = *resize;
        self.exports.resize(offset, from, to);
    }

    /// Whether a volume can have another length, while so many connections use it.
    ///
    /// # Errors
    /// Why not, and what to do.
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
        if to >= from {
            return Ok(());
        }
        let mut exports = self.exports.all().iter().enumerate();
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
    /// Whether an export is of the volume as it is now.
    pub(crate) fn is_of(&self, export: &Export) -> bool {
        export.offset == self.offset && export.length == self.from
    }
}
