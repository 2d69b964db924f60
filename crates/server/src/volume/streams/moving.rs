//! Transfers of streams: commands at the back end that fill buffers, and that empty those of
//! recordings.

#![allow(
    unsafe_code,
    reason = "looks at memory that the back end has filled, after its command has ended"
)]

use block::{Command, CommandId, Direction, Extent, Lba};
use engine::streams::StreamTransfer;
use stream::streams::StreamId;

use super::Streams;
use crate::arena::{Memory, Region};
use crate::disk::Disk;
use crate::disk::back_end::Span;

/// A command of a stream at the back end.
pub(super) struct StreamCommand {
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
        for in_flight in &mut self.in_flight {
            let is_read = in_flight.transfer.direction == Direction::Read;
            if is_read && in_flight.transfer.extent.overlaps(extent) {
                in_flight.superseded.push(extent);
            }
        }
    }

    /// What reads of a stream that are under way bring of the file from here on is of no use.
    pub(super) fn supersede_from(&mut self, id: StreamId, from: u64) {
        for in_flight in &mut self.in_flight {
            if in_flight.transfer.stream == id {
                in_flight.valid_to = in_flight.valid_to.min(from);
            }
        }
    }

    /// Whether blocks are being written for a recording at this moment.
    pub(super) fn is_writing(&self, extent: Extent) -> bool {
        self.in_flight.iter().any(|in_flight| {
            in_flight.transfer.direction == Direction::Write
                && in_flight.transfer.extent.overlaps(extent)
        })
    }

    /// Where a stream's command finds or leaves its bytes; nothing if it is not a stream's.
    pub(crate) fn lay_out(
        &mut self,
        disk: &Disk,
        command: &Command,
        pieces: &mut [Option<Memory>; 3],
    ) -> bool {
        if self.table.is_empty() {
            return false;
        }
        let Some(transfer) = disk.engine.stream_of(command.id) else {
            return false;
        };
        let block = disk.block();
        let count = transfer.extent.length().0;
        let place = self.place_of(transfer.stream);
        let landing = match (transfer.direction, place) {
            (Direction::Write, Some(place)) => {
                let kept = &self.table[place].kept;
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
        self.in_flight.push(StreamCommand {
            command: command.id,
            transfer,
            landing,
            superseded: Vec::new(),
            valid_to: u64::MAX,
        });
        true
    }

    /// Where a stream's command is, if it is one.
    pub(crate) fn extent_of(&self, id: CommandId) -> Option<Extent> {
        let mut in_flight = self.in_flight.iter();
        let in_flight = in_flight.find(|in_flight| in_flight.command == id)?;
        Some(in_flight.transfer.extent)
    }

    /// A command has ended well or not; what it has brought is kept.
    pub(crate) fn land(&mut self, disk: &Disk, id: CommandId, is_good: bool) {
        let mut in_flight = self.in_flight.iter();
        let Some(place) = in_flight.position(|in_flight| in_flight.command == id) else {
            return;
        };
        let in_flight = self.in_flight.swap_remove(place);
        let (Some(landing), true) = (&in_flight.landing, is_good) else {
            return;
        };
        let Some(place) = self.place_of(in_flight.transfer.stream) else {
            return;
        };
        let entry = &self.table[place];
        let (base, _) = disk
            .engine
            .guarantees()
            .window(entry.id)
            .unwrap_or_default();
        let block = disk.block();
        // Whoever is elsewhere by now needs the places for other blocks.
        let wanted = base / block..(base + entry.kept.bytes()) / block;
        let first = in_flight.transfer.offset / block;
        let start = in_flight.transfer.extent.start().0;
        let each = landing.bytes().chunks_exact(block as usize).zip(0..);
        for (bytes, index) in each {
            let lba = Lba(start + index);
            let number = first + index;
            // Since it was ordered the file may have moved.
            let kept = &self.table[place].kept;
            if kept.whole(Extent::block(lba)) != Some(number) {
                continue;
            }
            let is_old = in_flight
                .superseded
                .iter()
                .any(|extent| extent.contains(lba));
            if is_old || !wanted.contains(&number) || number * block >= in_flight.valid_to {
                continue;
            }
            let newer = self.recorded(lba).map(<[u8]>::to_vec);
            let entry = &mut self.table[place];
            entry.kept.put(number, newer.as_deref().unwrap_or(bytes));
        }
    }

    /// The drive may have lost what it had acknowledged: what was read before is of no use.
    pub(crate) fn forget_played(&mut self) {
        for entry in self.table.iter_mut() {
            if !entry.records() {
                entry.kept.forget_all();
            }
        }
        for in_flight in &mut self.in_flight {
            in_flight.valid_to = 0;
        }
    }

    /// Whether some of these bytes are in a recording's memory only: they are no hole, whatever the back
    /// end says.
    pub(crate) fn has_recorded(&self, disk: &Disk, span: Span) -> bool {
        let block = disk.block();
        let first = span.offset / block;
        let end = (span.offset + span.length).div_ceil(block);
        let Some(extent) = super::kept::blocks(Lba(first), end.saturating_sub(first)) else {
            return false;
        };
        (0..self.table.len()).any(|place| {
            let kept = &self.table[place].kept;
            let dirty = self.dirty(disk, place);
            dirty.is_some_and(|(from, to)| {
                let mut all = kept.places_of(from, to).into_iter();
                all.any(|dirty| dirty.overlaps(extent))
            })
        })
    }

    /// What a background read has brought, with what recordings have in memory of it.
    pub(crate) fn put_recorded(&self, disk: &Disk, start: Lba, memory: Memory) {
        let recordings = self.table.iter().any(super::Entry::records);
        if !recordings {
            return;
        }
        // SAFETY: a scratch buffer of the loop's, whose command has ended.
        let bytes = unsafe { memory.bytes_mut() };
        let block = disk.shape.block_bytes as usize;
        for (bytes, index) in bytes.chunks_exact_mut(block).zip(0..) {
            if let Some(newer) = self.recorded(Lba(start.0 + index)) {
                bytes.copy_from_slice(newer);
            }
        }
    }

    /// What a recording has of a block in memory.
    fn recorded(&self, lba: Lba) -> Option<&[u8]> {
        let mut recordings = self.table.iter().filter(|entry| entry.records());
        recordings.find_map(|entry| {
            let number = entry.kept.whole(Extent::block(lba))?;
            entry.kept.get(number)
        })
    }
}
