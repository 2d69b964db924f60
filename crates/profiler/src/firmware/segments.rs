//! How much the buffer keeps: the size of a segment, how many there are, what fills them.

use block::{Direction, Lba};
use drive::firmware::BufferRules;

use super::site::{TestSite, agreed, took};
use crate::confidence::Confidence;
use crate::device::{Offers, WritePermission};
use crate::findings::{CountBound, FirmwareConfidence};

/// The largest segment that is looked for, in blocks: twice that of the largest drives of 2020.
const LARGEST: u64 = 16_384;

/// How many segments are looked for at first, and at most: the second costs one to two seconds.
const FEW: usize = 24;
const MANY: usize = 160;

/// Finds them; without a switch of the look-ahead, the size is not found.
pub(super) async fn measure(
    site: &mut TestSite,
    buffer: &mut BufferRules,
    parts: &mut FirmwareConfidence,
) -> CountBound {
    if site.hit.is_none() {
        return CountBound::Exactly;
    }
    let (mut segments, mut bound) = surely(site, FEW).await;
    if bound == CountBound::AtLeast {
        (segments, bound) = surely(site, MANY).await;
    }
    buffer.segments = segments as u32;
    let (mut came_true, mut checks) = (0, 0);
    let more: &[usize] = match bound {
        CountBound::Exactly => &[1, 2, 3],
        CountBound::AtLeast => &[0],
    };
    for &more in more {
        let (again, _) = count(site, segments + more).await;
        came_true += u32::from(again == segments.min(segments + more));
        checks += 1;
    }
    if site.device().offers == Offers::CacheControl {
        let blocks = size(site).await;
        buffer.segment_blocks = blocks as u32;
        for _ in 0..3 {
            came_true += u32::from(keeps(site, blocks).await && !keeps(site, blocks + 1).await);
            checks += 1;
        }
        buffer.read_on_arrival = keeps_what_passes(site).await;
    }
    if site.device().writes == WritePermission::Allowed {
        buffer.read_written = keeps_written(site).await;
    }
    parts.segments = Confidence::of(came_true, checks);
    bound
}

/// Two counts that agree, of at most four; else the last one.
async fn surely(site: &mut TestSite, most: usize) -> (usize, CountBound) {
    let mut last = count(site, most).await;
    for _ in 0..3 {
        let again = count(site, most).await;
        if again == last {
            break;
        }
        last = again;
    }
    last
}

/// Reads `most` blocks of different tracks, and then those again, the last one first: as many are
/// hits as there are segments, because a hit drives nothing out.
async fn count(site: &mut TestSite, most: usize) -> (usize, CountBound) {
    let mut blocks = Vec::new();
    for _ in 0..most {
        let track = site.fresh();
        site.read(track.first, 1).await;
        blocks.push(track.first);
    }
    let mut segments = 0;
    for lba in blocks.iter().rev() {
        if !site.hits(*lba).await {
            return (segments, CountBound::Exactly);
        }
        segments += 1;
    }
    (segments, CountBound::AtLeast)
}

/// The blocks of a segment, between doubled steps by halving.
async fn size(site: &mut TestSite) -> u64 {
    let mut low = 1;
    while low < LARGEST && agreed!(keeps(site, low * 2).await) {
        low *= 2;
    }
    if low >= LARGEST {
        return low;
    }
    let mut high = low * 2;
    while high - low > 1 {
        let middle = (low + high) / 2;
        if agreed!(keeps(site, middle).await) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Whether the `blocks`th last block of a long read is kept.
async fn keeps(site: &mut TestSite, blocks: u64) -> bool {
    let first = site.fresh().first;
    let long = blocks * 5 / 4 + 8;
    site.skip(long);
    site.read(first, long).await;
    site.hits(Lba(first.0 + long - blocks)).await
}

/// Whether blocks that passed while the head waited for others are kept: of six reads that waited
/// for any time, most have seen the block before theirs.
async fn keeps_what_passes(site: &mut TestSite) -> bool {
    let mut kept = 0;
    for _ in 0..6 {
        let track = site.fresh();
        let wanted = Lba(track.first.0 + u64::from(track.sectors) / 2);
        site.read(wanted, 1).await;
        kept += u32::from(site.hits(Lba(wanted.0 - 1)).await);
    }
    kept >= 4
}

/// Whether what was written can be read without the medium: before it comes round again.
async fn keeps_written(site: &mut TestSite) -> bool {
    let mut kept = 0;
    for _ in 0..5 {
        let lba = site.fresh().first;
        site.ask(Direction::Write, lba, 1).await;
        let read = site.read(lba, 1).await;
        kept += u32::from(took(&read) < 0.6 * site.period());
    }
    kept >= 3
}
