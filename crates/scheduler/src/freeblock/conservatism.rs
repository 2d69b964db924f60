//! The guard of a plan: fixed, or learned and priced.
//!
//! A plan wins reading time and risks a revolution of foreground time at each of its seeks. A
//! learned guard has a *price*: the nanoseconds of reading that one expected nanosecond of
//! foreground loss must bring. The guard has the best balance at that price, and a plan below its
//! price is dropped. The price follows the *impact budget*: it rises while the measured loss of the
//! foreground exceeds the budget.
//!
//! | Measured over the last few thousand requests | Consequence |
//! |---|---|
//! | loss above 0.9 of the budget | the price rises: longer guards, fewer plans |
//! | loss above the budget by more than a quarter | no plans until it has fallen |
//! | plans of a kind lose more than expected | the excess counts as expected from then on |

use block::{Direction, Duration};

use super::gap::{Delivery, Gap, Guard};
use super::lateness::Lateness;
use super::plan::{GapPlan, Kind};
use attribution::Attribution;
use control::ControlGroup;

mod attribution;
mod caution;
mod control;

pub use attribution::{Delay, GapUse, PlanKind};
pub use caution::Caution;
pub use control::GapGroup;

/// The share of the impact budget that the price is set for. A choice: not all loss is measured,
/// because a plan also delays the dispatch of the command after next. On the Atlas 10K under OLTP
/// and SPTF-SW60, the loss is from 0.1 % of the response time less to 0.2 % more than measured.
const TARGET_SHARE: f64 = 0.9;
/// The initial price.
const PRICE: f64 = 1.0;
/// The bounds of the price. Below about a third a plan costs the background more than it brings. A
/// lost revolution delays the scan as well, and free reading takes about a third of a busy disk's
/// head time. No budget is spent below that bound; the rest is room.
const PRICES: std::ops::RangeInclusive<f64> = 0.3..=64.0;
/// The number of foreground requests between two settlings of the price. A choice: about two
/// seconds.
const SETTLE_EVERY: u32 = 256;
/// The largest change of the price at a settling. A choice: a factor of two within half a minute.
const STEP: f64 = 0.05;
/// The weight of older requests that remains at each settling. The average covers about 5,000
/// requests, in which a budget of 1 % is about fifty lost revolutions. A choice.
const MEMORY: f64 = 0.95;

/// The number of requests whose budget may be spent in advance. A choice: a quarter of the average's window,
/// about twelve revolutions that ten requests lose at 1 %. The price keeps the mean; what exceeds it by
/// chance stops nothing.
const ADVANCE: f64 = 1_280.0;

/// The first of the classes of seeks that begin on arrival.
const IMMEDIATE: usize = 4;

/// The bit of the classes of writes.
const WRITES: usize = 2;

/// Above this share of writes that are late whatever their seek, reads tell how late seeks are. A choice: a
/// drive that reads sectors before it writes them makes most writes late, and those few that are left would
/// take hours to show the chance of one miss in a hundred.
const DROWNED: f64 = 0.25;

/// A guard and its learned state.
#[derive(Clone, Debug)]
pub struct Conservatism {
    caution: Caution,
    period: Duration,
    /// The largest distance of a short seek, in cylinders.
    short: u32,
    /// By direction, then short and long seeks; those that wait at the drive, then those that do not.
    lateness: [Lateness; 8],
    /// In the same order: the class whose lateness holds for it.
    told_by: [u8; 8],
    price: f64,
    /// In the same order; given or learned.
    guards: [Duration; 8],
    /// The factor by which guards are widened.
    widening: f64,
    attribution: Attribution,
    /// `None`: no plan is withheld.
    control: Option<ControlGroup>,
    lost: f64,
    responses: f64,
    requests: f64,
    unsettled: u32,
    /// Whether a gap was considered since the last settling.
    is_asked: bool,
    losses: Losses,
}

/// The foreground's response times and losses since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// The sum of all response times, in nanoseconds.
    pub responses: u64,
    /// The loss due to plans, in nanoseconds; negative if requests ended sooner.
    pub lost: i64,
}

/// A seek, as the end of its command shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedSeek {
    /// The direction of the command.
    pub direction: Direction,
    /// Whether it waited at the drive.
    pub delivery: Delivery,
    /// The distance in cylinders.
    pub distance: u32,
    /// The believed rotational latency.
    pub wait: Duration,
    /// The number of revolutions that it took in addition (negative: fewer).
    pub revolutions: i64,
}

