//! A simulated disk: it receives commands and returns the moment of each end.
//!
//! ```text
//!   submit ---> queue ---> started by an arm as it becomes free ---> ended ---> poll
//!                 '------> its duration limit passes ---------------'
//! ```
//!
//! Commands that need no arm (hits, early writes, switches) also wait while another command uses
//! their arm, but not while it destages.
//!
//! The caller acts: after each `submit`, and at `next_wakeup`, it calls `poll` until `None`. The
//! next wakeup then lies in the future.

use std::hint::select_unpredictable;
use std::sync::Arc;

use block::{
    Account, Action, Command, Direction, Extent, Instant, Lba, Outcome, Refused, Status, Switch,
    Urgency,
};

use crate::angle::Angle;
use crate::firmware::QueueOrder;
use crate::host::HostQueues;
use crate::imperfection::Imperfections;
use crate::mechanics::SeekTarget;
use crate::profile::Profile;
use crate::service::{CommandTimes, DriveService};
use crate::zones::{Zone, ZoneAction, ZoneRefused};

/// A simulated drive. Its profile is the truth, which no scheduler may read.
#[derive(Clone, Debug)]
pub struct VirtualDrive {
    service: DriveService,
    /// Submitted commands that were not started, in the order of submission.
    queue: Vec<Queued>,
    /// Started commands that were not polled; latest end first.
    ended: Vec<EndedCommand>,
    depth: usize,
    order: QueueOrder,
    /// The number of queued commands with a duration limit.
    limited: usize,
    /// The moment at which the last command started.
    last_taken: Instant,
    /// The host in front of the drive, if it delays.
    host: Option<Box<HostQueues>>,
}

/// A command in the drive's queue.
#[derive(Clone, Copy, Debug)]
struct Queued {
    command: Command,
    submitted: Instant,
    arm: usize,
    /// The target of a command that moves the arm.
    target: Option<SeekTarget>,
    /// The last moment at which it may start.
    until: Option<Instant>,
}

/// A command whose end is known.
#[derive(Clone, Copy, Debug)]
struct EndedCommand {
    outcome: Outcome,
    command: Command,
}

/// The losses of a power cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Writes that counted as done, with no block on the medium.
    pub written: Vec<Extent>,
    /// Writes in flight or queued, and writes in destaging. Each block has the old or the new
    /// contents.
    pub undecided: Vec<Extent>,
    /// The torn physical sectors, at most one for each actuator. They are unreadable, and lie in or
    /// around an undecided extent.
    pub torn: Vec<Extent>,
    /// Commands that will never end.
    pub commands: Vec<Command>,
}

impl VirtualDrive {
    /// A drive that behaves exactly as `truth` says.
    pub fn new(truth: Arc<Profile>) -> Self {
        Self::imperfect(truth, Imperfections::default(), 0)
    }

    /// A drive that deviates from `truth`. The deviations follow from `seed`.
    pub fn imperfect(truth: Arc<Profile>, imperfections: Imperfections, seed: u64) -> Self {
        let depth = truth.queue.depth.max(1) as usize;
        let order = truth.queue.order;
        let host = HostQueues::new(imperfections.host, seed);
        VirtualDrive {
            service: DriveService::new(truth, imperfections, seed),
            queue: Vec::new(),
            ended: Vec::new(),
            depth,
            order,
            limited: 0,
            last_taken: Instant::ZERO,
            host,
        }
    }

    /// The drive with another queue depth and order.
    pub fn with_queue(mut self, depth: u32, order: QueueOrder) -> Self {
        self.depth = depth.max(1) as usize;
        self.order = order;
        self
    }

    /// The truth.
    pub fn truth(&self) -> &Profile {
        &self.service.truth
    }

    /// The host-managed zones with blocks of `extent`; none on a drive without zones.
    pub fn zones(&self, extent: Extent) -> impl Iterator<Item = Zone> {
        let zones = self.service.zones.iter();
        zones.flat_map(move |zones| zones.report(extent))
    }

