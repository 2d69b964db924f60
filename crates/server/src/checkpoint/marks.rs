//! A dirty bitmap in service: no change of a chunk begins before its mark is durable.
//!
//! ```text
//!   change --admit?--> marks --order--> thread: file, one sync for all --answer--> marks --> change begins
//! ```
//!
//! | set | chunks |
//! |---|---|
//! | durable | those whose marks a crash does not undo |
//! | changed | those with a change since the last checkpoint: what the next backup reads |
//! | frozen | those with a change before the open checkpoint |
//!
//! Ahead of sequential changes more is durable than changed. Only a crash makes changes of that.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::bits::Bits;
use super::{CHUNK, Frontier, chunks_of};

/// A dirty bitmap of a volume.
pub struct Marks {
    /// The name of the bitmap.
    pub name: String,
    /// The name of the volume.
    pub volume: String,
    /// The first byte of the volume on its drive.
    offset: u64,
    /// Bytes of the volume.
    length: u64,
    state: MarkState,
    durable: Bits,
    changed: Bits,
    frozen: Option<Frozen>,
    /// Chunks whose marks are on their way.
    asked: BTreeSet<u64>,
    /// Whether an order is on its way that changes wait for.
    is_closed: bool,
    freeze: Freeze,
    /// Whether the thread is about to empty a frozen plane.
    is_releasing: bool,
    /// The checkpoint that the present changes begin with, or 0.
    base: u64,
    /// The number of the bitmap.
    number: u64,
    /// Chunks that were taken for changed without a known change.
    assumed: u64,
    orders: Vec<Order>,
    frontier: Frontier,
}

/// Whether the thread is about to freeze the present plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Freeze {
    No,
    /// For a checkpoint.
    Wanted,
    /// For a checkpoint that has ended meanwhile.
    Unwanted,
}

/// The changes until an open checkpoint.
struct Frozen {
    checkpoint: u64,
    changed: Bits,
}

/// Whether a bitmap is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkState {
    /// It is.
    On,
    /// It is not kept any more, and its file is empty.
    Off(String),
    /// It is not kept, and its file could not be emptied: changes of the volume fail.
    Stuck(String),
}

/// Whether a change may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkAnswer {
    /// It may.
    Marked,
    /// It waits for its marks.
    Waits,
    /// It must not: the next backup would miss it.
    Refused,
}

/// An order to the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Makes marks durable. The chunks ascend.
    Mark(Vec<u64>),
    /// Freezes the present plane for the checkpoint of this number.
    Freeze(u64),
    /// Forgets the frozen plane.
    Release,
    /// Adds the frozen plane to the present one.
    Abandon(Bits),
    /// Changes the number of the volume's bytes.
    Resize(u64),
}

/// The file's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// These marks are durable.
    Marked(Vec<u64>),
    /// The plane is frozen.
    Frozen(u64),
    /// The frozen plane is gone.
    Released,
    /// The volume has another length, and these chunks are dirty.
    Resized(u64, Bits),
    /// The file has failed.
    Failed(MarkState),
}

/// A dirty bitmap in the answers of the control plane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BitmapStatus {
    /// The name of the volume.
    pub volume: String,
    /// The name of the bitmap.
    pub name: String,
    /// The number of the bitmap, from its creation: 16 hexadecimal digits.
    pub id: String,
    /// The number of the last backup's checkpoint, or none before the first: 16 hexadecimal digits.
    pub base: Option<String>,
    /// Bytes of a chunk.
    pub granularity_bytes: u64,
    /// Bytes of chunks with changes since then.
    pub dirty_bytes: u64,
    /// Bytes of chunks that a crash would add to those.
    pub ahead_bytes: u64,
    /// Bytes of chunks that were taken for changed without a known change: of damaged sectors of the file, or new
    /// ones of a volume that has grown.
    pub assumed_bytes: u64,
    /// Why the bitmap is not kept any more, if so.
    pub problem: Option<String>,
}

/// The chunks that are marked ahead of sequential changes. A choice: one sync every 16 MiB.
const AHEAD: u64 = 256;

/// Chunks of a long change that are marked together. A choice: those of four gibibytes, in 17 sectors.
const MOST_ASKED: usize = 1 << 16;

impl Marks {
    /// A bitmap whose file has these dirty chunks. `bytes` are those of the volume on its drive.
    pub fn new(
        (name, volume): (String, String),
        bytes: Range<u64>,
        (number, base): (u64, u64),
        (dirty, assumed): (Bits, u64),
    ) -> Self {
        Marks {
            name,
            volume,
            offset: bytes.start,
            length: bytes.end - bytes.start,
            state: MarkState::On,
            durable: dirty.clone(),
            changed: dirty,
            frozen: None,
            asked: BTreeSet::new(),
            is_closed: false,
            freeze: Freeze::No,
            is_releasing: false,
            base,
            number,
            assumed,
            orders: Vec::new(),
            frontier: Frontier::default(),
        }
    }

    /// Whether the bitmap is of a volume that begins at this byte of the drive.
    pub fn begins_at(&self, offset: u64) -> bool {
        self.offset == offset
    }

    /// The state.
    pub fn state(&self) -> &MarkState {
        &self.state
    }

