//! Background reads of an engine: what fills the gap before a request, idle time, and granted head
//! time.
//!
//! ```text
//!   at the drive   | A, in service                         |
//!   chosen                     B ---> gap ---> plan: X
//!   given now                  X, while A is in service
//!   given when A ends          B, while X is in service
//! ```

use std::sync::Arc;

use block::{CommandId, Direction, Duration, Extent, Instant, Sectors, Status, Switch};
use drive::{Profile, Spindle};
use scheduler::PieceId;
use scheduler::background::{Account, BackgroundTasks, Means, ReadAttribution};
use scheduler::freeblock::{
    Conservatism, Gap, GapGroup, GapPlan, Kind, Merging, PlanRules, Planner, Stop, WantedBlocks,
};
use scheduler::preemption::worth::WEIGHT;

use super::counts::Gaps;
use super::next_choice::{ReadEnd, late_choice};
use super::requests::{GapTurn, WaitingRequests};
use super::rules::Rules;
use super::waiting::Waiting;
use crate::context::StageContext;
use crate::forecast::{Head, Route};

/// What goes in the gap before a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PaidPlan {
    pub(crate) plan: GapPlan,
    /// The background request of which the plan consists, and the part of it, if it is not of free reads.
    pub(crate) request: Option<(PieceId, Extent)>,
    /// What pays for it.
    pub(crate) means: Means,
}

/// What was decided for a gap.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "most gaps of a busy disk are filled"
)]
pub(crate) enum GapDecision {
    /// It is filled.
    Plan(PaidPlan),
    /// It would be filled if it were not in the control group.
    Withheld,
    /// It stays empty.
    Nothing,
}

impl GapDecision {
    /// What it is filled with.
    pub(super) fn plan(self) -> Option<PaidPlan> {
        match self {
            GapDecision::Plan(plan) => Some(plan),
            GapDecision::Withheld | GapDecision::Nothing => None,
        }
    }
}

/// The gap before a command, and what else counts in it.
pub(crate) struct GapBefore<'a> {
    pub(crate) gap: &'a Gap,
    /// For how long the command waits for its sector without a plan.
    pub(crate) latency: Duration,
    /// What the waiting of more urgent requests costs, if there may be some.
    pub(crate) waiting: Option<&'a Waiting>,
    /// When the command leaves the medium without a plan.
    pub(crate) ends: Instant,
}

/// What reads background blocks: tasks, plans, and what pays for them.
pub(crate) struct FreeBlocks {
    rules: Rules,
    pub(crate) tasks: BackgroundTasks,
    pub(super) planner: Planner,
    conservatism: Conservatism,
    pub(crate) account: Account,
    pub(crate) gaps: Gaps,
    /// Granted head time that was not spent, in nanoseconds.
    credit: u64,
    credited: Instant,
    /// Wanted blocks that a paid revolution has to bring.
    worth: u32,
    /// Blocks that were read for tasks that end.
    done: u64,
    pace: TaskPace,
    slow_bus: Option<Duration>,
    /// Which tasks wanted blocks of the reads at the drive.
    at_drive: Vec<(CommandId, ReadAttribution)>,
    /// The end of the command that ended last, if it had free blocks.
    pub(crate) read_end: Option<ReadEnd>,
    /// The nanoseconds by which the free reads before the next request were later than believed.
    pub(super) reads_late: i64,
    /// Who has the next gap, if both have something for it.
    pub(super) turn: GapTurn,
}

/// How fast the tasks got on lately: the fewer blocks are left, the slower.
#[derive(Clone, Copy, Debug, Default)]
struct TaskPace {
    /// Since when is counted, and the blocks that were read until then.
    since: Instant,
    before: u64,
    /// The blocks that were read in the stretch before that, and how long it was.
    blocks: u64,
    length: Duration,
}

/// A pace is that of so much of the time until then: one part in so many. A choice: short against
/// the hours in which a scan slows down, long against a second.
const STRETCH: u64 = 64;

/// No pace is that of a shorter stretch: before that nothing is behind. A choice.
const SHORTEST: Duration = Duration::from_secs(60);

