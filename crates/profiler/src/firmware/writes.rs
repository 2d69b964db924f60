//! Early writes: their kinds, their number, and their destaging.

use block::{Action, Direction, Lba};
use drive::firmware::{BufferRules, WriteBack};

use super::Sums;
use super::hits::densest;
use super::site::{TestSite, median, moment, took};
use crate::confidence::Confidence;
use crate::findings::{Destage, FirmwareConfidence, Honesty, WriteBuffer};

/// Number of writes for a median.
const WRITES: usize = 15;

/// Maximum writes in a burst: more write segments cannot be distinguished.
const BURST: usize = 160;

/// Number of bursts: one to find the kind, the others to check it.
const BURSTS: u32 = 4;

/// Number of outstanding early writes when a read arrives. A choice: during the read, the arm could
/// destage one of them, but not three.
const FEW: u32 = 4;

/// Number of tests.
const ROUNDS: u32 = 3;

/// Number of writes for the time of one destaging.
const DESTAGED: usize = 6;

/// Maximum number of scattered early writes on a drive that only accepts sequential ones: one in
/// destaging, one into a clean buffer, and one by chance.
const APPENDED: usize = 3;

/// Maximum deviation of an early write from the usual time, in nanoseconds: as for reads, plus the
/// bus.
const CLOSE: f64 = 150e3;

/// The largest write for measuring bus time, in blocks.
const MOST: u64 = 2048;

