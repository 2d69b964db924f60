//! The memory of a command: that of its stream or request, and scratch memory around it.
//!
//! ```text
//!   command   |  free blocks  |  request's  |
//!   memory    [ scratch       ][ its buffer ]
//! ```

use block::{Action, Command, Extent, Lba, Request, Sectors};

use super::Volumes;
use crate::arena::Memory;
use crate::disk::Disk;

/// The pieces of a command's memory, one after the other on the drive; some may be missing.
pub(crate) type Pieces = [Option<Memory>; 3];

impl Volumes {
    /// Where the bytes of a command come from or go to.
    pub(crate) fn lay_out(&mut self, disk: &mut Disk, command: &Command) -> Pieces {
        let mut pieces = [None; 3];
        let (Action::Read { extent, .. } | Action::Write { extent, .. }) = command.action else {
            return pieces;
        };
        if self.streams.lay_out(disk, command, &mut pieces) {
            return pieces;
        }
        let request = disk.engine.request_of(command.id);
        let own = request.and_then(|request| Some((request, request.extent.intersection(extent)?)));
        let Some((request, own)) = own else {
            pieces[0] = self.scratch(disk, command, extent.start(), extent.length());
            return pieces;
        };
        pieces[1] = Some(self.memory_of(&request, own));
        if own.start() > extent.start() {
            let before = Sectors(own.start().0 - extent.start().0);
            pieces[0] = self.scratch(disk, command, extent.start(), before);
        }
        if own.end() < extent.end() {
            let after = Sectors(extent.end().0 - own.end().0);
            pieces[2] = self.scratch(disk, command, own.end(), after);
        }
        pieces
    }

    fn scratch(
        &mut self,
        disk: &mut Disk,
        command: &Command,
        start: Lba,
        blocks: Sectors,
    ) -> Option<Memory> {
        let block = disk.block();
        let length = (blocks.0 * block) as usize;
        let memory = disk.scratch(command.id, start, length);
        self.caches
            .note_passing(command.id, start.0 * block, length);
        Some(memory)
    }

    /// The first block of a command that failed, as far as it is known.
    pub(crate) fn first_block(&self, id: block::CommandId, request: Option<&Request>) -> Lba {
        let of_request = request.map(|request| request.extent);
        let extent = of_request.or_else(|| self.streams.extent_of(id));
        extent.map_or(Lba(0), Extent::start)
    }
}