    /// Changes the host-managed zone that begins at `at`. It takes no time: no drive's times are published.
    /// Writes that the drive holds meet the zone as it is when they are started.
    ///
    /// # Errors
    /// If there is no such zone, or its condition does not permit the action.
    pub fn change_zone(&mut self, at: Lba, action: ZoneAction) -> Result<(), ZoneRefused> {
        let zones = self.service.zones.as_mut();
        zones.ok_or(ZoneRefused::NoZone { at })?.act(at, action)
    }

    /// The number of commands that the drive holds, those on their way through the host included.
    pub fn held(&self) -> usize {
        let on_their_way = self.host.as_ref().map_or(0, |host| host.held());
        self.queue.len() + self.ended.len() + on_their_way
    }

    /// Submits a command. The queue depth bounds the commands in the drive, ended ones that were
    /// not polled included.
    ///
    /// # Errors
    /// If the drive is full, or the extent is not on it.
    pub fn submit(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        if self.held() >= self.depth {
            return Err(Refused::Full { limit: self.depth });
        }
        let extent = command.action.extent();
        let capacity = self.service.truth.geometry.sectors().0;
        if let Some(extent) = extent
            && extent.end().0 > capacity
        {
            return Err(Refused::PastEnd { extent, capacity });
        }
        match &mut self.host {
            Some(host) => host.send(now, command),
            None => self.enqueue(now, command),
        }
        Ok(())
    }

    /// A command arrives at the drive.
    fn enqueue(&mut self, now: Instant, command: Command) {
        let extent = command.action.extent();
        let target = match (self.order, extent) {
            (QueueOrder::Fcfs, _) | (_, None) => None,
            (_, Some(extent)) => self
                .service
                .truth
                .geometry
                .locate(extent.start())
                .as_ref()
                .map(SeekTarget::from),
        };
        let arm = extent.map_or(0, |extent| self.service.arm_of(extent.start()));
        let until = command.duration_limit.map(|limit| now + limit);
        self.limited += usize::from(until.is_some());
        self.queue.push(Queued {
            command,
            submitted: now,
            arm,
            target,
            until,
        });
    }

    /// The next command that has ended by `now`, in the order of the ends.
    pub fn poll(&mut self, now: Instant) -> Option<Outcome> {
        match self.host {
            None => self.poll_drive(now),
            Some(_) => {
                self.pass_through_host(now);
                self.host.as_mut()?.delivered(now)
            }
        }
    }

    fn poll_drive(&mut self, now: Instant) -> Option<Outcome> {
        self.take_up(now);
        let ended = self.ended.pop_if(|ended| ended.outcome.at <= now)?;
        Some(ended.outcome)
    }

    /// Lets commands arrive at the drive, and outcomes set out from it, up to `now`.
    fn pass_through_host(&mut self, now: Instant) {
        let Some(mut host) = self.host.take() else {
            return;
        };
        loop {
            let next = [host.next_arrival(), self.drive_wakeup()];
            let next = next.into_iter().flatten().min();
            let Some(at) = next.filter(|at| *at <= now) else {
                break;
            };
            if let Some(command) = host.arrived(at) {
                self.enqueue(at, command);
            }
            while let Some(outcome) = self.poll_drive(at) {
                host.ended(outcome);
            }
        }
        self.host = Some(host);
    }

    /// The moment of the next `poll`; in the future once `poll` has returned `None`.
    pub fn next_wakeup(&self) -> Option<Instant> {
        let drive = self.drive_wakeup();
        match &self.host {
            None => drive,
            Some(host) => {
                let all = [drive, host.next_arrival(), host.next_outcome()];
                all.into_iter().flatten().min()
            }
        }
    }

    fn drive_wakeup(&self) -> Option<Instant> {
        let mut next = self.ended.last().map(|ended| ended.outcome.at);
        let free = self.first_taken().map(|(at, _)| at);
        let expires = self.first_expiry().map(|(at, _)| at);
        if let Some(free) = free {
            next = Some(next.map_or(free, |next| next.min(free)));
        }
        if let Some(expires) = expires {
            next = Some(next.map_or(expires, |next| next.min(expires)));
        }
        next
    }