impl TaskPace {
    fn follow(&mut self, now: Instant, done: u64) {
        let length = now.since(self.since);
        if length.as_nanos() > (now.as_nanos() / STRETCH).max(SHORTEST.as_nanos()) {
            *self = TaskPace {
                since: now,
                before: done,
                blocks: done - self.before,
                length,
            };
        }
    }
}

/// Granted head time is not saved up beyond so many revolutions. A choice.
const MOST_CREDIT: u64 = 64;

impl FreeBlocks {
    pub(crate) fn new(belief: &Arc<Profile>, rules: Rules) -> Self {
        let cylinders = belief.geometry.cylinders();
        let period = belief.spindle.period();
        let conservatism = Conservatism::new(rules.caution, period, cylinders);
        FreeBlocks {
            rules,
            tasks: BackgroundTasks::default(),
            planner: Planner::new(Arc::clone(belief)),
            conservatism: match rules.control_group {
                Switch::On => conservatism,
                Switch::Off => conservatism.without_control_group(),
            },
            account: Account::default(),
            gaps: Gaps::default(),
            credit: 0,
            credited: Instant::ZERO,
            worth: 0,
            done: 0,
            pace: TaskPace::default(),
            slow_bus: slow_bus(belief),
            at_drive: Vec::new(),
            read_end: None,
            reads_late: 0,
            turn: GapTurn::default(),
        }
    }

    /// For how long the bus carries a block of a read, if that is longer than blocks take under the head.
    pub(crate) fn slow_bus(&self) -> Option<Duration> {
        self.slow_bus
    }

    /// The platter is where `spindle` says.
    pub(crate) fn turn(&mut self, spindle: Spindle) {
        self.planner.turn(spindle);
    }

    /// The arm takes as long as `belief` says.
    pub(crate) fn refine(&mut self, belief: &Profile) {
        self.planner.refine(&belief.seek);
        self.conservatism.doubt();
    }

    pub(crate) fn conservatism(&self) -> &Conservatism {
        &self.conservatism
    }

    pub(crate) fn conservatism_mut(&mut self) -> &mut Conservatism {
        &mut self.conservatism
    }

    /// What goes before a command: free reads, or one of the background `requests`.
    pub(crate) fn decide(
        &mut self,
        before: &GapBefore<'_>,
        requests: Option<&WaitingRequests<'_>>,
        cx: &StageContext<'_>,
    ) -> GapDecision {
        let (belief, now) = (cx.profile(), cx.now);
        let &GapBefore { gap, latency, .. } = before;
        self.grant(belief, now);
        let group = self.conservatism.draw_group();
        self.gaps.seen += 1;
        self.gaps.latency += latency;
        let reach = PlanRules {
            guard: self.conservatism.guard(gap),
            same_track: self.rules.same_track,
            ranges: self.rules.ranges,
            goal: self.rules.goal,
            stops: self.rules.stops,
            tracks: self.rules.tracks,
            merging: Merging::Allowed,
        };
        let is_clear = |plan: &GapPlan| {
            plan.stops().all(|stop| {
                let own = gap.direction == Direction::Write && stop.extent.overlaps(gap.extent);
                !own && !cx.is_being_written(stop.extent)
            })
        };
        let free = match self.conservatism.is_overdrawn() {
            true => None,
            false => self.in_turn(belief, before, &reach, requests, is_clear),
        };
        let read = free.filter(|free| free.request.is_none());
        let read = read.map_or(0, |free| free.plan.wanted());
        let paid = self.paid(belief, now, gap, &reach, read);
        if let Some(plan) = paid.filter(is_clear) {
            self.credit -= belief.spindle.period().as_nanos();
            return GapDecision::Plan(PaidPlan {
                plan,
                request: None,
                means: Means::Paid,
            });
        }
        let Some(free) = free else {
            return GapDecision::Nothing;
        };
        if group != GapGroup::Planned {
            self.gaps.withheld += 1;
            return GapDecision::Withheld;
        }
        if let Some(waiting) = before.waiting {
            self.conservatism.delayed(waiting.because_of(&free.plan));
        }
        self.turn = match free.request {
            Some(_) => GapTurn::Tasks,
            None => GapTurn::Requests,
        };
        GapDecision::Plan(free)
    }

