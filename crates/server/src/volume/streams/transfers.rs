//! Transfers of streams: commands that fill buffers, and commands that write those of recordings.

use block::{Command, CommandId, Direction, Extent, Lba};
use engine::streams::StreamTransfer;
use stream::streams::StreamId;

use super::table::StreamTable;
use crate::arena::{Memory, Region};
use crate::disk::Disk;

/// The commands of streams at the back end.
#[derive(Default)]
pub(super) struct StreamTransfers(Vec<StreamCommand>);

/// A command of a stream at the back end.
struct StreamCommand {
    command: CommandId,
    transfer: StreamTransfer,
    /// The stream's blocks of the command, which may read free blocks around them.
    own: Extent,
    /// The memory of the own blocks of a read. The buffer itself may change before the read ends.
    landing: Option<Region>,
    /// Blocks that were written meanwhile: those of the read may be older.
    superseded: Vec<Extent>,
    /// The byte of the file from which the blocks belong to another file by now.
    valid_to: u64,
}

impl StreamTransfers {
    /// Notes that reads in flight may have older bytes of these blocks.
    pub(super) fn supersede(&mut self, extent: Extent) {
        for in_flight in &mut self.0 {
            let is_read = in_flight.transfer.direction == Direction::Read;
            if is_read && in_flight.transfer.extent.overlaps(extent) {
                in_flight.superseded.push(extent);
            }
        }
    }

    /// Notes that reads of a stream in flight have no use from byte `from` of the file on.
    pub(super) fn supersede_from(&mut self, id: StreamId, from: u64) {
        for in_flight in &mut self.0 {
            if in_flight.transfer.stream == id {
                in_flight.valid_to = in_flight.valid_to.min(from);
            }
        }
    }

    /// Notes that no read in flight has any use.
    pub(super) fn supersede_all(&mut self) {
        for in_flight in &mut self.0 {
            in_flight.valid_to = 0;
        }
    }

    /// Whether a recording's command is writing some of these blocks.
    pub(super) fn is_writing(&self, extent: Extent) -> bool {
        self.0.iter().any(|in_flight| {
            in_flight.transfer.direction == Direction::Write
                && in_flight.transfer.extent.overlaps(extent)
        })
    }

    /// The blocks of a stream's command.
    pub(super) fn extent_of(&self, id: CommandId) -> Option<Extent> {
        let mut all = self.0.iter();
        let in_flight = all.find(|in_flight| in_flight.command == id)?;
        Some(in_flight.transfer.extent)
    }

    /// Finds the memory of a stream's command, which is in flight from now on. The answer is the stream's blocks
    /// of it, if the command is a stream's. Free blocks may lie before and behind those of a read.
    pub(super) fn lay_out(
        &mut self,
        disk: &Disk,
        table: &mut StreamTable,
        command: &Command,
        pieces: &mut [Option<Memory>; 3],
    ) -> Option<Extent> {
        if table.0.is_empty() {
            return None;
        }
        let transfer = disk.engine.stream_of(command.id)?;
        let own = transfer.extent.intersection(command.action.extent()?)?;
        let block = disk.block();
        let count = own.length().0;
        let landing = match (transfer.direction, table.with_id(transfer.stream)) {
            (Direction::Write, Some(entry)) => {
                let first = first_of(&transfer, own, block);
                pieces[..2].copy_from_slice(&entry.buffer.memory_of(first, count));
                None
            }
            _ => {
                let region = Region::map((count * block) as usize);
                let region = region.expect("memory for a batch, of which there are two at most");
                pieces[1] = Some(region.memory());
                Some(region)
            }
        };
        self.0.push(StreamCommand {
            command: command.id,
            transfer,
            own,
            landing,
            superseded: Vec::new(),
            valid_to: u64::MAX,
        });
        Some(own)
    }

    /// Ends a command, and stores the blocks of a good read in its stream's buffer.
    pub(super) fn command_ended(
        &mut self,
        disk: &Disk,
        table: &mut StreamTable,
        id: CommandId,
        is_good: bool,
    ) {
        let mut all = self.0.iter();
        let Some(place) = all.position(|in_flight| in_flight.command == id) else {
            return;
        };
        let in_flight = self.0.swap_remove(place);
        let (Some(landing), true) = (&in_flight.landing, is_good) else {
            return;
        };
        let Some(entry) = table.with_id(in_flight.transfer.stream) else {
            return;
        };
        let (base, _) = entry.window(disk).unwrap_or_default();
        let block = disk.block();
        // A stream that has moved on needs the slots for other blocks.
        let wanted = base / block..(base + entry.buffer.bytes()) / block;
        let first = first_of(&in_flight.transfer, in_flight.own, block);
        let start = in_flight.own.start().0;
        let each = landing.bytes().chunks_exact(block as usize).zip(0..);
        for (bytes, index) in each {
            let lba = Lba(start + index);
            let number = first + index;
            let is_old = in_flight
                .superseded
                .iter()
                .any(|extent| extent.contains(lba));
            if is_old || !wanted.contains(&number) || number * block >= in_flight.valid_to {
                continue;
            }
            let newer = table.recorded(disk, lba).map(<[u8]>::to_vec);
            // The file may have moved since the command was dispatched.
            if let Some(entry) = table.with_id(in_flight.transfer.stream)
                && entry.buffer.whole(Extent::block(lba)) == Some(number)
            {
                let bytes = newer.as_deref().unwrap_or(bytes);
                entry.buffer.put(number, bytes);
            }
        }
    }
}

/// The first block of the file among a command's own blocks.
fn first_of(transfer: &StreamTransfer, own: Extent, block: u64) -> u64 {
    transfer.offset / block + (own.start().0 - transfer.extent.start().0)
}
