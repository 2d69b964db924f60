//! What is remembered of commands, for those who ask why a request took so long.

use block::Outcome;

use super::explanation::{Answered, Believed, Held, Whose};
use crate::context::StageContext;
use crate::dispatch::sent::{Approach, Purpose, Sent};

impl super::DriveBelief {
    fn believed(&self, now: block::Instant, sent: &Sent) -> Option<Believed> {
        let route = sent.route.as_ref()?;
        let course = sent.course(&self.head, &self.profile, route);
        let revolutions = self.revolutions(now, &course, route);
        let by = match revolutions.filter(|_| sent.approach == Approach::Seek) {
            Some(_) => Answered::Medium,
            None => Answered::Buffer,
        };
        Some(Believed {
            start: course.start,
            seek: course.pass.seek,
            rotation: course.pass.rotation,
            passed: course.head.free,
            end: course.head.free + route.tail(&self.profile, &course.pass),
            by,
        })
    }
}

/// A command has ended; the head is not known again yet.
pub(crate) fn remember(cx: &mut StageContext<'_>, sent: &Sent, outcome: &Outcome) {
    if !cx.belief.log.is_on() {
        return;
    }
    let held = Held {
        command: sent.id,
        whose: whose(cx, sent),
        given: sent.given,
        from: sent.given,
        to: outcome.at.max(sent.given),
        believed: cx.belief.believed(cx.now, sent),
    };
    cx.belief.log.ended(held);
}

fn whose(cx: &StageContext<'_>, sent: &Sent) -> Whose {
    match sent.purpose {
        Purpose::Request { piece, .. } | Purpose::Merged { piece, .. } => {
            let slot = cx.intake.slots.get(cx.ordering.owner(piece));
            let (direction, whole) = cx.ordering.blocks(piece);
            Whose::Request {
                id: slot.request.id,
                submitted: slot.submitted,
                class: slot.request.class,
                level: cx.ordering.level(piece),
                direction,
                extent: sent.part.unwrap_or(whole),
            }
        }
        Purpose::Background(read) => Whose::Task(read.means),
        Purpose::ReadAhead => Whose::Ahead,
        Purpose::Hop => Whose::Hop,
        Purpose::Calibration => Whose::Calibration,
        Purpose::Flush => Whose::Flush,
    }
}
