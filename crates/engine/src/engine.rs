//! One drive, a belief and a policy: requests in, commands out, outcomes in, ends out.
//!
//! Inputs are [`Engine::submit`] and [`Engine::complete`]. After any input, or at
//! [`Engine::next_wakeup`]: [`Engine::poll`] until `None`, [`Engine::poll_finished`] until `None`;
//! then the next wakeup lies in the future. A call too many is harmless. `now` never goes
//! backwards. Every accepted request comes back exactly once.

use std::collections::VecDeque;
use std::sync::Arc;

use block::{
    Action, Command, CommandId, Direction, Durability, Finished, Instant, Outcome, Refused,
    Request, Sectors,
};
use drive::{Angle, Position, Profile, Target};
use scheduler::{Choice, Pending, Policy, Sight, Ticket};

use crate::forecast::{Head, Route};
use crate::lifecycle::State;
use crate::limits::Limits;
use crate::slots::Slots;

/// The state machine between clients and one drive.
pub struct Engine {
    belief: Arc<Profile>,
    capacity: Sectors,
    policy: Box<dyn Policy>,
    limits: Limits,
    now: Instant,
    slots: Slots,
    /// By slot, where the policy looks at the head; of slots that are free, anything.
    routes: Vec<Route>,
    /// The head after the command that ended last.
    head: Head,
    /// In the order in which the drive was given them.
    at_drive: VecDeque<CommandId>,
    ended: VecDeque<u32>,
    /// The policy wants nothing served; it is not asked again before an input or the wakeup.
    settled: bool,
    /// Until when the policy idles on purpose.
    wakeup: Option<Instant>,
    given: u64,
    overruled: u64,
}

impl Engine {
    /// An engine with nothing to do, on a drive of which `belief` is believed.
    ///
    /// # Panics
    /// If a limit is zero: nothing could ever be served.
    pub fn new(belief: Arc<Profile>, policy: Box<dyn Policy>, limits: Limits) -> Self {
        assert!(
            limits.requests > 0 && limits.commands_at_drive > 0,
            "{limits:?}: expected at least one of each"
        );
        Engine {
            capacity: belief.geometry.sectors(),
            belief,
            policy,
            limits,
            now: Instant::ZERO,
            slots: Slots::new(),
            routes: Vec::new(),
            head: Head::UNKNOWN,
            at_drive: VecDeque::new(),
            ended: VecDeque::new(),
            settled: false,
            wakeup: None,
            given: 0,
            overruled: 0,
        }
    }

    /// What is believed of the drive.
    pub fn belief(&self) -> &Arc<Profile> {
        &self.belief
    }

    /// The bounds.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Requests held: accepted, and their end not yet told.
    pub fn held(&self) -> usize {
        self.slots.held()
    }

    /// Requests whose command has not been given to the drive yet.
    pub fn waiting(&self) -> usize {
        self.slots.waiting()
    }

    /// Commands at the drive.
    pub fn at_drive(&self) -> usize {
        self.at_drive.len()
    }

    /// How often the policy answered what cannot be: a request that is not waiting, a wait that
    /// was over, or nothing while the drive stood idle. The oldest request was served instead.
    pub fn overruled(&self) -> u64 {
        self.overruled
    }

    /// A client asks for something.
    ///
    /// # Errors
    /// If as many requests are held as may be, or the extent is not on the drive.
    pub fn submit(&mut self, now: Instant, request: Request) -> Result<(), Refused> {
        self.reach(now);
        if request.extent.end().0 > self.capacity.0 {
            return Err(self.past_end(request));
        }
        if self.slots.held() >= self.limits.requests {
            return Err(Refused::Full {
                limit: self.limits.requests,
            });
        }
        let route = match self.policy.sight() {
            Sight::Order => None,
            Sight::Head => Some(
                Route::new(&self.belief, request.extent, request.direction)
                    .ok_or_else(|| self.past_end(request))?,
            ),
        };
        let slot = self.slots.accept(now, request);
        if let Some(route) = route {
            match self.routes.get_mut(slot as usize) {
                Some(place) => *place = route,
                None => self.routes.push(route),
            }
        }
        let pending = self.pending(slot);
        self.policy.add(&pending);
        self.settled = false;
        Ok(())
    }

