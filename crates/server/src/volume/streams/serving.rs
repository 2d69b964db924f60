//! Operations that meet streams.
//!
//! ```text
//!   read    all in memory ---------------> answered at once
//!           some on its way to a buffer -> answered when it has come
//!           of what is to be written ----> that is copied to the drive first
//!   write   where a recording is --------> its buffer
//!           anywhere else ---------------> the drive, and what buffers have of it is changed
//! ```

#![allow(
    unsafe_code,
    reason = "fills the memory of reads, and looks at that of writes, while no command uses it"
)]

use block::{Durability, Extent};
use headtime_client::wire::{Event, Mode};
use slab::Slab;
use stream::playout::{AccessId, NotTaken, Served};
use stream::streams::StreamId;

use super::kept::Run;
use super::{Kept, Streams};
use crate::arena::Bytes;
use crate::disk::Disk;
use crate::volume::Volumes;
use crate::volume::exports::Exports;
use crate::volume::operation::{From, Operation, Pending};
use block::operation::{Ask, Failed, Pace};

/// A read or a write that the engine has not answered.
pub(super) struct Waiting {
    key: usize,
    /// Of a write, the first block of the file and the byte after its last.
    write: Option<(u64, u64)>,
    is_in_buffer: bool,
}

/// How an operation meets streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// It is served as always.
    Apart,
    /// It cannot begin now.
    Later,
    /// It is served by a stream.
    Served(Serving),
}

/// By which stream, and from which block of the file on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Serving {
    /// All is in memory.
    Memory(usize, u64),
    /// Some is on its way.
    Waiting(usize, u64),
    /// It is written to a recording.
    Written(usize, u64),
}

impl Volumes {
    /// How an operation, which is not empty, meets the streams of its blocks.
    pub(crate) fn meet_streams(&mut self, disk: &mut Disk, operation: &Operation) -> Meeting {
        if self.streams.is_empty() || operation.length == 0 {
            return Meeting::Apart;
        }
        let extent = match operation.ask {
            Ask::Flush => return Meeting::Apart,
            _ => self.exports.around(operation),
        };
        match operation.ask {
            Ask::Read => self.meet_read(disk, operation, extent),
            Ask::Write { .. } | Ask::Zero { .. } if self.exports.is_partial(operation) => {
                self.meet_edges(disk, extent)
            }
            Ask::Write { .. } => self.meet_write(extent),
            Ask::Zero { .. } | Ask::Trim { .. } => {
                // The back end does these at once, whatever is on its way there.
                let is_copied = self.is_copied(extent);
                match is_copied || self.streams.is_writing(extent) {
                    true => Meeting::Later,
                    false => Meeting::Apart,
                }
            }
            Ask::Flush | Ask::Cache => Meeting::Apart,
        }
    }

    fn meet_read(&mut self, disk: &mut Disk, operation: &Operation, extent: Extent) -> Meeting {
        let (count, block) = (extent.length().0, disk.block());
        let mut on_its_way = None;
        for (place, entry) in self.streams.table.iter().enumerate() {
            let Some(first) = entry.kept.whole(extent) else {
                continue;
            };
            if entry.kept.has(first, count) {
                return Meeting::Served(Serving::Memory(place, first));
            }
            let (from, to) = disk
                .engine
                .guarantees()
                .window(entry.id)
                .unwrap_or_default();
            let is_wanted = from <= first * block && (first + count) * block <= to;
            let is_large = count * block > entry.kept.bytes();
            if !entry.records() && (is_wanted || is_large) {
                on_its_way = Some(Serving::Waiting(place, first));
            }
        }
        if let Some(serving) = on_its_way {
            return Meeting::Served(serving);
        }
        match self.copy_before(disk, operation.export, extent) {
            true => Meeting::Apart,
            false => Meeting::Later,
        }
    }

