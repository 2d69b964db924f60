//! How many reads elsewhere evict a block from the buffer.

use block::{Extent, Lba};

use crate::prober::Prober;

/// The largest number that is looked for. A choice: twice as many segments as modern drives have that
/// we know; to find it takes 15 s.
const MOST: u64 = 256;

/// Numbers are told apart to a part of this. A choice.
const PART: u64 = 8;

/// Finds out how many reads of other regions evict a block: twice as many each time, then halving.
pub(super) async fn measure(prober: &Prober, lba: Lba) {
    if prober.findings(|findings| findings.fast.is_zero()) {
        // No answer of the buffer was seen.
        return;
    }
    let (mut keeps, mut evicts) = (0, 1);
    while !(is_evicted(prober, lba, evicts).await && is_evicted(prober, lba, evicts).await) {
        keeps = evicts;
        evicts *= 2;
        if evicts > MOST {
            break;
        }
    }
    while evicts <= MOST && evicts - keeps > 1 + evicts / PART {
        let middle = keeps + (evicts - keeps) / 2;
        match is_evicted(prober, lba, middle).await {
            true => evicts = middle,
            false => keeps = middle,
        }
    }
    prober.desk().evicting = evicts;
}

/// Whether a block is read from the medium again after so many reads elsewhere.
async fn is_evicted(prober: &Prober, lba: Lba, reads: u64) -> bool {
    let extent = Extent::block(lba);
    prober.read(extent).await;
    for _ in 0..reads {
        prober.read_far().await;
    }
    let timing = prober.read(extent).await;
    let took = timing.ended.since(timing.submitted);
    prober.findings(|findings| took > findings.fast)
}