    /// Ends all activity at `now` with the head in place, for comparisons with a real drive whose
    /// completions are known. Each command is then judged without the errors of earlier ones.
    pub fn resync(&mut self, now: Instant) {
        self.service.resync(now);
        self.last_taken = self.last_taken.min(now);
    }

    /// Sets the platter to `phase` at `Instant::ZERO`, for the same comparisons. A real spindle
    /// wanders, and completions reveal its phase.
    pub fn turn_platter(&mut self, phase: Angle) {
        self.service.turn_platter(phase);
    }

    /// Cuts the power at `now` and restores it at once. The buffer and the queue are lost, a sector
    /// being written is torn, and the switches are as after power-up.
    ///
    /// Commands that had ended are still to be polled. All others are in the answer and never end.
    pub fn power_cut(&mut self, now: Instant) -> Lost {
        self.pass_through_host(now);
        self.take_up(now);
        self.service.idle_until(now);
        // The latest ends come first.
        let over = self.ended.partition_point(|ended| ended.outcome.at > now);
        let mut commands: Vec<Command> = self.ended.drain(..over).map(|e| e.command).collect();
        let begun = writes_of(&commands);
        commands.extend(self.queue.drain(..).map(|queued| queued.command));
        self.limited = 0;
        let cut = self.service.power_cut(now);
        for unwritten in [&cut.unwritten, &cut.undecided, &begun] {
            self.service.fall_back(unwritten);
        }
        let mut undecided = cut.undecided;
        commands.extend(self.host.iter_mut().flat_map(|host| host.lose()));
        undecided.extend(writes_of(&commands));
        Lost {
            written: cut.unwritten,
            undecided,
            torn: cut.torn,
            commands,
        }
    }

    /// Starts the next command of every arm that is free by `now`, and ends commands whose limit
    /// has passed.
    #[inline]
    fn take_up(&mut self, now: Instant) {
        // Most of the time there is nothing to start.
        let is_due = |first: Option<(Instant, usize)>| first.is_some_and(|(at, _)| at <= now);
        if is_due(self.first_taken()) || is_due(self.first_expiry()) {
            self.take_up_due(now);
        }
    }

    fn take_up_due(&mut self, now: Instant) {
        while let Some((at, first)) = self.first_taken() {
            match self.first_expiry() {
                Some((expires, index)) if expires < at => {
                    if expires > now {
                        return;
                    }
                    self.expire(index, expires);
                }
                _ if at > now => return,
                // Its arm may have begun to destage before: then its turn has not come.
                _ if self.service.idle_until(at) => (),
                _ => self.take(self.next_taken(first, at), at),
            }
        }
    }

    /// Starts a command.
    fn take(&mut self, index: usize, at: Instant) {
        let Queued {
            command,
            submitted,
            until,
            ..
        } = match self.queue.len() {
            // Nothing is moved.
            1 => self.queue.swap_remove(index),
            _ => self.queue.remove(index),
        };
        self.limited -= usize::from(until.is_some());
        self.last_taken = at;
        let served = self
            .service
            .serve(command.action, CommandTimes { submitted, at });
        let outcome = Outcome {
            id: command.id,
            at: served.at,
            status: served.status,
            account: Some(served.account),
        };
        self.end(EndedCommand { outcome, command });
    }

    /// Ends a command at its duration limit.
    fn expire(&mut self, index: usize, at: Instant) {
        let Queued {
            command, submitted, ..
        } = self.queue.remove(index);
        self.limited -= 1;
        let outcome = Outcome {
            id: command.id,
            at,
            status: Status::TimedOut,
            account: Some(Account {
                queue: at.since(submitted),
                ..Account::default()
            }),
        };
        self.end(EndedCommand { outcome, command });
    }

    fn end(&mut self, ended: EndedCommand) {
        let at = ended.outcome.at;
        let place = self.ended.partition_point(|other| other.outcome.at > at);
        self.ended.insert(place, ended);
    }

