//! Explores many regions of a drive in rounds, so that their reads evict each other's blocks.

use block::Lba;

use super::explore::explore;
use crate::prober::Prober;

/// Fewest regions at a time. A choice: they cost little.
const FEWEST: u64 = 4;

/// Regions behind a host that delays if even the most of them do not evict each other's blocks. A choice: a
/// track of a drive of 2020 takes three hundred sightings to be made out, and ten regions are begun within a
/// minute.
const FEW_LATE: u64 = 10;

/// A region has so many blocks at least. A choice: some tens of tracks.
const SMALLEST: u64 = 20_000;

/// Explores all unknown blocks, cut into about as many regions as reads evict a block.
pub async fn explore_regions(prober: &Prober) {
    let is_late = prober.findings(|findings| !findings.host.late.is_zero());
    let count = match is_late && !prober.rounds_evict() {
        true => FEW_LATE,
        false => prober
            .evicting_procedures()
            .clamp(FEWEST, prober.most_at_once()),
    };
    let blocks = prober.device().blocks;
    let gaps = prober.findings(|findings| {
        let map = &findings.map;
        let firsts = map.pieces.iter().map(|piece| piece.first);
        let mut gaps = Vec::new();
        let mut from = map.unknown_from(Lba(0));
        for first in firsts.chain([Lba(blocks)]) {
            if first > from {
                gaps.push((from, first));
                from = map.unknown_from(first);
            }
        }
        gaps
    });
    let unknown: u64 = gaps.iter().map(|(from, to)| to.0 - from.0).sum();
    let size = unknown.div_ceil(count).max(SMALLEST);
    let mut parts = Vec::new();
    for (from, to) in gaps {
        let number = (to.0 - from.0).div_ceil(size);
        for part in 0..number {
            let cut = |part: u64| Lba(from.0 + (to.0 - from.0) / number * part);
            let end = if part + 1 == number {
                to
            } else {
                cut(part + 1)
            };
            parts.push((cut(part), end));
        }
    }
    let work = parts.into_iter().map(|(from, to)| async move {
        explore(prober, from, to).await;
    });
    prober.rounds(work.collect()).await;
}
