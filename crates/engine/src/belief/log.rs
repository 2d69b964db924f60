//! The log of commands that have ended, from which explanations are made.

use block::{Instant, Outcome};
use drive::Certainty;

use super::DriveBelief;
use super::explanation::{Answered, Believed, Held, Whose};
use crate::command::{Approach, SentCommand};

impl DriveBelief {
    /// Whether commands are logged.
    pub(crate) fn is_logging(&self) -> bool {
        self.log.is_on()
    }

    /// Logs the end of a command, before [`DriveBelief::resync`].
    pub(crate) fn log_end(
        &mut self,
        now: Instant,
        sent: &SentCommand,
        whose: Whose,
        outcome: &Outcome,
    ) {
        let held = Held {
            command: sent.id,
            whose,
            given: sent.given,
            from: sent.given,
            to: outcome.at.max(sent.given),
            believed: self.believed(now, sent),
        };
        self.log.ended(held);
    }

    fn believed(&self, now: Instant, sent: &SentCommand) -> Option<Believed> {
        let route = sent.route.as_ref()?;
        let course = sent.course(&self.head, &self.profile, route);
        if course.certainty == Certainty::Guessed {
            return None;
        }
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
