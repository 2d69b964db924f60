//! A few tracks in many places: what makes a drive usable whose tracks are too many to be found
//! one by one.

use block::Lba;

use super::explore::{Explored, explore};
use crate::prober::Prober;

/// Blocks of a place. A choice: four tracks of 2020, or a few cylinders of 1990.
const PLACE: u64 = 20_000;

/// How often the distance between places of different zones is halved. A choice: 64 places in each
/// of 24 zones would not tell more, and take ten times as long.
const HALVINGS: u32 = 6;

/// Finds the tracks at `places` evenly spread places, and at more of them where sectors per track
/// change in between, so that it is known ever better where. What is known already is not looked
/// at again.
pub async fn survey(prober: &Prober, places: u32) -> Explored {
    let blocks = prober.device().blocks;
    let mut seen: Vec<(u64, u32)> = Vec::new();
    let mut holes = 0;
    for place in 0..u64::from(places) {
        let at = blocks.saturating_sub(PLACE) / u64::from(places - 1).max(1) * place;
        match look(prober, at).await {
            Some(sectors) => seen.push((at, sectors)),
            None => holes += 1,
        }
    }
    for _ in 0..HALVINGS {
        let changes =
            |pair: &&[(u64, u32)]| pair[0].1 != pair[1].1 && pair[1].0 - pair[0].0 > 2 * PLACE;
        let middle = |pair: &[(u64, u32)]| pair[0].0 + (pair[1].0 - pair[0].0) / 2;
        let middles: Vec<u64> = seen.windows(2).filter(changes).map(middle).collect();
        for at in middles {
            match look(prober, at).await {
                Some(sectors) => seen.push((at, sectors)),
                None => holes += 1,
            }
        }
        seen.sort_unstable();
    }
    match holes {
        0 => Explored::All,
        _ => Explored::Holes(holes),
    }
}

/// Finds the tracks of a place; answers how many sectors they have.
async fn look(prober: &Prober, at: u64) -> Option<u32> {
    let end = (at + PLACE).min(prober.device().blocks);
    explore(prober, Lba(at), Lba(end)).await;
    prober.findings(|findings| {
        let pieces = &findings.map.pieces;
        let after = pieces.partition_point(|piece| piece.end().0 <= at);
        let piece = pieces.get(after).filter(|piece| piece.first.0 < end)?;
        Some(piece.cycle[0].sectors)
    })
}
