//! The order in which concurrent procedures use a drive that has one head.

use std::collections::VecDeque;

/// The procedures that wait for their turn, first come, first served.
#[derive(Debug, Default)]
pub(super) struct TurnQueue {
    holder: Option<u64>,
    waiting: VecDeque<Waiting>,
    /// Those of procedures that pause.
    parked: VecDeque<Waiting>,
    grants: Grants,
    next: u64,
    /// Number of grants and returns: a change lets others go on.
    pub(super) changes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    id: u64,
    /// The number of reads of the medium before which the procedure has no use for a turn.
    after: u64,
}

/// Whether turns are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Grants {
    #[default]
    Open,
    /// Not any more: the procedures are to pause when the present turn ends.
    Closed,
}

/// The answer to a waiting procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnGrant {
    /// The turn is the procedure's.
    Given,
    /// No procedure has a use for a turn yet: this one makes a read elsewhere, then waits on.
    Displace,
    /// The turn is another procedure's.
    Wait,
}

impl TurnQueue {
    /// Enters the queue: the procedure has no use for a turn before `after` reads of the medium.
    pub(super) fn enter(&mut self, after: u64) -> u64 {
        let id = self.next;
        self.next += 1;
        self.waiting.push_back(Waiting { id, after });
        id
    }

    /// Asks for the turn after `reads` reads of the medium.
    pub(super) fn ask(&mut self, id: u64, reads: u64) -> TurnGrant {
        if self.holder.is_some() || self.grants == Grants::Closed {
            return TurnGrant::Wait;
        }
        let useful = self.waiting.iter().position(|one| one.after <= reads);
        let place = useful.unwrap_or(0);
        if self.waiting.get(place).is_none_or(|one| one.id != id) {
            return TurnGrant::Wait;
        }
        self.holder = Some(id);
        self.changes += 1;
        match useful {
            Some(place) => {
                self.waiting.remove(place);
                TurnGrant::Given
            }
            None => TurnGrant::Displace,
        }
    }

    /// Returns the turn.
    pub(super) fn give_back(&mut self, id: u64) {
        if self.holder == Some(id) {
            self.holder = None;
            self.changes += 1;
        }
    }

    /// Parks all that wait, once no procedure has the turn; until then no other gets it. Answers whether
    /// they are parked.
    pub(super) fn park(&mut self) -> bool {
        self.grants = Grants::Closed;
        let is_idle = self.holder.is_none();
        if is_idle {
            self.parked.append(&mut self.waiting);
            self.grants = Grants::Open;
        }
        is_idle
    }

    /// Lets those that were parked wait for their turns again.
    pub(super) fn unpark(&mut self) {
        self.waiting.append(&mut self.parked);
        self.changes += 1;
    }

    /// Forgets a procedure that was cancelled while it waited.
    pub(super) fn leave(&mut self, id: u64) {
        self.waiting.retain(|one| one.id != id);
        self.parked.retain(|one| one.id != id);
        self.give_back(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_with_a_use_for_it_has_the_turn() {
        let mut queue = TurnQueue::default();
        let [early, late] = [0, 5].map(|after| queue.enter(after));
        assert_eq!(queue.ask(late, 0), TurnGrant::Wait);
        assert_eq!(queue.ask(early, 0), TurnGrant::Given);
        assert_eq!(queue.ask(late, 9), TurnGrant::Wait);
        queue.give_back(early);
        // Nobody else waits: it has to make the missing reads itself.
        assert_eq!(queue.ask(late, 4), TurnGrant::Displace);
        queue.give_back(late);
        assert_eq!(queue.ask(late, 5), TurnGrant::Given);
    }

    #[test]
    fn parked_procedures_block_no_other_and_go_on_later() {
        let mut queue = TurnQueue::default();
        let [one, other] = [0, 0].map(|after| queue.enter(after));
        assert_eq!(queue.ask(one, 0), TurnGrant::Given);
        assert!(!queue.park(), "the turn is not over");
        queue.give_back(one);
        assert_eq!(queue.ask(other, 0), TurnGrant::Wait);
        assert!(queue.park());
        let between = queue.enter(0);
        assert_eq!(queue.ask(between, 0), TurnGrant::Given);
        assert_eq!(queue.ask(other, 0), TurnGrant::Wait);
        queue.give_back(between);
        queue.unpark();
        assert_eq!(queue.ask(other, 0), TurnGrant::Given);
    }

    #[test]
    fn a_cancelled_procedure_blocks_no_other() {
        let mut queue = TurnQueue::default();
        let [one, other] = [0, 0].map(|after| queue.enter(after));
        assert_eq!(queue.ask(one, 0), TurnGrant::Given);
        queue.leave(one);
        assert_eq!(queue.ask(other, 0), TurnGrant::Given);
    }
}
