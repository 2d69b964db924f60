//! Transfers of streams: commands at the back end that fill buffers, and that empty those of
//! recordings.

#![allow(
    unsafe_code,
    reason = "looks at memory that the back end has filled, after its command has ended"
)]

use block::{Command, CommandId, Direction, Extent, Lba};
use engine::streams::StreamTransfer;
use stream::streams::StreamId;

use super::{EventLoop, Streams};
use crate::arena::{Memory, Region};
use crate::back_end::{Holds, Run, Span};

/// A command of a stream at the back end.
pub(super) struct Flying {
    command: CommandId,
    transfer: StreamTransfer,
    /// Where a read lands: not in the buffer itself, which may have changed when it does.
    landing: Option<Region>,
    /// What was written meanwhile: what the read brings of it may be older.
    superseded: Vec<Extent>,
    /// Bytes of the file from here on are another file's by now.
    valid_to: u64,
}

impl Streams {
    /// Reads that are under way may bring what these blocks were before.
    pub(super) fn supersede(&mut self, extent: Extent) {
        for flying in &mut self.flying {
            let is_read = flying.transfer.direction == Direction::Read;
            if is_read && flying.transfer.extent.overlaps(extent) {
                flying.superseded.push(extent);
            }
        }
    }

    /// What reads of a stream that are under way bring of the file from here on is of no use.
    pub(super) fn supersede_from(&mut self, id: StreamId, from: u64) {
        for flying in &mut self.flying {
            if flying.transfer.stream == id {
                flying.valid_to = flying.valid_to.min(from);
            }
        }
    }

    /// Whether blocks are being written for a recording at this moment.
    pub(super) fn is_writing(&self, extent: Extent) -> bool {
        self.flying.iter().any(|flying| {
            flying.transfer.direction == Direction::Write && flying.transfer.extent.overlaps(extent)
        })
    }
}

impl EventLoop {
    /// Where a stream's command finds or leaves its bytes; nothing if it is not a stream's.
    pub(in crate::event_loop) fn lay_out_stream(
        &mut self,
        command: &Command,
        pieces: &mut [Option<Memory>; 3],
    ) -> bool {
        if self.streams.table.is_empty() {
            return false;
        }
        let Some(transfer) = self.engine.stream_of(command.id) else {
            return false;
        };
        let block = u64::from(self.shape.block_bytes);
        let count = transfer.extent.length().0;
        let place = self.streams.place_of(transfer.stream);
        let landing = match (transfer.direction, place) {
            (Direction::Write, Some(place)) => {
                let kept = &self.streams.table[place].kept;
                let memory = kept.memory_of(transfer.offset / block, count);
                pieces[..2].copy_from_slice(&memory);
                None
            }
            _ => {
                let region = Region::map((count * block) as usize);
                let region = region.expect("memory for a batch, of which there are two at most");
                pieces[0] = Some(region.memory());
                Some(region)
            }
        };
        self.streams.flying.push(Flying {
            command: command.id,
            transfer,
            landing,
            superseded: Vec::new(),
            valid_to: u64::MAX,
        });
        true
    }

    /// Where a stream's command is, if it is one.
    pub(in crate::event_loop) fn extent_of_stream(&self, id: CommandId) -> Option<Extent> {
        let mut flying = self.streams.flying.iter();
        let flying = flying.find(|flying| flying.command == id)?;
        Some(flying.transfer.extent)
    }

    /// A command has ended well or not; what it has brought is kept.
    pub(in crate::event_loop) fn land_stream(&mut self, id: CommandId, result: Result<(), ()>) {
        let mut flying = self.streams.flying.iter();
        let Some(place) = flying.position(|flying| flying.command == id) else {
            return;
        };
        let flying = self.streams.flying.swap_remove(place);
        let (Some(landing), Ok(())) = (&flying.landing, result) else {
            return;
        };
        let Some(place) = self.streams.place_of(flying.transfer.stream) else {
            return;
        };
        let entry = &self.streams.table[place];
        let (base, _) = self
            .engine
            .guarantees()
            .window(entry.id)
            .unwrap_or_default();
        let block = u64::from(self.shape.block_bytes);
        // Whoever is elsewhere by now needs the places for other blocks.
        let wanted = base / block..(base + entry.kept.bytes()) / block;
        let first = flying.transfer.offset / block;
        let start = flying.transfer.extent.start().0;
        let each = landing.bytes().chunks_exact(block as usize).zip(0..);
        for (bytes, index) in each {
            let lba = Lba(start + index);
            let number = first + index;
            // Since it was ordered the file may have moved.
            let kept = &self.streams.table[place].kept;
            if kept.whole(Extent::block(lba)) != Some(number) {
                continue;
            }
            let is_old = flying.superseded.iter().any(|extent| extent.contains(lba));
            if is_old || !wanted.contains(&number) || number * block >= flying.valid_to {
                continue;
            }
            let newer = self.streams.recorded(lba).map(<[u8]>::to_vec);
            let entry = &mut self.streams.table[place];
            entry.kept.put(number, newer.as_deref().unwrap_or(bytes));
        }
    }

    /// The drive may have lost what it had acknowledged: what was read before is of no use.
    pub(in crate::event_loop) fn forget_played(&mut self) {
        for entry in self.streams.table.iter_mut() {
            if !entry.records() {
                entry.kept.forget_all();
            }
        }
        for flying in &mut self.streams.flying {
            flying.valid_to = 0;
        }
    }

    /// If some of these bytes are in a recording's memory only, they are no hole, whatever the back
    /// end says: all of them as one run.
    pub(in crate::event_loop) fn recorded_in(&self, span: Span) -> Option<Run> {
        let block = u64::from(self.shape.block_bytes);
        let first = span.offset / block;
        let count = (span.offset + span.length)
            .div_ceil(block)
            .saturating_sub(first);
        let extent = super::kept::blocks(Lba(first), count)?;
        let mut places = 0..self.streams.table.len();
        let is_here = places.any(|place| {
            let kept = &self.streams.table[place].kept;
            let dirty = self.dirty(place);
            dirty.is_some_and(|(from, to)| {
                let mut all = kept.places_of(from, to).into_iter();
                all.any(|dirty| dirty.overlaps(extent))
            })
        });
        is_here.then_some(Run {
            length: span.length,
            holds: Holds::Bytes,
        })
    }

    /// What a background read has brought, with what recordings have in memory of it.
    pub(in crate::event_loop) fn put_recorded(&self, start: Lba, memory: Memory) {
        let recordings = self.streams.table.iter().any(super::Entry::records);
        if !recordings {
            return;
        }
        // SAFETY: a scratch buffer of the loop's, whose command has ended.
        let bytes = unsafe { memory.bytes_mut() };
        let block = self.shape.block_bytes as usize;
        for (bytes, index) in bytes.chunks_exact_mut(block).zip(0..) {
            if let Some(newer) = self.streams.recorded(Lba(start.0 + index)) {
                bytes.copy_from_slice(newer);
            }
        }
    }
}

impl Streams {
    /// What a recording has of a block in memory.
    fn recorded(&self, lba: Lba) -> Option<&[u8]> {
        let mut recordings = self.table.iter().filter(|entry| entry.records());
        recordings.find_map(|entry| {
            let number = entry.kept.whole(Extent::block(lba))?;
            entry.kept.get(number)
        })
    }
}
