//! The engine's gaps: what comes before a chosen request, and what goes by itself.

use block::{Command, CommandId, Direction, Duration, Extent, Instant, Outcome, Sectors};
use profiler::tracker::Mode;
use scheduler::background::{
    Account, Means, NotWanted, Order, Progress, TaskId, TaskRefused, UnknownTask,
};
use scheduler::freeblock::{Gap, Kind, Losses, Wanted};

use super::Engine;
use crate::background::{Background, Before, Decision, Gaps, Rules, counted};
use crate::forecast::{Course, Route};
use crate::sent::{Planned, Purpose, Read, Sent, Step, Without};

impl Engine {
    /// The engine, with background tasks under these rules.
    ///
    /// # Panics
    /// If fewer than two commands may be at the drive: free reads are given while the command
    /// before them is in service. If requests are already here.
    pub fn with_background(mut self, rules: Rules) -> Self {
        assert!(
            self.limits.commands_at_drive >= 2,
            "free blocks need two commands at the drive"
        );
        assert_eq!(self.held(), 0, "background tasks come before requests");
        self.background = Some(Box::new(Background::new(&self.belief, rules)));
        self
    }

    /// Whether it was made with background tasks.
    pub fn has_background(&self) -> bool {
        self.background.is_some()
    }

    /// Begins a background task.
    ///
    /// # Errors
    /// If there are too many, its deadline has passed, or its set is another drive's.
    ///
    /// # Panics
    /// If the engine was made without background tasks; so do the other calls about them.
    pub fn begin_task(&mut self, now: Instant, order: Order) -> Result<TaskId, TaskRefused> {
        self.reach(now);
        self.settled = false;
        let geometry = std::sync::Arc::clone(&self.belief.geometry);
        self.tasks().begin(now, &geometry, order)
    }

    /// Begins a task that stands: see [`Tasks::begin_standing`](scheduler::background::Tasks::begin_standing).
    ///
    /// # Errors
    /// If there is one.
    pub fn begin_standing_task(
        &mut self,
        now: Instant,
        priority: u8,
    ) -> Result<TaskId, TaskRefused> {
        self.reach(now);
        let geometry = std::sync::Arc::clone(&self.belief.geometry);
        self.tasks().begin_standing(now, &geometry, priority)
    }

    /// A standing task wants these blocks, too.
    ///
    /// # Errors
    /// If it is not under way or does not stand, or there are no such blocks.
    pub fn want(&mut self, now: Instant, id: TaskId, extent: Extent) -> Result<(), NotWanted> {
        self.reach(now);
        if self.tasks().want(id, extent)? > 0 {
            self.settled = false;
        }
        Ok(())
    }

    /// A standing task no longer wants these blocks.
    ///
    /// # Errors
    /// If it is not under way or does not stand.
    pub fn unwant(&mut self, now: Instant, id: TaskId, extent: Extent) -> Result<(), NotWanted> {
        self.reach(now);
        self.tasks().unwant(id, extent)
    }

    /// Which blocks a command at the drive reads in the background, by itself or merged with those of
    /// a request; `None` if it reads none. Whoever has them gets them when it ends.
    ///
    /// # Panics
    /// If the command is not at the drive.
    pub fn background_of(&self, id: CommandId) -> Option<Extent> {
        let sent = self.at_drive.iter().find(|sent| sent.id == id);
        let sent = sent.unwrap_or_else(|| panic!("{id:?} is not at the drive"));
        match sent.purpose {
            Purpose::Background(read) | Purpose::Merged { read, .. } => Some(read.extent),
            _ => None,
        }
    }

    /// The task's blocks are no longer looked for; what others read is taken along.
    ///
    /// # Errors
    /// If it is not under way.
    pub fn suspend_task(&mut self, now: Instant, id: TaskId) -> Result<(), UnknownTask> {
        self.reach(now);
        self.tasks().suspend(id)
    }

    /// The task's blocks are looked for again.
    ///
    /// # Errors
    /// If it is not under way.
    pub fn resume_task(&mut self, now: Instant, id: TaskId) -> Result<(), UnknownTask> {
        self.reach(now);
        self.settled = false;
        self.tasks().resume(id)
    }

    /// The task is given up.
    ///
    /// # Errors
    /// If it is not under way.
    pub fn abort_task(&mut self, now: Instant, id: TaskId) -> Result<(), UnknownTask> {
        self.reach(now);
        self.tasks().abort(now, id)
    }

