//! Operations that meet streams.
//!
//! ```text
//!   read    all in a buffer -------------> answered at once
//!           some in flight to a buffer --> answered when it has arrived
//!           in a recording's buffer -----> copied to the drive first
//!           not yet acknowledged --------> the drive, before or after the recording's batch
//!   write   where a recording is --------> its buffer
//!           anywhere else ---------------> the drive, and buffers with its blocks change
//! ```

use block::{Durability, Extent};
use headtime_client::wire::{StreamMode, StreamUpdate};
use stream::playout::{AccessId, NotTaken, Served};
use stream::streams::StreamId;

use super::VolumeStreams;
use super::table::{Entry, WaitingAccess};
use crate::disk::Disk;
use crate::volume::operation::{NextStep, Operation, OperationSource};
use crate::volume::operations::Operations;
use block::operation::{Ask, OperationError};

/// The relation of an operation to the streams of its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// No stream serves the operation.
    Apart,
    /// The operation cannot begin now.
    Later,
    /// The operation reads the drive, where recordings may not have written these blocks yet.
    Recorded(Extent),
    /// The operation changes parts of blocks of recordings, which end. A buffer has whole blocks only.
    Partial(Extent),
    /// A stream serves the operation.
    Served(Serving),
}

/// The stream that serves an operation, by its index, and the first block of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Serving {
    /// All blocks are in the buffer.
    Memory(usize, u64),
    /// Some blocks are in flight to the buffer.
    Waiting(usize, u64),
    /// The recording's buffer takes the write.
    Written(usize, u64),
}

impl VolumeStreams {
    /// The relation of an operation to the streams of its blocks.
    pub(in crate::volume) fn meet(
        &self,
        disk: &Disk,
        operations: &Operations,
        operation: &Operation,
    ) -> Meeting {
        if self.is_empty() || operation.length == 0 {
            return Meeting::Apart;
        }
        let exports = &operations.exports;
        let extent = match operation.ask {
            Ask::Flush => return Meeting::Apart,
            _ => exports.around(operation),
        };
        let unless = |is_later: bool| match is_later {
            true => Meeting::Later,
            false => Meeting::Apart,
        };
        match operation.ask {
            Ask::Read => self.meet_read(disk, extent),
            Ask::Write { .. } | Ask::Zero { .. } if exports.is_partial(operation) => {
                let mut recordings = self.table.recordings();
                match recordings.any(|entry| entry.buffer.parts(extent).next().is_some()) {
                    true => Meeting::Partial(extent),
                    // An earlier copy must not reach the drive between the read and the write of an edge.
                    false => unless(self.copies.is_queued(exports, extent)),
                }
            }
            Ask::Write { .. } => {
                let mut recordings = self.table.0.iter().enumerate();
                let found = recordings.find_map(|(place, entry)| {
                    let first = entry.buffer.whole(extent).filter(|_| entry.records())?;
                    Some(Serving::Written(place, first))
                });
                match found {
                    // An operation from before the recording, or an earlier copy, would reach the drive after this one.
                    Some(_)
                        if operations.is_changed_apart(&[extent], None)
                            || self.copies.is_queued(exports, extent) =>
                    {
                        Meeting::Later
                    }
                    Some(serving) => Meeting::Served(serving),
                    // An earlier copy must not reach the drive after this write.
                    None => unless(self.copies.is_queued(exports, extent)),
                }
            }
            Ask::Zero { .. } | Ask::Trim { .. } => {
                // The back end does these at once, and the engine does not order them with copies.
                let mut pending = operations.iter();
                let is_copied = pending.any(|(_, pending)| {
                    matches!(pending.source, OperationSource::Copied(_))
                        && exports.around(&pending.operation).overlaps(extent)
                });
                unless(
                    is_copied
                        || self.copies.is_queued(exports, extent)
                        || self.transfers.is_writing(extent),
                )
            }
            Ask::Flush | Ask::Cache => Meeting::Apart,
        }
    }

    fn meet_read(&self, disk: &Disk, extent: Extent) -> Meeting {
        let (count, block) = (extent.length().0, disk.block());
        let mut in_flight = None;
        for (place, entry) in self.table.0.iter().enumerate() {
            let Some(first) = entry.buffer.whole(extent) else {
                continue;
            };
            if entry.has(first, extent) {
                if entry.is_unacknowledged(disk, first, count) {
                    continue;
                }
                return Meeting::Served(Serving::Memory(place, first));
            }
            let (from, to) = entry.window(disk).unwrap_or_default();
            let is_wanted = from <= first * block && (first + count) * block <= to;
            let is_large = count * block > entry.buffer.bytes();
            if !entry.records() && (is_wanted || is_large) {
                in_flight = Some(Serving::Waiting(place, first));
            }
        }
        in_flight.map_or(Meeting::Recorded(extent), Meeting::Served)
    }

