//! The memory of a command: its stream's or request's, and scratch memory for the blocks around.
//!
//! ```text
//!   command   |  free blocks  |  request's  |
//!   memory    [ scratch       ][ its buffer ]
//! ```

use block::{Action, Command, Lba, Sectors};

use super::Volumes;
use super::cached::BackgroundReadKind;
use crate::arena::Memory;
use crate::disk::Disk;

/// The pieces of a command's memory, in the order of the drive. Some may be missing.
pub(crate) type Pieces = [Option<Memory>; 3];

impl Volumes {
    /// The memory to which a command transfers its blocks, or from which.
    pub(crate) fn lay_out(&mut self, disk: &mut Disk, command: &Command) -> Pieces {
        let mut pieces = [None; 3];
        let (Action::Read { extent, .. } | Action::Write { extent, .. }) = command.action else {
            return pieces;
        };
        let of_stream = self.streams.lay_out(disk, command, &mut pieces);
        let own = of_stream.or_else(|| {
            let request = disk.engine.request_of(command.id)?;
            let own = request.extent.intersection(extent)?;
            pieces[1] = Some(self.memory_of(&request, own));
            Some(own)
        });
        let kind = match disk.engine.is_read_ahead(command.id) {
            true => BackgroundReadKind::Ahead,
            false => BackgroundReadKind::Task,
        };
        let mut scratch = |start: Lba, blocks: Sectors| {
            let block = disk.block();
            let length = (blocks.0 * block) as usize;
            let memory = disk.scratch(command.id, start, length);
            self.caches
                .background_read_dispatched((command.id, kind), start.0 * block, length);
            memory
        };
        let Some(own) = own else {
            pieces[0] = Some(scratch(extent.start(), extent.length()));
            return pieces;
        };
        if own.start() > extent.start() {
            let before = Sectors(own.start().0 - extent.start().0);
            pieces[0] = Some(scratch(extent.start(), before));
        }
        if own.end() < extent.end() {
            let after = Sectors(extent.end().0 - own.end().0);
            pieces[2] = Some(scratch(own.end(), after));
        }
        pieces
    }
}
