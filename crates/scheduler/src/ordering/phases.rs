//! The phases of reads and of writes, for drives on which the two have separate queues (ABISS 3.6).
//!
//! ```text
//!   |------ reads, 2 s ------|-- writes --|------ reads ------ no writes: extended --|- writes -|
//!                             none left: ends early
//! ```

use block::{Direction, Duration, Instant};

/// How reads and writes share the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Phases {
    /// Reads and writes of a level share one policy, which picks among both by position.
    #[default]
    Mixed,
    /// Reads and writes have policies of their own and take turns. A turn ends early if its area is
    /// empty, and continues while the other area is empty. Real-time requests do not wait for a
    /// turn. Background requests take turns among themselves.
    Alternate {
        /// The length of a turn of reads.
        read: Duration,
        /// The length of a turn of writes.
        write: Duration,
    },
}

/// The area whose turn it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhaseTurn {
    area: Direction,
    since: Instant,
}

impl Phases {
    /// The turns of ABISS 3.6: 2 s for reads, 30 ms for writes.
    pub const ABISS: Phases = Phases::Alternate {
        read: Duration::from_secs(2),
        write: Duration::from_millis(30),
    };

    /// The area in which requests of this direction wait.
    pub(super) fn area(self, direction: Direction) -> usize {
        match (self, direction) {
            (Phases::Mixed, _) | (Phases::Alternate { .. }, Direction::Read) => READS,
            (Phases::Alternate { .. }, Direction::Write) => WRITES,
        }
    }

    /// The number of areas with queues.
    pub(super) fn areas(self) -> usize {
        match self {
            Phases::Mixed => 1,
            Phases::Alternate { .. } => 2,
        }
    }
}

impl PhaseTurn {
    /// Reads have the first turn.
    pub(super) const FIRST: PhaseTurn = PhaseTurn {
        area: Direction::Read,
        since: Instant::ZERO,
    };

    /// The area to serve now. `work` says which areas have eligible pieces; one of them has.
    pub(super) fn area(&mut self, phases: Phases, now: Instant, work: [PhaseWork; 2]) -> usize {
        let Phases::Alternate { .. } = phases else {
            return READS;
        };
        let mine = phases.area(self.area);
        let is_over = self.ends(phases).is_none_or(|end| end <= now);
        if work[1 - mine] == PhaseWork::Some && (is_over || work[mine] == PhaseWork::None) {
            self.area = match self.area {
                Direction::Read => Direction::Write,
                Direction::Write => Direction::Read,
            };
            self.since = now;
        }
        phases.area(self.area)
    }

    /// The end of the turn, if the other area has eligible pieces then.
    pub(super) fn ends(&self, phases: Phases) -> Option<Instant> {
        match (phases, self.area) {
            (Phases::Mixed, _) => None,
            (Phases::Alternate { read, .. }, Direction::Read) => Some(self.since + read),
            (Phases::Alternate { write, .. }, Direction::Write) => Some(self.since + write),
        }
    }
}

/// Whether an area has an eligible piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PhaseWork {
    None,
    Some,
}

/// The area of reads, or of all requests if both directions share their queues.
const READS: usize = 0;

/// The area of writes.
const WRITES: usize = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_turn_ends_in_time_or_early_and_goes_on_alone() {
        use PhaseWork::{None, Some};
        let mut turn = PhaseTurn::FIRST;
        for (millis, work, area) in [
            (0, [Some, Some], READS),
            (1999, [Some, Some], READS),
            (2000, [Some, Some], WRITES),
            (2029, [Some, Some], WRITES),
            (2030, [Some, Some], READS),
            // No reads: the turn ends early.
            (2100, [None, Some], WRITES),
            // No reads: the turn continues.
            (2500, [None, Some], WRITES),
            (2501, [Some, Some], READS),
            (9000, [Some, None], READS),
            (9001, [Some, Some], WRITES),
        ] {
            assert_eq!(turn.area(Phases::ABISS, at(millis), work), area, "{millis}");
        }
    }

    #[test]
    fn mixed_areas_share_their_queues() {
        let mut turn = PhaseTurn::FIRST;
        assert_eq!(Phases::Mixed.areas(), 1);
        assert_eq!(Phases::Mixed.area(Direction::Write), READS);
        let work = [PhaseWork::None, PhaseWork::Some];
        assert_eq!(turn.area(Phases::Mixed, at(5000), work), READS);
    }
}
