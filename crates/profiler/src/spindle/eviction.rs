//! How many reads elsewhere evict a block from the buffer, and which of them are the fastest.
//!
//! ```text
//!   track 1   ---X--------------        a stride of a track and as much as passes while the head
//!   track 2   ------------X-----        comes to the next one: many reads a revolution, and each
//!   track 3   --X---------------        takes a segment
//! ```

use block::{Extent, Lba};

use crate::prober::{MOST_AT_ONCE, MOST_SEGMENTS, Prober};

/// Strides that are tried, in blocks: the first, and each by this part longer than the one before. A choice: they are
/// longer than look-ahead, and reach from six tracks of 1990 to three of 2020.
const STRIDES: (u64, u64, usize) = (600, 10, 28);

/// Reads of each stride. A choice: some tracks.
const READS: u64 = 8;

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
        // Fewer are made by procedures that take turns.
        if evicts == 2 * MOST_AT_ONCE.0 {
            let stride = fastest_stride(prober).await;
            prober.desk().evicting_stride = stride;
        }
        if evicts > MOST_SEGMENTS {
            break;
        }
    }
    while evicts <= MOST_SEGMENTS && evicts - keeps > 1 + evicts / PART {
        let middle = keeps + (evicts - keeps) / 2;
        match is_evicted(prober, lba, middle).await {
            true => evicts = middle,
            false => keeps = middle,
        }
    }
    prober.desk().evicting = evicts;
}

/// The stride whose reads take the least time, if all of them come from the medium; zero if those of none do.
async fn fastest_stride(prober: &Prober) -> u64 {
    let blocks = prober.device().blocks;
    let fast = prober.findings(|findings| findings.fast);
    let (mut stride, mut from) = (STRIDES.0, 0);
    let mut fastest: Option<(u64, u64)> = None;
    for _ in 0..STRIDES.2 {
        let (mut least, mut sum) = (u64::MAX, 0);
        // The first one comes from afar.
        for read in 0..=READS {
            let lba = Lba((from + read * stride) % blocks);
            let timing = prober.read(Extent::block(lba)).await;
            let took = timing.ended.since(timing.submitted).as_nanos();
            if read > 0 {
                (least, sum) = (least.min(took), sum + took);
            }
        }
        if least > fast.as_nanos() && fastest.is_none_or(|best| sum < best.0) {
            fastest = Some((sum, stride));
        }
        // Other blocks for the next one.
        from += (READS + 2) * stride;
        stride += stride / STRIDES.1;
    }
    fastest.map_or(0, |best| best.1)
}

/// Whether a block is read from the medium again after so many reads elsewhere.
async fn is_evicted(prober: &Prober, lba: Lba, reads: u64) -> bool {
    let extent = Extent::block(lba);
    prober.read(extent).await;
    for _ in 0..reads {
        prober.evict().await;
    }
    let timing = prober.read(extent).await;
    let took = timing.ended.since(timing.submitted);
    prober.findings(|findings| took > findings.fast)
}