impl Losses {
    /// The share of all response times that was lost; zero if no request ended.
    pub fn share(&self) -> f64 {
        self.impact_since(Losses::default()).unwrap_or(0.0)
    }

    /// The share of the response times since `before` that was lost; `None` if no request ended.
    pub fn impact_since(&self, before: Losses) -> Option<f64> {
        let lost = (self.lost - before.lost) as f64;
        let responses = (self.responses - before.responses) as f64;
        (responses > 0.0).then(|| lost / responses)
    }
}

impl Conservatism {
    /// A guard for a drive with `cylinders` cylinders and revolutions of `period`.
    pub fn new(caution: Caution, period: Duration, cylinders: u32) -> Self {
        let mut conservatism = Conservatism {
            caution,
            period,
            // A choice: the part of a seek curve that is proportional to the root of the distance.
            short: cylinders / 16,
            lateness: std::array::from_fn(|_| Lateness::default()),
            told_by: std::array::from_fn(|class| class as u8),
            price: PRICE,
            guards: [Duration::ZERO; 8],
            widening: 1.0,
            attribution: Attribution::default(),
            control: match caution {
                Caution::Fixed { .. } => None,
                Caution::Learned { .. } => Some(ControlGroup::default()),
            },
            lost: 0.0,
            responses: 0.0,
            requests: 0.0,
            unsettled: 0,
            is_asked: false,
            losses: Losses::default(),
        };
        conservatism.set_guards();
        conservatism
    }

    /// Without a control group: all losses are those that single requests show. It is an ablation, because losses
    /// that empty gaps hide are not measured.
    #[must_use]
    pub fn without_control_group(mut self) -> Self {
        self.control = None;
        self
    }

    /// Draws the group of the next gap. A fixed guard has no budget, and needs no control group.
    pub fn draw_group(&mut self) -> GapGroup {
        if let Some(control) = &mut self.control {
            control.draw(self.attribution.withheld());
        }
        self.group()
    }

    /// The group of the present gap.
    pub fn group(&self) -> GapGroup {
        self.control.map_or(GapGroup::Planned, ControlGroup::group)
    }

    /// The guards for a gap, from seeks of about its distance. Most detours are near one of the two
    /// ends, so that one of their seeks is about as long as the direct one.
    pub fn guard(&mut self, gap: &Gap) -> Guard {
        self.is_asked = true;
        let distance = gap
            .source
            .cylinder
            .abs_diff(gap.destination.position.cylinder);
        let guard = |direction, delivery| {
            let class = self.class(direction, distance, delivery);
            self.widened(self.guards[class])
        };
        Guard {
            to_free: guard(Direction::Read, gap.delivery),
            to_write: guard(Direction::Write, gap.delivery),
            to_destination: guard(gap.direction, Delivery::Queued),
        }
    }

    /// Whether a gap with this latency may be filled.
    pub fn admits(&self, latency: Duration) -> bool {
        match self.caution {
            Caution::Fixed { near_miss, .. } => {
                latency + near_miss <= self.period || latency >= self.period
            }
            Caution::Learned { .. } => true,
        }
    }

    /// The expected delay of the foreground command due to a plan: of its seeks, and what plans of its kind lost
    /// beyond that lately.
    pub fn expected_loss(&self, gap: &Gap, latency: Duration, plan: &GapPlan) -> Duration {
        match self.caution {
            Caution::Fixed { .. } => Duration::ZERO,
            Caution::Learned { .. } => {
                let expected = self.gap_use(gap, latency, plan);
                self.attribution.expected(gap.direction, expected)
            }
        }
    }

    /// The use of a gap by a plan, with the loss that its seeks are expected to cause.
    pub fn gap_use(&self, gap: &Gap, latency: Duration, plan: &GapPlan) -> GapUse {
        let expected = self.expected_of_seeks(gap, latency, plan);
        match plan.is_apart() {
            true => GapUse::Apart(expected),
            false => GapUse::Merged(expected),
        }
    }

    /// Notes by how much a request ended later than without a plan was believed. Returns what of it, with the
    /// [luck](Self::expected_luck), the plan caused.
    pub fn attribute(&mut self, request: (Direction, GapUse), delay: Delay, luck: Duration) -> i64 {
        let period = self.period;
        self.attribution.attribute(request, (delay, luck), period)
    }

    /// Notes that the choice after a merged plan was `late` because of it.
    pub fn learn_late_choice(&mut self, late: Duration) {
        self.attribution.add_to_merged(late);
    }

