//! Gaps: what comes before a chosen request, and what goes by itself while no request is here.
//!
//! ```text
//!   chosen request --> slack: parts of what stepped aside, a read ahead, a stop of the arm, a later start
//!                  --> free blocks: merged with it, or in a command of their own before it
//!   no request     --> a calibration read, or a background read
//! ```

use block::{Class, CommandId, Direction, Duration, Outcome};
use drive::Certainty;
use profiler::tracker::BeliefMode;
use scheduler::PieceId;
use scheduler::background::{Account, Means, TaskId, TaskProgress};
use scheduler::freeblock::{Conservatism, Delay, Gap, GapUse, Kind, Losses, WantedBlocks};

use crate::belief::DriveBelief;
use crate::command::{
    BackgroundRead, Draft, Planned, Purpose, SentCommand, StageAnswer, UnplannedEnd,
};
use crate::context::StageContext;
use crate::guarantees::Guarantees;
use crate::preemption::Transfers;

mod counts;
mod free_blocks;
mod gap_use;
mod handover;
mod hastened;
mod next_choice;
mod requests;
mod rules;
mod slack;
mod tasks;
mod turns;
mod waiting;

pub use counts::Gaps;
use counts::counted;
use free_blocks::{FreeBlocks, GapBefore, PaidPlan};
use gap_use::gap_use;
use next_choice::{ReadEnd, charge_late_choice, later_on_bus};
use requests::WaitingRequests;
pub use rules::Rules;
use slack::HeldBack;
pub use tasks::TaskChange;

/// The gaps of an engine. Without rules nothing is read in the background.
pub struct GapStage {
    free: Option<Box<FreeBlocks>>,
    /// Reads of hastened tasks since the last command of the foreground.
    hastened: u8,
}

impl GapStage {
    /// Nothing is read in the background.
    pub(crate) fn none() -> Self {
        GapStage {
            free: None,
            hastened: 0,
        }
    }

    /// Background tasks are taken under these rules.
    pub(crate) fn by(rules: Rules, belief: &DriveBelief) -> Self {
        let mut free = Box::new(FreeBlocks::new(belief.profile(), rules));
        if belief.is_followed() {
            free.conservatism_mut().expect_host();
        }
        GapStage {
            free: Some(free),
            hastened: 0,
        }
    }

    /// Whether background tasks are taken.
    pub fn is_on(&self) -> bool {
        self.free.is_some()
    }

    /// Whether a task would take blocks from gaps.
    pub fn is_wanted(&self) -> bool {
        let free = self.free.as_ref();
        free.is_some_and(|free| free.tasks.wanted().next().is_some())
    }

    /// How far a task has come; `None` if it is unknown, or ended before another was begun.
    pub fn task(&self, id: TaskId) -> Option<TaskProgress> {
        self.free.as_ref()?.tasks.progress(id)
    }

    /// The blocks of which no read for the task has been given to the drive yet.
    pub fn left(&self, id: TaskId) -> Option<&WantedBlocks> {
        self.free.as_ref()?.tasks.left(id)
    }

    /// What background reads brought, by what paid for them.
    pub fn account(&self) -> Account {
        let free = self.free.as_ref();
        free.map_or_else(Account::default, |free| free.account)
    }

    /// What came of the gaps.
    pub fn gaps(&self) -> Gaps {
        let free = self.free.as_ref();
        free.map_or_else(Gaps::default, |free| free.gaps)
    }

    /// The share of the mean response time that foreground requests are measured to lose to
    /// plans, over the last few thousand of them.
    pub fn impact(&self) -> f64 {
        let free = self.free.as_ref();
        free.map_or(0.0, |free| free.conservatism().impact())
    }

    /// What the foreground took, and what of it is owed to plans, since the beginning.
    pub fn losses(&self) -> Losses {
        let free = self.free.as_ref();
        free.map_or_else(Losses::default, |free| free.conservatism().losses())
    }

    /// By how much plans may lengthen foreground requests on average, in parts per million; `None`
    /// without background tasks or with a fixed guard.
    pub fn impact_budget(&self) -> Option<u32> {
        self.free.as_ref()?.conservatism().budget()
    }

    /// The present guards: of reads after short and long seeks, then of writes.
    pub fn guards(&self) -> [Duration; 4] {
        let free = self.free.as_ref();
        free.map_or([Duration::ZERO; 4], |free| free.conservatism().guards())
    }

