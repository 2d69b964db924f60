//! Overheads of accesses to the medium: the latest submission of a command that still catches a
//! passing block.
//!
//! ```text
//!   read a ends                      given           b begins (as its read would show it)
//!      |------------- pause -----------|<-- margin -->|
//!      '----------- known angles, nearly a revolution-'
//! ```
//!
//! After a later submission, b is read a revolution later. The smallest margin that catches b is
//! the overhead plus the lag. All visible sums follow from the margins of reads and writes, after
//! reads and after writes, and for several blocks.

use block::{Direction, Status};
use drive::geometry::Track;

use super::site::{DiskArea, TestSite, agreed, median, moment};
use crate::confidence::Confidence;
use crate::device::WritePermission;
use crate::prober::Prober;

/// Sums, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Thresholds {
    pub(super) read_after_read: Option<f64>,
    pub(super) read_after_write: Option<f64>,
    pub(super) write_after_read: Option<f64>,
    pub(super) write_after_write: Option<f64>,
    /// The end of a block's write relative to the end of its read on the same pass.
    pub(super) write_ends: Option<f64>,
    /// The additional margin of a write of [`LONG`] blocks, on long and on short sectors, with
    /// those sectors.
    held: Vec<(f64, f64)>,
    /// The end of a read of several blocks relative to a read of the last one: blocks, time,
    /// sector.
    behind: Option<(f64, f64, f64)>,
    pub(super) reads: Confidence,
    pub(super) writes: Confidence,
}

/// A kind of access.
#[derive(Clone, Copy, Debug)]
struct Catch {
    before: Direction,
    wanted: Direction,
    blocks: u64,
    /// The end of a block's write relative to a read.
    ends: f64,
}

/// Correct predictions, and all checks.
#[derive(Clone, Copy, Debug, Default)]
struct Checks {
    came_true: u32,
    checks: u32,
}

impl Checks {
    fn confidence(self) -> Confidence {
        Confidence::of(self.came_true, self.checks)
    }
}

/// The result of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CatchResult {
    Caught,
    Missed,
    /// A disturbance.
    Odd,
}

/// Blocks of the long commands. A choice: few enough for any track, enough to show a slow bus.
const LONG: u64 = 16;

/// Step size around the threshold in nanoseconds, and number of steps: about the noise of
/// electronics, so that their mean is within a third of it.
const STEP: f64 = 16e3;
const STEPS: usize = 24;

/// Maximum number of steps, if halving failed: a tenth of a revolution of the fastest spindles.
const LONGEST_WALK: usize = 48;

/// Distance of checks from the threshold, in nanoseconds.
const CHECK: f64 = 70e3;

/// Minimum significant difference of times: twice the noise of a median of five.
const NOTABLE: f64 = 30e3;

impl Thresholds {
    /// The threshold of reads that the measurement of the arm has found.
    pub(super) fn of_arm(prober: &Prober) -> Option<Self> {
        prober.findings(|findings| {
            let arm = findings.arm.as_ref()?;
            Some(Thresholds {
                read_after_read: Some(arm.overhead.as_nanos() as f64),
                reads: arm.confidence,
                ..Thresholds::default()
            })
        })
    }
}

pub(super) async fn measure(site: &mut TestSite) -> Thresholds {
    let mut found = Thresholds::default();
    let mut way = Catch {
        before: Direction::Read,
        wanted: Direction::Read,
        blocks: 1,
        ends: 0.0,
    };
    found.read_after_read = threshold(site, &way).await;
    let reads = check(site, &way, found.read_after_read, Checks::default()).await;
    found.reads = reads.confidence();
    if let Some(margin) = found.read_after_read {
        found.behind = behind(site, &way, margin).await;
    }
    if site.device().writes == WritePermission::Forbidden {
        return found;
    }
    way.before = Direction::Write;
    found.read_after_write = threshold(site, &way).await;
    found.reads = check(site, &way, found.read_after_write, reads)
        .await
        .confidence();
    found.write_ends = write_ends(site).await;
    let Some(ends) = found.write_ends else {
        return found;
    };
    way.wanted = Direction::Write;
    way.ends = ends;
    found.write_after_write = threshold(site, &way).await;
    let writes = check(site, &way, found.write_after_write, Checks::default()).await;
    way.before = Direction::Read;
    found.write_after_read = threshold(site, &way).await;
    found.writes = check(site, &way, found.write_after_read, writes)
        .await
        .confidence();
    if let Some(one) = found.write_after_read {
        found.held = held(site, &way, one).await;
    }
    found
}

