//! The stage alone: parts of a transfer, stepping aside, and what streams demand.

use block::Class;
use scheduler::ordering::PieceState;
use scheduler::preemption::Aside;

use super::*;
use crate::command::Purpose;
use crate::context::tests::{StageBench, blocks, sent};

const CHUNK: u64 = 64;

const RULES: Preemption = Preemption {
    chunk: Some(Sectors(CHUNK)),
    aside: Some(Aside {
        fill: Switch::On,
        most_permille: 1_000,
    }),
    ..Transfers::WHOLE
};

/// The stage, beside no streams, with what it looks at.
struct PartsBench {
    bench: StageBench,
    guarantees: Guarantees,
    transfers: Transfers,
}

impl PartsBench {
    fn new(rules: Option<Preemption>) -> Self {
        let bench = StageBench::new();
        let profile = bench.belief.profile();
        let transfers = rules.map(|rules| Transfers::by(rules, profile, Instant::ZERO));
        PartsBench {
            transfers: transfers.unwrap_or(Transfers::none()),
            guarantees: Guarantees::none(),
            bench,
        }
    }

    /// A waiting read of so many chunks, at the lowest priority.
    fn submit(&mut self, chunks: u64) -> PieceId {
        let extent = blocks(1_000_000, chunks * CHUNK);
        let class = Class::BestEffort(6);
        self.bench.submit(Direction::Read, extent, class)
    }

    fn choose(&mut self) -> PieceId {
        let cx = &mut self.bench.cx();
        let answer = self.transfers.choose(cx, &self.guarantees);
        assert!(matches!(answer, StageAnswer::Pass));
        cx.dispatch.chosen_piece().expect("something waits")
    }

    /// The chosen piece is given, or its next part: the blocks of it.
    fn give(&mut self, draft: Draft) -> Extent {
        let cx = &mut self.bench.cx();
        let piece = match draft {
            Draft::Request { piece, .. } => {
                cx.dispatch.chosen.clear();
                cx.ordering.give(cx.now, piece);
                piece
            }
            Draft::Part { piece, .. } => piece,
            other => panic!("{other:?}"),
        };
        let (part, _) = self.transfers.note_given(cx, &self.guarantees, &draft);
        let part = part.expect("a part");
        let unplanned = None;
        let purpose = Purpose::Request { piece, unplanned };
        let route = self.bench.route(part);
        let id = self.bench.dispatch.next_id();
        let mut sent = sent(id, self.bench.now, purpose, route);
        sent.part = Some(part);
        self.bench.dispatch.send(sent);
        part
    }

    fn go_on(&mut self) -> StageAnswer {
        let cx = &mut self.bench.cx();
        self.transfers.go_on(cx, &self.guarantees)
    }

    fn obey(&mut self, restriction: Restriction) -> StageAnswer {
        let cx = &mut self.bench.cx();
        self.transfers.obey(cx, &self.guarantees, restriction)
    }

    /// The first command at the drive ends.
    fn end(&mut self, status: Status, is_undone: bool) -> Remainder {
        let id = self.bench.dispatch.commands().next().map(|sent| sent.id);
        let sent = self.bench.dispatch.take(id.expect("a command"));
        let piece = sent.purpose.piece().expect("a piece");
        let (now, ended) = (self.bench.now, (status, None));
        self.transfers
            .part_ended(now, (piece, Duration::ZERO), &sent, ended, is_undone)
    }
}

