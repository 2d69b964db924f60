//! The requests that an engine holds, in places that are used again.
//!
//! ```text
//!   slots    [ r7: 1 piece ][ free ][ r5: 3 pieces ][ r9: 1 piece ][ free ]
//!   names    r5, r7, r9      from the first time that a client names one
//! ```

use std::collections::BTreeSet;

use block::{Account, Duration, Instant, Request, RequestId, Status};

use super::lifecycle::{State, Transition};

/// One request and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) request: Request,
    pub(crate) submitted: Instant,
    /// How it ended; of one that has not, how those of its pieces ended that have.
    pub(crate) end: End,
    state: State,
    /// Its pieces that have not ended.
    pieces: u32,
}

/// How a piece ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) at: Instant,
    pub(crate) status: Status,
    pub(crate) waited: Duration,
    pub(crate) waited_order: Duration,
    pub(crate) account: Option<Account>,
}

/// All slots of an engine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The held by name. A client that never names one does not pay for it.
    names: Option<BTreeSet<(RequestId, u32)>>,
}

impl Slots {
    /// How many requests are held.
    pub(crate) fn held(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn get(&self, slot: u32) -> &Slot {
        &self.slots[slot as usize]
    }

    /// Takes a request in, of one piece.
    pub(crate) fn accept(&mut self, now: Instant, request: Request) -> u32 {
        // A slot is large, and is made where it stays.
        let entry = || Slot {
            request,
            submitted: now,
            end: End {
                at: now,
                status: Status::Good,
                waited: Duration::ZERO,
                waited_order: Duration::ZERO,
                account: None,
            },
            state: State::Free.after(Transition::Accept),
            pieces: 1,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                let reused = &mut self.slots[slot as usize];
                assert_eq!(reused.state, State::Free, "a slot is used twice");
                *reused = entry();
                slot
            }
            None => {
                self.slots.push(entry());
                self.slots.len() as u32 - 1
            }
        };
        if let Some(names) = &mut self.names {
            names.insert((request.id, slot));
        }
        slot
    }

    /// The request has more pieces.
    pub(crate) fn divided(&mut self, slot: u32, more: u32) {
        self.slots[slot as usize].pieces += more;
    }

    /// A piece has ended; the answer says whether all have. Times and account of the request are
    /// those of the piece that ends last, its status is the first that is not good.
    pub(crate) fn part_ended(&mut self, slot: u32, end: End) -> Parts {
        let entry = &mut self.slots[slot as usize];
        entry.pieces -= 1;
        let status = entry.end.status;
        entry.end = end;
        if status != Status::Good {
            entry.end.status = status;
        }
        let (step, parts) = match entry.pieces {
            0 => (Transition::Finish, Parts::All),
            _ => (Transition::Part, Parts::Some),
        };
        entry.state = entry.state.after(step);
        parts
    }

    /// The client is told: the slot is free again, and what it held is the answer.
    pub(crate) fn give_back(&mut self, slot: u32) -> &Slot {
        let entry = &mut self.slots[slot as usize];
        entry.state = entry.state.after(Transition::Return);
        self.free.push(slot);
        if let Some(names) = &mut self.names {
            names.remove(&(entry.request.id, slot));
        }
        entry
    }

    /// The request of this name; the one in the first slot, if clients use a name twice.
    pub(crate) fn find(&mut self, id: RequestId) -> Option<u32> {
        let slots = &self.slots;
        let names = self.names.get_or_insert_with(|| {
            let held = slots.iter().enumerate();
            held.filter(|(_, slot)| slot.state != State::Free)
                .map(|(place, slot)| (slot.request.id, place as u32))
                .collect()
        });
        names
            .range((id, 0)..=(id, u32::MAX))
            .next()
            .map(|&(_, slot)| slot)
    }
}

/// Which pieces of a request have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    /// Not all.
    Some,
    /// All.
    All,
}
