//! The chunk sizes at which sequential reads keep the full rate: points a and b of Figure 3 of
//! Virtual IO (Dimitrijevic et al. 2002; also 3.1 of the paper of FAST 2003).
//!
//! ```text
//!   rate |      ______________
//!        |    /                \___      below a the commands cost too much,
//!        |  /                            beyond b the buffer does
//!        +----a--------------b---- chunk
//! ```
//!
//! Sequential reads, each submitted at the end of the previous one, with look-ahead. The rate is
//! measured from the end of the first two commands to the end of the last one: over at least twelve
//! tracks or two hundred commands, and six commands. A slow size is abandoned after forty
//! revolutions. Sizes extend to four tracks.
//!
//! Real curves jump, since the number of chunks per track decides whether a revolution is lost at
//! its end. The full rate is therefore the upper quartile of the rates of sizes of half a track and
//! more; 95 % of it is full. Point a is the smallest full size from which, for a third more, three
//! of four sizes are full. Point b is the last full size before three of four are not.

use block::Lba;
use drive::geometry::Track;

use super::site::{TestSite, moment};
use crate::confidence::Confidence;
use crate::findings::{ChunkRate, ChunkSizes, FirmwareConfidence};

/// The fraction of the full rate that counts as full.
pub const FULL: f64 = 0.95;

/// The ratio of the last and the first size of a range, a fraction of which decides.
pub const STRETCH: f64 = 4.0 / 3.0;
/// See [`STRETCH`].
pub const MOSTLY: f64 = 0.75;

/// Number of tracks for a rate, and minimum and maximum number of commands.
const TRACKS: u64 = 12;
const COMMANDS: (u64, u64) = (6, 200);

/// A size is slow if this many revolutions do not suffice, after [`ENOUGH`] commands; its
/// measurement ends. Twelve tracks at the full rate take about fourteen revolutions.
pub const SLOW: f64 = 40.0;
/// See [`SLOW`].
pub const ENOUGH: u64 = 24;

/// Number of commands before the measurement.
const LEAD: u64 = 2;

/// Sizes grow by one part in this many.
const STEPS: u64 = 10;

/// The largest size, in tracks.
const LARGEST: u64 = 4;

/// The resolution of the points: a third of the promised 10 %.
const EXACT: f64 = 0.03;

/// Number of commands for a rate.
pub fn commands(blocks: u64, track: u64) -> u64 {
    (track * TRACKS / blocks).clamp(COMMANDS.0, COMMANDS.1)
}

pub(super) async fn measure(
    site: &mut TestSite,
    parts: &mut FirmwareConfidence,
) -> Option<ChunkSizes> {
    let mut strip = Strip::new(site);
    let track = strip.like;
    let mut curve = Vec::new();
    let mut size = 1;
    while size <= LARGEST * u64::from(track.sectors) {
        let Some(point) = rate(site, &mut strip, size).await else {
            // A drive with no room for more.
            break;
        };
        curve.push(point);
        size += (size / STEPS).max(1);
    }
    let enough = FULL * full_rate(&curve, track.sectors)?;
    let is_full = |point: &ChunkRate| point.rate >= enough;
    let first = (0..curve.len()).find(|&index| stretch(&curve[index..], is_full))?;
    let lost = (first + 1..curve.len()).find(|&index| {
        let rest = &curve[index..];
        stretch(rest, |point| !is_full(point))
    });
    let below = first.checked_sub(1).map_or(0, |index| curve[index].blocks);
    let least = edge(site, &mut strip, (below, curve[first].blocks), enough).await;
    let most = match lost {
        None => None,
        Some(lost) => {
            let inside = curve[..lost].iter().rposition(is_full)?;
            let ends = (curve[inside + 1].blocks, curve[inside].blocks);
            Some(edge(site, &mut strip, ends, enough).await)
        }
    };
    parts.chunk = check(site, &mut strip, least, enough).await;
    Some(ChunkSizes {
        at: track.first,
        least,
        most,
        curve,
    })
}

/// The upper quartile of the rates of sizes from half a track on.
fn full_rate(curve: &[ChunkRate], track: u32) -> Option<f64> {
    let large = curve.iter().filter(|point| point.blocks * 2 >= track);
    let mut rates: Vec<f64> = large.map(|point| point.rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() * 3 / 4).copied()
}

