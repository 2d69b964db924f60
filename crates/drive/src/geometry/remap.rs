//! Blocks that are not where the layout alone would put them: defects moved to spare sectors.

use super::LayoutError;

/// A few consecutive blocks that were moved to consecutive sectors of one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remap {
    /// The first block.
    pub first: u64,
    /// How many.
    pub blocks: u32,
    /// The arm's position where they are.
    pub cylinder: u32,
    /// The surface where they are.
    pub head: u32,
    /// The sector of the first.
    pub sector: u32,
}

/// All remapped blocks of a drive. Mostly there are none, or a handful.
#[derive(Clone, Debug, Default)]
pub(super) struct Remaps {
    /// In the order of their blocks, not overlapping.
    by_block: Box<[Remap]>,
}

/// What is known about a block.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lookup {
    /// It is in the remap, this far from its beginning.
    Moved(Remap, u32),
    /// It is in its regular place, and so are this many blocks from it on (saturated).
    Regular(u32),
}

impl Remaps {
    /// The given remaps.
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

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_block.is_empty()
    }

    /// Where `block` is, if it is remapped.
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

    /// The block that was moved to a sector, if one was.
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