#[test]
fn a_transfer_is_given_chunk_by_chunk_with_two_at_the_drive() {
    let mut bench = PartsBench::new(Some(RULES));
    let piece = bench.submit(3);
    assert_eq!(bench.choose(), piece);
    let first = bench.give(Draft::request(piece, Planned::Yes));
    assert_eq!(first, blocks(1_000_000, CHUNK));
    assert_eq!(bench.transfers.in_progress().under_way, Some(piece));

    let StageAnswer::Give(next @ Draft::Part { .. }) = bench.go_on() else {
        panic!("the drive has one command only");
    };
    assert_eq!(bench.give(next), blocks(1_000_000 + CHUNK, CHUNK));
    assert!(matches!(bench.go_on(), StageAnswer::WaitUntil(None)));
    assert!(matches!(bench.end(Status::Good, false), Remainder::More));
    let StageAnswer::Give(last) = bench.go_on() else {
        panic!("one of two has ended");
    };
    assert_eq!(bench.give(last), blocks(1_000_000 + 2 * CHUNK, CHUNK));
    assert_eq!(bench.transfers.in_progress(), PartsInProgress::default());
    assert!(matches!(bench.go_on(), StageAnswer::Pass));
    assert!(matches!(bench.end(Status::Good, false), Remainder::More));
    let end = bench.end(Status::Good, false);
    assert!(matches!(end, Remainder::None(Status::Good, None, _)));
    assert_eq!(bench.transfers.tally().parts, 3);
    assert!(!bench.transfers.has_begun(piece));
}

#[test]
fn an_undone_part_is_given_again_and_the_first_error_ends_the_piece() {
    let mut bench = PartsBench::new(Some(RULES));
    let piece = bench.submit(2);
    bench.choose();
    let first = bench.give(Draft::request(piece, Planned::Yes));
    let again = bench.end(Status::TimedOut, true);
    assert!(matches!(again, Remainder::Waits(WaitsAgain::GivenBack)));
    bench.bench.ordering.requeue(piece);
    assert_eq!(bench.choose(), piece);
    assert_eq!(bench.give(Draft::request(piece, Planned::Yes)), first);
    let bad = Status::MediumError { at: first.start() };
    let end = bench.end(bad, false);
    assert!(matches!(end, Remainder::None(status, ..) if status == bad));
    assert!(
        matches!(bench.go_on(), StageAnswer::Pass),
        "the rest is not read"
    );
}

#[test]
fn a_transfer_steps_aside_for_an_urgent_request_and_waits_when_the_head_leaves() {
    for out in [0, 1] {
        let mut bench = PartsBench::new(Some(RULES));
        let piece = bench.submit(8);
        bench.choose();
        bench.give(Draft::request(piece, Planned::Yes));
        if out == 0 {
            bench.end(Status::Good, false);
        }
        let class = Class::BestEffort(0);
        let urgent = bench.bench.submit(Direction::Read, blocks(0, 8), class);
        assert!(matches!(bench.go_on(), StageAnswer::Pass));
        assert_eq!(bench.bench.dispatch.chosen_piece(), Some(urgent));
        let progress = bench.transfers.in_progress();
        assert_eq!((progress.under_way, progress.aside), (None, Some(piece)));
        assert_eq!(bench.transfers.filler(), Some(piece));

        bench.give(Draft::request(urgent, Planned::Yes));
        assert_eq!(bench.transfers.tally().aside, 1);
        assert_eq!(bench.transfers.in_progress(), PartsInProgress::default());
        let stage = bench.bench.ordering.stage(piece);
        match out {
            0 => assert_eq!(stage, PieceState::Waiting),
            // It waits once its command has ended.
            _ => {
                assert_eq!(stage, PieceState::AtDrive);
                let end = bench.end(Status::Good, false);
                assert!(matches!(end, Remainder::Waits(WaitsAgain::SteppedAside)));
            }
        }
    }
}

#[test]
fn what_has_stepped_aside_is_resumed_if_the_choice_is_given_up() {
    let mut bench = PartsBench::new(Some(RULES));
    let piece = bench.submit(8);
    bench.choose();
    bench.give(Draft::request(piece, Planned::Yes));
    let class = Class::BestEffort(0);
    let urgent = bench.bench.submit(Direction::Read, blocks(0, 8), class);
    bench.go_on();
    bench.bench.cx().put_back_chosen();
    bench.bench.ordering.withdraw(Instant::ZERO, urgent);
    let StageAnswer::Give(Draft::Part { piece: resumed, .. }) = bench.go_on() else {
        panic!("nothing is more urgent any more");
    };
    assert_eq!(resumed, piece);
    assert_eq!(bench.transfers.tally().aside, 0);
}

