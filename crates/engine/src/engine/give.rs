//! From a draft to a command for the drive, noted by each stage.

use block::{Action, Command, Direction, Durability, Extent, Sectors};
use drive::Profile;
use drive::firmware::WriteBack;
use scheduler::Sight;

use super::row::Stages;
use crate::command::{Approach, Draft, Purpose, SentCommand};

impl Stages<'_> {
    /// Gives the drive a command.
    pub(super) fn give(&mut self, draft: Draft) -> Command {
        let (id, now) = (self.cx.dispatch.next_id(), self.cx.now);
        if matches!(draft, Draft::Flush) {
            self.cx.dispatch.send(SentCommand {
                id,
                given: now,
                purpose: Purpose::Flush,
                part: None,
                approach: Approach::Seek,
                was_held: false,
                is_buffered: false,
                route: None,
                worst: self.guarantees.longest_of_others(),
            });
            return Command::new(id, Action::Flush);
        }
        let approach = self
            .preemption
            .approach_of(&self.cx, self.guarantees, &draft);
        let (purpose, direction, extent) = self.purpose_of(draft);
        let Stages {
            cx,
            guarantees,
            preemption,
            ..
        } = self;
        let (part, asked) = preemption.note_given(cx, guarantees, &draft);
        let durability = match direction {
            // What is in the drive's buffer delays the next command.
            Direction::Write if guarantees.serves_streams() => Durability::Durable,
            Direction::Write if is_timed(cx.profile(), &draft) => Durability::Durable,
            _ => asked,
        };
        let worst = guarantees.note_given(cx, &purpose, (direction, extent), durability);
        let route = match (draft, cx.sight()) {
            (_, Sight::Order) => None,
            (
                Draft::Request {
                    piece,
                    merged: None,
                    ..
                }
                | Draft::InGap { piece },
                Sight::Head,
            ) => Some(*cx.route(piece)),
            (_, Sight::Head) => cx.belief.route_of(extent, direction),
        };
        cx.dispatch.send(SentCommand {
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

    /// The purpose of a draft, its direction and its blocks; background blocks of it are no longer
    /// wanted.
    fn purpose_of(&mut self, draft: Draft) -> (Purpose, Direction, Extent) {
        let Stages {
            cx,
            guarantees,
            preemption,
            gap,
        } = self;
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
                let Some(read) = merged else {
                    return (Purpose::Request { piece, unplanned }, direction, extent);
                };
                gap.take(cx.dispatch.next_id(), &read);
                let purpose = Purpose::Merged {
                    piece,
                    unplanned,
                    read,
                };
                let start = read.extent.start();
                let both = Extent::new(start, Sectors(extent.end().0 - start.0));
                (purpose, direction, both.unwrap_or(extent))
            }
            Draft::InGap { piece } => {
                cx.ordering.give(cx.now, piece);
                let (direction, extent) = cx.ordering.blocks(piece);
                (Purpose::InGap { piece }, direction, extent)
            }
            Draft::Background(read) => {
                gap.take(cx.dispatch.next_id(), &read);
                (Purpose::Background(read), Direction::Read, read.extent)
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
}

/// Whether a write has to go to the medium when it is given, and a buffer might keep it: its gap was planned for that.
fn is_timed(belief: &Profile, draft: &Draft) -> bool {
    matches!(draft, Draft::InGap { .. }) && belief.buffer.write_back != WriteBack::None
}