    /// When it could be a command's turn: its arm has done what it was told. What another command
    /// has brought into the buffer is there from then on, not before.
    #[inline]
    fn turn(&self, queued: &Queued) -> Instant {
        let turn = self.service.arms[queued.arm].turn.max(queued.submitted);
        turn.max(self.last_taken)
    }

    /// When a command could be taken up: if it needs its arm, also destaging must be over.
    #[inline]
    fn taken_at(&self, queued: &Queued) -> Instant {
        let turn = self.turn(queued);
        let free_at = self.service.arms[queued.arm].free_at;
        if free_at <= turn || self.service.needs_no_arm(queued.command.action) {
            turn
        } else {
            free_at
        }
    }

    /// When an arm takes up a command next, and the first one that it could be.
    #[inline]
    fn first_taken(&self) -> Option<(Instant, usize)> {
        let first = self.queue.first()?;
        match &self.service.arms[..] {
            // They are in the order of their submission.
            [arm] if arm.free_at <= arm.turn => Some((self.turn(first), 0)),
            _ => self.first_of_many(),
        }
    }

    /// The same, if arms may be free at other moments than at their turns.
    fn first_of_many(&self) -> Option<(Instant, usize)> {
        let present = self.queue.iter().enumerate();
        present
            .map(|(index, queued)| (self.taken_at(queued), index))
            .min()
    }

    /// When the next duration limit passes, and whose it is.
    fn first_expiry(&self) -> Option<(Instant, usize)> {
        if self.limited == 0 {
            return None;
        }
        let present = self.queue.iter().enumerate();
        present
            .filter_map(|(index, queued)| Some((queued.until?, index)))
            .min()
    }

    /// Which command the arm of `first` takes up at `at`.
    fn next_taken(&self, first: usize, at: Instant) -> usize {
        let mut queue = self.queue.iter();
        let is_in_order = self.order == QueueOrder::Fcfs
            && queue.all(|queued| queued.command.urgency == Urgency::Normal);
        if self.queue.len() == 1 || is_in_order {
            return first;
        }
        let arm = self.queue[first].arm;
        let is_one_arm_free = match &self.service.arms[..] {
            [arm] => arm.free_at <= arm.turn,
            _ => false,
        };
        let (mut best, mut least) = (first, u64::MAX);
        for (index, queued) in self.queue.iter().enumerate() {
            let is_there = match is_one_arm_free {
                true => queued.submitted <= at,
                false => queued.arm == arm && self.taken_at(queued) <= at,
            };
            if !is_there {
                continue;
            }
            let cost = self.cost(queued, at);
            // Of equal ones the first, which was submitted before the others. Which is less is not predictable.
            let is_less = cost < least;
            best = select_unpredictable(is_less, index, best);
            least = select_unpredictable(is_less, cost, least);
        }
        best
    }

    /// What the drive's order minimises, urgent commands before others. Those that do not move the arm keep their place.
    #[inline]
    fn cost(&self, queued: &Queued, at: Instant) -> u64 {
        let others = match queued.command.urgency {
            Urgency::High => 0,
            // Above every cost: no positioning takes as long.
            Urgency::Normal => 1 << 62,
        };
        let Some(target) = queued.target else {
            return others;
        };
        let truth = &self.service.truth;
        let position = self.service.arms[queued.arm].position;
        let direction = match queued.command.action {
            Action::Write { .. } => Direction::Write,
            _ => Direction::Read,
        };
        let seek = truth.reposition(position, target.position, direction);
        let way = match queued.command.action {
            Action::Seek { .. } if truth.seek_command == Switch::Off => return others,
            Action::Seek { .. } => seek,
            _ => seek + truth.spindle.wait(at + seek, target.angle),
        };
        others + self.order.cost(way.as_nanos(), at.since(queued.submitted))
    }
}

/// What the commands among them that write would write.
fn writes_of(commands: &[Command]) -> Vec<Extent> {
    let write = |command: &Command| match command.action {
        Action::Write { extent, .. } => Some(extent),
        _ => None,
    };
    commands.iter().filter_map(write).collect()
}
