//! Slack that parts of another transfer fill, or a read ahead.

use scheduler::preemption::Aside;

use super::*;
use crate::command::Planned;
use crate::context::tests::sent;

/// Parts of what has stepped aside, and reads ahead, as far as they fit.
const FILL: Preemption = Preemption {
    chunk: Some(Sectors(64)),
    free_prefetch: Switch::On,
    aside: Some(Aside {
        fill: Switch::On,
        most_permille: 1_000,
    }),
    ..HOLD
};

/// Whether the transfer's first part is still at the drive when its next one is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstPart {
    AtDrive,
    Ended,
}

impl SlackBench {
    /// A transfer of many blocks is under way, and steps aside for a more urgent request, which is chosen.
    fn step_aside(&mut self, at: u64, urgent: u64, first: FirstPart) -> PieceId {
        let whole = blocks(at, 10_000);
        let class = Class::BestEffort(6);
        let bulk = self.bench.submit(Direction::Read, whole, class);
        let draft = Draft::request(bulk, Planned::Yes);
        let mut cx = self.bench.cx();
        cx.ordering.choose_for(bulk).expect("it waits");
        cx.ordering.give(cx.now, bulk);
        let (part, _) = self
            .preemption
            .note_given(&mut cx, &self.guarantees, &draft);
        let route = self.bench.route(part.expect("a part"));
        let (head, belief) = (self.bench.belief.head, self.bench.belief.profile());
        let course = head.course(belief, self.bench.now, &route);
        match first {
            FirstPart::AtDrive => {
                let purpose = Purpose::Request {
                    piece: bulk,
                    unplanned: None,
                };
                let id = self.bench.dispatch.next_id();
                let given = sent(id, self.bench.now, purpose, route);
                self.bench.dispatch.send(given);
            }
            FirstPart::Ended => {
                self.bench.belief.head = course.head;
                self.bench.now = course.head.free;
            }
        }
        let class = Class::BestEffort(2);
        let urgent = blocks(urgent, 8);
        let urgent = self.bench.submit(Direction::Read, urgent, class);
        let answer = self
            .preemption
            .go_on(&mut self.bench.cx(), &self.guarantees);
        assert!(matches!(answer, StageAnswer::Pass));
        assert_eq!(self.preemption.filler(), Some(bulk));
        urgent
    }
}

/// What is believed of a part of so many blocks and of the request behind it: without look-ahead the part is a
/// command like others, and with it the drive has gone on.
fn filled(bench: &mut SlackBench, urgent: PieceId, most: u64) -> Option<Course> {
    let bulk = bench.preemption.filler()?;
    let cx = bench.bench.cx();
    let (head, belief) = (cx.expected_head(), cx.profile());
    let (part, _) = bench
        .preemption
        .next_part(&cx, &bench.guarantees, bulk, most);
    let route = cx.belief.route_of(part, Direction::Read)?;
    let (filled, is_there) = match belief.buffer.look_ahead {
        LookAhead::None => (head.course(belief, cx.now, &route), true),
        _ => (head.on(belief, &route), route.is_on_track(head.position)),
    };
    // Two commands may be at the drive.
    let given = match cx.dispatch.at_drive() {
        0 => cx.now,
        _ => head.free + route.tail(belief, &filled.pass),
    };
    let after = filled.head.course(belief, given, cx.route(urgent));
    is_there.then_some(after)
}

