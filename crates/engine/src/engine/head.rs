//! Where the head is: known again after every command, expected while commands are at the drive.

use block::Instant;
use scheduler::Sight;

use super::Engine;
use crate::forecast::{Head, Route};
use crate::sent::{Manner, Purpose, Sent, Step};

impl Engine {
    /// The head is known again: the last sector of the command has just passed under it.
    pub(super) fn resync(&mut self, now: Instant, sent: &Sent, route: &Route) {
        let course = sent.course(&self.head, &self.belief, route);
        self.head = match sent.manner {
            _ if sent.is_buffered => course.head,
            Manner::There => course.ended(&self.belief, route, (self.ended_last, now)),
            Manner::On => course.gone_on(&self.belief, route, now),
            // It ends when the arm is there.
            Manner::Only => Head {
                free: now,
                ..course.head
            },
        };
        let end = self.head.free;
        let given = self.at_drive.iter_mut().map(|sent| &mut sent.purpose);
        given
            .filter_map(Purpose::without_mut)
            .for_each(|without| without.resync(sent.id, end));
        for step in &mut self.way {
            if let Step::Request {
                without: Some(without),
                ..
            } = step
            {
                without.resync(sent.id, end);
            }
        }
        match sent.manner {
            _ if sent.is_buffered => self.track_silently(),
            Manner::On | Manner::Only => self.track_silently(),
            Manner::There => {
                self.learn(now, sent, &course, route);
                self.track(now, &course, route);
            }
        }
    }

    /// Whether somebody wants to know where the head is.
    pub(crate) fn sight(&self) -> Sight {
        if self.guaranteed.is_some() {
            return Sight::Head;
        }
        match (&self.background, &self.tracking, &self.transfers) {
            (None, None, None) => self.ordering.sight(),
            _ => Sight::Head,
        }
    }

    /// The head when all commands at the drive will have ended.
    pub(super) fn expected_head(&self) -> Head {
        if self.sight() == Sight::Order {
            return self.head;
        }
        self.at_drive.iter().fold(self.head, |head, sent| {
            let after = sent.route.as_ref();
            after.map_or(head, |route| sent.course(&head, &self.belief, route).head)
        })
    }
}
