//! The checkpoints of a drive's volumes, and operations that wait for them.
//!
//! ```text
//!   change --admit?--> [ held ] ---> copies: reads of old chunks ---> store
//!     ^                   |                                            |
//!     '----- begins <-----'<-------------------------------------------'
//!   read of a checkpoint's export ---> a read of the volume ---> old chunks over it
//! ```
//!
//! An operation that meets the blocks of a held one is held behind it, so their order stays. A chunk is in the
//! store before a change of it begins. So a read of the moment needs no order with changes: at its end it takes
//! the bytes of the store wherever there are any.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::ops::Range;

use block::operation::{Ask, OperationError};
use block::{Class, Owner};
use serde::{Deserialize, Serialize};
use tracing::debug;

use super::exports::Exports;
use super::operation::{Operation, OperationSource, PendingOperation, Stalled};
use super::operations::Operations;
use super::{Resize, Volumes};
use crate::arena::{Arena, Buffer, Bytes};
use crate::checkpoint::bytes_of;
use crate::checkpoint::marks::{MarkAnswer, Marks};
use crate::checkpoint::moment::{Admission, Checkpoint, CheckpointStatus, Stage};
use crate::checkpoint::store::StoreOrder;
use crate::disk::Disk;

mod bitmaps;
mod moments;
mod runs;

use bitmaps::Bitmaps;
pub use bitmaps::OpenBitmap;

/// The checkpoints of a drive, and what waits for them.
#[derive(Default)]
pub(crate) struct Checkpoints {
    pub(crate) bitmaps: Bitmaps,
    all: Vec<Checkpoint>,
    held: VecDeque<Held>,
    copies: Vec<Copy>,
    /// The memory of copies, from the first checkpoint on.
    memory: Option<Arena>,
    /// Those who wait for the moment of a checkpoint, by its number.
    told: Vec<(u64, Opened)>,
    /// The exports of all moments so far, one a volume.
    moments: BTreeSet<usize>,
    made: u64,
}

/// The callback at the moment of a checkpoint, with its export's index. It runs on the loop's thread.
pub type Opened = Box<dyn FnOnce(Result<usize, String>) + Send>;

/// An order for a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointOrder {
    /// The name of the volume.
    pub volume: String,
    /// The bytes of the volume on its drive.
    pub bytes: Range<u64>,
    /// The class of reads of the moment.
    pub class: Class,
    /// The dirty bitmap that begins anew at the moment, and a random number for the checkpoint there.
    pub bitmap: Option<(String, u64)>,
    /// The place of old bytes.
    pub store: StoreOrder,
}

/// The end of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Release {
    /// A backup has its bytes: the next one needs the changes since then.
    Done,
    /// The next backup needs the changes before it, too.
    Abandoned,
}

/// An operation that waits for copies, or behind one that does.
struct Held {
    source: OperationSource,
    operation: Operation,
    bytes: Bytes,
}

/// A read of a chunk's old bytes in flight.
struct Copy {
    checkpoint: u64,
    chunk: u64,
    buffer: Buffer,
}

/// Copies at a time. A choice: the depth of a busy drive.
const COPIES: usize = 16;

/// The class of reads before writes: a client waits for them.
const URGENT: Class = Class::BestEffort(0);

impl Checkpoints {
    /// The number of operations that wait.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Whether an export shows a moment, whose bytes are not those of the device.
    pub(super) fn is_moment(&self, export: usize) -> bool {
        self.moments.contains(&export)
    }

    /// Whether an operation may have to wait.
    fn concerns(&self, exports: &Exports, operation: &Operation) -> bool {
        let is_any = !self.all.is_empty() || !self.bitmaps.is_empty();
        is_any && operation.is_change() || self.is_behind(exports, operation)
    }

    /// Whether a held operation has some of the same blocks.
    fn is_behind(&self, exports: &Exports, operation: &Operation) -> bool {
        operation.length > 0 && !self.held.is_empty() && {
            let around = exports.around(operation);
            let mut held = self.held.iter();
            held.any(|held| exports.around(&held.operation).overlaps(around))
        }
    }

