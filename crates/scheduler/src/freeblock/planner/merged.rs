//! The wanted blocks just before a request, which are read in one command with it.

use block::{Direction, Duration, Instant, Lba};
use drive::{Position, Profile, SeekTarget};

use super::turning::Turning;
use super::visit::{blocks_of, only_run};
use crate::freeblock::wanted::WantedBlocks;
use crate::freeblock::{Kind, SlowBus, Stop};

/// The positioning for a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Approach {
    /// The track before.
    pub from: Position,
    /// The start of the positioning.
    pub departs: Instant,
    /// The margin between the arrival and the first sector.
    pub guard: Duration,
    /// The position of the request's first block.
    pub target: SeekTarget,
    /// The request's first block.
    pub first: Lba,
    /// The moment of its first sector.
    pub begins: Instant,
    /// The bus before the request, if it is slower than the medium.
    pub bus: Option<SlowBus>,
}

/// The read with the most wanted blocks before the request's first.
///
/// ```text
///   on track   guard                              begins
///      |---------'.....[ free ][    ][ free ][ ]----[ B ]
///                      ^ the first wanted slice that comes after the guard
/// ```
pub(super) fn merged(
    (profile, wanted): (&Profile, &WantedBlocks),
    approach: &Approach,
) -> Option<Stop> {
    let to = approach.target.position;
    let arrives = approach.departs + profile.reposition(approach.from, to, Direction::Read);
    let turning = Turning::new(&profile.spindle, arrives + approach.guard, approach.begins)?;
    let track = profile.geometry.track_at(to.cylinder, to.head)?;
    if approach.first <= track.first || approach.first > track.last {
        return None;
    }
    let slices = wanted.slices(&track)?;
    let way = turning.last_pass(approach.target.angle)?;
    let before = (approach.first.0 - track.first.0) as u32;
    let width = u128::from(track.width.raw()).max(1);
    let (mut first, sector) = reachable(profile, &track, before, way / width)?;
    if let Some(bus) = &approach.bus {
        let most = carried(profile, &track, approach.begins, bus);
        first = first.max(before.saturating_sub(most));
    }
    loop {
        let inside = slices.inside(first..before);
        let slice = slices.first(inside.clone())?;
        let start = slices.blocks_of(slice..slice + 1).start;
        // Up to the request itself, without a gap but for slipped sectors.
        let run = only_run(profile, blocks_of(&track, start..before + 1));
        if run.is_none_or(|run| run.cylinder != to.cylinder || run.head != to.head) {
            first = start + 1;
            continue;
        }
        let begins = profile
            .geometry
            .locate(Lba(track.first.0 + u64::from(start)))?;
        let back = width * u128::from(sector.checked_sub(begins.sector)?);
        let comes = turning.at(way.checked_sub(back)?);
        let blocks = u64::from(before - start);
        let ends = turning.at(way);
        let delays = |bus: SlowBus| !bus.after((comes, ends), blocks).late().is_zero();
        if approach.bus.is_some_and(delays) {
            first = start + 1;
            continue;
        }
        let stop = Stop {
            kind: Kind::Merged,
            extent: blocks_of(&track, start..before),
            wanted: slices.wanted(slice..inside.end),
            slack: comes.since(arrives),
            begins: comes,
            ends,
        };
        return Some(stop);
    }
}

/// The largest number of blocks before a request that a slow bus transfers without delay. Each
/// block arrives a sector earlier than the next, and occupies the bus for longer.
fn carried(
    profile: &Profile,
    track: &drive::geometry::Track,
    begins: Instant,
    bus: &SlowBus,
) -> u32 {
    let sector = profile.spindle.time_of(track.width);
    let each = bus.block.saturating_sub(sector).as_nanos().max(1);
    let most = bus.needed.since(begins).as_nanos() / each;
    u32::try_from(most).unwrap_or(u32::MAX)
}

/// The first block of the track whose sector is at most `sectors` before that of block `before`;
/// and that sector.
fn reachable(
    profile: &Profile,
    track: &drive::geometry::Track,
    before: u32,
    sectors: u128,
) -> Option<(u32, u32)> {
    let place = |block: u32| {
        profile
            .geometry
            .locate(Lba(track.first.0 + u64::from(block)))
    };
    let sector = place(before)?.sector;
    let lowest = u128::from(sector).saturating_sub(sectors) as u32;
    let (mut low, mut high) = (before - before.min(sector - lowest), before);
    // Slipped sectors lie between, so that fewer blocks than sectors qualify.
    while low < high {
        let middle = low + (high - low) / 2;
        if place(middle)?.sector < lowest {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Some((low, sector))
}