    pub(super) fn free(
        &mut self,
        belief: &Profile,
        before: &GapBefore<'_>,
        reach: &PlanRules,
    ) -> Option<GapPlan> {
        if !self.conservatism.admits(before.latency) {
            self.gaps.near_miss += 1;
            return None;
        }
        let plan = best(&mut self.planner, &self.tasks, before.gap, reach)?;
        let plan = self.in_time_for_next(belief, before, reach, plan);
        if self.pays(before, &plan, || reading_of(belief, &plan)) {
            return Some(plan);
        }
        // Commands of their own may be overtaken.
        let is_merged = plan.stops().any(|stop| stop.kind == Kind::Merged);
        let apart = match before.waiting.is_some() && is_merged {
            true => {
                let reach = PlanRules {
                    merging: Merging::Never,
                    ..*reach
                };
                best(&mut self.planner, &self.tasks, before.gap, &reach)
            }
            false => None,
        };
        let apart = apart.filter(|plan| self.pays(before, plan, || reading_of(belief, plan)));
        self.gaps.unworthy += u64::from(apart.is_none());
        apart
    }

    /// A plan, or a shorter one: the choice after the request is made when the last free read has been
    /// carried over the bus, and that may be too late for the drive to prepare it.
    fn in_time_for_next(
        &mut self,
        belief: &Profile,
        before: &GapBefore<'_>,
        reach: &PlanRules,
        plan: GapPlan,
    ) -> GapPlan {
        let gap = before.gap;
        let Some(bus) = gap
            .bus
            .filter(|_| !late_choice(gap, before.ends, &plan).is_zero())
        else {
            return plan;
        };
        let until = (before.ends + bus.block).saturating_sub(gap.handover);
        let sooner = Gap {
            bus: Some(bus.needed_by(until)),
            ..*gap
        };
        let shorter = best(&mut self.planner, &self.tasks, &sooner, reach);
        let gain = |plan: &GapPlan| {
            let own = self.conservatism.expected_loss(gap, before.latency, plan);
            let price = self
                .conservatism
                .price_of(own + late_choice(gap, before.ends, plan));
            reading_of(belief, plan).as_nanos() as i64 - price.as_nanos() as i64
        };
        match shorter {
            Some(shorter) if gain(&shorter) > gain(&plan) => shorter,
            _ => plan,
        }
    }

    /// Whether a plan is worth what is expected to be lost by it: by the commands behind it, and by those that would
    /// otherwise have overtaken the first of them. It is worth the time that it reads.
    pub(super) fn pays(
        &self,
        before: &GapBefore<'_>,
        plan: &GapPlan,
        reading: impl FnOnce() -> Duration,
    ) -> bool {
        let (gap, latency) = (before.gap, before.latency);
        let own = self.conservatism.expected_loss(gap, latency, plan)
            + late_choice(gap, before.ends, plan);
        let others = before.waiting.map(|waiting| waiting.because_of(plan));
        let loss = own + others.unwrap_or(Duration::ZERO) * WEIGHT;
        self.conservatism.pays(reading, loss)
    }

    /// A plan that makes the foreground wait one revolution more, if the grant allows it and it
    /// brings enough.
    ///
    /// How much is enough follows from what there is: it falls while the grant is not used up and
    /// rises with every use, so that the grant goes to the best gaps.
    fn paid(
        &mut self,
        belief: &Profile,
        now: Instant,
        gap: &Gap,
        reach: &PlanRules,
        free: u32,
    ) -> Option<GapPlan> {
        let period = belief.spindle.period();
        if self.rules.paid_ppm == 0 || self.credit < period.as_nanos() || !self.is_behind(now) {
            return None;
        }
        let later = gap.lengthened(period);
        let planner = &mut self.planner;
        let mut wanted = self.tasks.wanted_to_pay();
        let plan = wanted.find_map(|wanted| planner.plan(wanted, &later, reach))?;
        if plan.wanted() < free + self.worth {
            self.worth -= (self.worth / 64).max(1).min(self.worth);
            return None;
        }
        self.worth += (self.worth / 16).max(1);
        Some(plan)
    }

