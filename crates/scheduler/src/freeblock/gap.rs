//! The gap before a foreground request, and the rules for plans that fill it.
//!
//! ```text
//!    source                                                    destination
//!   == A ==|------------ seek ------------|..... latency .....|== B ==
//!        departs                       on track             begins
//!        leaves                                  (earliest start of a free read)
//!             follows                (earliest start of B after a free read)
//! ```

use block::{Direction, Duration, Extent, Instant};
use drive::{Position, SeekTarget};

/// The gap between the previous command (A) and the next foreground command (B), by belief.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The track on which A ends.
    pub source: Position,
    /// The start of B's positioning without a plan.
    pub departs: Instant,
    /// The earliest start of a free read's positioning.
    pub leaves: Instant,
    /// The earliest start of B's positioning after a free read. The electronics prepare B during
    /// the free read.
    pub follows: Instant,
    /// The least time from the end of a free read on the medium to B's first sector. A write's
    /// blocks use the bus after the read's.
    pub lag: Duration,
    /// The time from the end of a free read on the medium to the start of B's positioning, if B is
    /// dispatched at the read's completion. That is so if another free read follows this one,
    /// because two commands are at the drive at once.
    pub handover: Duration,
    /// The position of B's first block.
    pub destination: SeekTarget,
    /// The direction of B's transfer.
    pub direction: Direction,
    /// The blocks of B.
    pub extent: Extent,
    /// The moment at which B's first sector arrives under the head. A plan must have brought the
    /// head there by then. In a paid gap it is one revolution later than without a plan.
    pub begins: Instant,
    /// The bus, if it is slower than the medium.
    pub bus: Option<SlowBus>,
    /// Whether a command that is given now waits at the drive for A's end.
    pub delivery: Delivery,
}

/// Whether a command waits at the drive for the arm. If not, the delay of the host delays it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It is at the drive before the arm is free.
    Queued,
    /// The drive begins it on arrival.
    Immediate,
}

impl Delivery {
    /// The least time of a command at the drive, ready to begin, at which a delay of the host is hidden. A choice:
    /// half a millisecond is more than nearly all round trips of a busy host (docs/results/adopt.md).
    const HIDDEN: Duration = Duration::from_micros(500);

    /// Of a command that the electronics have prepared at `ready`, for an arm that is free at `free`.
    pub fn of(ready: Instant, free: Instant) -> Self {
        match ready + Self::HIDDEN <= free {
            true => Delivery::Queued,
            false => Delivery::Immediate,
        }
    }
}

/// A bus that is slower than the medium. A plan has to end early enough on it for B's blocks.
///
/// ```text
///   medium   |==1==|==2==|==3==|                    |==B==|
///   bus      '     |=====1=====|=====2=====|=====3=====|   |=====B=====|
///         begins held                                free needed
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowBus {
    /// The transfer time of one block of a read.
    pub block: Duration,
    /// The share of a read's blocks that have passed under the head when the bus begins, in thousandths;
    /// at least one block.
    pub watermark: u16,
    /// The time to reconnect to the bus.
    pub reselect: Duration,
    /// The end of earlier transfers.
    pub free: Instant,
    /// The latest end of all transfers at which B is not delayed.
    pub needed: Instant,
}

impl SlowBus {
    /// The bus after a read of `blocks` blocks that pass under the head from `begins` to `ends`.
    #[must_use]
    pub fn after(self, (begins, ends): (Instant, Instant), blocks: u64) -> SlowBus {
        let starts = begins + self.held(ends.since(begins), blocks);
        let free = self.free.max(starts) + self.block * blocks;
        SlowBus { free, ..self }
    }

    /// The time from the first sector of a read until the bus begins, if its `blocks` blocks pass under the
    /// head in `sweep`.
    pub fn held(&self, sweep: Duration, blocks: u64) -> Duration {
        let passed = (blocks * u64::from(self.watermark) / 1000).max(1);
        let sweep = sweep.as_nanos() * passed / blocks.max(1);
        Duration::from_nanos(sweep) + self.reselect
    }

