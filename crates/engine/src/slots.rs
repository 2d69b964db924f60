//! The requests that an engine holds, in places that are used again, and the order in which the
//! waiting ones came.
//!
//! ```text
//!   slots    [ r7 ][ free ][ r5 ][ r9 ][ free ]
//!   arrival  oldest -> r5 <-> r7 <-> r9 <- newest
//! ```

use block::{Instant, Outcome, Request};

use crate::lifecycle::{State, Step};

/// No slot: the end of a list.
const NONE: u32 = u32::MAX;

/// One request and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) request: Request,
    pub(crate) submitted: Instant,
    /// The number of its arrival.
    pub(crate) order: u64,
    /// When its command was given to the drive.
    pub(crate) given: Instant,
    /// How its command ended.
    pub(crate) outcome: Option<Outcome>,
    state: State,
    /// The neighbours among the waiting.
    older: u32,
    newer: u32,
}

/// All slots of an engine.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
    waiting: usize,
    arrived: u64,
}

impl Slots {
    pub(crate) fn new() -> Self {
        Slots {
            slots: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
            waiting: 0,
            arrived: 0,
        }
    }

    /// How many requests are held.
    pub(crate) fn held(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// How many of them wait for their command.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The waiting request that came first.
    pub(crate) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// The state of a slot; one that was never used is free.
    pub(crate) fn state(&self, slot: u32) -> State {
        self.slots
            .get(slot as usize)
            .map_or(State::Free, |slot| slot.state)
    }

    pub(crate) fn get(&self, slot: u32) -> &Slot {
        &self.slots[slot as usize]
    }

    /// Takes a request in; it waits.
    pub(crate) fn accept(&mut self, now: Instant, request: Request) -> u32 {
        let entry = Slot {
            request,
            submitted: now,
            order: self.arrived,
            given: now,
            outcome: None,
            state: State::Free.after(Step::Accept),
            older: self.newest,
            newer: NONE,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                let reused = &mut self.slots[slot as usize];
                assert_eq!(reused.state, State::Free, "a slot is used twice");
                *reused = entry;
                slot
            }
            None => {
                self.slots.push(entry);
                self.slots.len() as u32 - 1
            }
        };
        match self.newest {
            NONE => self.oldest = slot,
            newest => self.slots[newest as usize].newer = slot,
        }
        self.newest = slot;
        self.waiting += 1;
        self.arrived += 1;
        slot
    }

    /// Its command is given to the drive.
    pub(crate) fn give(&mut self, slot: u32, now: Instant) {
        let entry = self.step(slot, Step::Give);
        entry.given = now;
        let (older, newer) = (entry.older, entry.newer);
        match older {
            NONE => self.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        self.waiting -= 1;
    }

    /// Its command, which waited for a free read before it, is given to the drive.
    pub(crate) fn set_given(&mut self, slot: u32, now: Instant) {
        self.slots[slot as usize].given = now;
    }

    /// Its command has ended.
    pub(crate) fn complete(&mut self, slot: u32, outcome: Outcome) {
        self.step(slot, Step::Complete).outcome = Some(outcome);
    }

    /// The client is told: the slot is free again, and what it held is the answer.
    pub(crate) fn give_back(&mut self, slot: u32) -> Slot {
        let entry = *self.step(slot, Step::Return);
        self.free.push(slot);
        entry
    }

    fn step(&mut self, slot: u32, step: Step) -> &mut Slot {
        let entry = &mut self.slots[slot as usize];
        entry.state = entry.state.after(step);
        entry
    }
}
