//! The order against a naive one that compares everything with everything.

use block::{Lba, Sectors};
use drive::{Angle, Position};
use proptest::prelude::*;

use super::piece::LEGAL;
use super::*;
use crate::policy::{View, find};

/// What happens to a random piece.
#[derive(Clone, Copy, Debug)]
enum Act {
    Enter(Direction, u64, u64, u8),
    Barrier,
    /// The n-th of those that may be served goes to the drive, and ends later.
    Give(usize),
    /// The n-th of those at the drive ends.
    End(usize),
    /// The n-th of those at the drive is given back.
    Requeue(usize),
    Withdraw(usize),
    Raise(usize, u8),
    Divide(usize, u64, u64),
    /// Another policy sorts from now on.
    Adopt(bool),
}

/// A piece as the naive order knows it.
#[derive(Clone, Copy, Debug)]
struct Known {
    piece: PieceId,
    request: u32,
    owner: Owner,
    direction: Direction,
    extent: Extent,
    barriers: u32,
}

struct Both {
    ordering: Ordering,
    known: Vec<Known>,
    barriers: u32,
    requests: u32,
}

const BLOCKS: u64 = 4_000;

/// The position of a piece: ten cylinders have all blocks.
fn target(extent: Extent) -> SeekTarget {
    SeekTarget {
        position: Position {
            cylinder: (extent.start().0 * 10 / BLOCKS) as u32,
            head: 0,
        },
        angle: Angle::ZERO,
    }
}

impl Both {
    fn new() -> Self {
        let policy = find("c-look").expect("a policy of the table");
        let rules = OrderingRules {
            phases: Phases::Mixed,
            patience: Duration::from_secs(1),
            grace: None,
            pieces: 10_000,
        };
        let mut ordering = Ordering::new(&|| policy.make(), rules);
        ordering.index_background();
        Both {
            ordering,
            known: Vec::new(),
            barriers: 0,
            requests: 0,
        }
    }

    fn act(&mut self, act: Act) {
        let now = Instant::ZERO;
        match act {
            Act::Enter(direction, start, length, level) => {
                let new_piece = NewPiece {
                    request_slot: self.requests,
                    // Some have an owner in common, and some none.
                    owner: Owner::process(self.requests % 5),
                    direction,
                    extent: blocks(start, length),
                    level: level_of(level),
                    target: target(blocks(start, length)),
                };
                self.requests += 1;
                let piece = self.ordering.enter(now, new_piece);
                self.know(piece, new_piece, self.barriers);
            }
            Act::Barrier => {
                self.ordering.barrier();
                self.barriers += 1;
            }
            Act::Give(n) => {
                if let Some(piece) = self.nth_queued(n) {
                    let background = self.ordering.background();
                    if n % 2 == 0 && background.iter().any(|place| place.1 == piece) {
                        self.ordering.choose_for_gap(now, piece);
                        return self.ordering.give(now, piece);
                    }
                    self.ordering.withdraw_from_queue(piece);
                    self.ordering.no_longer_waits(piece);
                    self.ordering.pieces.step(piece, Transition::Choose);
                    self.ordering.give(now, piece);
                }
            }
            Act::End(n) => {
                if let Some(piece) = self.nth(n, PieceState::AtDrive) {
                    self.ordering.end(now, piece);
                    self.known.retain(|known| known.piece != piece);
                }
            }
            Act::Requeue(n) => {
                if let Some(piece) = self.nth(n, PieceState::AtDrive) {
                    self.ordering.requeue(piece);
                }
            }
            Act::Withdraw(n) => {
                if let Some(piece) = self.nth(n, PieceState::Waiting) {
                    self.ordering.withdraw(now, piece);
                    self.known.retain(|known| known.piece != piece);
                }
            }
            Act::Raise(n, level) => {
                if let Some(piece) = self.nth(n, PieceState::Waiting) {
                    self.ordering.raise(now, piece, level_of(level));
                }
            }
            Act::Adopt(first) => {
                let name = if first { "fcfs" } else { "c-look" };
                let policy = find(name).expect("a policy of the table");
                self.ordering.adopt(&|| policy.make());
            }
            Act::Divide(n, start, length) => {
                if let Some(piece) = self.nth(n, PieceState::Waiting) {
                    self.divide(piece, start, length);
                }
            }
        }
    }

    fn divide(&mut self, piece: PieceId, start: u64, length: u64) {
        let place = self.known.iter().position(|known| known.piece == piece);
        let place = place.expect("a known piece");
        let whole = self.known[place];
        let wanted = blocks(whole.extent.start().0 + start, length);
        if !whole.extent.overlaps(wanted) {
            return;
        }
        let cut = self
            .ordering
            .divide(Instant::ZERO, piece, wanted, &mut |_, _, extent| {
                target(extent)
            });
        self.known[place].extent = self.ordering.blocks(piece).1;
        for part in cut.into_iter().flatten() {
            let extent = self.ordering.blocks(part).1;
            assert_eq!(self.ordering.request_slot(part), whole.request);
            assert_eq!(self.ordering.pieces.get(part).pending.owner, whole.owner);
            let known = Known {
                piece: part,
                extent,
                ..whole
            };
            // With the piece from which it was cut: order is the order of arrival.
            self.known.insert(place + 1, known);
        }
    }

