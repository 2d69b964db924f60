//! Holes and data of volumes.
//!
//! ```text
//!   back end   | data | hole | data |
//!   memory              ^^^^            a recording's buffer, or unwritten pages of a cache:
//!                                       the hole is none
//! ```

use super::Volumes;
use super::exports::Export;
use crate::disk::Disk;
use crate::disk::back_end::{Holds, Run, Span};

impl Volumes {
    /// Holes and data of an export from byte `offset` on, as far as the back end finds them quickly. The
    /// list is empty only past the end.
    pub(crate) fn runs(&mut self, disk: &mut Disk, export: usize, offset: u64) -> Vec<Run> {
        let Some(Export {
            offset: start,
            length,
            ..
        }) = self.operations.exports.get(export)
        else {
            return Vec::new();
        };
        let span = Span {
            offset: start + offset,
            length: length.saturating_sub(offset),
        };
        match span.length {
            0 => Vec::new(),
            _ => match self.only_data(disk, export, span) {
                Some(run) => vec![run],
                None => disk.runs(span),
            },
        }
    }

    /// Holes and data of `length` bytes of an export from `offset` on. Without an answer now,
    /// [`Disk::poll_runs`] has one later under `key`.
    pub(crate) fn ask_runs(
        &mut self,
        disk: &mut Disk,
        key: usize,
        export: usize,
        (offset, length): (u64, u64),
    ) -> Option<Vec<Run>> {
        let span = Span {
            offset: self.operations.exports.offset(export) + offset,
            length,
        };
        match self.only_data(disk, export, span) {
            Some(run) => Some(vec![run]),
            None => disk.ask_runs(key, span),
        }
    }

    /// The whole span as data, if the back end does not have all bytes that were acknowledged.
    fn only_data(&self, disk: &Disk, export: usize, span: Span) -> Option<Run> {
        let is_newer = self.streams.has_recorded(disk, span)
            || !self
                .caches
                .are_written(self.operations.exports.offset(export));
        is_newer.then_some(Run {
            length: span.length,
            holds: Holds::Bytes,
        })
    }
}
