//! Whether reading and writing start anywhere on a track.
//!
//! A head that arrives inside of the requested blocks either waits for their beginning, so the
//! command ends at a fixed angle; or it starts with the first passing block, and the end depends on
//! the arrival.
//!
//! A bus that is not faster than the medium hides this for reads: it starts with the first block.

use block::{Direction, Status};
use drive::firmware::BufferRules;

use super::site::{TestSite, moment};
use crate::confidence::Confidence;
use crate::device::WritePermission;
use crate::findings::FirmwareConfidence;

/// Number of tries to find it, and to check it.
const TRIES: u32 = 8;

/// Minimum distance of different angles, in revolutions: the required accuracy of a geometry.
const APART: f64 = 0.012;

/// A bus that takes more than this fraction of the medium's time hides the start of a read.
const HIDDEN: f64 = 0.9;

pub(super) async fn measure(
    site: &mut TestSite,
    per_block: f64,
    buffer: &mut BufferRules,
    parts: &mut FirmwareConfidence,
) {
    let track = site.fresh();
    if per_block < HIDDEN * site.sector(&track) {
        let (found, confidence) = both(site, Direction::Read).await;
        buffer.zero_latency_read = found;
        parts.zero_latency_read = Some(confidence);
    }
    if site.device().writes == WritePermission::Allowed {
        let (found, confidence) = both(site, Direction::Write).await;
        buffer.zero_latency_write = found;
        parts.zero_latency_write = confidence;
    }
}

/// Whether commands start anywhere, and the result of checks.
async fn both(site: &mut TestSite, direction: Direction) -> (bool, Confidence) {
    let (anywhere, tries) = elsewhere(site, direction).await;
    let found = tries > 0 && anywhere * 8 >= tries * 3;
    let (again, checks) = elsewhere(site, direction).await;
    // All arrive inside, at different sectors: three eighths of them tell, more than mishaps
    // spoil.
    let agrees = (again * 8 >= checks * 3) == found;
    let sure = if found { again * 2 } else { checks - again };
    let came_true = if agrees { sure.min(checks) } else { 0 };
    (found, Confidence::of(came_true, checks))
}

/// Number of reads of nearly a track that ended at another angle than most, and number of all.
async fn elsewhere(site: &mut TestSite, direction: Direction) -> (u32, u32) {
    let mut ends = Vec::new();
    for _ in 0..TRIES {
        let wait = site.draw() * site.period();
        let Some(lap) = lap(site, direction, wait).await else {
            continue;
        };
        ends.push(lap);
    }
    // Ends of non-zero-latency reads agree with all others.
    let apart = |a: f64, b: f64| {
        let turns = a - b;
        (turns - turns.round()).abs() > APART
    };
    let differing = |end: &f64| ends.iter().filter(|other| apart(*end, **other)).count();
    let fewest = ends.iter().map(differing).min().unwrap_or(0);
    (fewest as u32, ends.len() as u32)
}

/// The delay of a command behind the last of its blocks, in revolutions, for an arbitrary time of
/// submission.
async fn lap(site: &mut TestSite, direction: Direction, wait: f64) -> Option<f64> {
    let track = site.fresh();
    let blocks = track.last.0 - track.first.0;
    // The block that is not among them.
    let known = site.prober.sight(track.last).await.ok()?;
    site.pause(wait).await;
    let timing = site.ask(direction, track.first, blocks).await;
    if timing.status != Status::Good {
        return None;
    }
    // The track's last block, which is known, is one sector after the last of the command's.
    let since = (moment(timing.ended) - moment(known.at)) / site.period();
    Some(since + 1.0 / f64::from(track.sectors))
}
