//! Reads of the engine that no request of the cache asked for, and that it orders with nothing.

use block::Instant;
use cache::level::Wish;

use super::pages::VolumeBytes;
use super::transfers::PieceWork;
use super::volume::{BackgroundReadId, BackgroundReadKind};
use super::{Cached, WantedChange};
use crate::arena::Memory;
use crate::cache_setting::Readmore;

/// Background reads: blocks that the coordinator wants, and those that the engine reads ahead.
impl Cached {
    /// The next change for the engine's standing task.
    pub fn poll_wanted(&mut self) -> Option<WantedChange> {
        let wanted = self.contents.poll_wanted()?;
        Some(match wanted {
            Wish::Want(blocks) => WantedChange::More(self.volume.extent_of(blocks)),
            Wish::Unwant(blocks) => WantedChange::Less(self.volume.extent_of(blocks)),
        })
    }

    /// A background read of `length` bytes is dispatched.
    pub fn background_read_dispatched(
        &mut self,
        (read, kind): (BackgroundReadId, BackgroundReadKind),
        length: u64,
    ) {
        let is_wished = self.setting.readmore != Readmore::Ordinary;
        if kind == BackgroundReadKind::Task && !is_wished {
            return;
        }
        let blocks = self.volume.whole_blocks(read.start, length);
        if !blocks.is_empty() {
            let changes = self.contents.changes().blocks();
            self.background.dispatched((read, kind), blocks, changes);
        }
    }

    /// A background read has ended, with these bytes or with none. Joined pieces, wanted blocks and those
    /// that were read ahead get its bytes.
    pub fn background_read_ended(
        &mut self,
        now: Instant,
        read: BackgroundReadId,
        memory: Option<Memory>,
    ) {
        while let Some(joined) = self.background.take_joined(read) {
            let Some(memory) = memory else {
                self.transfers.queue(joined.piece, joined.purpose);
                continue;
            };
            let piece = self.transfers.remove(joined.piece);
            let part = self.volume.part_of_read(read, memory, piece.blocks);
            self.background.count_served(piece.blocks.len());
            if let PieceWork::Fetch(id) = piece.work {
                let bytes = VolumeBytes::page(piece.blocks.first, part);
                self.piece_ended(now, id, &bytes, Ok(()));
            }
        }
        self.collect_answers();
        while let Some((blocks, kind)) = self.background.take_unchanged(read) {
            if let Some(memory) = memory {
                let part = self.volume.part_of_read(read, memory, blocks);
                let bytes = VolumeBytes::page(blocks.first, part);
                match kind {
                    BackgroundReadKind::Task => self.contents.fill_wanted(&bytes),
                    BackgroundReadKind::Ahead => self.contents.fill_ahead(&bytes),
                }
            }
        }
    }
}
