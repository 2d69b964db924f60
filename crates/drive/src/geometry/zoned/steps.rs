//! From blocks to positions and back, by the steps of a zone: how far slips have pushed the blocks.

use super::{ZoneTable, Zoned};

/// The place of a block in its zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockPlace {
    /// Its position.
    pub(super) position: u32,
    /// The number of blocks right before it, sector by sector.
    pub(super) before: u32,
    /// The number of blocks from it on that follow sector by sector.
    pub(super) following: u32,
}

impl Zoned {
    /// The zone of a block of the drive, and the block's place in it.
    #[inline]
    pub(super) fn place_of(&self, lba: u64) -> (&ZoneTable, BlockPlace) {
        let (zone, step, end) = self.index.find(lba);
        let zone = &self.zones[zone];
        let block = (lba - zone.first) as u32;
        let (position, in_unit) = zone.place(block, step.shift);
        let (before, following) = (block - step.first, end - block);
        let place = BlockPlace {
            position,
            before: in_unit.map_or(before, |offset| before.min(offset)),
            following: in_unit.map_or(following, |offset| following.min(zone.unit_blocks - offset)),
        };
        (zone, place)
    }

    /// The block at a position of a zone, or else the first block after it.
    pub(super) fn block_at(&self, zone: &ZoneTable, position: u32) -> Result<u32, u32> {
        let steps = &self.steps[zone.steps.start as usize..zone.steps.end as usize];
        let above = steps.partition_point(|s| zone.place(s.first, s.shift).0 <= position);
        let Some(index) = above.checked_sub(1) else {
            return Err(0);
        };
        let (step, next) = (steps[index], steps.get(index + 1));
        let end = next.map_or(zone.blocks, |next| next.first.min(zone.blocks));
        match zone.block_in_step(position, step) {
            Ok(block) if block < end => Ok(block),
            Ok(_) => Err(end),
            // A step may begin behind the last block: where it was slipped, others were remapped to.
            Err(next) => Err(next.max(step.first).min(end)),
        }
    }
}