    /// Whether the measured loss exceeds the budget, with an advance: no more is risked until it has fallen.
    pub fn is_overdrawn(&self) -> bool {
        match self.caution {
            Caution::Fixed { .. } => false,
            Caution::Learned { impact_ppm } => {
                let mean = self.responses / self.requests.max(1.0);
                let budget = f64::from(impact_ppm) / 1e6;
                self.lost > budget * (self.responses + ADVANCE * mean)
            }
        }
    }

    /// The length of the reading that an expected loss must bring.
    pub fn price_of(&self, loss: Duration) -> Duration {
        match self.caution {
            Caution::Fixed { .. } => Duration::ZERO,
            Caution::Learned { .. } => {
                Duration::from_nanos((self.price * loss.as_nanos() as f64) as u64)
            }
        }
    }

    /// The expected delay of the foreground command due to the seeks of a plan.
    fn expected_of_seeks(&self, gap: &Gap, latency: Duration, plan: &GapPlan) -> Duration {
        if let Caution::Fixed { .. } = self.caution {
            return Duration::ZERO;
        }
        let mut late = 0.0;
        let mut delivery = gap.delivery;
        for stop in plan.stops() {
            // No seek, and no delay of the host, makes it late.
            let is_sure = stop.kind == Kind::Source && delivery == Delivery::Queued;
            if !is_sure {
                let slack = stop.slack.as_nanos() as i64;
                late += self.chance(gap, (stop.direction, delivery), slack);
            }
            delivery = Delivery::of(gap.follows, stop.ends);
        }
        if plan.stops().all(|stop| stop.kind != Kind::Merged) {
            let slack = plan.slack.as_nanos() as i64;
            late += self.chance(gap, (gap.direction, delivery), slack);
        }
        late += self.luck(gap, latency);
        self.turns(late)
    }

    /// The expected gain of the command without a plan. A seek that is believed to just miss the
    /// sector might succeed, which any plan prevents.
    pub fn expected_luck(&self, gap: &Gap, latency: Duration) -> Duration {
        match self.caution {
            Caution::Fixed { .. } => Duration::ZERO,
            Caution::Learned { .. } => self.turns(self.luck(gap, latency)),
        }
    }

    /// The expected delay, in nanoseconds, of a command without a plan that waits at the drive: its seek is late, or
    /// so early that it ends a revolution sooner.
    pub fn expected_alone(&self, gap: &Gap, latency: Duration) -> i64 {
        if let Caution::Fixed { .. } = self.caution {
            return 0;
        }
        let (latency, period) = (latency.as_nanos() as i64, self.period.as_nanos() as i64);
        let class = (gap.direction, Delivery::Queued);
        let later = self.chance(gap, class, latency);
        let sooner = match latency < period {
            true => 1.0 - self.chance(gap, class, latency - period),
            false => 0.0,
        };
        ((later - sooner) * period as f64) as i64
    }

    /// The probability that the command without a plan ends a revolution sooner than believed.
    fn luck(&self, gap: &Gap, latency: Duration) -> f64 {
        let short_of_turn = latency.as_nanos() as i64 - self.period.as_nanos() as i64;
        match short_of_turn < 0 {
            true => 1.0 - self.chance(gap, (gap.direction, gap.delivery), short_of_turn),
            // It waits for its data.
            false => 0.0,
        }
    }

    /// The probability that a seek of about the gap's distance is late by more than `slack`
    /// nanoseconds.
    fn chance(&self, gap: &Gap, (direction, delivery): (Direction, Delivery), slack: i64) -> f64 {
        let distance = gap
            .source
            .cylinder
            .abs_diff(gap.destination.position.cylinder);
        let class = self.class(direction, distance, delivery);
        self.lateness[usize::from(self.told_by[class])].chance(slack)
    }

    /// The duration of so many revolutions.
    fn turns(&self, turns: f64) -> Duration {
        Duration::from_nanos((turns * self.period.as_nanos() as f64) as u64)
    }

    /// Whether a read is worth an expected loss. `reading` is its length, computed only if it
    /// matters.
    pub fn pays(&self, reading: impl FnOnce() -> Duration, loss: Duration) -> bool {
        match self.caution {
            Caution::Fixed { .. } => true,
            Caution::Learned { .. } => loss.is_zero() || reading() >= self.price_of(loss),
        }
    }

    /// Notes the end of a command with a seek.
    pub fn observe(&mut self, seek: &ObservedSeek) {
        let class = self.class(seek.direction, seek.distance, seek.delivery);
        self.lateness[class].observe(seek.wait, self.period, seek.revolutions);
    }