    /// The next command for the drive, if it should have one now.
    pub fn poll(&mut self, now: Instant) -> Option<Command> {
        self.reach(now);
        if self.settled && self.wakeup.is_none_or(|then| then > now) {
            return None;
        }
        self.wakeup = None;
        if self.at_drive.len() >= self.limits.commands_at_drive || self.slots.waiting() == 0 {
            return None;
        }
        let Some(slot) = self.choose(now) else {
            self.settled = true;
            return None;
        };
        self.slots.give(slot, now);
        let id = command_id(self.given, slot);
        self.given += 1;
        self.at_drive.push_back(id);
        let Request {
            direction, extent, ..
        } = self.slots.get(slot).request;
        let durability = Durability::Volatile;
        let action = match direction {
            Direction::Read => Action::Read { extent, durability },
            Direction::Write => Action::Write { extent, durability },
        };
        Some(Command::new(id, action))
    }

    /// A command has ended, as the drive says.
    ///
    /// # Panics
    /// If the command is not at the drive.
    pub fn complete(&mut self, now: Instant, id: CommandId, outcome: Outcome) {
        self.reach(now);
        assert_eq!(id, outcome.id, "an outcome under another command's name");
        let place = self
            .at_drive
            .iter()
            .position(|&other| other == id)
            .unwrap_or_else(|| panic!("{id:?} ended, which is not at the drive"));
        self.at_drive.remove(place);
        let slot = slot_of(id);
        if self.policy.sight() == Sight::Head {
            let given = self.slots.get(slot).given;
            let route = &self.routes[slot as usize];
            self.head = self
                .head
                .after(&self.belief, given, route)
                .ended(&self.belief, now);
        }
        self.slots.complete(slot, outcome);
        self.settled = false;
        self.ended.push_back(slot);
    }

    /// The next request that has ended.
    pub fn poll_finished(&mut self) -> Option<Finished> {
        let slot = self.slots.give_back(self.ended.pop_front()?);
        let outcome = slot.outcome.expect("an ended request has an outcome");
        Some(Finished {
            request: slot.request,
            submitted: slot.submitted,
            at: outcome.at,
            status: outcome.status,
            waited: slot.given.since(slot.submitted),
            account: outcome.account,
        })
    }

    /// When `poll` should be called next, if nothing else happens.
    pub fn next_wakeup(&self) -> Option<Instant> {
        self.wakeup
    }

    /// Asks the policy, and checks the answer: a policy may make us slow, never wrong.
    fn choose(&mut self, now: Instant) -> Option<u32> {
        let head = self.expected_head();
        match self.policy.select(&head.view(&self.belief, now)) {
            Choice::Serve(Ticket(slot)) if self.slots.state(slot) == State::Waiting => {
                return Some(slot);
            }
            Choice::WaitUntil(then) if then > now => {
                self.wakeup = Some(then);
                return None;
            }
            Choice::Nothing if !self.at_drive.is_empty() => return None,
            Choice::Serve(_) | Choice::WaitUntil(_) | Choice::Nothing => {}
        }
        self.overruled += 1;
        let slot = self.slots.oldest()?;
        let pending = self.pending(slot);
        self.policy.withdraw(&pending);
        Some(slot)
    }

    /// The head when all commands at the drive will have ended.
    fn expected_head(&self) -> Head {
        match self.policy.sight() {
            Sight::Order => self.head,
            Sight::Head => self.at_drive.iter().fold(self.head, |head, &id| {
                let slot = slot_of(id);
                let given = self.slots.get(slot).given;
                head.after(&self.belief, given, &self.routes[slot as usize])
            }),
        }
    }

    /// What the policy is told of a request.
    fn pending(&self, slot: u32) -> Pending {
        let entry = self.slots.get(slot);
        let target = match self.policy.sight() {
            Sight::Head => self.routes[slot as usize].target(),
            Sight::Order => Target {
                position: Position::default(),
                angle: Angle::ZERO,
            },
        };
        Pending {
            ticket: Ticket(slot),
            order: entry.order,
            direction: entry.request.direction,
            extent: entry.request.extent,
            target,
        }
    }

    fn past_end(&self, request: Request) -> Refused {
        Refused::PastEnd {
            extent: request.extent,
            capacity: self.capacity.0,
        }
    }

    fn reach(&mut self, now: Instant) {
        assert!(
            now >= self.now,
            "time went back from {:?} to {now:?}",
            self.now
        );
        self.now = now;
    }
}

/// A command's name holds the slot of its request, and a number that makes it unique.
fn command_id(number: u64, slot: u32) -> CommandId {
    CommandId(number << 32 | u64::from(slot))
}

fn slot_of(id: CommandId) -> u32 {
    id.0 as u32
}
