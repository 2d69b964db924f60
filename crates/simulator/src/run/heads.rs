//! The time at which each command at the drive could start.

use block::{CommandId, Instant, Outcome};
use engine::Engine;

/// The commands at the drive, or at the drives of a mirror.
#[derive(Debug)]
pub(super) struct Heads {
    /// The dispatch time of each outstanding command.
    given: Vec<(CommandId, Instant)>,
    /// The end of the last command of each arm.
    ended: Vec<Instant>,
}

impl Heads {
    /// No commands of so many arms.
    pub(super) fn of(arms: usize) -> Self {
        Heads {
            given: Vec::new(),
            ended: vec![Instant::ZERO; arms],
        }
    }

    /// Records the dispatch of a command.
    pub(super) fn begin(&mut self, now: Instant, id: CommandId) {
        self.given.push((id, now));
    }

    /// Records the end of a command. Returns its earliest possible start: its dispatch or the end
    /// of the previous command of its arm, whichever is later.
    pub(super) fn end(&mut self, outcome: &Outcome) -> Instant {
        let arm = match self.ended.len() {
            0 | 1 => 0,
            _ => Engine::leg_of(outcome.id) as usize,
        };
        let ended = &mut self.ended[arm];
        let place = self.given.iter().position(|(id, _)| *id == outcome.id);
        let given = place.map_or(*ended, |place| self.given.swap_remove(place).1);
        let began = given.max(*ended);
        *ended = outcome.at.max(*ended);
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
        let mut heads = Heads::of(1);
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

    #[test]
    fn a_command_of_one_arm_does_not_wait_for_the_other() {
        let mut heads = Heads::of(2);
        for id in 2..6 {
            heads.begin(at(1), CommandId(id));
        }
        assert_eq!(end(&mut heads, 2, 10), at(1));
        assert_eq!(end(&mut heads, 3, 12), at(1));
        assert_eq!(end(&mut heads, 4, 15), at(10));
        assert_eq!(end(&mut heads, 5, 21), at(12));
    }
}
