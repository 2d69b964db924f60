//! Policies that mean harm, beside those of the table.

use block::Duration;
use scheduler::policy::{ALL, NamedPolicy};
use scheduler::{Choice, EligibleRequest, PieceId, Policy, Sight, View};

/// How many there are: those of the table, and two hostile ones.
pub const COUNT: usize = ALL.len() + 2;

/// One of them.
pub fn make(which: usize) -> Box<dyn Policy> {
    match ALL.get(which) {
        Some(entry) => NamedPolicy::from(entry).make(),
        None if which == ALL.len() => Box::new(Newest::default()),
        None => Box::new(Dawdler::default()),
    }
}

/// Answers the newest of what it was ever told, gone or not, and then something that never was.
#[derive(Clone, Debug, Default)]
pub struct Newest {
    told: Vec<PieceId>,
    asked: u32,
}

/// Waits, and when it is tired of waiting serves nothing.
#[derive(Clone, Debug, Default)]
pub struct Dawdler {
    asked: u32,
}

impl Policy for Newest {
    fn sight(&self) -> Sight {
        Sight::Order
    }

    fn add(&mut self, pending: &EligibleRequest) {
        self.told.push(pending.ticket);
    }

    fn withdraw(&mut self, _pending: &EligibleRequest) {}

    fn select(&mut self, _view: &View) -> Choice {
        self.asked += 1;
        match self.asked % 7 {
            0 => Choice::Serve(PieceId(self.asked)),
            1 => Choice::Serve(PieceId(u32::MAX)),
            _ => self.told.pop().map_or(Choice::Nothing, Choice::Serve),
        }
    }
}

impl Policy for Dawdler {
    fn sight(&self) -> Sight {
        Sight::Head
    }

    fn add(&mut self, _pending: &EligibleRequest) {}

    fn withdraw(&mut self, _pending: &EligibleRequest) {}

    fn select(&mut self, view: &View) -> Choice {
        self.asked += 1;
        match self.asked {
            // Longer than any patience; not for ever, so that background requests end, too.
            0..40 => Choice::WaitUntil(view.now + Duration::from_secs(3600)),
            _ => Choice::Nothing,
        }
    }
}