    /// The task gets another priority.
    ///
    /// # Errors
    /// If it is not under way.
    pub fn promote_task(
        &mut self,
        now: Instant,
        id: TaskId,
        priority: u8,
    ) -> Result<(), UnknownTask> {
        self.reach(now);
        self.tasks().promote(id, priority)
    }

    /// How far a task has come; `None` if it is unknown, or ended before another was begun.
    pub fn task(&self, id: TaskId) -> Option<Progress> {
        self.background.as_ref()?.tasks.progress(id)
    }

    /// The blocks of which no read for the task has been given to the drive yet.
    pub fn task_left(&self, id: TaskId) -> Option<&Wanted> {
        self.background.as_ref()?.tasks.left(id)
    }

    /// What background reads brought, by what paid for them.
    pub fn background_account(&self) -> Account {
        let background = self.background.as_ref();
        background.map_or(Account::default(), |background| background.account)
    }

    /// What came of the gaps.
    pub fn gaps(&self) -> Gaps {
        let background = self.background.as_ref();
        background.map_or(Gaps::default(), |background| background.gaps)
    }

    /// The share of the mean response time that foreground requests are measured to lose to
    /// plans, over the last few thousand of them.
    pub fn impact(&self) -> f64 {
        let background = self.background.as_ref();
        background.map_or(0.0, |background| background.conservatism().impact())
    }

    /// What the foreground took, and what of it is owed to plans, since the beginning.
    pub fn losses(&self) -> Losses {
        let background = self.background.as_ref();
        background.map_or_else(Losses::default, |background| {
            background.conservatism().losses()
        })
    }

    /// By how much plans may lengthen foreground requests on average, in parts per million; `None`
    /// without background tasks or with a fixed guard.
    pub fn impact_budget(&self) -> Option<u32> {
        self.background.as_ref()?.conservatism().budget()
    }

    /// They may lengthen them by so much from now on. An engine without background tasks or with a
    /// fixed guard keeps to no budget: nothing changes.
    pub fn set_impact_budget(&mut self, now: Instant, impact_ppm: u32) {
        self.reach(now);
        if let Some(background) = &mut self.background {
            background.conservatism_mut().set_budget(impact_ppm);
        }
    }

    /// The present guards: of reads after short and long seeks, then of writes.
    pub fn guards(&self) -> [Duration; 4] {
        let background = self.background.as_ref();
        background.map_or([Duration::ZERO; 4], |background| {
            background.conservatism().guards()
        })
    }

    fn tasks(&mut self) -> &mut scheduler::background::Tasks {
        let background = self.background.as_mut();
        &mut background.expect("an engine with background tasks").tasks
    }

    /// Puts the chosen piece on the way, and what fits into the gap before it.
    pub(super) fn plan(&mut self, now: Instant, piece: u32) {
        // The drive may fail again where it failed before: then by itself.
        let decided = match (self.ordering.requeued(piece), self.mode()) {
            (0, Mode::Positioning) => self.decide(now, piece),
            _ => None,
        };
        let decided = decided.filter(|(decision, _)| self.leaves_room_for(now, piece, decision));
        let Some((decision, mut without)) = decided else {
            self.way.push_back(Step::Request {
                piece,
                planned: Planned::Yes,
                was_held: false,
                merged: None,
                without: None,
            });
            return;
        };
        if decision.means == Means::Paid {
            without.paid = 1;
        }
        let mut merged = None;
        for &stop in decision.plan.stops() {
            match stop.kind {
                Kind::Merged => merged = Some((stop, decision.means)),
                Kind::Detour | Kind::Source | Kind::Destination => {
                    self.way.push_back(Step::Read(stop, decision.means));
                }
            }
        }
        self.way.push_back(Step::Request {
            piece,
            planned: Planned::Yes,
            was_held: false,
            merged,
            without: Some(without),
        });
    }

    /// The chosen piece, while it waits for the free reads before it.
    fn on_the_way(&self) -> Option<u32> {
        match self.way.back() {
            Some(&Step::Request { piece, .. }) => Some(piece),
            Some(_) | None => None,
        }
    }

