//! The capacity of the buffer: segment size, number of segments, and their contents.

use block::{Direction, Lba};
use drive::firmware::BufferRules;

use super::site::{TestSite, agreed, took};
use crate::confidence::Confidence;
use crate::device::{Offers, WritePermission};
use crate::findings::{CountBound, FirmwareConfidence};

/// The largest segment that can be found, in blocks: twice that of the largest drives of 2020.
const LARGEST: u64 = 16_384;

/// Initial and final maximum number of segments to look for; the second costs one to two seconds.
const FEW: usize = 24;
const MANY: usize = 160;

/// Measures the segments; without a look-ahead switch, the size stays unknown.
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
    } else {
        // The block that was read is kept; look-ahead hides how many more.
        buffer.segment_blocks = 1;
    }
    if site.device().writes == WritePermission::Allowed {
        buffer.read_written = keeps_written(site).await;
    }
    parts.segments = Confidence::of(came_true, checks);
    bound
}

/// Two counts that agree, of at most four; otherwise the last one.
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

/// Reads `most` blocks of different tracks, then the same in reverse order. The number of hits is
/// the number of segments, because a hit evicts nothing.
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

/// The blocks per segment: doubled steps, then halving.
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

/// Whether the `blocks`th last block of a long read is in the buffer.
async fn keeps(site: &mut TestSite, blocks: u64) -> bool {
    let first = site.fresh().first;
    let long = blocks * 5 / 4 + 8;
    site.skip(long);
    site.read(first, long).await;
    site.hits(Lba(first.0 + long - blocks)).await
}

/// Whether the buffer keeps blocks that pass while the head waits for others. Of six reads with
/// random waits, most have passed the block before theirs.
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

/// Whether written blocks can be read without the medium, before they pass again.
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