    /// Plans may lengthen foreground requests by so much from now on.
    pub(crate) fn set_impact_budget(&mut self, impact_ppm: u32) {
        if let Some(free) = &mut self.free {
            free.conservatism_mut().set_budget(impact_ppm);
        }
    }

    /// The first chosen command is given, or what fits before it; the chosen request may be held back.
    pub(crate) fn depart(
        &mut self,
        cx: &mut StageContext<'_>,
        guarantees: &Guarantees,
        preemption: &mut Transfers,
    ) -> StageAnswer {
        if cx.dispatch.chosen.is_empty() {
            return StageAnswer::Pass;
        }
        cx.dispatch.wakeup = None;
        if let Some(&Draft::Request {
            piece,
            planned: Planned::No,
            ..
        }) = cx.dispatch.chosen.front()
        {
            if let Some(filling) = slack::fill(cx, guarantees, preemption, piece) {
                return StageAnswer::Give(filling);
            }
            self.plan(cx, guarantees, preemption, piece);
        }
        if let Some(&Draft::Request {
            piece,
            was_held,
            merged,
            ..
        }) = cx.dispatch.chosen.front()
        {
            let was_held = match was_held {
                true => HeldBack::Yes,
                false => HeldBack::No,
            };
            let request = (piece, was_held, merged.is_some());
            let (answer, held) = slack::depart(cx, guarantees, preemption, request);
            if let (HeldBack::Yes, Some(Draft::Request { was_held, .. })) =
                (held, cx.dispatch.chosen.back_mut())
                && !std::mem::replace(was_held, true)
            {
                preemption.tally.held += 1;
            }
            if !matches!(answer, StageAnswer::Pass) {
                return answer;
            }
        }
        let first = cx.dispatch.chosen.pop_front();
        first.map_or(StageAnswer::Pass, StageAnswer::Give)
    }

    /// Chooses what fits into the gap before the chosen piece, which is the only draft.
    fn plan(
        &mut self,
        cx: &mut StageContext<'_>,
        guarantees: &Guarantees,
        preemption: &Transfers,
        piece: PieceId,
    ) {
        // The drive may fail again where it failed before: then by itself.
        let decided = match (cx.ordering.requeued(piece), cx.belief.mode()) {
            (0, BeliefMode::Positioning) => self.decide(cx, preemption, piece),
            _ => None,
        };
        let fits = |plan: &PaidPlan| {
            !guarantees.serves_streams() || {
                let (own, _) = preemption.next_part(cx, guarantees, piece, u64::MAX);
                guarantees.leaves_room_for(cx, (piece, own), &plan.plan)
            }
        };
        let (plan, without) = match decided {
            Some((plan, without)) => (plan.filter(fits), Some(without)),
            None => (None, None),
        };
        let plan = plan.filter(|plan| {
            let mut request = plan.request.into_iter();
            request.all(|request| requests::choose(cx, guarantees, preemption, request))
        });
        let chosen = &mut cx.dispatch.chosen;
        let (Some(decided), Some(mut without)) = (plan, without) else {
            if let Some(Draft::Request {
                planned, unplanned, ..
            }) = chosen.front_mut()
            {
                *planned = Planned::Yes;
                // Without a plan it tells what delays requests anyway.
                *unplanned = without.filter(|without| without.gap != GapUse::UnusedAtEdge);
            }
            return;
        };
        if decided.means == Means::Paid {
            without.paid = 1;
        }
        chosen.clear();
        let mut own = None;
        for stop in decided.plan.stops() {
            let read = BackgroundRead::of(stop, decided.means);
            match (decided.request, stop.kind) {
                (Some((piece, _)), _) => chosen.push_back(Draft::InGap { piece }),
                (None, Kind::Merged) => own = Some(read),
                (None, Kind::Detour | Kind::Source | Kind::Destination) => {
                    chosen.push_back(Draft::Background(read));
                }
            }
        }
        chosen.push_back(Draft::Request {
            piece,
            planned: Planned::Yes,
            was_held: false,
            merged: own,
            unplanned: Some(without),
        });
    }