/// The result of a burst of scattered writes.
#[derive(Clone, Copy, Debug)]
struct Burst {
    /// Number of early writes before the first one that was not.
    early: usize,
    /// Number of writes held at once, without the ones in destaging or destaged.
    held: usize,
    /// Whether the first late write ended when its block was under the head.
    through: Through,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Through {
    Medium,
    Buffer,
}

pub(super) async fn measure(
    site: &mut TestSite,
    found: &mut Sums,
    buffer: &mut BufferRules,
    parts: &mut FirmwareConfidence,
) -> WriteBuffer {
    let most = 0.6 * site.period();
    let after_read = settled(site, Direction::Read, 1).await;
    let durable = honesty(site, found, parts).await;
    let early = densest(after_read.clone(), most).filter(|&usual| is_constant(&after_read, usual));
    let Some(usual) = early else {
        buffer.write_back = WriteBack::None;
        let again = settled(site, Direction::Read, 1).await;
        let late = densest(again.clone(), most).filter(|&usual| is_constant(&again, usual));
        parts.write_back = Confidence::of(if late.is_none() { 8 } else { 0 }, 8);
        return WriteBuffer {
            durable,
            destage: Destage::None,
        };
    };
    found.hits.write_after_read = median(after_read);
    found.hits.write_after_write = median(settled(site, Direction::Write, 1).await);
    let blocks = (u64::from(buffer.segment_blocks) * 3 / 4).clamp(1, MOST);
    if blocks > 1 {
        let many = median(settled(site, Direction::Read, blocks).await);
        found.hits.write_per_block = many.map(|many| (many - usual) / (blocks - 1) as f64);
    }
    kind(site, found, usual, buffer, parts).await;
    WriteBuffer {
        durable,
        destage: destage(site).await,
    }
}

/// Whether nearly all times are close to the usual one.
fn is_constant(seen: &[f64], usual: f64) -> bool {
    let close = seen.iter().filter(|&seen| (seen - usual).abs() < CLOSE);
    close.count() * 4 >= seen.len() * 3
}

/// Write times on an idle drive, after a command to the medium.
async fn settled(site: &mut TestSite, before: Direction, blocks: u64) -> Vec<f64> {
    let mut seen = Vec::new();
    for _ in 0..WRITES {
        site.prober.ask(Action::Flush).await;
        let (first, second) = (site.fresh().first, site.fresh().first);
        site.skip(blocks);
        let far = Lba(first.0 + site.device().blocks / 8);
        site.ask(before, far, 1).await;
        seen.push(took(&site.write(second, blocks).await));
    }
    seen
}

/// Whether durable writes reach the medium: early ones take the same time for all blocks.
async fn honesty(site: &mut TestSite, found: &mut Sums, parts: &mut FirmwareConfidence) -> Honesty {
    let mut seen = Vec::new();
    for _ in 0..WRITES {
        site.prober.ask(Action::Flush).await;
        let (first, second) = (site.fresh().first, site.fresh().first);
        site.ask(Direction::Read, first, 1).await;
        let far = Lba(second.0 + site.device().blocks / 8);
        seen.push(took(&site.ask(Direction::Write, far, 1).await));
    }
    let usual = densest(seen.clone(), 0.6 * site.period());
    if usual.is_some_and(|usual| is_constant(&seen, usual)) {
        // What looked like their way to the medium was not.
        found.thresholds.write_ends = None;
        found.thresholds.writes = Confidence::NONE;
        parts.write_miss = Confidence::NONE;
        return Honesty::Lies;
    }
    match found.thresholds.write_ends {
        Some(_) => Honesty::Honest,
        None => Honesty::Unknown,
    }
}

/// All writes, or only sequential ones: bursts of scattered writes distinguish the two.
async fn kind(
    site: &mut TestSite,
    found: &Sums,
    usual: f64,
    buffer: &mut BufferRules,
    parts: &mut FirmwareConfidence,
) {
    let ends = found.thresholds.write_ends;
    let mut bursts = Vec::new();
    for _ in 0..BURSTS {
        bursts.push(burst(site, usual, ends).await);
    }
    let appends = |burst: &&Burst| burst.through == Through::Medium && burst.early <= APPENDED;
    let through = bursts.iter().filter(appends).count() as u32;
    let append = through * 2 > BURSTS;
    buffer.write_back = if append {
        WriteBack::Append
    } else {
        WriteBack::All
    };
    let mut held: Vec<usize> = bursts.iter().map(|burst| burst.held).collect();
    held.sort_unstable();
    // A stall ends one burst too early, a fast destaging another too late.
    let segments = held[(held.len() - 1) / 2];
    buffer.write_segments = if append { 1 } else { segments.max(1) as u32 };
    let agreed = if append { through } else { BURSTS - through };
    parts.write_back = Confidence::of(agreed - 1, BURSTS - 1);
}

/// Writes scattered blocks in sequence until one is not early, and some more.
async fn burst(site: &mut TestSite, usual: f64, ends: Option<f64>) -> Burst {
    site.prober.ask(Action::Flush).await;
    let begun = moment(site.prober.now());
    let mut early = 0;
    while early < BURST {
        let place = scattered(site, early);
        let late = site.write(place, 1).await;
        if took(&late) < usual + 2.0 * CLOSE {
            early += 1;
            continue;
        }
        // From now on each waits for another to be destaged.
        let mut last = late;
        for more in 0..DESTAGED {
            let place = scattered(site, early + 1 + more);
            last = site.write(place, 1).await;
        }
        let each = (moment(last.ended) - moment(late.ended)) / DESTAGED as f64;
        let destaged = (moment(late.submitted) - begun) / each.max(1.0);
        return Burst {
            early,
            held: early.saturating_sub(1 + destaged as usize),
            through: went_through(site, place, moment(late.ended), ends).await,
        };
    }
    Burst {
        early,
        held: early,
        through: Through::Buffer,
    }
}

/// A block far from the previous one, at a random angle, so that the end of another's destaging is
/// not its own.
fn scattered(site: &mut TestSite, number: usize) -> Lba {
    let track = site.fresh();
    let offset = site.draw() * (track.last.0 - track.first.0) as f64;
    let near = track.first.0 + offset as u64;
    match number % 2 {
        0 => Lba(near + site.device().blocks / 8),
        _ => Lba(near),
    }
}

/// Whether a write that ended at `at` did so when its block passed.
async fn went_through(site: &TestSite, place: Lba, at: f64, ends: Option<f64>) -> Through {
    match (site.prober.sight(place).await, ends) {
        (Ok(read), Some(ends)) => {
            let turns = (at - ends - moment(read.at)) / site.period();
            if (turns - turns.round()).abs() < 0.03 {
                Through::Medium
            } else {
                Through::Buffer
            }
        }
        _ => Through::Buffer,
    }
}

/// Whether a flush still has work when the drive has been idle.
async fn destage(site: &mut TestSite) -> Destage {
    let mut long = 0;
    for _ in 0..3 {
        let near = site.fresh().first;
        site.ask(Direction::Read, near, 1).await;
        site.write(Lba(near.0 + site.device().blocks / 8), 1).await;
        site.pause(8.0 * site.period()).await;
        let flush = site.prober.ask(Action::Flush).await;
        long += u32::from(took(&flush) > 0.6 * site.period());
    }
    if long >= 2 {
        Destage::Later
    } else {
        Destage::Idle
    }
}

/// Whether a read right after early writes waits until all of them are on the medium: then a flush
/// after it has no work.
pub(super) async fn go_first(site: &mut TestSite, buffer: &BufferRules) -> bool {
    if buffer.write_back != WriteBack::All || buffer.write_segments < FEW {
        return false;
    }
    let mut nothing = 0;
    for _ in 0..ROUNDS {
        site.prober.ask(Action::Flush).await;
        for number in 0..FEW as usize {
            let place = scattered(site, number);
            site.write(place, 1).await;
        }
        let near = site.fresh().first;
        site.ask(Direction::Read, near, 1).await;
        let flush = site.prober.ask(Action::Flush).await;
        nothing += u32::from(took(&flush) < 0.6 * site.period());
    }
    nothing * 2 > ROUNDS
}