#[test]
fn slack_is_filled_with_as_many_blocks_as_make_no_request_later() {
    for look_ahead in [LookAhead::None, LookAhead::Segment] {
        for first in [FirstPart::AtDrive, FirstPart::Ended] {
            let (mut fills, mut others) = (0, 0);
            for (from, to) in places() {
                let mut belief = plain();
                belief.buffer.look_ahead = look_ahead;
                let mut bench = SlackBench::new(belief, FILL);
                bench.put_head(from);
                let urgent = bench.step_aside(from + 100, to, first);
                let cx = bench.bench.cx();
                let (head, belief) = (cx.expected_head(), cx.profile());
                let before = head.course(belief, cx.now, cx.route(urgent));
                let width = cx.belief.width_at(head.position).expect("a track");
                let sector = belief.spindle.time_of(width).as_nanos();
                // Until the arm has to leave: it lands early, and a head may have been switched.
                let margin = LANDING + belief.head_switch;
                let leaves = before.start + before.pass.rotation.saturating_sub(margin);
                let room = leaves.since(head.free).as_nanos() / sector;
                let after = filled(&mut bench, urgent, room).filter(|_| room > 0);
                let after = after.filter(|after| {
                    arrives(after) <= arrives(&before) && after.pass.rotation >= margin
                });
                let bulk = bench.preemption.filler();
                let draft = fill(
                    &bench.bench.cx(),
                    &bench.guarantees,
                    &bench.preemption,
                    urgent,
                );
                match draft {
                    Some(Draft::Part { piece, most }) => {
                        assert_eq!((Some(piece), most), (bulk, room));
                        assert!(after.is_some(), "{before:?}: {room} blocks");
                        fills += 1;
                    }
                    None => {
                        assert_eq!(after, None, "{before:?}: {room} blocks");
                        others += 1;
                    }
                    other => panic!("{other:?}"),
                }
            }
            let is_lost = look_ahead == LookAhead::None && first == FirstPart::Ended;
            let what = format!("{look_ahead:?}, {first:?}: {fills} and {others}");
            // A part that follows an ended one without look-ahead has just passed.
            assert_eq!(fills == 0, is_lost, "{what}");
            assert!(others > 3, "{what}");
        }
    }
}

/// Nothing steps aside: the drive reads what follows the last read, as far as the track goes.
#[test]
fn slack_without_a_transfer_is_filled_with_what_follows_the_last_read() {
    let mut reads = 0;
    for (from, to) in places() {
        let mut bench = SlackBench::new(profile(), FILL);
        bench.put_head(from);
        let first = blocks(from, 8);
        let mut cx = bench.bench.cx();
        let draft = Draft::ReadAhead(first);
        bench
            .preemption
            .note_given(&mut cx, &bench.guarantees, &draft);
        let urgent = bench
            .bench
            .submit(Direction::Read, blocks(to, 8), Class::BestEffort(2));
        let draft = fill(
            &bench.bench.cx(),
            &bench.guarantees,
            &bench.preemption,
            urgent,
        );
        let Some(draft) = draft else { continue };
        let Draft::ReadAhead(ahead) = draft else {
            panic!("{draft:?}");
        };
        assert_eq!(ahead.start(), first.end());
        let track = bench.bench.belief.profile().geometry.track_of(first.end());
        let last = track.expect("a track").last;
        assert!(
            ahead.last() <= last && ahead.length() <= Sectors(64),
            "{ahead:?}"
        );
        let is_most = ahead.last() == last || ahead.length() == Sectors(64);
        let cx = bench.bench.cx();
        let (head, belief) = (cx.expected_head(), cx.profile());
        let before = head.course(belief, cx.now, cx.route(urgent));
        let after = |extent: Extent| {
            let route = cx.belief.route_of(extent, Direction::Read).expect("mapped");
            let there = head.on(belief, &route);
            there.head.course(belief, cx.now, cx.route(urgent))
        };
        let margin = LANDING + belief.head_switch;
        assert!(arrives(&after(ahead)) <= arrives(&before));
        assert!(after(ahead).pass.rotation >= margin);
        let longer = Extent::new(ahead.start(), Sectors(ahead.length().0 + 2)).expect("blocks");
        let is_longer_late = after(longer).pass.rotation < margin;
        assert!(is_most || is_longer_late, "{ahead:?} could be longer");
        reads += 1;
    }
    assert!(reads > 20, "{reads}");
    // Beside no streams and with nothing read, nothing follows.
    let mut bench = SlackBench::new(profile(), FILL);
    bench.put_head(1_000_000);
    let urgent = bench
        .bench
        .submit(Direction::Read, blocks(0, 8), Class::BestEffort(2));
    let draft = fill(
        &bench.bench.cx(),
        &bench.guarantees,
        &bench.preemption,
        urgent,
    );
    assert!(draft.is_none(), "{draft:?}");
}