/// Whether the first size and most of the range from it on satisfy `is_so`.
fn stretch(rest: &[ChunkRate], is_so: impl Fn(&ChunkRate) -> bool) -> bool {
    let Some(first) = rest.first().filter(|first| is_so(first)) else {
        return false;
    };
    let last = f64::from(first.blocks) * STRETCH;
    let within = rest
        .iter()
        .take_while(|point| f64::from(point.blocks) <= last);
    let (so, all) = within.fold((0, 0), |(so, all), point| {
        (so + usize::from(is_so(point)), all + 1)
    });
    so as f64 >= MOSTLY * all as f64
}

/// The tracks for measuring rates: consecutive tracks of a zone.
#[derive(Clone, Copy, Debug)]
struct Strip {
    like: Track,
    next: u64,
}

/// The last full size between a full one and a slow one.
async fn edge(site: &TestSite, strip: &mut Strip, (slow, full): (u32, u32), enough: f64) -> u32 {
    let (mut slow, mut full) = (slow, full);
    while slow.abs_diff(full) > 1 && f64::from(slow.abs_diff(full)) > EXACT * f64::from(full) {
        let middle = slow.midpoint(full);
        let seen = rate(site, strip, middle.into()).await;
        if seen.is_some_and(|seen| seen.rate >= enough) {
            full = middle;
        } else {
            slow = middle;
        }
    }
    full
}

/// Verifies the point a tenth above and a tenth below it.
async fn check(site: &TestSite, strip: &mut Strip, least: u32, enough: f64) -> Confidence {
    let (mut came_true, mut checks) = (0, 0);
    let tenth = least.div_ceil(10);
    for _ in 0..2 {
        let above = rate(site, strip, (least + tenth).into()).await;
        came_true += u32::from(above.is_some_and(|above| above.rate >= enough));
        checks += 1;
        if least > tenth {
            let below = rate(site, strip, (least - tenth).into()).await;
            came_true += u32::from(below.is_some_and(|below| below.rate < enough));
            checks += 1;
        }
    }
    Confidence::of(came_true, checks)
}

/// The rate of one size, if the drive has room for its commands.
async fn rate(site: &TestSite, strip: &mut Strip, blocks: u64) -> Option<ChunkRate> {
    let commands = commands(blocks, strip.like.sectors.into());
    let all = blocks * (LEAD + commands);
    if strip.like.first.0 + all > site.device().blocks {
        return None;
    }
    let mut next = strip.take(site, all).0;
    let (mut from, mut took, mut timed) = (0.0, 0.0, 0);
    for command in 0..LEAD + commands {
        let end = moment(site.read(Lba(next), blocks).await.ended);
        next += blocks;
        if command < LEAD {
            from = end;
            continue;
        }
        timed += 1;
        took = end - from;
        if timed >= ENOUGH && took > SLOW * site.period() {
            break;
        }
    }
    Some(ChunkRate {
        blocks: blocks as u32,
        rate: (blocks * timed) as f64 / took.max(1.0) * 1e9,
    })
}

impl Strip {
    /// Tracks from the first one on that begins a cylinder.
    fn new(site: &mut TestSite) -> Self {
        let mut like = site.fresh();
        for _ in 0..site.geometry.surfaces() * 2 {
            if begins_cylinder(site, &like) {
                break;
            }
            like = site.after(&like).unwrap_or(like);
        }
        Strip {
            like,
            next: like.first.0,
        }
    }

    /// The next unread blocks from the beginning of a cylinder. At the end of the zone it restarts;
    /// the buffer then holds other blocks.
    fn take(&mut self, site: &TestSite, blocks: u64) -> Lba {
        for _ in 0..2 * site.geometry.surfaces() {
            let Some(track) = site.geometry.track_of(Lba(self.next)) else {
                break;
            };
            let last = site.geometry.track_of(Lba(track.first.0 + blocks));
            if last.is_none_or(|last| last.sectors != self.like.sectors) {
                break;
            }
            if track.first.0 >= self.next && begins_cylinder(site, &track) {
                self.next = track.first.0 + blocks;
                return track.first;
            }
            self.next = track.last.0 + 1;
        }
        self.next = self.like.first.0 + blocks;
        self.like.first
    }
}

/// Whether the previous track is on another cylinder.
fn begins_cylinder(site: &TestSite, track: &Track) -> bool {
    let before = track.first.0.checked_sub(1);
    let before = before.and_then(|lba| site.geometry.track_of(Lba(lba)));
    before.is_none_or(|before| before.cylinder != track.cylinder)
}