    /// What recordings have only in memory of some blocks goes to the engine, before what comes now;
    /// whether there was room for it.
    fn copy_before(&mut self, disk: &mut Disk, export: usize, extent: Extent) -> bool {
        let longest = self.longest;
        let copied =
            self.streams
                .copy_dirty(disk, &self.exports, (export, extent), (None, longest));
        self.begin_copies(disk);
        copied.is_ok() && !self.streams.is_queued(&self.exports, extent)
    }

    fn meet_write(&self, extent: Extent) -> Meeting {
        let mut recordings = self.streams.table.iter().enumerate();
        let found = recordings.find_map(|(place, entry)| {
            let first = entry.kept.whole(extent).filter(|_| entry.records())?;
            Some(Serving::Written(place, first))
        });
        match found {
            // What began before the recording came, and would get to the drive after it.
            Some(_) if self.is_changed_apart(&[extent], None) => Meeting::Later,
            Some(serving) => Meeting::Served(serving),
            // What was copied before must not come to the drive after it.
            None if self.streams.is_queued(&self.exports, extent) => Meeting::Later,
            None => Meeting::Apart,
        }
    }

    /// Parts of blocks cannot be changed in a recording's buffer: it ends, and they wait for that.
    fn meet_edges(&mut self, disk: &mut Disk, extent: Extent) -> Meeting {
        let streams = self.streams.table.iter();
        let touched =
            streams.filter(|entry| entry.records() && entry.kept.parts(extent).next().is_some());
        let numbers: Vec<u64> = touched.map(|entry| entry.number).collect();
        if numbers.is_empty() {
            // What was copied before must not come to the drive between the read and the write of them.
            return match self.streams.is_queued(&self.exports, extent) {
                true => Meeting::Later,
                false => Meeting::Apart,
            };
        }
        for number in numbers {
            self.end_stream(
                disk,
                number,
                "parts of its blocks are written by somebody else",
            );
        }
        Meeting::Later
    }

    /// Serves an operation that has begun by a stream.
    pub(crate) fn serve_by_stream(&mut self, disk: &mut Disk, key: usize, serving: Serving) {
        let extent = self.exports.around(&self.pending[key].operation);
        let block = disk.block();
        let length = extent.length().0 * block;
        let (place, access) = match serving {
            Serving::Memory(place, first) => {
                self.streams.table[place].from_memory += 1;
                return self.fill(disk, key, place, first);
            }
            Serving::Waiting(place, first) | Serving::Written(place, first) => {
                (place, (first * block, length))
            }
        };
        let id = self.streams.table[place].id;
        let name = AccessId(key as u64);
        let (taken, write) = match serving {
            Serving::Written(_, first) => {
                let taken = disk.engine.stream_write(disk.now, id, name, access);
                (taken, Some((first, access.0 + length)))
            }
            _ => (disk.engine.stream_read(disk.now, id, name, access), None),
        };
        match taken {
            Ok(()) => self.streams.table[place].waiting.push(Waiting {
                key,
                write,
                is_in_buffer: false,
            }),
            Err(why) => {
                self.streams.again.push(key);
                self.streams.tell_aside(place, &why);
            }
        }
        self.hear_streams(disk);
    }

    /// Answers a read of blocks that are all in memory.
    fn fill(&mut self, disk: &mut Disk, key: usize, place: usize, first: u64) {
        let entry = &self.streams.table[place];
        if let Some(memory) = self.pending[key].bytes.memory() {
            // SAFETY: the memory of a read that is pending and of which no command is under way.
            entry.kept.copy_out(first, unsafe { memory.bytes_mut() });
        }
        self.answer(disk, key);
    }

