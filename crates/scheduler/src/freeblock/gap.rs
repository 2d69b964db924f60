//! The gap before a foreground request, and how far a plan may go to fill it.
//!
//! ```text
//!    source                                                    destination
//!   == A ==|------------ seek ------------|..... latency .....|== B ==
//!        departs                       on track             begins
//!        leaves                                  (where a free read may set out)
//!             follows                (where B may set out after a free read, at the earliest)
//! ```

use block::{Direction, Duration, Extent, Instant};
use drive::{Position, SeekTarget};

/// The gap between the command before (A) and the next foreground command (B), by belief.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The track that A leaves.
    pub source: Position,
    /// When B's positioning begins if nothing comes before it.
    pub departs: Instant,
    /// When a free read's positioning can begin.
    pub leaves: Instant,
    /// The earliest moment at which B's positioning can begin after a free read: the electronics
    /// take their time, hidden while the free read is on its way.
    pub follows: Instant,
    /// From the end of a free read on the medium to B's first sector, at least: a write's blocks
    /// come over the bus when the read's have gone.
    pub lag: Duration,
    /// From the end of a free read on the medium until B's positioning can begin, if B is given to
    /// the drive only when that read has completed. So it is if another free read follows: two
    /// commands are at the drive at once.
    pub handover: Duration,
    /// Where B begins.
    pub destination: SeekTarget,
    /// Which way B's bytes go.
    pub direction: Direction,
    /// B's blocks.
    pub extent: Extent,
    /// When B's first sector comes under the head: a plan must be there by then. One revolution
    /// later than without a plan if the gap is paid for.
    pub begins: Instant,
    /// The bus, where it is slower than the medium.
    pub bus: Option<SlowBus>,
}

/// A bus that carries blocks more slowly than they pass under the head. A plan has to leave it free for
/// B's blocks.
///
/// ```text
///   medium   |==1==|==2==|==3==|                    |==B==|
///   bus      ' |=====1=====|=====2=====|=====3=====|   |=====B=====|
///         begins                                  free needed
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowBus {
    /// For how long it carries one block of a read.
    pub block: Duration,
    /// When it has carried what comes before.
    pub free: Instant,
    /// When it has to have carried all, so that B ends no later.
    pub needed: Instant,
}

impl SlowBus {
    /// The same after so many blocks, of which the first comes under the head at `begins`.
    #[must_use]
    pub fn after(self, begins: Instant, blocks: u64) -> SlowBus {
        let free = self.free.max(begins) + self.block * blocks;
        SlowBus { free, ..self }
    }

    /// How many blocks it carries in time if the first comes under the head at `begins`.
    pub fn room(&self, begins: Instant) -> u64 {
        let time = self.needed.since(self.free.max(begins)).as_nanos();
        time / self.block.as_nanos().max(1)
    }

    /// By how much it is free too late.
    pub fn late(&self) -> Duration {
        self.free.since(self.needed)
    }
}

impl Gap {
    /// The same gap if B may be later by so much.
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

/// What is added to predicted times, so that a plan survives the errors of the belief
/// (conservatism; Lumb et al., FAST 2002, 5.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// Between arriving on a track and the first free sector.
    pub to_free: Duration,
    /// Between arriving on B's track after a detour and B's first sector.
    pub to_destination: Duration,
}

/// Whether commands of their own may read on the tracks of A and B.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum SameTrack {
    /// Never: the drive begins to prefetch (Lumb et al., FAST 2002, 4.3). Merging with B is
    /// always allowed.
    #[default]
    Never,
    /// The scheduler sits in the firmware, or the drive does not look ahead.
    Allowed,
}

/// Whether a track may be read in two commands, on both sides of its first block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Ranges {
    /// One range of blocks a track.
    #[default]
    One,
    /// Also two, across the track's logical start.
    Two,
}

/// Whether free blocks may be read in one command with B.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Merging {
    /// They may.
    #[default]
    Allowed,
    /// Never: nothing could overtake B between the two.
    Never,
}

/// What makes one plan better than another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Goal {
    /// More wanted blocks: the most bytes now.
    #[default]
    Blocks,
    /// A greater part of a revolution, and more so the less it leaves of its track: all parts of
    /// the disk come to their end at the same time, and few small pieces are left over.
    Even,
}

/// What a plan may consist of, and how hard it is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Added to predictions.
    pub guard: Guard,
    /// Commands on the tracks of A and B.
    pub same_track: SameTrack,
    /// Ranges a track.
    pub ranges: Ranges,
    /// Reads in one command with B.
    pub merging: Merging,
    /// What is best.
    pub goal: Goal,
    /// Stops on one way, at least 1, at most [`MOST_STOPS`](crate::freeblock::plan::MOST_STOPS).
    pub stops: u8,
    /// At most how many tracks are looked at: the best plan so far is then taken. `u32::MAX`
    /// searches until the bound proves that no plan is better.
    pub tracks: u32,
}

impl Default for Reach {
    fn default() -> Self {
        Reach {
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