#[test]
fn without_rules_every_request_is_one_command_and_only_real_time_overtakes() {
    let mut bench = PartsBench::new(None);
    let piece = bench.submit(100);
    bench.choose();
    let more = bench
        .bench
        .submit(Direction::Read, blocks(0, 8), Class::BestEffort(0));
    bench.transfers.let_urgent_pass(&mut bench.bench.cx());
    assert_eq!(bench.bench.dispatch.chosen_piece(), Some(piece));
    bench.bench.ordering.withdraw(Instant::ZERO, more);
    let deadline = Instant::ZERO;
    let class = Class::RealTime { deadline };
    bench.bench.submit(Direction::Read, blocks(0, 8), class);
    bench.transfers.let_urgent_pass(&mut bench.bench.cx());
    assert_eq!(bench.bench.dispatch.chosen_piece(), None);

    assert!(matches!(bench.go_on(), StageAnswer::Pass));
    let chosen = bench.bench.ordering.choose_for(piece).expect("it waits");
    let whole = bench.give(Draft::request(chosen, Planned::Yes));
    assert_eq!(whole, blocks(1_000_000, 100 * CHUNK));
    let end = bench.end(Status::TimedOut, true);
    assert!(matches!(end, Remainder::Waits(WaitsAgain::GivenBack)));
}

#[test]
fn what_streams_demand_is_given_whatever_is_under_way() {
    let mut bench = PartsBench::new(Some(RULES));
    assert!(matches!(bench.obey(Restriction::None), StageAnswer::Pass));
    let wait = bench.obey(Restriction::Wait);
    assert!(matches!(wait, StageAnswer::WaitUntil(None)));
    let flush = bench.obey(Restriction::Flush);
    assert!(matches!(flush, StageAnswer::Give(Draft::Flush)));
    // Nothing is in parts.
    assert!(matches!(
        bench.obey(Restriction::NextPart),
        StageAnswer::Pass
    ));

    let piece = bench.submit(8);
    bench.choose();
    bench.give(Draft::request(piece, Planned::Yes));
    let StageAnswer::Give(Draft::Part { piece: next, .. }) = bench.obey(Restriction::NextPart)
    else {
        panic!("a transfer is under way");
    };
    assert_eq!(next, piece);
    let batch = bench
        .bench
        .submit(Direction::Read, blocks(0, 8), Class::BestEffort(0));
    bench.bench.ordering.choose_for(batch).expect("it waits");
    let StageAnswer::Give(Draft::Request { piece: given, .. }) =
        bench.obey(Restriction::Piece(batch))
    else {
        panic!("a batch is demanded");
    };
    assert_eq!(given, batch);
    assert_eq!(bench.transfers.in_progress().aside, Some(piece));
}

#[test]
fn what_is_given_is_counted() {
    let mut bench = PartsBench::new(Some(RULES));
    for n in 1..4 {
        for draft in [
            Draft::Hop(blocks(n * 100, 1)),
            Draft::ReadAhead(blocks(n * 1_000, n)),
        ] {
            let cx = &mut bench.bench.cx();
            let (part, _) = bench.transfers.note_given(cx, &bench.guarantees, &draft);
            assert_eq!(part, None);
        }
    }
    let tally = bench.transfers.tally();
    assert_eq!((tally.hops, tally.read_ahead), (3, Sectors(1 + 2 + 3)));
}

/// The head goes to the next part, and no further.
#[test]
fn the_route_of_a_chosen_piece_is_that_of_its_next_part() {
    let mut bench = PartsBench::new(Some(RULES));
    let piece = bench.submit(3);
    let sweep = |bench: &PartsBench, route: &crate::forecast::Route| {
        route.sweep(bench.bench.belief.profile())
    };
    let of = |bench: &PartsBench| sweep(bench, bench.bench.belief.route(piece));
    let whole = bench.bench.route(blocks(1_000_000, 3 * CHUNK));
    assert_eq!(of(&bench), sweep(&bench, &whole));
    bench.choose();
    let part = bench.bench.route(blocks(1_000_000, CHUNK));
    assert_eq!(of(&bench), sweep(&bench, &part));
}