    /// The engine has answered an access.
    pub(super) fn access_answered(
        &mut self,
        disk: &mut Disk,
        id: StreamId,
        access: AccessId,
        served: Served,
    ) {
        let key = access.0 as usize;
        let Some(place) = self.streams.place_of(id) else {
            return;
        };
        let entry = &mut self.streams.table[place];
        let Some(index) = entry.waiting.iter().position(|waiting| waiting.key == key) else {
            return;
        };
        let waiting = entry.waiting.remove(index);
        match served {
            Served::Memory => entry.from_memory += 1,
            Served::Waited(_) => entry.waited += 1,
            _ => (),
        }
        let is_sync = entry.terms.mode == Mode::RecordSync;
        match (served, waiting.write) {
            (Served::Memory | Served::Waited(_), None) => self.answer_from_buffer(disk, key, place),
            (Served::Memory | Served::Waited(_), Some(_)) => {
                let durable = matches!(
                    self.pending[key].operation.ask,
                    Ask::Write {
                        durability: Durability::Durable
                    }
                );
                match durable && !is_sync {
                    true => self.flush_streams(disk, key),
                    false => self.answer(disk, key),
                }
            }
            (Served::Failed, Some(_)) => {
                self.pending[key].result = Err(Failed::Io);
                self.answer(disk, key);
            }
            // The drive is asked as always: it may do it now, or says itself that it cannot.
            _ => self.streams.again.push(key),
        }
    }

    /// What the engine says is in the buffer, is; unless it was changed from elsewhere since it was
    /// asked for.
    fn answer_from_buffer(&mut self, disk: &mut Disk, key: usize, place: usize) {
        let extent = self.exports.around(&self.pending[key].operation);
        let kept = &self.streams.table[place].kept;
        match kept.whole(extent) {
            Some(first) if kept.has(first, extent.length().0) => {
                self.fill(disk, key, place, first);
            }
            _ => self.streams.again.push(key),
        }
    }

    /// Serves those as always that streams did not serve, as far as there is room; whether any.
    pub(crate) fn begin_again(&mut self, disk: &mut Disk) -> bool {
        let mut is_any = false;
        let mut next = 0;
        while let Some(&key) = self.streams.again.get(next) {
            let operation = self.pending[key].operation;
            let class = self.exports.class(operation.export);
            let extent = self.exports.around(&operation);
            let is_before = match operation.ask {
                Ask::Read => self.copy_before(disk, operation.export, extent),
                _ => !self.streams.is_queued(&self.exports, extent),
            };
            let may = is_before && disk.engine.has_room(class);
            if !may {
                next += 1;
                continue;
            }
            self.streams.again.remove(next);
            self.dispatch(disk, key);
            is_any = true;
        }
        is_any
    }

    /// Whether copies of these blocks wait or are under way.
    fn is_copied(&self, extent: Extent) -> bool {
        let under_way = self.pending.iter().any(|(_, pending)| {
            matches!(pending.from, From::Copied(_))
                && self.exports.around(&pending.operation).overlaps(extent)
        });
        under_way || self.streams.is_queued(&self.exports, extent)
    }
}

impl Streams {
    /// An access is served as all others are; its client is told why, if it can do something.
    fn tell_aside(&self, place: usize, why: &NotTaken) {
        let entry = &self.table[place];
        match why {
            NotTaken::NoStream | NotTaken::Direction => (),
            why => entry.tell(Event::Aside {
                reason: why.to_string(),
            }),
        }
    }

    /// What the engine has taken into the buffers of recordings is kept there, before it can order
    /// it to be written.
    pub(super) fn keep_written(&mut self, disk: &Disk, pending: &Slab<Pending>) {
        let block = disk.block();
        for entry in &mut self.table {
            if entry.waiting.is_empty() || entry.terms.mode == Mode::Play {
                continue;
            }
            let Some((window_start, point)) = disk.engine.guarantees().window(entry.id) else {
                continue;
            };
            for waiting in &mut entry.waiting {
                let taken = waiting
                    .write
                    .filter(|&(first, to)| window_start <= first * block && to <= point);
                let (Some((first, to)), false) = (taken, waiting.is_in_buffer) else {
                    continue;
                };
                waiting.is_in_buffer = true;
                if entry.written != first * block {
                    // It goes on elsewhere: nothing of that was copied.
                    (entry.copied, entry.leaps) = (0, entry.leaps + 1);
                }
                entry.written = to;
                let Some(memory) = pending[waiting.key].bytes.memory() else {
                    continue;
                };
                // SAFETY: the memory of a write that is pending, filled by its client before.
                let bytes = unsafe { memory.bytes() };
                let blocks = bytes.chunks_exact(disk.shape.block_bytes as usize);
                for (bytes, number) in blocks.zip(first..) {
                    entry.kept.put(number, bytes);
                }
            }
        }
    }

