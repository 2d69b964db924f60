//! The time at which each command at the drive could start.

use block::{CommandId, Instant, Outcome};

/// The commands at the drive.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// The dispatch time of each outstanding command.
    given: Vec<(CommandId, Instant)>,
    /// The end of the last command.
    ended: Instant,
}

impl Heads {
    /// Records the dispatch of a command.
    pub(super) fn begin(&mut self, now: Instant, id: CommandId) {
        self.given.push((id, now));
    }

    /// Records the end of a command. Returns its earliest possible start: its dispatch or the end
    /// of the previous command, whichever is later.
    pub(super) fn end(&mut self, outcome: &Outcome) -> Instant {
        let place = self.given.iter().position(|(id, _)| *id == outcome.id);
        let given = place.map_or(self.ended, |place| self.given.swap_remove(place).1);
        let began = given.max(self.ended);
        self.ended = outcome.at.max(self.ended);
        began
    }
}

#[cfg(test)]
mod tests {
    use block::Status;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn end(heads: &mut Heads, id: u64, millis: u64) -> Instant {
        heads.end(&Outcome {
            id: CommandId(id),
            at: at(millis),
            status: Status::Good,
            account: None,
        })
    }

    #[test]
    fn a_command_has_the_head_when_it_is_there_and_the_one_before_has_ended() {
        let mut heads = Heads::default();
        heads.begin(at(1), CommandId(1));
        heads.begin(at(2), CommandId(2));
        heads.begin(at(3), CommandId(3));
        // The drive takes them in an order of its own.
        assert_eq!(end(&mut heads, 1, 10), at(1));
        assert_eq!(end(&mut heads, 3, 15), at(10));
        assert_eq!(end(&mut heads, 2, 21), at(15));
        heads.begin(at(30), CommandId(4));
        assert_eq!(end(&mut heads, 4, 33), at(30), "nothing was there before");
        assert!(heads.given.is_empty());
    }
}
