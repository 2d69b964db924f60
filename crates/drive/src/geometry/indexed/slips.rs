//! Slipped places: the map from block numbers to places and back.

/// Slipped places, as a step function: the number of slipped places before a block.
#[derive(Clone, Debug)]
pub(super) struct Slips {
    /// The first block after each slip, ascending; the first step is at block 0.
    blocks: Box<[u64]>,
    /// The number of slipped places before that block.
    before: Box<[u64]>,
}

impl Slips {
    /// The map with these slips (place, count). The error is the index of a slip that does not
    /// follow the previous one.
    pub fn new(slips: &[(u64, u32)]) -> Result<Self, usize> {
        let (mut blocks, mut before) = (vec![0], vec![0]);
        let (mut sum, mut end) = (0u64, 0u64);
        for (index, &(place, count)) in slips.iter().enumerate() {
            if place < end || count == 0 {
                return Err(index);
            }
            end = place.checked_add(u64::from(count)).ok_or(index)?;
            let block = place - sum;
            sum += u64::from(count);
            if blocks.last() == Some(&block) {
                before.pop();
            } else {
                blocks.push(block);
            }
            before.push(sum);
        }
        Ok(Slips {
            blocks: blocks.into(),
            before: before.into(),
        })
    }

    /// The number of slipped places.
    pub fn total(&self) -> u64 {
        self.before[self.before.len() - 1]
    }

    /// The place of a block, and the numbers of blocks before it and from it on with consecutive places.
    #[inline]
    pub fn place(&self, block: u64) -> (u64, u64, u64) {
        let above = self.blocks.partition_point(|&first| first <= block);
        let next = self.blocks.get(above).map_or(u64::MAX, |&first| first);
        let step = above - 1;
        (
            block + self.before[step],
            block - self.blocks[step],
            next - block,
        )
    }

    /// The block at a place. The error is the next block, if the place is slipped.
    pub fn block_at(&self, place: u64) -> Result<u64, u64> {
        // The last step whose first block is at or before the place.
        let (mut low, mut high) = (0, self.blocks.len());
        while low < high {
            let middle = (low + high) / 2;
            if self.blocks[middle] + self.before[middle] <= place {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let Some(step) = low.checked_sub(1) else {
            // Before block 0: the first places were slipped.
            return Err(0);
        };
        let block = place - self.before[step];
        match self.blocks.get(low) {
            Some(&next) if block >= next => Err(next),
            _ => Ok(block),
        }
    }
}
