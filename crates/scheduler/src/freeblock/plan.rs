//! What is read in a gap.

use block::{Duration, Extent, Instant};

/// How many reads one plan may have.
pub const MOST_STOPS: usize = 4;

/// Where a free read lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Just before B on its track, in one command with B.
    Merged,
    /// On another track, in a command of its own.
    Detour,
    /// On A's track, before leaving it.
    Source,
    /// On B's track, in a command of its own.
    Destination,
}

/// One free read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Where.
    pub kind: Kind,
    /// From the first to the last wanted block, on one track; what lies between and is not wanted
    /// is read, too. For [`Kind::Merged`], up to B's first block.
    pub extent: Extent,
    /// How many of them are wanted.
    pub wanted: u32,
    /// How long the head is believed to be on the track before the first of them comes.
    pub slack: Duration,
    /// When the first of them is believed to come.
    pub begins: Instant,
    /// When the last of them is believed to have passed.
    pub ends: Instant,
}

/// The reads of one gap, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapPlan {
    stops: [Option<Stop>; MOST_STOPS],
    /// How long the head is believed to be on B's track before B's first sector comes; of a
    /// merged plan, before the first free one.
    pub slack: Duration,
}

impl GapPlan {
    /// The plan of one read.
    pub fn of(stop: Stop, slack: Duration) -> Self {
        let mut stops = [None; MOST_STOPS];
        stops[0] = Some(stop);
        GapPlan { stops, slack }
    }

    /// The plan with one read more at its end.
    ///
    /// # Panics
    /// If it is full.
    pub fn and(mut self, stop: Stop, slack: Duration) -> Self {
        let place = self.stops.iter().position(Option::is_none);
        self.stops[place.expect("a plan has at most MOST_STOPS stops")] = Some(stop);
        GapPlan { slack, ..self }
    }

    /// The reads, in their order.
    pub fn stops(&self) -> impl Iterator<Item = &Stop> {
        self.stops.iter().flatten()
    }

    /// How many wanted blocks it reads.
    pub fn wanted(&self) -> u32 {
        self.stops().map(|stop| stop.wanted).sum()
    }
}
