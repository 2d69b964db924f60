//! What the engine remembers of its commands, for those who ask why a request took so long.

use block::{Finished, Instant, Outcome};

use super::Engine;
use crate::explanation::{Answered, Believed, Explanation, Held, Known, Log, Whose};
use crate::sent::{Manner, Purpose, Sent};

impl Engine {
    /// The engine, able to say where the time of a request went. What it does stays the same.
    pub fn with_explanations(mut self, known: Known) -> Self {
        self.log = Some(Box::new(Log::new(known)));
        self
    }

    /// Where the time of a request went, that was told to have ended just now and came at `came`;
    /// `None` if the engine was made without explanations. It is looked for among the last
    /// [`REMEMBERED`](crate::explanation::REMEMBERED) commands: for those that were slow.
    pub fn explain(&self, finished: &Finished, came: Instant) -> Option<Explanation> {
        Some(self.log.as_ref()?.explain(finished, came))
    }

    /// A command has ended; the head is not known again yet.
    pub(super) fn remember(&mut self, now: Instant, sent: &Sent, outcome: &Outcome) {
        if self.log.is_none() {
            return;
        }
        let held = Held {
            command: sent.id,
            whose: self.whose(sent),
            given: sent.given,
            from: sent.given,
            to: outcome.at.max(sent.given),
            believed: self.believed(now, sent),
        };
        if let Some(log) = &mut self.log {
            log.ended(held);
        }
    }

    fn whose(&self, sent: &Sent) -> Whose {
        match sent.purpose {
            Purpose::Request { piece, .. } | Purpose::Merged { piece, .. } => {
                let slot = self.slots.get(self.ordering.owner(piece));
                let (direction, whole) = self.ordering.blocks(piece);
                Whose::Request {
                    id: slot.request.id,
                    submitted: slot.submitted,
                    class: slot.request.class,
                    level: self.ordering.level(piece),
                    direction,
                    extent: sent.part.unwrap_or(whole),
                }
            }
            Purpose::Background(read) => Whose::Task(read.means),
            Purpose::Ahead => Whose::Ahead,
            Purpose::Hop => Whose::Hop,
            Purpose::Calibration => Whose::Calibration,
            Purpose::Flush => Whose::Flush,
        }
    }

    fn believed(&self, now: Instant, sent: &Sent) -> Option<Believed> {
        let route = sent.route.as_ref()?;
        let course = sent.course(&self.head, &self.belief, route);
        let revolutions = course.revolutions(&self.belief, route, (self.ended_last, now));
        let by = match revolutions.filter(|_| sent.manner == Manner::There) {
            Some(_) => Answered::Medium,
            None => Answered::Buffer,
        };
        Some(Believed {
            start: course.start,
            seek: course.pass.seek,
            rotation: course.pass.rotation,
            passed: course.head.free,
            end: course.head.free + route.tail(&self.belief, &course.pass),
            by,
        })
    }
}