    /// Notes the end of a foreground request after `response`, and settles the price at every 256th.
    ///
    /// `lost` is the delay by the plan before the request in nanoseconds, [luck](Self::expected_luck)
    /// included: negative if the request ended sooner, zero without a plan. It counts `delayed`
    /// times, for the request and for those behind it.
    pub fn finished(&mut self, response: Duration, lost: i64, delayed: usize) {
        self.responses += response.as_nanos() as f64;
        self.requests += 1.0;
        self.lost += lost as f64 * delayed as f64;
        self.losses.responses += response.as_nanos();
        self.losses.lost += lost * delayed as i64;
        self.unsettled += 1;
        if self.unsettled >= SETTLE_EVERY {
            self.unsettled = 0;
            self.settle();
        }
    }

    /// Notes a plan by which other requests wait longer by `waiting` in all.
    pub fn delayed(&mut self, waiting: Duration) {
        self.lost += waiting.as_nanos() as f64;
        self.losses.lost += waiting.as_nanos() as i64;
    }

    /// The current guards of commands that wait at the drive, by direction and for short and long seeks.
    pub fn guards(&self) -> [Duration; 4] {
        std::array::from_fn(|class| self.widened(self.guards[class]))
    }

    fn widened(&self, guard: Duration) -> Duration {
        Duration::from_nanos((guard.as_nanos() as f64 * self.widening) as u64)
    }

    /// Reduces the weight of observations, because the believed seek times changed.
    pub fn doubt(&mut self) {
        for lateness in &mut self.lateness {
            lateness.doubt();
        }
    }

    /// A host delays commands by times that nobody has observed yet.
    pub fn expect_host(&mut self) {
        self.lateness[IMMEDIATE..].fill_with(Lateness::of_delayed);
        self.set_guards();
    }

    /// Reduces the weight of observations of commands that begin on arrival, because the believed delay of
    /// the host changed.
    pub fn doubt_arrivals(&mut self) {
        for lateness in &mut self.lateness[IMMEDIATE..] {
            lateness.doubt();
        }
    }

    /// Widens all guards by a factor from now on.
    pub fn widen(&mut self, times: f64) {
        self.widening = times;
    }

    /// The measured share of the mean response time that is lost, over the last few thousand
    /// requests.
    pub fn impact(&self) -> f64 {
        if self.responses > 0.0 {
            self.lost / self.responses
        } else {
            0.0
        }
    }

    /// The losses since the beginning.
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// The impact budget in parts per million; `None` for a fixed guard.
    pub fn budget(&self) -> Option<u32> {
        match self.caution {
            Caution::Learned { impact_ppm } => Some(impact_ppm),
            Caution::Fixed { .. } => None,
        }
    }

    /// Sets the impact budget. The price follows by at most 5 % every 256 requests, as after a
    /// change of the load. A fixed guard has no budget and stays.
    pub fn set_budget(&mut self, ppm: u32) {
        if let Caution::Learned { impact_ppm } = &mut self.caution {
            *impact_ppm = ppm;
        }
    }

    fn settle(&mut self) {
        let Caution::Learned { impact_ppm } = self.caution else {
            return;
        };
        let budget = TARGET_SHARE * f64::from(impact_ppm.max(1)) / 1e6;
        let over = (self.impact() / budget - 1.0).clamp(-1.0, 1.0);
        // Without gaps to consider, no loss says nothing of the price.
        if std::mem::take(&mut self.is_asked) {
            self.price = (self.price * (1.0 + STEP * over)).clamp(*PRICES.start(), *PRICES.end());
        }
        self.lost *= MEMORY;
        self.responses *= MEMORY;
        self.requests *= MEMORY;
        self.attribution.decay(MEMORY);
        for lateness in &mut self.lateness {
            lateness.learn();
        }
        self.told_by = std::array::from_fn(|class| {
            let is_drowned = self.lateness[class].late_anyway() > DROWNED;
            (if is_drowned { class & !WRITES } else { class }) as u8
        });
        self.set_guards();
    }

    fn set_guards(&mut self) {
        self.guards = match self.caution {
            Caution::Fixed { guard, .. } => [guard; 8],
            Caution::Learned { .. } => {
                let price = self.price * self.period.as_nanos() as f64;
                self.told_by
                    .map(|class| self.lateness[usize::from(class)].guard(price))
            }
        };
    }

    fn class(&self, direction: Direction, distance: u32, delivery: Delivery) -> usize {
        let long = usize::from(distance > self.short);
        let write = usize::from(direction == Direction::Write);
        let immediate = usize::from(delivery == Delivery::Immediate);
        IMMEDIATE * immediate + WRITES * write + long
    }
}
