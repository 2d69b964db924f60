//! The plan of a gap.

use block::{Direction, Duration, Extent, Instant};

/// The largest number of reads in a plan.
pub const MOST_STOPS: usize = 4;

/// The place of a free read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// On B's track just before B, in one command with B.
    Merged,
    /// On another track, in a separate command.
    Detour,
    /// On A's track, before the head leaves it.
    Source,
    /// On B's track, in a separate command.
    Destination,
}

/// One free read, or a background request that is served in a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The place of the read.
    pub kind: Kind,
    /// The direction of the transfer: a background request may be a write.
    pub direction: Direction,
    /// The blocks from the first to the last wanted one, on one track. Unwanted blocks between them
    /// are read, too. For [`Kind::Merged`] the extent ends before B's first block.
    pub extent: Extent,
    /// The number of wanted blocks.
    pub wanted: u32,
    /// The believed time from the arrival on the track to the first block.
    pub slack: Duration,
    /// The believed moment of the first block.
    pub begins: Instant,
    /// The believed end of the last block.
    pub ends: Instant,
}

/// The reads of one gap, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapPlan {
    stops: [Option<Stop>; MOST_STOPS],
    /// The believed time from the arrival on B's track to B's first sector; in a merged plan, to
    /// the first free sector.
    pub slack: Duration,
}

impl GapPlan {
    /// A plan of one read.
    pub fn of(stop: Stop, slack: Duration) -> Self {
        let mut stops = [None; MOST_STOPS];
        stops[0] = Some(stop);
        GapPlan { stops, slack }
    }

    /// The plan with another read at its end.
    ///
    /// # Panics
    /// If the plan is full.
    pub fn and(mut self, stop: Stop, slack: Duration) -> Self {
        let place = self.stops.iter().position(Option::is_none);
        self.stops[place.expect("a plan has at most MOST_STOPS stops")] = Some(stop);
        GapPlan { slack, ..self }
    }

    /// The reads, in their order.
    pub fn stops(&self) -> impl Iterator<Item = &Stop> {
        self.stops.iter().flatten()
    }

    /// Whether a read is a command of its own.
    pub fn is_apart(&self) -> bool {
        self.stops().any(|stop| stop.kind != Kind::Merged)
    }

    /// The number of wanted blocks of all reads.
    pub fn wanted(&self) -> u32 {
        self.stops().map(|stop| stop.wanted).sum()
    }
}
