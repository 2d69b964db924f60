//! From a draft to a command: what it means for the drive, and what each stage notes of it.

use block::{Action, Command, Direction, Durability, Extent, Sectors};
use scheduler::Sight;
use scheduler::freeblock::Stop;

use super::sent::{Approach, Draft, Purpose, Sent};
use crate::context::{StageContext, Stages};
use crate::gap::GapStage;
use crate::guarantees::Guarantees;
use crate::preemption::Transfers;

/// The drive gets a command.
pub(crate) fn give(stages: &mut Stages<'_>, draft: Draft) -> Command {
    let Stages {
        cx,
        guarantees,
        preemption,
        gap,
    } = stages;
    let (id, now) = (cx.dispatch.next_id(), cx.now);
    if matches!(draft, Draft::Flush) {
        cx.dispatch.send(Sent {
            id,
            given: now,
            purpose: Purpose::Flush,
            part: None,
            approach: Approach::Seek,
            was_held: false,
            is_buffered: false,
            route: None,
            worst: guarantees.longest_of_others(),
        });
        return Command::new(id, Action::Flush);
    }
    let approach = preemption.approach_of(cx, guarantees, &draft);
    let head = guarantees.is_on().then(|| cx.expected_head());
    let (purpose, direction, extent) = purpose_of(cx, guarantees, preemption, gap, draft);
    let (part, asked) = preemption.note_given(cx, guarantees, &draft);
    let durability = match direction {
        // What is in the drive's buffer delays whatever comes next.
        Direction::Write if guarantees.serves_streams() => Durability::Durable,
        _ => asked,
    };
    let worst = guarantees.note_given(cx, &purpose, extent, head);
    let route = match (draft, cx.sight()) {
        (_, Sight::Order) => None,
        (
            Draft::Request {
                piece,
                merged: None,
                ..
            },
            Sight::Head,
        ) => Some(*cx.route(piece)),
        (_, Sight::Head) => cx.belief.route_of(extent, direction),
    };
    cx.dispatch.send(Sent {
        id,
        given: now,
        purpose,
        part,
        approach,
        was_held: matches!(draft, Draft::Request { was_held: true, .. }),
        is_buffered: preemption.rules().is_some()
            && direction == Direction::Write
            && durability == Durability::Volatile
            && preemption.is_hidden(cx.profile(), guarantees, direction),
        route,
        worst,
    });
    let action = match direction {
        _ if approach == Approach::SeekOnly => Action::Seek { to: extent.start() },
        Direction::Read => Action::Read { extent, durability },
        Direction::Write => Action::Write { extent, durability },
    };
    Command::new(id, action)
}

/// What a draft means for the drive, and that its blocks are no longer wanted.
fn purpose_of(
    cx: &mut StageContext<'_>,
    guarantees: &Guarantees,
    preemption: &Transfers,
    gap: &mut GapStage,
    draft: Draft,
) -> (Purpose, Direction, Extent) {
    match draft {
        Draft::Request {
            piece,
            merged,
            unplanned,
            ..
        } => {
            cx.ordering.give(cx.now, piece);
            let (direction, _) = cx.ordering.blocks(piece);
            let (extent, _) = preemption.next_part(cx, guarantees, piece, u64::MAX);
            let Some((
                Stop {
                    extent: free, kind, ..
                },
                means,
            )) = merged
            else {
                return (Purpose::Request { piece, unplanned }, direction, extent);
            };
            let purpose = Purpose::Merged {
                piece,
                unplanned,
                read: gap.take(free, kind, means),
            };
            let blocks = Sectors(extent.end().0 - free.start().0);
            let both = Extent::new(free.start(), blocks).unwrap_or(extent);
            (purpose, direction, both)
        }
        Draft::Background(stop, means) => {
            let read = gap.take(stop.extent, stop.kind, means);
            (Purpose::Background(read), Direction::Read, stop.extent)
        }
        Draft::Part { piece, most } => {
            let (direction, _) = cx.ordering.blocks(piece);
            let (extent, _) = preemption.next_part(cx, guarantees, piece, most);
            let unplanned = None;
            (Purpose::Request { piece, unplanned }, direction, extent)
        }
        Draft::ReadAhead(extent) => (Purpose::ReadAhead, Direction::Read, extent),
        Draft::Hop(extent) => (Purpose::Hop, Direction::Read, extent),
        Draft::Calibration(extent) => (Purpose::Calibration, Direction::Read, extent),
        Draft::Flush => panic!("a flush has no blocks"),
    }
}