    /// Something that came since another was chosen goes first, if it is real-time; with preemption, if
    /// it is more urgent.
    pub(super) fn let_urgent_pass(&mut self, now: Instant) {
        let Some(chosen) = self.on_the_way() else {
            return;
        };
        let is_passed = match self.preemption() {
            None => self.ordering.overtakes(chosen),
            Some(_) => {
                self.ordering.is_outranked(chosen) && !self.ordering.is_out_of_patience(now, chosen)
            }
        };
        if is_passed {
            self.turn_back();
        }
    }

    /// The way is given up: the chosen piece waits again, and what came before it is not read.
    pub(crate) fn turn_back(&mut self) {
        if let Some(piece) = self.on_the_way() {
            self.ordering.put_back(piece);
            self.way.clear();
            self.settled = false;
        }
    }

    fn decide(&mut self, now: Instant, piece: u32) -> Option<(Decision, Without)> {
        if !self.background.as_ref()?.tasks.is_any_active() {
            return None;
        }
        let head = self.expected_head();
        let route = self.routes[piece as usize];
        let course = head.course(&self.belief, now, &route);
        // A head that lands inside the request's blocks takes the rest of them first, and there is
        // no gap.
        if !course.pass.wrapped.is_zero() {
            return None;
        }
        let latency = course.pass.rotation;
        let (direction, extent) = self.ordering.blocks(piece);
        let begins = course.start + course.pass.seek + latency;
        let gap = Gap {
            source: head.position,
            departs: course.start,
            leaves: head.view(&self.belief, now).start(Direction::Read),
            follows: self.follows(now, &head, direction),
            lag: route.lag(&self.belief),
            handover: self.handover(direction),
            destination: route.target(),
            direction,
            extent,
            begins,
            bus: self.slow_bus(now, &head, &route, begins),
        };
        let last = self.at_drive.back().map(|sent| (sent.id, head.free));
        let waiting = self.waiting_beside(piece, &gap, &course);
        let mut background = self.background.take()?;
        let before = Before {
            gap: &gap,
            latency,
            waiting: waiting.as_ref(),
        };
        let decision = background.decide(&self.belief, now, &before, |extent| {
            self.is_being_written(extent)
        });
        let luck = background.conservatism().expected_luck(&gap, latency);
        self.background = Some(background);
        let decision = decision?;
        let without = Without {
            end: course.head.free,
            after: last,
            luck,
            paid: 0,
        };
        Some((decision, without))
    }

    /// Whether a command at the drive writes some of these blocks.
    pub(super) fn is_being_written(&self, extent: Extent) -> bool {
        self.at_drive.iter().any(|sent| {
            let piece = sent.purpose.piece();
            piece.is_some_and(|piece| {
                let (direction, blocks) = self.ordering.blocks(piece);
                direction == Direction::Write && blocks.overlaps(extent)
            })
        })
    }

    /// What goes by itself, if no request is here: a calibration read that is due, or a background
    /// read if no request has been here for long enough.
    pub(super) fn poll_idle(&mut self, now: Instant) -> Option<Command> {
        if !self.at_drive.is_empty() || self.held() > 0 {
            return None;
        }
        let extent = self.calibration(now);
        if let Some(extent) = extent {
            return Some(self.give(now, Step::Calibration(extent)));
        }
        let background = self.background.as_ref();
        let from = background.and_then(|background| background.idle_from(self.busy));
        if from.is_some_and(|from| from <= now) {
            let leaves = self.head.view(&self.belief, now).start(Direction::Read);
            let head = self.head;
            let background = self.background.as_mut();
            let stop = background.and_then(|background| background.idle(&head, leaves));
            if let Some(stop) = stop.filter(|stop| self.leaves_room(now, stop.extent)) {
                return Some(self.give(now, Step::Read(stop, Means::Idle)));
            }
        }
        let wakeups = [from.filter(|&from| from > now), self.calibration_due()];
        self.wakeup = wakeups.into_iter().flatten().min();
        self.settled = self.wakeup.is_some();
        None
    }