    /// Serves an operation that has begun.
    pub(in crate::volume) fn serve(
        &mut self,
        disk: &mut Disk,
        operations: &mut Operations,
        key: usize,
        serving: Serving,
    ) -> NextStep {
        let extent = operations.around(key);
        let block = disk.block();
        let length = extent.length().0 * block;
        let access_id = AccessId(key as u64);
        let (place, accepted, write) = match serving {
            Serving::Memory(place, first) => {
                let entry = &mut self.table.0[place];
                entry.totals.from_memory += 1;
                entry.fill(&operations[key], first);
                return NextStep::Answer;
            }
            Serving::Waiting(place, first) => {
                let (id, access) = (self.table.0[place].id, (first * block, length));
                let accepted = disk.engine.stream_read(disk.now, id, access_id, access);
                (place, accepted, None)
            }
            Serving::Written(place, first) => {
                let (id, access) = (self.table.0[place].id, (first * block, length));
                let accepted = disk.engine.stream_write(disk.now, id, access_id, access);
                (place, accepted, Some((first, access.0 + length)))
            }
        };
        let entry = &mut self.table.0[place];
        match accepted {
            Ok(()) => entry.waiting.push(WaitingAccess {
                key,
                write,
                is_in_buffer: false,
            }),
            Err(why) => {
                match why {
                    NotTaken::NoStream | NotTaken::Direction => (),
                    why => entry.send(StreamUpdate::Aside {
                        reason: why.to_string(),
                    }),
                }
                self.redirect(operations, key);
            }
        }
        NextStep::Wait
    }

    /// The engine has answered an access. The answer is its operation and the next step.
    pub(super) fn access_answered(
        &mut self,
        operations: &mut Operations,
        id: StreamId,
        access: AccessId,
        served: Served,
    ) -> Option<(usize, NextStep)> {
        let key = access.0 as usize;
        let entry = self.table.with_id(id)?;
        let index = entry
            .waiting
            .iter()
            .position(|waiting| waiting.key == key)?;
        let waiting = entry.waiting.remove(index);
        match served {
            Served::Memory => entry.totals.from_memory += 1,
            Served::Waited(_) => entry.totals.waited += 1,
            _ => (),
        }
        let step = match (served, waiting.write) {
            (Served::Memory | Served::Waited(_), None) => read_buffer(entry, operations, key),
            (Served::Memory | Served::Waited(_), Some(_)) => {
                let durable = matches!(
                    operations[key].operation.ask,
                    Ask::Write {
                        durability: Durability::Durable
                    }
                );
                match durable && entry.terms.mode != StreamMode::RecordSync {
                    true => Some(NextStep::Flush),
                    false => Some(NextStep::Answer),
                }
            }
            (Served::Failed, Some(_)) => {
                operations[key].result = Err(OperationError::Io);
                Some(NextStep::Answer)
            }
            // The drive may do it now, or says itself that it cannot.
            _ => None,
        };
        let step = step.unwrap_or_else(|| {
            self.redirect(operations, key);
            NextStep::Wait
        });
        Some((key, step))
    }

    /// An operation waits for room at the engine, because its stream does not serve it.
    fn redirect(&mut self, operations: &mut Operations, key: usize) {
        operations[key].is_redirected = true;
        self.redirected.push(key);
    }
}

/// Reads blocks that the engine says are in the buffer, unless a write elsewhere has removed them since.
fn read_buffer(entry: &Entry, operations: &Operations, key: usize) -> Option<NextStep> {
    let extent = operations.around(key);
    let first = entry.buffer.whole(extent)?;
    entry.has(first, extent).then(|| {
        entry.fill(&operations[key], first);
        NextStep::Answer
    })
}

#[cfg(test)]
mod tests {
    use block::{Class, Lba, Sectors};

    use super::*;
    use crate::arena::Arena;
    use crate::disk::tests::plain;
    use crate::volume::exports::{Export, Exports};
    use crate::volume::operations::ZEROES;

    /// Without the wait the partial write would read its block, the copy would overtake it, and the block
    /// would be written as it was before the copy.
    #[test]
    fn a_partial_write_waits_for_a_queued_copy_of_a_recording_that_has_ended() {
        let disk = plain();
        let export = Export {
            name: "all".to_owned(),
            offset: 0,
            length: 1 << 20,
            class: Class::default(),
        };
        let exports = Exports::new(vec![export], disk.block());
        let arena = Arena::map(ZEROES).expect("memory");
        let mut operations = Operations::new(exports, arena, 4096).expect("room");
        let write = |offset, length| Operation {
            export: 0,
            ask: Ask::Write {
                durability: Durability::Volatile,
            },
            offset,
            length,
            owner: block::Owner::NOBODY,
            class: None,
        };
        let mut streams = VolumeStreams::default();
        streams.copies.queue_one(write(4096, 1024));
        assert!(streams.table.0.is_empty(), "its recording has ended");
        let copied = Extent::new(Lba(8), Sectors(2)).expect("blocks");
        assert!(streams.is_queued(&operations.exports, copied));

        let meet = |streams: &VolumeStreams, operations: &Operations, operation| {
            streams.meet(&disk, operations, &operation)
        };
        for partial in [write(4100, 10), write(4600, 512), write(3000, 2000)] {
            let meeting = meet(&streams, &operations, partial);
            assert_eq!(meeting, Meeting::Later, "{partial:?}");
        }
        let whole = meet(&streams, &operations, write(4096, 512));
        assert_eq!(whole, Meeting::Later);
        let beside = meet(&streams, &operations, write(100, 10));
        assert_eq!(beside, Meeting::Apart, "other blocks");

        // Once the engine has the copy, the engine keeps it before the read of the block.
        let (source, operation, bytes) = streams
            .next_copy(&disk, &operations.exports)
            .expect("there is room");
        operations.insert(source, operation, bytes);
        let behind = meet(&streams, &operations, write(4100, 10));
        assert_eq!(behind, Meeting::Apart);
    }
}