    /// Whether a change of these bytes of the drive may begin. Marks that it waits for are ordered.
    pub fn admit(&mut self, bytes: &Range<u64>) -> MarkAnswer {
        let chunks = chunks_of(bytes, self.offset, self.length);
        match self.state {
            _ if chunks.is_empty() => return MarkAnswer::Marked,
            MarkState::Off(_) => return MarkAnswer::Marked,
            MarkState::Stuck(_) => return MarkAnswer::Refused,
            MarkState::On if self.is_closed => return MarkAnswer::Waits,
            MarkState::On => (),
        }
        let left = self.frontier.left(&chunks, |chunk| self.durable.has(chunk));
        if left.is_empty() {
            return MarkAnswer::Marked;
        }
        let ahead = self.changed.run_before(chunks.start, AHEAD);
        let end = (chunks.end + ahead).min(self.durable.length());
        let missing = (left.start..end)
            .take(MOST_ASKED)
            .filter(|chunk| !self.durable.has(*chunk) && !self.asked.contains(chunk));
        let missing: Vec<u64> = missing.collect();
        self.asked.extend(&missing);
        if !missing.is_empty() {
            self.orders.push(Order::Mark(missing));
        }
        MarkAnswer::Waits
    }

    /// A change of these bytes of the drive, which was admitted, begins.
    pub fn note(&mut self, bytes: &Range<u64>) {
        let chunks = chunks_of(bytes, self.offset, self.length);
        self.changed.add(chunks);
    }

    /// The next order for the file.
    pub fn poll_order(&mut self) -> Option<Order> {
        (!self.orders.is_empty()).then(|| self.orders.remove(0))
    }

    /// Whether a checkpoint can freeze the bitmap now.
    ///
    /// # Errors
    /// If it never can.
    pub fn may_freeze(&self) -> Result<bool, String> {
        match (&self.state, &self.frozen) {
            (MarkState::On, None) => Ok(!self.is_releasing && !self.is_closed),
            (MarkState::On, Some(_)) => Err(format!("bitmap {} has a checkpoint", self.name)),
            (MarkState::Off(problem) | MarkState::Stuck(problem), _) => {
                Err(format!("bitmap {} is not kept: {problem}", self.name))
            }
        }
    }

    /// Begins to freeze the bitmap for a checkpoint. No change is in flight, and none begins until the answer.
    pub fn begin_freeze(&mut self, checkpoint: u64) {
        self.is_closed = true;
        self.freeze = Freeze::Wanted;
        self.orders.push(Order::Freeze(checkpoint));
    }

    /// Whether the bitmap is frozen for this checkpoint.
    pub fn is_frozen(&self, checkpoint: u64) -> bool {
        let mut frozen = self.frozen.iter();
        frozen.any(|frozen| frozen.checkpoint == checkpoint)
    }

    /// Forgets the changes before the open checkpoint: a backup has them. A checkpoint that is not open yet has no
    /// backup, and is abandoned.
    pub fn release(&mut self) {
        if let Some(frozen) = self.frozen.take() {
            self.base = frozen.checkpoint;
            self.is_releasing = true;
            self.orders.push(Order::Release);
        } else {
            self.abandon();
        }
    }

    /// Keeps the changes before the open checkpoint, for another backup.
    pub fn abandon(&mut self) {
        if let Some(Frozen { changed, .. }) = self.frozen.take() {
            self.changed.merge(&changed);
            self.durable.merge(&changed);
            self.is_releasing = true;
            self.orders.push(Order::Abandon(changed));
        } else if self.freeze == Freeze::Wanted {
            self.freeze = Freeze::Unwanted;
        }
    }

    /// Changes the number of the volume's bytes. No checkpoint is open.
    pub fn resize(&mut self, length: u64) {
        self.is_closed = true;
        self.orders.push(Order::Resize(length));
    }

    /// The file has answered.
    pub fn answer(&mut self, answer: Answer) {
        match answer {
            Answer::Marked(chunks) => {
                for chunk in chunks {
                    self.asked.remove(&chunk);
                    self.durable.add(chunk..chunk + 1);
                }
            }
            Answer::Frozen(checkpoint) => {
                // Marks that were ordered before were answered before.
                let empty = Bits::none(self.changed.length());
                let changed = std::mem::replace(&mut self.changed, empty.clone());
                self.durable = empty;
                self.frontier = Frontier::default();
                self.frozen = Some(Frozen {
                    checkpoint,
                    changed,
                });
                self.is_closed = false;
                if std::mem::replace(&mut self.freeze, Freeze::No) == Freeze::Unwanted {
                    self.abandon();
                }
            }
            Answer::Released => self.is_releasing = false,
            Answer::Resized(length, dirty) => {
                // New chunks, and the one at the shorter end.
                let first = self.length.min(length) / CHUNK;
                self.length = length;
                self.changed.resize(dirty.length());
                let old = self.changed.count();
                self.changed.add(first..dirty.length());
                self.assumed += self.changed.count() - old;
                self.durable = dirty;
                self.frontier = Frontier::default();
                self.durable.merge(&self.changed);
                self.is_closed = false;
            }
            Answer::Failed(state) => {
                self.state = state;
                self.frozen = None;
                self.freeze = Freeze::No;
                self.is_closed = false;
            }
        }
    }

    /// The changes before the open checkpoint.
    pub fn frozen(&self) -> Option<&Bits> {
        self.frozen.as_ref().map(|frozen| &frozen.changed)
    }

    /// The bitmap for the control plane.
    pub fn status(&self) -> BitmapStatus {
        BitmapStatus {
            volume: self.volume.clone(),
            name: self.name.clone(),
            id: hexadecimal(self.number),
            base: (self.base != 0).then(|| hexadecimal(self.base)),
            granularity_bytes: CHUNK,
            dirty_bytes: self.changed.count() * CHUNK,
            ahead_bytes: (self.durable.count() - self.changed.count()) * CHUNK,
            assumed_bytes: self.assumed * CHUNK,
            problem: match &self.state {
                MarkState::On => None,
                MarkState::Off(problem) | MarkState::Stuck(problem) => Some(problem.clone()),
            },
        }
    }
}

/// A number of a bitmap or a checkpoint as texts have it.
pub fn hexadecimal(number: u64) -> String {
    format!("{number:016x}")
}

#[cfg(test)]
pub(super) mod tests;