    /// Ends a read of an export: the bytes of a moment replace those of the volume.
    pub(super) fn end_read(&self, exports: &Exports, ended: &mut PendingOperation) {
        let operation = ended.operation;
        let is_read = operation.ask == Ask::Read && operation.length > 0;
        if !is_read || ended.result.is_err() || !self.is_moment(operation.export) {
            return;
        }
        // Blocks around the operation: the reply takes its part of them.
        let first = exports.around(&operation).start().0 * exports.block();
        let mut all = self.all.iter();
        let restored = match (
            all.find(|one| one.export == operation.export),
            &mut ended.bytes,
        ) {
            (Some(one), Bytes::Own(buffer)) => one.restore(first - one.offset, buffer.bytes_mut()),
            (None, _) => Err(io::Error::other("it was released")),
            (_, _) => Err(io::Error::other("expected a read into the loop's memory")),
        };
        if let Err(error) = restored {
            let export = exports.get(operation.export);
            let name = export.map_or("", |export| export.name.as_str());
            debug!(export = name, %error, "a read of a checkpoint fails");
            ended.result = Err(OperationError::Io);
        }
    }

    /// Ends a copy.
    pub(super) fn copied(&mut self, number: u64, chunk: u64, result: Result<(), OperationError>) {
        let mut copies = self.copies.iter();
        let place = copies.position(|copy| (copy.checkpoint, copy.chunk) == (number, chunk));
        let copy = self
            .copies
            .swap_remove(place.expect("a copy that was begun"));
        if let Some(one) = self.all.iter_mut().find(|one| one.number == number) {
            one.copied(chunk, result.ok().map(|()| copy.buffer.bytes()));
        }
        self.free(copy.buffer);
    }

    fn free(&mut self, buffer: Buffer) {
        if let Some(memory) = &mut self.memory {
            memory.free(buffer);
        }
    }

    /// All moments are lost. A checkpoint whose moment has not come is refused, and leaves nothing to release.
    pub(super) fn fail_all(&mut self, problem: &str) {
        let is_coming =
            |one: &mut Checkpoint| matches!(one.stage(), Stage::Ending | Stage::Freezing);
        let refused: Vec<Checkpoint> = self.all.extract_if(.., is_coming).collect();
        for one in refused {
            self.tell(one.number, Err(problem.to_owned()));
            if let Some((name, _)) = &one.bitmap {
                self.bitmaps.change(&one.volume, name, Marks::abandon);
            }
        }
        for one in &mut self.all {
            one.fail(problem.to_owned());
        }
    }

    /// All checkpoints.
    pub(crate) fn statuses(&self) -> Vec<CheckpointStatus> {
        self.all.iter().map(Checkpoint::status).collect()
    }

    /// Checks that no checkpoint keeps a volume from another length.
    ///
    /// # Errors
    /// The reason, and what the user can do.
    pub(super) fn may_resize(&self, resize: &Resize) -> Result<(), String> {
        match self.all.iter().any(|one| one.offset == resize.offset) {
            true => Err(format!(
                "volume {} has a checkpoint: release it, then reload again",
                resize.volume
            )),
            false => Ok(()),
        }
    }
}

/// Operations that wait for copies.
impl Volumes {
    /// Begins an operation, or holds it until the old bytes of its chunks are in the store.
    ///
    /// # Errors
    /// If there is no room now.
    pub(super) fn begin_or_hold(
        &mut self,
        disk: &mut Disk,
        source: OperationSource,
        operation: Operation,
        bytes: Bytes,
    ) -> Result<(), Stalled> {
        let exports = &self.operations.exports;
        if !self.checkpoints.concerns(exports, &operation) {
            return self.begin_admitted(disk, source, operation, bytes);
        }
        let held = Held {
            source,
            operation,
            bytes,
        };
        match self.checkpoints.is_behind(exports, &operation) {
            true => self.checkpoints.held.push_back(held),
            false => match self.admit(disk, &operation) {
                MarkAnswer::Marked => {
                    return self.begin_admitted(disk, held.source, operation, held.bytes);
                }
                MarkAnswer::Waits => self.checkpoints.held.push_back(held),
                MarkAnswer::Refused => self.refuse(disk, held),
            },
        }
        Ok(())
    }