    /// An operation that changes blocks is about to begin, as always: recordings that have some of
    /// them in memory have what is written now.
    pub(crate) fn change_recorded(&mut self, disk: &Disk, exports: &Exports, pending: &Pending) {
        let operation = pending.operation;
        let zeroes = match operation.ask {
            Ask::Write { .. } => false,
            // It will be refused.
            Ask::Zero {
                pace: Pace::Fast, ..
            } if !disk.shape.zeroes_fast => return,
            Ask::Zero { .. } | Ask::Trim { .. } => true,
            _ => return,
        };
        if self.table.is_empty() || operation.length == 0 {
            return;
        }
        let Some(extent) = exports.within(&operation) else {
            return;
        };
        let memory = pending.bytes.memory().filter(|_| !zeroes);
        // SAFETY: the memory of a write that is pending, filled by its client before.
        let bytes = memory.map(|memory| unsafe { memory.bytes() });
        let zero = vec![0; disk.shape.block_bytes as usize];
        for entry in self.table.iter_mut().filter(|entry| entry.records()) {
            change(&mut entry.kept, extent, bytes, &zero);
        }
    }

    /// An operation is about to be answered: no buffer has what its blocks were before.
    pub(crate) fn changed(
        &mut self,
        disk: &Disk,
        exports: &Exports,
        operation: &Operation,
        bytes: &Bytes,
        result: Result<(), Failed>,
    ) {
        let is_change = matches!(
            operation.ask,
            Ask::Write { .. } | Ask::Zero { .. } | Ask::Trim { .. }
        );
        if !is_change || self.table.is_empty() || operation.length == 0 {
            return;
        }
        let extent = exports.around(operation);
        let is_whole = !exports.is_partial(operation);
        self.supersede(extent);
        let memory = match (operation.ask, result) {
            (Ask::Write { .. }, Ok(())) if is_whole => bytes.memory(),
            _ => None,
        };
        // SAFETY: the memory of a write that has ended and is not answered.
        let bytes = memory.map(|memory| unsafe { memory.bytes() });
        for place in 0..self.table.len() {
            let dirty = self.dirty(disk, place);
            let entry = &mut self.table[place];
            if entry.records() {
                if result.is_err() {
                    forget(&mut entry.kept, extent, dirty);
                }
                continue;
            }
            match bytes {
                Some(bytes) => change(&mut entry.kept, extent, Some(bytes), &[]),
                None => forget(&mut entry.kept, extent, None),
            }
        }
    }

    /// Whether copies of these blocks wait for room.
    fn is_queued(&self, exports: &Exports, extent: Extent) -> bool {
        let mut queued = self.queued();
        queued.any(|operation| exports.around(operation).overlaps(extent))
    }
}

/// What a buffer has of some blocks is this from now on, or zeroes.
fn change(kept: &mut Kept, extent: Extent, bytes: Option<&[u8]>, zero: &[u8]) {
    let runs: Vec<Run> = kept.parts(extent).collect();
    for run in runs {
        let before = run.extent.start().0 - extent.start().0;
        for index in 0..run.extent.length().0 {
            let block = kept.block();
            let at = (before + index) as usize * block;
            let bytes = bytes.map_or(zero, |bytes| &bytes[at..at + block]);
            kept.update(run.first + index, bytes);
        }
    }
}

/// A buffer has nothing of some blocks any more, but for those that are still to be written.
fn forget(kept: &mut Kept, extent: Extent, but: Option<(u64, u64)>) {
    let runs: Vec<Run> = kept.parts(extent).collect();
    let (from, to) = but.unwrap_or_default();
    for run in runs {
        for number in run.first..run.first + run.extent.length().0 {
            if !(from..to).contains(&number) {
                kept.forget(number);
            }
        }
    }
}
