//! Miss ratios as a table.

use super::{BLOCK_BYTES, MissCurves, MissRatio, PrefetchFigures};
use crate::table::{Column, ColumnTable};

impl MissCurves {
    /// The rows of the JSON array: miss ratios, then those of prefetchers.
    pub fn table(&self) -> ColumnTable {
        miss_ratios(&self.ratios, &self.prefetched)
    }
}

/// The table of miss ratios without prefetchers and with them.
pub fn miss_ratios(alone: &[MissRatio], ahead: &[PrefetchFigures]) -> ColumnTable {
    let replacement = alone.iter().map(|row| &row.replacement);
    let replacement = replacement.chain(ahead.iter().map(|row| &row.replacement));
    let blocks = alone.iter().map(|row| row.blocks);
    let blocks: Vec<u64> = blocks.chain(ahead.iter().map(|row| row.blocks)).collect();
    let ratios = alone.iter().map(|row| row.miss_ratio);
    let ratios = ratios.chain(ahead.iter().map(|row| row.miss_ratio));
    let counts = |of: fn(&PrefetchFigures) -> u64| {
        let none = alone.iter().map(|_| None);
        none.chain(ahead.iter().map(move |row| Some(of(row))))
    };
    let prefetcher = alone.iter().map(|_| None);
    let prefetcher = prefetcher.chain(ahead.iter().map(|row| Some(row.prefetcher.clone())));
    ColumnTable {
        name: "miss_ratios",
        version: 1,
        columns: vec![
            Column::text(
                "replacement",
                "the replacement policy",
                replacement.cloned().map(Some),
            ),
            Column::text("prefetcher", "the prefetcher; null: none", prefetcher),
            Column::count(
                "blocks",
                "blocks of 4 KiB of the cache",
                blocks.iter().map(|b| Some(*b)),
            ),
            Column::count(
                "bytes",
                "the same in bytes",
                blocks.iter().map(|b| b.checked_mul(BLOCK_BYTES)),
            ),
            Column::number(
                "miss_ratio",
                "share of demanded blocks that the cache does not have, 0 to 1",
                ratios.map(Some),
            ),
            Column::count(
                "prefetched",
                "blocks fetched ahead",
                counts(|row| row.prefetched),
            ),
            Column::count(
                "unused",
                "of these never demanded",
                counts(|row| row.unused),
            ),
        ],
    }
}