    /// Opens checkpoints whose moment has come, and begins held operations that need not wait any more. The answer is
    /// whether there was one.
    pub(crate) fn begin_held(&mut self, disk: &mut Disk) -> bool {
        let mut is_any = self.open_checkpoints();
        for held in std::mem::take(&mut self.checkpoints.held) {
            let exports = &self.operations.exports;
            let is_behind = self.checkpoints.is_behind(exports, &held.operation);
            let answer = match is_behind {
                true => MarkAnswer::Waits,
                false => self.admit(disk, &held.operation),
            };
            let operation = held.operation;
            match answer {
                MarkAnswer::Waits => self.checkpoints.held.push_back(held),
                MarkAnswer::Refused => {
                    is_any = true;
                    self.refuse(disk, held);
                }
                MarkAnswer::Marked => {
                    match self.begin_admitted(disk, held.source, operation, held.bytes) {
                        Ok(()) => is_any = true,
                        Err(Stalled { source, bytes }) => self.checkpoints.held.push_back(Held {
                            source,
                            operation,
                            bytes,
                        }),
                    }
                }
            }
        }
        is_any
    }

    /// Fails a change that a dirty bitmap cannot have.
    fn refuse(&mut self, disk: &mut Disk, held: Held) {
        let key = (self.operations).insert(held.source, held.operation, held.bytes);
        self.caches.begin(&self.operations.exports, &held.operation);
        self.fail(disk, key, OperationError::Io);
    }

    /// Whether an operation may begin. Copies and marks that it waits for begin, as far as there is room.
    fn admit(&mut self, disk: &mut Disk, operation: &Operation) -> MarkAnswer {
        if !operation.is_change() {
            return MarkAnswer::Marked;
        }
        let bytes = bytes_on_drive(&self.operations.exports, operation);
        let mut answer = MarkAnswer::Marked;
        for place in 0..self.checkpoints.all.len() {
            if let Admission::Waits(chunks) = self.checkpoints.all[place].admit(&bytes) {
                for chunk in chunks {
                    if !self.begin_copy(disk, place, chunk) {
                        break;
                    }
                }
                // Copies from memory have ended already, and a full store has ended the checkpoint.
                if self.checkpoints.all[place].admit(&bytes) != Admission::Free {
                    answer = MarkAnswer::Waits;
                }
            }
        }
        let bitmaps = &mut self.checkpoints.bitmaps;
        match (answer, bitmaps.admit(&bytes)) {
            (MarkAnswer::Waits, MarkAnswer::Marked) => MarkAnswer::Waits,
            (_, MarkAnswer::Marked) => {
                bitmaps.note(&bytes);
                MarkAnswer::Marked
            }
            (_, other) => other,
        }
    }

    /// Begins the copy of a chunk. The answer is whether another one may be tried.
    fn begin_copy(&mut self, disk: &mut Disk, place: usize, chunk: u64) -> bool {
        let checkpoints = &mut self.checkpoints;
        let one = &mut checkpoints.all[place];
        let bytes = bytes_of(chunk, one.length);
        let length = bytes.end - bytes.start;
        let memory = checkpoints.memory.as_mut();
        let Some(buffer) = memory.and_then(|memory| memory.allocate(length as usize)) else {
            return false;
        };
        if !one.begin_copy(chunk) {
            checkpoints.free(buffer);
            return false;
        }
        let (number, export) = (one.number, one.urgent);
        let lent = Bytes::Lent(buffer.memory());
        checkpoints.copies.push(Copy {
            checkpoint: number,
            chunk,
            buffer,
        });
        let operation = Operation {
            export,
            ask: Ask::Read,
            offset: bytes.start,
            length,
            owner: Owner::service(export as u64),
            class: None,
        };
        let source = OperationSource::Preserved {
            checkpoint: number,
            chunk,
        };
        let begun = self.begin_admitted(disk, source, operation, lent);
        if begun.is_err() {
            let checkpoints = &mut self.checkpoints;
            if let Some(copy) = checkpoints.copies.pop() {
                checkpoints.free(copy.buffer);
            }
            checkpoints.all[place].cancel_copy(chunk);
        }
        begun.is_ok()
    }
}

/// Whether a change of these bytes of the drive is in flight. Copies of recordings change nothing: their bytes were
/// acknowledged before.
fn is_changed(operations: &Operations, bytes: &Range<u64>) -> bool {
    operations.iter().any(|(_, pending)| {
        pending.operation.is_change()
            && !matches!(pending.source, OperationSource::Copied(_))
            && overlap(
                &bytes_on_drive(&operations.exports, &pending.operation),
                bytes,
            )
    })
}

fn bytes_on_drive(exports: &Exports, operation: &Operation) -> Range<u64> {
    let span = exports.span(operation);
    span.offset..span.offset + span.length
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}
