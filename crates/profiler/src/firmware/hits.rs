//! The speed of the buffer: overhead, and the bus by the cost of additional blocks.

use block::{Direction, Lba, Status};
use drive::firmware::BufferRules;

use super::site::{TestSite, median, took};
use crate::confidence::Confidence;
use crate::device::WritePermission;
use crate::findings::FirmwareConfidence;

/// Sums of one-block hits, and the bus, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Hits {
    pub(super) after_read: Option<f64>,
    pub(super) after_write: Option<f64>,
    pub(super) per_block: f64,
    pub(super) write_after_read: Option<f64>,
    pub(super) write_after_write: Option<f64>,
    pub(super) write_per_block: Option<f64>,
}

/// Number of answers for a median. A choice: its noise is a quarter of one answer's.
const ANSWERS: usize = 25;

/// Maximum blocks per request, if the buffer has them.
const MOST: u64 = 6144;

/// Blocks of the first request, and the maximum if the segment size is unknown, as by reads alone: all known
/// segments hold three times as many.
const FEW: u64 = 16;

/// The required precision of the bus, as a fraction of the cost of the blocks.
const SHARE: f64 = 0.02;

/// Maximum time of a one-block hit, as a fraction of a revolution: a choice, all known ones are
/// below a fifth.
const LONGEST: f64 = 0.6;

/// Maximum error of a correct prediction, in nanoseconds: three times the known noise of
/// electronics.
const CLOSE: f64 = 60e3;

/// Measures one-block hits, if there is a buffer.
pub(super) async fn measure(site: &mut TestSite) -> Hits {
    let mut found = Hits::default();
    let mut seen = Vec::new();
    for _ in 0..ANSWERS {
        let track = site.fresh();
        site.read(track.first, 1).await;
        seen.push(took(&site.read(track.first, 1).await));
    }
    // Without a buffer every read waits for its block to come round: never much less than a turn.
    found.after_read = median(seen).filter(|&usual| usual < LONGEST * site.period());
    site.hit = found.after_read;
    if site.hit.is_some() && site.device().writes == WritePermission::Allowed {
        found.after_write = after_write(site).await;
    }
    found
}

/// Hits after a write: of the written block, or of one that was read before.
async fn after_write(site: &mut TestSite) -> Option<f64> {
    let mut seen = Vec::new();
    for turn in 0..2 * ANSWERS {
        let (read, written) = (site.fresh().first, site.fresh().first);
        site.read(read, 1).await;
        site.ask(Direction::Write, written, 1).await;
        // At any angle, so that reads of the medium take all sorts of times.
        let wait = site.draw() * site.period();
        site.pause(wait).await;
        let wanted = if turn % 2 == 0 { read } else { written };
        let timing = site.read(wanted, 1).await;
        seen.push(took(&timing));
    }
    // Half of them may be misses, which take all sorts of times.
    densest(seen, LONGEST * site.period())
}

/// The median of the densest third of the values below `most`.
pub(super) fn densest(mut values: Vec<f64>, most: f64) -> Option<f64> {
    values.retain(|&value| value < most);
    values.sort_by(f64::total_cmp);
    let share = values.len() / 3;
    let width = |from: &usize| values[from + share] - values[*from];
    let from = (0..values.len() - share).min_by(|a, b| width(a).total_cmp(&width(b)))?;
    // All that is close to its middle.
    let middle = values[from + share / 2];
    let near = values
        .iter()
        .filter(|value| (*value - middle).abs() < 2.0 * CLOSE);
    median(near.copied().collect())
}

/// The cost of an additional block: hits of as many blocks as a segment holds, or of fewer if they
/// suffice.
pub(super) async fn measure_bus(
    site: &mut TestSite,
    found: &mut Hits,
    buffer: &BufferRules,
    parts: &mut FirmwareConfidence,
) {
    let Some(one) = found.after_read else {
        return;
    };
    let most = match buffer.segment_blocks {
        0 | 1 => FEW,
        blocks => (u64::from(blocks) * 3 / 4).clamp(1, MOST),
    };
    let mut blocks = most.min(FEW);
    loop {
        let Some(many) = answer(site, blocks).await else {
            return;
        };
        found.per_block = (many - one) / (blocks - 1).max(1) as f64;
        // The medians of 9 and 25 answers are off by about a third of the noise of one.
        let enough = many - one > CLOSE / 3.0 / SHARE;
        if enough || blocks == most {
            break;
        }
        blocks = (blocks * 4).min(most);
    }
    let (mut came_true, mut checks) = (0, 0);
    for check in 1..=8 {
        let wanted = (blocks * check / 8).max(1);
        let predicted = one + found.per_block * (wanted - 1) as f64;
        let Some(seen) = one_answer(site, wanted).await else {
            continue;
        };
        checks += 1;
        came_true += u32::from((seen - predicted).abs() < CLOSE + predicted * SHARE);
    }
    parts.hits = Confidence::of(came_true, checks);
}

async fn answer(site: &mut TestSite, blocks: u64) -> Option<f64> {
    let mut seen = Vec::new();
    for _ in 0..9 {
        seen.extend(one_answer(site, blocks).await);
    }
    median(seen)
}

/// A hit of blocks that were just read.
async fn one_answer(site: &mut TestSite, blocks: u64) -> Option<f64> {
    let from: Lba = site.fresh().first;
    site.skip(blocks);
    site.read(from, blocks).await;
    let timing = site.read(from, blocks).await;
    (timing.status == Status::Good).then(|| took(&timing))
}