    fn decide(
        &mut self,
        cx: &StageContext<'_>,
        preemption: &Transfers,
        piece: PieceId,
    ) -> Option<(Option<PaidPlan>, UnplannedEnd)> {
        let free = self.free.as_deref_mut()?;
        let has_requests = WaitingRequests::has_any(cx, piece);
        if !free.tasks.is_any_active() && !has_requests {
            return None;
        }
        let belief = cx.profile();
        let head = cx.expected_head();
        let route = cx.route(piece);
        let course = head.course(belief, cx.now, route);
        let ledger = (free.read_end, free.conservatism_mut());
        let late_after = charge_late_choice(ledger, cx, &head, &course);
        // A head that lands inside the request's blocks takes the rest of them first, and there is no gap.
        // While a write waits for its blocks, free reads would hold the bus.
        if course.certainty == Certainty::Guessed || !course.waits_for_sector(belief) {
            return None;
        }
        let latency = course.pass.rotation;
        let (direction, extent) = cx.ordering.blocks(piece);
        let begins = course.start + course.pass.seek + latency;
        let slow_block = free.slow_bus();
        let gap = Gap {
            source: head.position,
            departs: course.start,
            leaves: head.view(belief, cx.now).start(Direction::Read),
            follows: handover::follows(cx, &head, direction, slow_block),
            lag: route.lag(belief),
            handover: handover::handover(belief, direction),
            destination: route.target(),
            direction,
            extent,
            begins,
            bus: handover::slow_bus(cx, &head, route, begins, slow_block),
            delivery: head.delivery(belief, cx.now, Direction::Read),
        };
        let waiting = waiting::waiting_beside(cx, preemption, piece, &gap, &course);
        let before = GapBefore {
            gap: &gap,
            latency,
            waiting: waiting.as_ref(),
            ends: course.head.free,
        };
        let ways = ((head, slow_block), (route, &course));
        let requests = has_requests.then(|| WaitingRequests::new(cx, preemption, &gap, ways));
        let decided = free.decide(&before, requests.as_ref(), cx);
        let (conservatism, period) = (free.conservatism(), belief.spindle.period());
        let why = (&decided, late_after);
        let gap_use = gap_use(conservatism, (&gap, latency, period), why);
        let decided = decided.plan();
        let plan = decided.as_ref().map(|decided| &decided.plan);
        let unplanned = UnplannedEnd {
            end: course.head.free,
            after: cx.dispatch.last().map(|sent| (sent.id, head.free)),
            luck: conservatism.expected_luck(&gap, latency),
            paid: 0,
            gap: gap_use,
            on_bus: plan.map_or(Duration::ZERO, |plan| later_on_bus(&gap, before.ends, plan)),
        };
        Some((decided, unplanned))
    }

    /// What goes by itself, if no request is here: a calibration read that is due, or a background
    /// read if no request has been here for long enough.
    pub(crate) fn idle(
        &mut self,
        cx: &mut StageContext<'_>,
        guarantees: &Guarantees,
    ) -> StageAnswer {
        if cx.ordering.waiting() > 0 {
            return StageAnswer::Pass;
        }
        let held = cx.intake.slots.held() - guarantees.transfers();
        if cx.dispatch.at_drive() > 0 || held > 0 {
            return StageAnswer::WaitUntil(None);
        }
        let busy = cx.intake.busy;
        if let Some(extent) = cx.belief.calibration(cx.now, busy) {
            return StageAnswer::Give(Draft::Calibration(extent));
        }
        let free = self.free.as_deref_mut();
        let from = free.as_ref().and_then(|free| free.idle_from(busy));
        if from.is_some_and(|from| from <= cx.now) {
            let head = cx.belief.head;
            let leaves = head.view(cx.profile(), cx.now).start(Direction::Read);
            let stop = free.and_then(|free| free.idle(&head, leaves));
            if let Some(stop) = stop.filter(|stop| guarantees.leaves_room(cx, stop.extent)) {
                let read = BackgroundRead::of(&stop, Means::Idle);
                return StageAnswer::Give(Draft::Background(read));
            }
        }
        let due = cx.belief.calibration_due(busy);
        let wakeups = [from.filter(|&from| from > cx.now), due];
        let wakeup = wakeups.into_iter().flatten().min();
        cx.dispatch.settled = wakeup.is_some();
        StageAnswer::WaitUntil(wakeup)
    }

