//! The search for the next data or hole (`SEEK_DATA`, `SEEK_HOLE`).

use fuser::{Errno, ReplyLseek};

use super::super::ExportedFile;
use super::super::gate::GatePass;
use super::number;
use crate::disk::back_end::Holds;
use crate::event_loop::mailbox::Mailbox;
use block::operation::OperationError;

/// The kind of run and the file.
pub(super) struct Search {
    mailbox: Mailbox,
    export: usize,
    bytes: u64,
    wanted: Holds,
}

impl Search {
    /// A search, or `None` for another `whence`, which the kernel handles itself.
    pub(super) fn new(file: &ExportedFile, bytes: u64, whence: i32) -> Option<Self> {
        let wanted = match whence {
            libc::SEEK_DATA => Holds::Bytes,
            libc::SEEK_HOLE => Holds::Hole,
            _ => return None,
        };
        Some(Search {
            mailbox: file.mailbox.clone(),
            export: file.export,
            bytes,
            wanted,
        })
    }

    /// Searches from `offset` on, which is inside the file. The loop answers a few runs at a time, so other
    /// operations go in between. `who` gets the reply, and holds the pass.
    pub(super) fn begin(self, offset: u64, who: (ReplyLseek, GatePass)) {
        let mailbox = self.mailbox.clone();
        let _ = mailbox.call(move |event_loop| {
            let mut at = offset;
            for run in event_loop.runs(self.export, offset) {
                if run.holds == self.wanted {
                    return who.0.offset(at as i64);
                }
                at += run.length;
            }
            match (at < self.bytes, self.wanted) {
                (true, _) if at == offset => who.0.error(number(OperationError::Io)),
                (true, _) => self.begin(at, who),
                // There is a hole behind the last byte (lseek(2)).
                (false, Holds::Hole) => who.0.offset(self.bytes as i64),
                (false, Holds::Bytes) => who.0.error(Errno::ENXIO),
            }
        });
    }
}
