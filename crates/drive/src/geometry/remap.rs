//! Remapped blocks: defects whose blocks are on spare sectors.

use super::LayoutError;

/// Consecutive blocks that are remapped to consecutive sectors of one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remap {
    /// The first block.
    pub first: u64,
    /// The number of blocks.
    pub blocks: u32,
    /// The cylinder of the sectors.
    pub cylinder: u32,
    /// The surface of the sectors.
    pub head: u32,
    /// The sector of the first block.
    pub sector: u32,
}

/// All remapped blocks of a drive: usually none, or a few.
#[derive(Clone, Debug, Default)]
pub(super) struct Remaps {
    /// The remaps in the order of their blocks, without overlaps.
    by_block: Box<[Remap]>,
}

/// The result of a lookup.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lookup {
    /// The block is in the remap, at this offset.
    Moved(Remap, u32),
    /// The block is not remapped, nor are this many blocks from it on (saturated).
    Regular(u32),
}

impl Remaps {
    /// The set of these remaps.
    pub fn new(mut remaps: Vec<Remap>) -> Result<Self, LayoutError> {
        remaps.sort_by_key(|remap| remap.first);
        for pair in remaps.windows(2) {
            if pair[0].first + u64::from(pair[0].blocks) > pair[1].first {
                return Err(LayoutError {
                    item: None,
                    entry: None,
                    key: "remaps",
                    reason: format!(
                        "block {} is remapped twice: expected each at most once",
                        pair[1].first
                    ),
                });
            }
        }
        Ok(Remaps {
            by_block: remaps.into(),
        })
    }

    /// Whether there are no remaps.
    pub fn is_empty(&self) -> bool {
        self.by_block.is_empty()
    }

    /// Looks up a block.
    pub fn find(&self, block: u64) -> Lookup {
        let above = self.by_block.partition_point(|r| r.first <= block);
        if let Some(remap) = above.checked_sub(1).map(|i| self.by_block[i]) {
            let into = block - remap.first;
            if into < u64::from(remap.blocks) {
                return Lookup::Moved(remap, into as u32);
            }
        }
        let regular = match self.by_block.get(above) {
            Some(next) => (next.first - block).min(u64::from(u32::MAX)) as u32,
            None => u32::MAX,
        };
        Lookup::Regular(regular)
    }

    /// The block that is remapped to a sector, if any.
    pub fn moved_to(&self, cylinder: u32, head: u32, sector: u32) -> Option<u64> {
        self.by_block
            .iter()
            .find(|r| {
                r.cylinder == cylinder
                    && r.head == head
                    && r.sector <= sector
                    && sector - r.sector < r.blocks
            })
            .map(|r| r.first + u64::from(sector - r.sector))
    }
}
