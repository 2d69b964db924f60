//! The wanted blocks just before a request, which are read in one command with it.

use std::ops::Range;

use block::{Direction, Duration, Instant, Lba};
use drive::geometry::{Track, TrackExtent};
use drive::{Position, Profile, SeekTarget};

use super::outline::Outlines;
use super::turning::Turning;
use super::visit::{Visited, WholeTrack, blocks_of, only_run};
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

/// The blocks of the request's track.
struct OnTrack<'a> {
    profile: &'a Profile,
    track: Track,
    /// The sector of the first block, if the others are on the following ones.
    straight: Option<u32>,
    /// Whether no block was remapped.
    is_whole: bool,
}

/// The read with the most wanted blocks before the request's first, and its track.
///
/// ```text
///   on track   guard                              begins
///      |---------'.....[ free ][    ][ free ][ ]----[ B ]
///                      ^ the first wanted slice that comes after the guard
/// ```
pub(super) fn merged(
    (profile, outlines, wanted): (&Profile, &Outlines, &WantedBlocks),
    approach: &Approach,
) -> Option<(Stop, Visited)> {
    let to = approach.target.position;
    let arrives = approach.departs + profile.reposition(approach.from, to, Direction::Read);
    let turning = Turning::new(&profile.spindle, arrives + approach.guard, approach.begins)?;
    let on_track = OnTrack::of(profile, outlines, to)?;
    let track = &on_track.track;
    if approach.first <= track.first || approach.first > track.last {
        return None;
    }
    let slices = wanted.slices(track)?;
    let way = turning.last_pass(approach.target.angle)?;
    let before = (approach.first.0 - track.first.0) as u32;
    let width = u128::from(track.width.raw()).max(1);
    let (mut first, sector) = on_track.reachable(before, way / width)?;
    if let Some(bus) = &approach.bus {
        let most = carried(profile, track, approach.begins, bus);
        first = first.max(before.saturating_sub(most));
    }
    loop {
        let inside = slices.inside(first..before);
        let slice = slices.first(inside.clone())?;
        let start = slices.blocks_of(slice..slice + 1).start;
        // Up to the request itself, without a gap but for slipped sectors.
        if !on_track.is_run(start..before + 1) {
            first = start + 1;
            continue;
        }
        let back = width * u128::from(sector.checked_sub(on_track.sector(start)?)?);
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
            direction: Direction::Read,
            extent: blocks_of(track, start..before),
            wanted: slices.wanted(slice..inside.end),
            slack: comes.since(arrives),
            begins: comes,
            ends,
        };
        let visited = Visited {
            sectors: track.sectors,
            wanted: slices.wanted(0..slices.count()),
        };
        return Some((stop, visited));
    }
}

/// The largest number of blocks before a request that a slow bus transfers without delay. Each
/// block arrives a sector earlier than the next, and occupies the bus for longer.
fn carried(profile: &Profile, track: &Track, begins: Instant, bus: &SlowBus) -> u32 {
    let sector = profile.spindle.time_of(track.width);
    let each = bus.block.saturating_sub(sector).as_nanos().max(1);
    let most = bus.needed.since(begins).as_nanos() / each;
    u32::try_from(most).unwrap_or(u32::MAX)
}

impl<'a> OnTrack<'a> {
    /// The blocks of a track; `None` if it has none.
    fn of(profile: &'a Profile, outlines: &Outlines, to: Position) -> Option<Self> {
        if let Some(WholeTrack { track, straight }) = outlines.track(to) {
            return Some(OnTrack {
                profile,
                track,
                straight,
                is_whole: true,
            });
        }
        Some(OnTrack {
            profile,
            track: profile.geometry.track_at(to.cylinder, to.head)?,
            straight: None,
            is_whole: false,
        })
    }

    /// The sector of a block.
    #[inline]
    fn sector(&self, block: u32) -> Option<u32> {
        match self.straight {
            Some(first) => Some(first + block),
            None => {
                let lba = Lba(self.track.first.0 + u64::from(block));
                Some(self.profile.geometry.locate(lba)?.sector)
            }
        }
    }

    /// Whether blocks pass in one sweep of the head.
    fn is_run(&self, blocks: Range<u32>) -> bool {
        let is_here =
            |run: TrackExtent| (run.cylinder, run.head) == (self.track.cylinder, self.track.head);
        self.is_whole || only_run(self.profile, blocks_of(&self.track, blocks)).is_some_and(is_here)
    }

    /// The first block whose sector is at most `sectors` before that of block `before`; and that
    /// sector.
    fn reachable(&self, before: u32, sectors: u128) -> Option<(u32, u32)> {
        let sector = self.sector(before)?;
        let lowest = u128::from(sector).saturating_sub(sectors) as u32;
        let (mut low, mut high) = (before - before.min(sector - lowest), before);
        // Slipped sectors lie between, so that fewer blocks than sectors qualify.
        while low < high && self.straight.is_none() {
            let middle = low + (high - low) / 2;
            if self.sector(middle)? < lowest {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some((low, sector))
    }
}