    /// The bus, needed by `until` if that is sooner.
    #[must_use]
    pub fn needed_by(self, until: Instant) -> SlowBus {
        SlowBus {
            needed: self.needed.min(until),
            ..self
        }
    }

    /// The largest number of blocks that the bus transfers in time, if the first arrives under the head at
    /// `begins`, and the others follow each after a `sector`.
    pub fn room(&self, begins: Instant, sector: Duration) -> u64 {
        let block = self.block.as_nanos().max(1);
        let after_others = self.needed.since(self.free).as_nanos() / block;
        let time = self.needed.since(begins + self.reselect).as_nanos();
        let after_first = time.saturating_sub(sector.as_nanos()) / block;
        let each = 1000 * block + u64::from(self.watermark) * sector.as_nanos();
        let behind_watermark = u128::from(time) * 1000 / u128::from(each);
        after_others
            .min(after_first)
            .min(behind_watermark.try_into().unwrap_or(u64::MAX))
    }

    /// The delay of B by the bus.
    pub fn late(&self) -> Duration {
        self.free.since(self.needed)
    }
}

impl Gap {
    /// The gap with B later by `by`.
    #[must_use]
    pub fn lengthened(self, by: Duration) -> Gap {
        Gap {
            begins: self.begins + by,
            bus: self.bus.map(|bus| SlowBus {
                needed: bus.needed + by,
                ..bus
            }),
            ..self
        }
    }
}

/// Margins that are added to predicted times, so that a plan survives errors of the belief
/// (conservatism; Lumb et al., FAST 2002, 5.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// The margin between the arrival on a track and the first free sector.
    pub to_free: Duration,
    /// The margin between the arrival on a track and the first sector of a background request that writes.
    pub to_write: Duration,
    /// The margin between the arrival on B's track after a detour and B's first sector.
    pub to_destination: Duration,
}

/// Whether free reads may be separate commands on the tracks of A and B.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum SameTrack {
    /// Never: the drive would begin to prefetch (Lumb et al., FAST 2002, 4.3). Merging with B is
    /// always allowed.
    #[default]
    Never,
    /// Allowed: the scheduler is in the firmware, or the drive has no look-ahead.
    Allowed,
}

/// The number of ranges that may be read of a track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Ranges {
    /// One range.
    #[default]
    One,
    /// One range, or two across the track's logical start.
    Two,
}

/// Whether free blocks may be read in one command with B.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Merging {
    /// They may.
    #[default]
    Allowed,
    /// They may not: an urgent request could not preempt B after the free blocks.
    Never,
}

/// The measure of a plan's worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Goal {
    /// The number of wanted blocks: the most bytes now.
    #[default]
    Blocks,
    /// The share of a revolution, and more if little is left of the track. All parts of the disk
    /// then finish at the same time, with few small remainders.
    Even,
}

/// The rules for plans, and the limits of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanRules {
    /// The margins.
    pub guard: Guard,
    /// Separate commands on the tracks of A and B.
    pub same_track: SameTrack,
    /// Ranges per track.
    pub ranges: Ranges,
    /// Reads in one command with B.
    pub merging: Merging,
    /// The measure of worth.
    pub goal: Goal,
    /// The largest number of stops, from 1 to [`MOST_STOPS`](crate::freeblock::plan::MOST_STOPS).
    pub stops: u8,
    /// The largest number of tracks that the search visits before it returns the best plan so far.
    /// `u32::MAX`: the search ends when its bound proves the plan optimal.
    pub tracks: u32,
}

impl Default for PlanRules {
    fn default() -> Self {
        PlanRules {
            guard: Guard::default(),
            same_track: SameTrack::Never,
            ranges: Ranges::One,
            merging: Merging::Allowed,
            goal: Goal::Blocks,
            stops: 1,
            tracks: u32::MAX,
        }
    }
}
