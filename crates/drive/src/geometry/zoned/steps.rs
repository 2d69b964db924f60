//! From blocks to positions and back, by the steps of a zone: how far slips have pushed the blocks.

use super::{SlipStep, ZoneTable, Zoned};

impl Zoned {
    /// The position of a zone's block, and how many blocks from it on follow sector by sector.
    #[inline]
    pub(super) fn position(&self, zone: &ZoneTable, block: u32) -> (u32, u32) {
        self.place(zone, block, self.step_of(zone, block))
    }

    /// The steps of a zone.
    #[inline]
    fn steps(&self, zone: &ZoneTable) -> &[SlipStep] {
        &self.steps[zone.steps.start as usize..zone.steps.end as usize]
    }

    /// The step of a zone's block.
    #[inline]
    pub(super) fn step_of(&self, zone: &ZoneTable, block: u32) -> usize {
        let steps = self.steps(zone);
        steps.partition_point(|step| step.first <= block) - 1
    }

    /// The block of a zone before which a step ends.
    #[inline]
    fn end_of_step(&self, zone: &ZoneTable, step: usize) -> u32 {
        let next = self.steps(zone).get(step + 1);
        next.map_or(zone.blocks, |next| next.first.min(zone.blocks))
    }

    /// The position of a zone's block that belongs to a step, and how many blocks from it on follow it.
    #[inline]
    pub(super) fn place(&self, zone: &ZoneTable, block: u32, step: usize) -> (u32, u32) {
        let end = self.end_of_step(zone, step);
        zone.place(block, self.steps(zone)[step].shift, end - block)
    }

    /// The block at a position of a zone, if it belongs to a step.
    pub(super) fn block_of_step(
        &self,
        zone: &ZoneTable,
        step: usize,
        position: u32,
    ) -> Option<u32> {
        let its = self.steps(zone)[step];
        let block = zone.block_in_step(position, its).ok()?;
        let is_its = its.first <= block && block < self.end_of_step(zone, step);
        is_its.then_some(block)
    }

    /// The block at a position of a zone, or else the first block after it.
    pub(super) fn block_at(&self, zone: &ZoneTable, position: u32) -> Result<u32, u32> {
        let steps = self.steps(zone);
        let above = steps.partition_point(|s| zone.place(s.first, s.shift, 1).0 <= position);
        let Some(index) = above.checked_sub(1) else {
            return Err(0);
        };
        let (step, end) = (steps[index], self.end_of_step(zone, index));
        match zone.block_in_step(position, step) {
            Ok(block) if block < end => Ok(block),
            Ok(_) => Err(end),
            // A step may begin behind the last block: where it was slipped, others were remapped to.
            Err(next) => Err(next.max(step.first).min(end)),
        }
    }
}