    /// The blocks of a background read are no longer wanted: the command `id` gives the read to the drive.
    pub(crate) fn take(&mut self, id: CommandId, read: &BackgroundRead) {
        let free = self.free.as_mut();
        let free = free.expect("an engine with background tasks");
        free.gaps.planned[counted(read.kind)] += u64::from(read.means != Means::Idle);
        free.give(id, read.extent);
    }

    /// A command has ended `late` nanoseconds later than believed: its background blocks are delivered. The answer
    /// is by how many nanoseconds a request was later than it would have been on average without the plan
    /// before it; negative: earlier.
    pub(crate) fn account_for(
        &mut self,
        cx: &StageContext<'_>,
        (sent, late): (&SentCommand, i64),
        outcome: &Outcome,
    ) -> i64 {
        let Some(free) = self.free.as_deref_mut() else {
            return 0;
        };
        let (unplanned, read) = match sent.purpose {
            Purpose::Request { unplanned, .. } => (unplanned, None),
            Purpose::Merged {
                unplanned, read, ..
            } => (unplanned, Some(read)),
            Purpose::Background(read) => (None, Some(read)),
            Purpose::InGap { .. }
            | Purpose::ReadAhead
            | Purpose::Hop
            | Purpose::Calibration
            | Purpose::Flush => (None, None),
        };
        let is_free = match sent.purpose {
            Purpose::InGap { piece } => {
                free.gaps.count_request(cx.ordering.blocks(piece));
                true
            }
            _ => read.is_some_and(|read| read.means == Means::Free),
        };
        free.read_end = is_free.then(|| ReadEnd {
            at: cx.now,
            merged: unplanned.map(|unplanned| unplanned.on_bus),
        });
        if let Some(read) = read {
            free.deliver(cx.now, sent.id, read.means, outcome.status);
        }
        if let (Purpose::Background(_), Some(account)) = (&sent.purpose, outcome.account) {
            free.gaps.head_time += account.head();
        }
        if is_free && unplanned.is_none() {
            free.reads_late += late;
        }
        let Some(unplanned) = unplanned else { return 0 };
        let period = cx.profile().spindle.period().as_nanos();
        let end = unplanned.end.as_nanos() + unplanned.paid * period;
        let lost = cx.belief.head.free.as_nanos() as i64 - end as i64;
        let is_mispredicted = unplanned.gap.is_planned() && 2 * lost > period as i64;
        free.gaps.mispredicted += u64::from(is_mispredicted);
        let direction = match sent.route {
            Some(route) => route.direction(),
            None => Direction::Read,
        };
        // It alone waits for the bus.
        free.conservatism_mut().delayed(unplanned.on_bus);
        let request = (direction, unplanned.gap);
        let delay = Delay::after(std::mem::take(&mut free.reads_late), lost);
        free.conservatism_mut()
            .attribute(request, delay, unplanned.luck)
    }

    /// A request has ended that a plan made later by `lost` nanoseconds, and all behind it: those
    /// at the drive, the chosen one and those that wait.
    pub(crate) fn charge(&mut self, cx: &StageContext<'_>, slot: u32, lost: i64) {
        let Some(free) = self.free.as_deref_mut() else {
            return;
        };
        let slot = cx.intake.slots.get(slot);
        // The budget is a share of the foreground's response times.
        if slot.request.class == Class::Background {
            return;
        }
        let response = cx.now.since(slot.submitted);
        let chosen = usize::from(cx.dispatch.chosen_piece().is_some());
        let waiting = cx.ordering.waiting_foreground();
        let delayed = 1 + cx.dispatch.pieces().count() + chosen + waiting;
        free.conservatism_mut().finished(response, lost, delayed);
    }

    /// The platter is elsewhere.
    pub(crate) fn turn(&mut self, belief: &DriveBelief) {
        if let Some(free) = &mut self.free {
            free.turn(belief.profile().spindle);
        }
    }

    /// The guards of free reads, if background tasks are taken.
    pub(crate) fn conservatism_mut(&mut self) -> Option<&mut Conservatism> {
        Some(self.free.as_deref_mut()?.conservatism_mut())
    }

    /// The arm takes another time.
    pub(crate) fn refine(&mut self, belief: &DriveBelief) {
        if let Some(free) = &mut self.free {
            free.refine(belief.profile());
        }
    }
}

#[cfg(test)]
mod tests;