    fn know(&mut self, piece: PieceId, new_piece: NewPiece, barriers: u32) {
        self.known.push(Known {
            piece,
            request: new_piece.request_slot,
            owner: new_piece.owner,
            direction: new_piece.direction,
            extent: new_piece.extent,
            barriers,
        });
    }

    /// One of those at this stage.
    fn nth(&self, n: usize, stage: PieceState) -> Option<PieceId> {
        self.one_of(n, |known| self.ordering.stage(known.piece) == stage)
    }

    /// One of those that wait and are in a queue.
    fn nth_queued(&self, n: usize) -> Option<PieceId> {
        self.one_of(n, |known| {
            self.ordering.pieces.get(known.piece).part != QueuePart::Out
        })
    }

    fn one_of(&self, n: usize, is_one: impl Fn(&&Known) -> bool) -> Option<PieceId> {
        let all: Vec<&Known> = self.known.iter().filter(is_one).collect();
        (!all.is_empty()).then(|| all[n % all.len()].piece)
    }

    /// As the rules say, word by word.
    fn is_eligible(&self, place: usize) -> bool {
        let piece = &self.known[place];
        let write = |known: &Known| known.direction == Direction::Write;
        self.known[..place].iter().all(|earlier| {
            let conflict = (write(piece) || write(earlier))
                && piece.extent.overlaps(earlier.extent)
                && piece.request != earlier.request;
            let barred = write(piece) && write(earlier) && earlier.barriers < piece.barriers;
            !conflict && !barred
        })
    }

    fn check(&self) {
        let waiting = |known: &&Known| {
            let entry = self.ordering.pieces.get(known.piece);
            entry.part != QueuePart::Out && entry.level == PriorityLevel::BACKGROUND
        };
        let background = self.known.iter().filter(waiting);
        let mut background: Vec<(u32, PieceId)> = background
            .map(|known| (target(known.extent).position.cylinder, known.piece))
            .collect();
        background.sort();
        assert_eq!(self.ordering.background(), background);
        assert_eq!(
            self.ordering.waiting_foreground() + background.len(),
            self.ordering.waiting()
        );
        for (place, known) in self.known.iter().enumerate() {
            let entry = self.ordering.pieces.get(known.piece);
            if entry.stage == PieceState::Waiting {
                let is_queued = entry.part != QueuePart::Out;
                assert_eq!(is_queued, self.is_eligible(place), "{known:?}");
            }
            // Nothing waits for something less urgent.
            for earlier in &self.known[..place] {
                let other = self.ordering.pieces.get(earlier.piece);
                let barred = entry.is_write()
                    && other.is_write()
                    && earlier.barriers < known.barriers
                    && other.stage == PieceState::Waiting;
                if other.conflicts_with(entry) || barred {
                    assert!(other.level <= entry.level, "{earlier:?} before {known:?}");
                }
            }
        }
    }
}

fn blocks(start: u64, length: u64) -> Extent {
    Extent::new(Lba(start), Sectors(length)).expect("a valid extent")
}

fn level_of(level: u8) -> PriorityLevel {
    let class = match level {
        0 => block::Class::RealTime {
            deadline: Instant::ZERO,
        },
        1..8 => block::Class::BestEffort(level - 1),
        _ => block::Class::Background,
    };
    PriorityLevel::of(class).expect("a class")
}

fn act(entering: u32) -> impl Strategy<Value = Act> {
    let direction = prop_oneof![Just(Direction::Read), Just(Direction::Write)];
    // Most overlap few others, some overlap many.
    let length = prop_oneof![4 => 1..20u64, 1 => 1..200u64];
    prop_oneof![
        entering => (direction, 0..BLOCKS, length, 0..9u8)
            .prop_map(|(d, start, length, level)| Act::Enter(d, start, length, level)),
        1 => Just(Act::Barrier),
        12 => any::<usize>().prop_map(Act::Give),
        10 => any::<usize>().prop_map(Act::End),
        1 => any::<usize>().prop_map(Act::Requeue),
        2 => any::<usize>().prop_map(Act::Withdraw),
        2 => (any::<usize>(), 0..9u8).prop_map(|(n, level)| Act::Raise(n, level)),
        1 => any::<bool>().prop_map(Act::Adopt),
        3 => (any::<usize>(), 0..30u64, 1..30u64).prop_map(|(n, s, l)| Act::Divide(n, s, l)),
    ]
}

fn compare(before: u64, acts: &[Act]) {
    let mut both = Both::new();
    // Reads far from each other: more footprints than a row of the index has.
    for number in 0..before {
        let start = number * 7_919 % BLOCKS;
        both.act(Act::Enter(Direction::Read, start, 1, 5));
    }
    for &act in acts {
        both.act(act);
        both.check();
    }
    while let Some(piece) = both.nth(0, PieceState::AtDrive) {
        both.ordering.end(Instant::ZERO, piece);
        both.known.retain(|known| known.piece != piece);
    }
    // Whatever waits can be served to the end.
    while !both.known.is_empty() {
        both.act(Act::Give(0));
        both.act(Act::End(0));
    }
    assert_eq!(
        (both.ordering.waiting(), both.ordering.pieces.held()),
        (0, 0)
    );
    assert_eq!(both.ordering.ready, [0; 2]);
    assert!(both.ordering.ages.is_empty());
}

