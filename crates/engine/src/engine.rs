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

use crate::background::Background;
use crate::forecast::{Head, Route};
use crate::lifecycle::State;
use crate::limits::Limits;
use crate::sent::{Purpose, Sent, Step};
use crate::slots::Slots;

mod gaps;

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
    at_drive: VecDeque<Sent>,
    /// Chosen, and given to the drive as soon as it may have more.
    way: VecDeque<Step>,
    background: Option<Box<Background>>,
    /// When a request was last here.
    busy: Instant,
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
            way: VecDeque::new(),
            background: None,
            busy: Instant::ZERO,
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
        let route = match self.looks_at_head() {
            false => None,
            true => Some(
                Route::new(&self.belief, request.extent, request.direction)
                    .ok_or_else(|| self.past_end(request))?,
            ),
        };
        let slot = self.slots.accept(now, request);
        self.busy = now;
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
        if self.at_drive.len() >= self.limits.commands_at_drive {
            return None;
        }
        if let Some(step) = self.way.pop_front() {
            return Some(self.give(now, step));
        }
        if self.settled && self.wakeup.is_none_or(|then| then > now) {
            return None;
        }
        self.wakeup = None;
        if self.slots.waiting() == 0 {
            return self.poll_idle(now);
        }
        let Some(slot) = self.choose(now) else {
            self.settled = true;
            return None;
        };
        self.slots.give(slot, now);
        self.plan(now, slot);
        let step = self.way.pop_front()?;
        Some(self.give(now, step))
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
            .position(|sent| sent.id == id)
            .unwrap_or_else(|| panic!("{id:?} ended, which is not at the drive"));
        let sent = self.at_drive.remove(place).expect("a place in the queue");
        if let Some(route) = sent.route {
            self.resync(now, &sent, &route);
        }
        let slot = self.account_for(now, &sent, outcome.status);
        self.settled = false;
        if let Some(slot) = slot {
            self.slots.complete(slot, outcome);
            self.ended.push_back(slot);
            self.busy = now;
        }
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

    /// Hands the next step to the drive.
    fn give(&mut self, now: Instant, step: Step) -> Command {
        let id = CommandId(self.given);
        self.given += 1;
        let (purpose, direction, extent) = self.purpose(now, step);
        let route = match (step, self.looks_at_head()) {
            (_, false) => None,
            (
                Step::Request {
                    slot, merged: None, ..
                },
                true,
            ) => Some(self.routes[slot as usize]),
            (_, true) => Route::new(&self.belief, extent, direction),
        };
        self.at_drive.push_back(Sent {
            id,
            given: now,
            purpose,
            route,
        });
        let durability = Durability::Volatile;
        let action = match direction {
            Direction::Read => Action::Read { extent, durability },
            Direction::Write => Action::Write { extent, durability },
        };
        Command::new(id, action)
    }

    /// The head is known again: the last sector of the command has just passed under it.
    fn resync(&mut self, now: Instant, sent: &Sent, route: &Route) {
        let course = self.head.course(&self.belief, sent.given, route);
        self.head = course.ended(&self.belief, route, now);
        let end = self.head.free;
        let given = self.at_drive.iter_mut().map(|sent| &mut sent.purpose);
        given
            .filter_map(Purpose::without_mut)
            .for_each(|without| without.resync(sent.id, end));
        for step in &mut self.way {
            if let Step::Request {
                without: Some(without),
                ..
            } = step
            {
                without.resync(sent.id, end);
            }
        }
        self.learn(now, &course, route);
    }

    /// Whether somebody wants to know where the head is.
    fn looks_at_head(&self) -> bool {
        self.background.is_some() || self.policy.sight() == Sight::Head
    }

    /// The head when all commands at the drive will have ended.
    fn expected_head(&self) -> Head {
        if !self.looks_at_head() {
            return self.head;
        }
        self.at_drive.iter().fold(self.head, |head, sent| {
            let after = sent.route.as_ref();
            after.map_or(head, |route| head.after(&self.belief, sent.given, route))
        })
    }

    /// What the policy is told of a request.
    fn pending(&self, slot: u32) -> Pending {
        let entry = self.slots.get(slot);
        let target = match self.looks_at_head() {
            true => self.routes[slot as usize].target(),
            false => Target {
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