    /// Whether granted time should be spent: some task has no deadline, or the first deadline
    /// will not be met at the present pace.
    fn is_behind(&mut self, now: Instant) -> bool {
        self.pace.follow(now, self.done);
        if self.tasks.is_any_unbounded() {
            return true;
        }
        let Some((deadline, left)) = self.tasks.next_deadline() else {
            return false;
        };
        let done = u128::from(self.pace.blocks);
        let ahead = u128::from(deadline.since(now).as_nanos());
        done * ahead < u128::from(left.0) * u128::from(self.pace.length.as_nanos())
    }

    /// What to read now that no foreground request is there.
    pub(crate) fn idle(&mut self, head: &Head, leaves: Instant) -> Option<Stop> {
        let FreeBlocks {
            planner,
            tasks,
            rules,
            ..
        } = self;
        let most = Sectors(u64::from(rules.idle_blocks));
        tasks
            .wanted()
            .find_map(|wanted| planner.idle(wanted, head.position, leaves, most))
    }

    /// When background reads may go by themselves, if the last request was there at `last`.
    pub(crate) fn idle_from(&self, last: Instant) -> Option<Instant> {
        let after = self.rules.idle_after?;
        self.tasks.is_any_active().then(|| last + after)
    }

    /// The blocks of a stop are about to be read by a command.
    pub(crate) fn give(&mut self, id: CommandId, extent: Extent) {
        let served = self.tasks.give(extent);
        self.at_drive.push((id, served));
    }

    /// The read of a command has ended.
    ///
    /// # Panics
    /// If it was not given.
    pub(crate) fn deliver(&mut self, now: Instant, id: CommandId, means: Means, status: Status) {
        let place = self.at_drive.iter().position(|(other, _)| *other == id);
        let place = place.expect("a read that was given");
        let (_, served) = &self.at_drive.swap_remove(place);
        match status {
            Status::Good => {
                self.account.count(means, u64::from(served.blocks));
                self.done += u64::from(served.ordered);
                self.tasks.deliver(now, served, means);
            }
            _ => self.tasks.fail(now, served),
        }
    }

    /// Head time goes by, and a share of it is granted.
    fn grant(&mut self, belief: &Profile, now: Instant) {
        let passed = now.since(self.credited).as_nanos();
        self.credited = now;
        let most = belief.spindle.period().as_nanos() * MOST_CREDIT;
        let granted = u128::from(passed) * u128::from(self.rules.paid_ppm) / 1_000_000;
        self.credit = (self.credit + granted as u64).min(most);
    }
}

/// For how long the bus carries a block of a read, if it falls behind the medium somewhere: it begins when the
/// watermark has passed.
fn slow_bus(belief: &Profile) -> Option<Duration> {
    let zones = belief.geometry.zones();
    let most = zones.iter().map(|zone| zone.sectors_per_track).max()?;
    let block = belief.bus.read_block;
    let left = 1000 - u64::from(belief.buffer.read_watermark.min(1000));
    (block * u64::from(most) * 1000 > belief.spindle.period() * left).then_some(block)
}

/// The best plan for the first level of tasks for which there is one.
fn best(
    planner: &mut Planner,
    tasks: &BackgroundTasks,
    gap: &Gap,
    reach: &PlanRules,
) -> Option<GapPlan> {
    let plan = |wanted: &WantedBlocks| planner.plan(wanted, gap, reach);
    tasks.wanted().find_map(plan)
}

/// For how long the wanted blocks of a plan are under the head.
fn reading_of(belief: &Profile, plan: &GapPlan) -> Duration {
    let each = plan.stops().map(|stop| reading(belief, stop));
    each.fold(Duration::ZERO, |all, one| all + one)
}

/// For how long the wanted blocks of a stop are under the head.
fn reading(belief: &Profile, stop: &Stop) -> Duration {
    match Route::new(belief, stop.extent, Direction::Read) {
        Some(route) => {
            let all = route.sweep(belief).as_nanos();
            Duration::from_nanos(all * u64::from(stop.wanted) / stop.extent.length().0)
        }
        None => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests;