/// A transfer steps aside where what is left of it takes longer than a third of the ways, less the one there would
/// be anyway.
#[test]
fn a_transfer_steps_aside_if_urgent_waiting_is_worth_more_than_the_ways() {
    let (mut asides, mut goes_on) = (0, 0);
    for fill in [Switch::On, Switch::Off] {
        for n in 0..60_u64 {
            let rules = Preemption {
                aside: Some(Aside {
                    fill,
                    most_permille: 1_000,
                }),
                when: When::Worth,
                ..RULES
            };
            let mut bench = PartsBench::new(Some(rules));
            let chunks = 40;
            let piece = bench.submit(chunks);
            bench.choose();
            let first = bench.give(Draft::request(piece, Planned::Yes));
            if first.length().0 == chunks * CHUNK {
                continue;
            }
            // All but a few chunks of it have been given.
            for _ in 0..chunks - 2 - n % 12 {
                bench.give(Draft::part(piece));
            }
            let class = Class::BestEffort(0);
            let place = blocks(n * 70_000_000, 8);
            let urgent = bench.bench.submit(Direction::Read, place, class);
            let cx = bench.bench.cx();
            let belief = cx.profile();
            let (rest, _) = bench
                .transfers
                .next_part(&cx, &bench.guarantees, piece, u64::MAX);
            let left = 1_000_000 + chunks * CHUNK - rest.start().0;
            let sector = belief.spindle.time_of(cx.route(piece).width());
            let route = |extent| cx.belief.route_of(extent, Direction::Read).expect("mapped");
            let to = route(place);
            let there = cx.expected_head().course(belief, cx.now, &to);
            let given = there.head.free + to.tail(belief, &there.pass);
            let back = there.head.course(belief, given, &route(rest)).pass;
            let waited = match fill {
                Switch::On => Duration::ZERO,
                Switch::Off => there.pass.rotation,
            };
            // A seek in the mean, with its latency, is made in any case.
            let thirds = belief.geometry.cylinders() / 3;
            let half = belief.spindle.period().as_nanos() / 2;
            let anyway = belief.seek.read().time(thirds).as_nanos() + half;
            let ways = there.pass.seek + waited + back.seek + back.rotation;
            let cost = ways.as_nanos().saturating_sub(anyway);
            let is_worth = 3 * (sector * left).as_nanos() > cost;
            let answer = bench.go_on();
            let is_aside = bench.bench.dispatch.chosen_piece() == Some(urgent);
            assert_eq!(
                is_aside, is_worth,
                "{cost} ns for {left} blocks: {answer:?}"
            );
            asides += u32::from(is_aside);
            goes_on += u32::from(!is_aside);
        }
    }
    assert!(asides > 10 && goes_on > 10, "{asides} and {goes_on}");
}

/// A seek that was held back and lost a revolution is counted; one that was not held back has only bad luck.
#[test]
fn held_back_seeks_that_miss_and_parts_that_fill_are_counted() {
    let mut bench = PartsBench::new(Some(RULES));
    let route = bench.bench.route(blocks(0, 8));
    let mut sent = sent(block::CommandId(0), Instant::ZERO, Purpose::Hop, route);
    let (wait, period) = (Duration::from_micros(500), Duration::from_millis(8));
    for (was_held, revolutions) in [(true, 1), (true, 0), (false, 1), (true, -1), (true, 2)] {
        sent.was_held = was_held;
        bench
            .transfers
            .note_landing(&sent, wait, period, revolutions);
    }
    assert_eq!(bench.transfers.tally().missed, 2);

    let piece = bench.submit(8);
    bench.choose();
    bench.give(Draft::request(piece, Planned::Yes));
    let class = Class::BestEffort(0);
    bench.bench.submit(Direction::Read, blocks(0, 8), class);
    bench.go_on();
    assert_eq!(bench.transfers.filler(), Some(piece));
    for filled in 1..4 {
        bench.give(Draft::Part { piece, most: 8 });
        assert_eq!(bench.transfers.tally().filled, filled);
    }
}