/// The additional margin of a write with more blocks; if it is significant, on longer sectors as
/// well.
async fn held(site: &mut TestSite, way: &Catch, one: f64) -> Vec<(f64, f64)> {
    let long = Catch {
        blocks: LONG,
        ..*way
    };
    let mut held = Vec::new();
    for part in [DiskArea::Outer, DiskArea::Inner] {
        let back = site.go_to(part);
        let track = site.fresh();
        if let Some(longer) = threshold(site, &long).await {
            held.push((longer - one, site.sector(&track)));
        }
        site.come_back(back);
        if held.first().is_none_or(|first| first.0 < 2.0 * NOTABLE) {
            break;
        }
    }
    held
}

/// The smallest margin at which half of the tries catch.
async fn threshold(site: &mut TestSite, way: &Catch) -> Option<f64> {
    let (mut low, mut high) = (0.0, 0.6 * site.period());
    if tried(site, way, high).await != CatchResult::Caught {
        return None;
    }
    while high - low > 4.0 * STEP {
        let middle = (low + high) / 2.0;
        if agreed!(tried(site, way, middle).await == CatchResult::Caught) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(around(site, way, (low + high) / 2.0).await)
}

/// The mean margin of a random walk, down after a catch and up after a miss, from its first turn
/// on.
async fn around(site: &mut TestSite, way: &Catch, start: f64) -> f64 {
    let mut margin = start;
    let mut seen = Vec::new();
    let mut before = None;
    for _ in 0..LONGEST_WALK {
        let caught = tried(site, way, margin).await == CatchResult::Caught;
        let turned = before.is_some_and(|before| before != caught);
        before = Some(caught);
        if turned || !seen.is_empty() {
            seen.push(margin);
        }
        if seen.len() == STEPS {
            break;
        }
        margin = if caught {
            (margin - STEP).max(0.0)
        } else {
            margin + STEP
        };
    }
    match seen.len() {
        0 => margin,
        steps => seen.iter().sum::<f64>() / steps as f64,
    }
}

/// Fresh tries on either side of a threshold.
async fn check(site: &mut TestSite, way: &Catch, threshold: Option<f64>, sofar: Checks) -> Checks {
    let Checks {
        mut came_true,
        mut checks,
    } = sofar;
    let Some(threshold) = threshold else {
        return sofar;
    };
    for _ in 0..5 {
        let later = tried(site, way, threshold + CHECK).await;
        came_true += u32::from(later == CatchResult::Caught);
        checks += 1;
        if threshold > CHECK {
            let earlier = tried(site, way, threshold - CHECK).await;
            came_true += u32::from(earlier == CatchResult::Missed);
            checks += 1;
        }
    }
    Checks { came_true, checks }
}

/// One try with a margin; another one after a disturbance.
async fn tried(site: &mut TestSite, way: &Catch, margin: f64) -> CatchResult {
    for _ in 0..4 {
        let Some(late) = late(site, way, margin).await else {
            continue;
        };
        let turns = late / site.period();
        if turns.abs() < 0.03 {
            return CatchResult::Caught;
        }
        if (turns - 1.0).abs() < 0.03 {
            return CatchResult::Missed;
        }
    }
    CatchResult::Odd
}

/// The time from a block-by-block read of the same pass to the end of the command.
async fn late(site: &mut TestSite, way: &Catch, margin: f64) -> Option<f64> {
    let track = site.fresh();
    let reference = track.first.0 + way.blocks + 2;
    let a = block::Lba(reference);
    let first = site.prober.sight(a).await.ok()?;
    if way.before == Direction::Write {
        site.ask(Direction::Write, a, 1).await;
    }
    let begins = passes(site, &track, reference, moment(first.at), margin);
    site.pause(begins - margin - moment(site.prober.now()))
        .await;
    let timing = site.ask(way.wanted, track.first, way.blocks).await;
    let sweep = site.sector(&track) * way.blocks as f64;
    let fits = timing.status == Status::Good;
    // What was given later than wanted is another margin.
    let given = begins - margin - moment(timing.submitted);
    (fits && given.abs() < STEP).then(|| moment(timing.ended) - begins - sweep - way.ends)
}

/// The next time, at least the margin from now, at which the track's first block begins as reads
/// show it, if a read of block `seen` ended at `at`.
fn passes(site: &TestSite, track: &Track, seen: u64, at: f64, margin: f64) -> f64 {
    let passed = track.width.times(seen + 1 - track.first.0);
    let begins = at + site.period() - passed.revolutions() * site.period();
    let now = moment(site.prober.now());
    let turns = ((now + margin - begins) / site.period()).ceil().max(0.0);
    begins + turns * site.period()
}

/// The delay of a read of several blocks behind the medium.
async fn behind(site: &mut TestSite, way: &Catch, margin: f64) -> Option<(f64, f64, f64)> {
    let track = site.fresh();
    let blocks = u64::from(track.sectors / 3).min(2 * LONG);
    let long = Catch { blocks, ..*way };
    let mut seen = Vec::new();
    for _ in 0..7 {
        seen.extend(late(site, &long, margin + 4.0 * CHECK).await);
    }
    let sector = site.sector(&track);
    Some((blocks as f64, median(seen)?, sector))
}

/// The end of a block's write relative to its read on the same pass.
async fn write_ends(site: &mut TestSite) -> Option<f64> {
    let mut seen = Vec::new();
    for _ in 0..7 {
        let track = site.fresh();
        let Ok(read) = site.prober.sight(track.first).await else {
            continue;
        };
        let write = site.ask(Direction::Write, track.first, 1).await;
        let since = moment(write.ended) - moment(read.at);
        let turns = (since / site.period()).round();
        seen.push(since - turns * site.period());
    }
    let middle = median(seen.clone())?;
    let close = seen.iter().filter(|&seen| (seen - middle).abs() < NOTABLE);
    // A drive that lies ends its writes at any angle.
    (close.count() >= 5).then_some(middle)
}

impl Thresholds {
    /// The bus time of a written block, and the watermark.
    ///
    /// More blocks increase a write's margin if the bus is slower than the medium: by the
    /// difference, which is smaller on longer sectors. They also do if the medium waits for a
    /// fraction of them: by the same amount everywhere. Fraction and bus show only as a product;
    /// the bus is then set to that of reads, as it is if nothing shows.
    pub(super) fn write_bus(&self, read: f64) -> (f64, u16) {
        let blocks = LONG as f64;
        let slower = |&(cost, sector): &(f64, f64)| sector + cost / (blocks - 1.0);
        let share = |cost: f64| {
            let share = (cost + read) / (blocks * read.max(1.0));
            (read, (share.clamp(0.0, 1.0) * 1000.0).round() as u16)
        };
        match self.held[..] {
            [(cost, _), ..] if cost < 2.0 * NOTABLE => (read, 0),
            [usual, inner] if (inner.1 / usual.1 - 1.0).abs() > 0.05 => {
                let less = (blocks - 1.0) * (inner.1 - usual.1);
                // Both may be there: then it falls, but not all the way.
                let falls = usual.0 - inner.0 > (usual.0.min(less) / 4.0).max(NOTABLE);
                if falls {
                    (slower(&usual), 0)
                } else {
                    share(usual.0)
                }
            }
            // Sectors are alike everywhere: what is closer to the bus of reads.
            [usual, ..] if (slower(&usual) / read.max(1.0) - 1.0).abs() < 0.2 => {
                (slower(&usual), 0)
            }
            [usual, ..] => share(usual.0),
            [] => (read, 0),
        }
    }

    /// Reselection and watermark of reads, as far as a read of several blocks shows them.
    ///
    /// If it ends earlier relative to its last block than a read of that block alone, then the
    /// single block waits for the reselection. If it ends later than the bus explains, then the bus
    /// started late. Otherwise the bus was faster, and a lower watermark does not show: none.
    pub(super) fn overlap(&self, per_block: f64, period: f64) -> (f64, u16) {
        let Some((blocks, behind, sector)) = self.behind else {
            return (0.0, 0);
        };
        if behind < -NOTABLE && -behind < period / 8.0 {
            return (-behind, 0);
        }
        let held = behind - (blocks - 1.0) * (per_block - sector).max(0.0);
        if held < 2.0 * NOTABLE {
            return (0.0, 0);
        }
        let share = 1.0 - ((blocks - 1.0) * per_block - behind) / (blocks * sector);
        (0.0, (share.clamp(0.0, 1.0) * 1000.0).round() as u16)
    }
}