    /// What a step means for the drive, and that its blocks are no longer wanted.
    pub(super) fn purpose(&mut self, now: Instant, step: Step) -> (Purpose, Direction, Extent) {
        match step {
            Step::Request {
                piece,
                merged,
                without,
                ..
            } => {
                self.ordering.give(now, piece);
                let (direction, _) = self.ordering.blocks(piece);
                let (extent, _) = self.next_part(piece, u64::MAX);
                let Some((stop, means)) = merged else {
                    return (Purpose::Request { piece, without }, direction, extent);
                };
                let read = self.take(stop.extent, stop.kind, means);
                let purpose = Purpose::Merged {
                    piece,
                    without,
                    read,
                };
                let start = stop.extent.start();
                let blocks = Sectors(extent.end().0 - start.0);
                let both = Extent::new(start, blocks).unwrap_or(extent);
                (purpose, direction, both)
            }
            Step::Read(stop, means) => {
                let read = self.take(stop.extent, stop.kind, means);
                (Purpose::Background(read), Direction::Read, stop.extent)
            }
            Step::Part { piece, most } => {
                let (direction, _) = self.ordering.blocks(piece);
                let purpose = Purpose::Request {
                    piece,
                    without: None,
                };
                (purpose, direction, self.next_part(piece, most).0)
            }
            Step::Ahead(extent) => (Purpose::Ahead, Direction::Read, extent),
            Step::Hop(extent) => (Purpose::Hop, Direction::Read, extent),
            Step::Calibration(extent) => (Purpose::Calibration, Direction::Read, extent),
        }
    }

    fn take(&mut self, extent: Extent, kind: Kind, means: Means) -> Read {
        let background = self.background.as_mut();
        let background = background.expect("an engine with background tasks");
        background.gaps.planned[counted(kind)] += u64::from(means != Means::Idle);
        let served = background.give(extent);
        Read {
            extent,
            served,
            means,
        }
    }

    /// A command has ended: its background blocks are delivered. The answer is by how many
    /// nanoseconds a request was later than it would have been on average without the plan before
    /// it; negative: earlier.
    pub(super) fn account_for(&mut self, now: Instant, sent: &Sent, outcome: &Outcome) -> i64 {
        let (without, read) = match sent.purpose {
            Purpose::Request { without, .. } => (without, None),
            Purpose::Merged { without, read, .. } => (without, Some(read)),
            Purpose::Background(read) => (None, Some(read)),
            Purpose::Ahead | Purpose::Hop | Purpose::Calibration | Purpose::Flush => (None, None),
        };
        let Some(background) = self.background.as_mut() else {
            return 0;
        };
        if let Some(Read { served, means, .. }) = read {
            background.deliver(now, &served, means, outcome.status);
        }
        if let (Purpose::Background(_), Some(account)) = (&sent.purpose, outcome.account) {
            background.gaps.head_time += account.head();
        }
        let Some(without) = without else { return 0 };
        let period = self.belief.spindle.period().as_nanos();
        let end = without.end.as_nanos() + without.paid * period;
        let lost = self.head.free.as_nanos() as i64 - end as i64;
        background.gaps.mispredicted += u64::from(2 * lost > period as i64);
        lost + without.luck.as_nanos() as i64
    }

    /// A request has ended that a plan made later by `lost` nanoseconds, and all behind it: those
    /// at the drive, the chosen one and those that wait.
    pub(super) fn feel(&mut self, now: Instant, slot: u32, lost: i64) {
        let response = now.since(self.slots.get(slot).submitted);
        let at_drive = self.at_drive.iter();
        let next = at_drive.filter(|sent| sent.purpose.piece().is_some());
        let chosen = usize::from(self.on_the_way().is_some());
        let delayed = 1 + next.count() + chosen + self.ordering.waiting();
        if let Some(background) = self.background.as_mut() {
            background
                .conservatism_mut()
                .finished(response, lost, delayed);
        }
    }

    /// What the end of a command tells of the belief.
    pub(super) fn learn(&mut self, now: Instant, sent: &Sent, course: &Course, route: &Route) {
        // Without a seek there is nothing to learn, and inside its blocks the head waits for none.
        if course.pass.seek.is_zero() || !course.pass.wrapped.is_zero() {
            return;
        }
        let Some(revolutions) = course.revolutions(&self.belief, route, (self.ended_last, now))
        else {
            return;
        };
        self.learn_landing(sent, course.pass.rotation, revolutions);
        if let Some(background) = self.background.as_mut() {
            background.conservatism_mut().observe(
                route.direction(),
                course.distance,
                course.pass.rotation,
                revolutions,
            );
        }
    }

    /// Whether a command is one of the background's.
    pub fn is_background(&self, id: CommandId) -> bool {
        let mut at_drive = self.at_drive.iter();
        at_drive.any(|sent| sent.id == id && sent.purpose.piece().is_none())
    }
}
