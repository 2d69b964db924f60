//! Volumes that become larger or smaller while they are in use.
//!
//! ```text
//!   told      |<--- a client's --->|
//!   grown     |<--- the volume's ------------>|    that client keeps what it was told
//!   shrunk    |<---------->|                       refused while that client is there
//! ```

use super::EventLoop;

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

impl EventLoop {
    /// Gives volumes new lengths: all of them, or none. Who is connected keeps the size that it was
    /// told; whoever comes from now on with an older and larger one is refused.
    ///
    /// # Errors
    /// If one becomes smaller that somebody is connected to, or none fits the drive: what to do.
    pub fn resize(&mut self, all: &[Resize]) -> Result<(), String> {
        for resize in all {
            self.may_resize(resize)?;
        }
        for resize in all {
            self.caches.resize(resize);
            for export in &mut self.exports {
                if export.offset == resize.offset && export.length == resize.from {
                    export.length = resize.to;
                }
            }
        }
        Ok(())
    }

    /// Whether that can be done now.
    ///
    /// # Errors
    /// As [`EventLoop::resize`].
    pub fn may_resize(&self, resize: &Resize) -> Result<(), String> {
        let Resize {
            volume, from, to, ..
        } = resize;
        if resize.offset + to > self.shape.bytes() {
            return Err(format!(
                "volume {volume} would end past the drive, which has {} bytes",
                self.shape.bytes()
            ));
        }
        if to >= from {
            return Ok(());
        }
        let each = self.connections.iter();
        let those = each.filter(|(_, connection)| {
            let export = &self.exports[connection.export()];
            export.offset == resize.offset && export.length == *from
        });
        let mut exports = self.exports.iter().enumerate();
        let is_streamed = exports.any(|(place, export)| {
            export.offset == resize.offset && export.length == *from && self.streams.uses(place)
        });
        match those.count() {
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
