//! The grace period of the background level, as that of Linux's idle class (ionice(1)).
//!
//! A client reads one piece after the other, and the next one arrives when the last one has ended. A background piece that
//! begins in between holds up the next one. So the background waits until the others have been quiet for a while.
//!
//! ```text
//!   others      [read]  [read]   [read]
//!   background                         | period | [read][read] ...
//! ```

use block::{Duration, Instant};

/// When background pieces begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Grace {
    /// They begin, one at a time, when no other piece has waited or been served for so long.
    pub period: Duration,
    /// One begins all the same if none has for so long, and no other piece waits.
    pub turn: Duration,
    /// When the others have been quiet for so long, nobody is there, and the drive has as many as it takes.
    pub alone: Duration,
}

impl Default for Grace {
    fn default() -> Self {
        Grace {
            // A choice: longer than the pauses between the requests of one busy client. Free reads by themselves wait as
            // long.
            period: Duration::from_millis(10),
            // Linux's BFQ (block/bfq-iosched.c, BFQ_CL_IDLE_TIMEOUT): a fifth of a second.
            turn: Duration::from_millis(200),
            // A choice: a client that comes once a second meets one command at the drive.
            alone: Duration::from_secs(1),
        }
    }
}

/// What the grace period is counted from.
#[derive(Clone, Copy, Debug)]
pub(super) struct GraceClock {
    /// The last arrival or end of a piece above the background.
    others: Instant,
    /// The last choice of a background piece, or since when the first of them is eligible.
    since: Instant,
}

impl GraceClock {
    /// Nothing has happened yet.
    pub(super) const FIRST: GraceClock = GraceClock {
        others: Instant::ZERO,
        since: Instant::ZERO,
    };

    /// A piece above the background arrives or ends.
    pub(super) fn note_other(&mut self, now: Instant) {
        self.others = now;
    }

    /// A background piece is chosen, or the first one becomes eligible.
    pub(super) fn note_background(&mut self, now: Instant) {
        self.since = now;
    }

    /// The moment from which background pieces may begin while a command is at the drive.
    pub(super) fn alone_from(&self, grace: Grace) -> Instant {
        match self.others {
            Instant::ZERO => Instant::ZERO,
            others => others + grace.alone,
        }
    }

    /// The moment from which a background piece may begin, if no other piece waits then.
    pub(super) fn opens(&self, grace: Grace) -> Instant {
        // Before the first piece the clock stands at zero, and nothing was there.
        match self.others {
            Instant::ZERO => Instant::ZERO,
            others => (others + grace.period).min(self.since + grace.turn),
        }
    }
}

#[cfg(test)]
mod tests {
    use block::{Direction, Extent, Lba, Owner, Sectors};
    use drive::{Angle, Position, SeekTarget};
    use proptest::prelude::*;

    use super::super::{
        DriveActivity, NewPiece, NextPiece, Ordering, OrderingRules, Phases, PriorityLevel,
    };
    use super::*;
    use crate::policy::{PieceId, View, find};

    #[derive(Clone, Copy, Debug)]
    enum Act {
        Enter(bool),
        Choose,
        /// The n-th piece at the drive ends.
        End(usize),
    }

    /// The rule said again: what waits, what is at the drive, and the last moments.
    #[derive(Default)]
    struct Naive {
        waiting: Vec<(PieceId, bool)>,
        at_drive: Vec<(PieceId, bool)>,
        others: Option<Instant>,
        since: Option<Instant>,
    }

    impl Naive {
        fn expected(&mut self, now: Instant, grace: Grace) -> NextPiece {
            if let Some(place) = self
                .waiting
                .iter()
                .position(|(_, is_background)| !is_background)
            {
                return self.given(place);
            }
            let alone = self.others.map(|others| others + grace.alone);
            let is_alone = alone.is_none_or(|alone| alone <= now);
            if self.waiting.is_empty() || !(is_alone || self.at_drive.is_empty()) {
                return NextPiece::Nothing(None);
            }
            let quiet = self.others.map(|others| others + grace.period);
            let turn = self.since.map(|since| since + grace.turn);
            match quiet.min(turn).filter(|&opens| opens > now) {
                Some(opens) => NextPiece::Nothing(Some(opens)),
                None => {
                    self.since = Some(now);
                    self.given(0)
                }
            }
        }

        fn given(&mut self, place: usize) -> NextPiece {
            let piece = self.waiting.remove(place);
            self.at_drive.push(piece);
            NextPiece::Piece(piece.0)
        }
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            2 => any::<bool>().prop_map(Act::Enter),
            4 => Just(Act::Choose),
            2 => (0..4usize).prop_map(Act::End),
        ]
    }

    fn millis() -> impl Strategy<Value = u64> {
        prop_oneof![9 => 0..40u64, 1 => 900..1200u64]
    }

    fn piece(number: u64, is_background: bool) -> NewPiece {
        NewPiece {
            request_slot: 0,
            owner: Owner::process(1),
            direction: Direction::Read,
            extent: Extent::new(Lba(8 * number), Sectors(8)).expect("some blocks"),
            level: match is_background {
                true => PriorityLevel::BACKGROUND,
                false => PriorityLevel::of(block::Class::BestEffort(0)).expect("a level"),
            },
            target: SeekTarget {
                position: Position {
                    cylinder: 0,
                    head: 0,
                },
                angle: Angle::ZERO,
            },
        }
    }

    proptest! {
        /// First come, first served in each level, so that the naive rule knows which piece comes.
        #[test]
        fn the_background_begins_when_others_were_quiet_or_its_turn_has_come(
            acts in prop::collection::vec((millis(), act()), 1..120),
        ) {
            let policy = find("fcfs").expect("a policy of the table");
            let drive = drive::catalog::find("hp-c2247a").expect("a shipped drive");
            let belief = drive.profile().expect("a profile");
            let grace = Grace::default();
            let rules = OrderingRules {
                phases: Phases::Mixed,
                patience: Duration::from_secs(1000),
                grace: Some(grace),
                pieces: 1000,
            };
            let mut ordering = Ordering::new(&|| policy.make(), rules);
            let mut naive = Naive::default();
            let mut now = Instant::ZERO + Duration::from_secs(1);
            for (number, (millis, act)) in (0..).zip(acts) {
                now += Duration::from_millis(millis);
                match act {
                    Act::Enter(is_background) => {
                        let entered = ordering.enter(now, piece(number, is_background));
                        if !is_background {
                            naive.others = Some(now);
                        } else if naive.waiting.iter().all(|(_, is_background)| !is_background) {
                            naive.since = Some(now);
                        }
                        naive.waiting.push((entered, is_background));
                    }
                    Act::Choose => {
                        let drive = match naive.at_drive.is_empty() {
                            true => DriveActivity::Idle,
                            false => DriveActivity::Busy,
                        };
                        let view = View {
                            now,
                            belief: &belief,
                            head: Position { cylinder: 0, head: 0 },
                            ready: now,
                            previous: Direction::Read,
                        };
                        let chosen = ordering.choose(now, &view, drive);
                        prop_assert_eq!(chosen, naive.expected(now, grace));
                        if let NextPiece::Piece(piece) = chosen {
                            ordering.give(now, piece);
                        }
                    }
                    Act::End(n) if n < naive.at_drive.len() => {
                        let (piece, is_background) = naive.at_drive.remove(n);
                        ordering.end(now, piece);
                        if !is_background {
                            naive.others = Some(now);
                        }
                    }
                    Act::End(_) => {}
                }
            }
        }
    }
}