proptest! {
    #[test]
    fn what_may_be_served_is_what_the_rules_say(
        acts in prop::collection::vec(act(20), 0..120),
    ) {
        compare(0, &acts);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_may_be_served_among_many_is_what_the_rules_say(
        before in 100..400u64,
        acts in prop::collection::vec(act(12), 0..60),
    ) {
        compare(before, &acts);
    }
}

#[test]
fn every_step_outside_the_table_stops_the_program() {
    let stages = [
        PieceState::Free,
        PieceState::Waiting,
        PieceState::Chosen,
        PieceState::AtDrive,
    ];
    let steps = [
        Transition::Enter,
        Transition::Withdraw,
        Transition::Choose,
        Transition::PutBack,
        Transition::Give,
        Transition::Requeue,
        Transition::End,
    ];
    for stage in stages {
        for step in steps {
            let legal = LEGAL.iter().find(|row| row.0 == stage && row.1 == step);
            let led = std::panic::catch_unwind(|| stage.after(step)).ok();
            assert_eq!(led, legal.map(|row| row.2), "{stage:?} {step:?}");
        }
    }
}

#[test]
fn who_takes_over_knows_all_that_waits() {
    let mut both = Both::new();
    for number in 0..20 {
        let start = number * 7_919 % BLOCKS;
        both.act(Act::Enter(Direction::Read, start, 1, (number % 9) as u8));
    }
    both.act(Act::Adopt(true));
    let shipped = drive::catalog::find("quantum-atlas-10k").expect("a shipped drive");
    let belief = shipped.profile().expect("a valid profile");
    let view = View {
        now: Instant::ZERO,
        belief: &belief,
        head: Position {
            cylinder: 0,
            head: 0,
        },
        ready: Instant::ZERO,
        previous: Direction::Read,
    };
    // A drive that is busy makes nobody overrule the policy.
    for _ in 0..20 {
        let next = both
            .ordering
            .choose(Instant::ZERO, &view, DriveActivity::Busy);
        let NextPiece::Piece(piece) = next else {
            panic!("{next:?}, though something waits");
        };
        both.ordering.give(Instant::ZERO, piece);
    }
    assert_eq!(both.ordering.overruled(), 0);
}

#[test]
fn a_write_that_is_put_back_stays_the_oldest_before_a_barrier() {
    let mut both = Both::new();
    let background = 8;
    for start in [100, 200] {
        both.act(Act::Enter(Direction::Write, start, 1, background));
    }
    both.act(Act::Barrier);
    both.act(Act::Enter(Direction::Write, 300, 1, 1));
    let ordering = &mut both.ordering;
    let first = ordering.oldest(|_| true).expect("two writes may go");
    for _ in 0..3 {
        assert_eq!(ordering.choose_for(first), Some(first));
        ordering.put_back(first);
        assert_eq!(ordering.oldest(|_| true), Some(first));
    }
}

/// Background pieces have no patience of their own, and keep none when they are raised: the patience of what
/// waits for them serves them, one after the other, before pieces that are as urgent.
#[test]
fn what_an_overdue_piece_waits_for_goes_before_everything_as_urgent() {
    let shipped = drive::catalog::find("quantum-atlas-10k").expect("a shipped drive");
    let belief = shipped.profile().expect("a valid profile");
    let (background, foreground) = (8, 1);
    for barrier in [false, true] {
        let mut both = Both::new();
        // Two writes on which the last one depends, by a barrier or by their blocks.
        both.act(Act::Enter(Direction::Write, 3_000, 10, background));
        both.act(Act::Enter(Direction::Write, 3_005, 10, background));
        let last = match barrier {
            true => {
                both.act(Act::Barrier);
                3_900
            }
            false => 3_010,
        };
        both.act(Act::Enter(Direction::Write, last, 1, foreground));
        for other in 0..50 {
            both.act(Act::Enter(Direction::Read, other, 1, foreground));
        }
        let needed: Vec<PieceId> = both.known[..3].iter().map(|known| known.piece).collect();
        let levels = needed.iter().map(|&piece| both.ordering.level(piece));
        assert_eq!(levels.collect::<Vec<_>>(), [level_of(foreground); 3]);
        // C-LOOK would serve the reads first, whose blocks are lower.
        let now = Instant::ZERO + Duration::from_secs(1);
        let view = View {
            now,
            belief: &belief,
            head: Position {
                cylinder: 0,
                head: 0,
            },
            ready: now,
            previous: Direction::Read,
        };
        for piece in needed {
            let next = both.ordering.choose(now, &view, DriveActivity::Busy);
            assert_eq!(next, NextPiece::Piece(piece), "by a barrier: {barrier}");
            both.ordering.give(now, piece);
            both.ordering.end(now, piece);
        }
    }
}
