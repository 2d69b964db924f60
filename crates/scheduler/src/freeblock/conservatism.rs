//! How careful a plan has to be: a fixed guard, or one that is learned and priced.
//!
//! A plan wins reading time and risks a revolution of foreground time at each of its seeks. A
//! learned guard weighs the two: it has a *price*, how many nanoseconds of reading one expected
//! nanosecond of foreground loss must bring. The guard is the one with the best balance at that
//! price, a plan that does not bring its price is left out, and the price follows the *impact
//! budget*: it rises while the foreground is measured to lose more than it may.

use block::{Direction, Duration};

use super::gap::{Gap, Guard};
use super::lateness::Lateness;
use super::plan::{GapPlan, Kind};

/// How the guard comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Caution {
    /// Lumb et al., FAST 2002: a constant that is added to the predicted seeks of detours.
    Fixed {
        /// The constant.
        guard: Duration,
        /// Gaps whose latency is less than this short of a whole revolution are left alone: the
        /// seek might just make it.
        near_miss: Duration,
    },
    /// From errors and an impact budget.
    Learned {
        /// How much longer foreground requests may take on average, in parts per million.
        impact_ppm: u32,
    },
}

impl Default for Caution {
    /// Learned, at the default impact budget of 1 % of the mean response time.
    fn default() -> Self {
        Caution::Learned { impact_ppm: 10_000 }
    }
}

/// The part of the impact budget that is aimed at. A choice: not all is measured; a plan also makes
/// the command after next be given to the drive a little later. On the Atlas 10K under OLTP and
/// SPTF-SW60, the loss is from 0.1 % of the response time less to 0.2 % more than measured.
const AIM: f64 = 0.9;
/// The price at the beginning, and its bounds. Below about a third a plan would cost the background
/// itself more than it brings, because a lost revolution delays the scan as well, and free reading
/// takes about a third of a busy disk's head time: no budget is spent beyond that. The rest is room.
const PRICE: f64 = 1.0;
const PRICES: std::ops::RangeInclusive<f64> = 0.3..=64.0;
/// The price is set anew after so many foreground requests. A choice: about two seconds.
const SETTLE_EVERY: u32 = 256;
/// By at most this share at once. A choice: a factor of two within half a minute.
const STEP: f64 = 0.05;
/// What is left of the older requests' weight at each settling: an average over about 5,000, in
/// which a budget of 1 % is about fifty lost revolutions. A choice.
const MEMORY: f64 = 0.95;

/// The state of a guard.
#[derive(Clone, Debug)]
pub struct Conservatism {
    caution: Caution,
    period: Duration,
    /// A seek of at most this many cylinders is a short one.
    short: u32,
    /// By direction, then short and long seeks.
    lateness: [Lateness; 4],
    price: f64,
    /// By direction, then short and long; as given or learned.
    guards: [Duration; 4],
    /// How many times as long they are used.
    widening: f64,
    lost: f64,
    responses: f64,
    unsettled: u32,
    losses: Losses,
}

/// What the foreground took and lost since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// All response times, in nanoseconds.
    pub responses: u64,
    /// What of them is owed to plans, in nanoseconds; negative if it was sooner with them.
    pub lost: i64,
}

impl Losses {
    /// The share of the response times that was lost from `before` on; `None` if nothing ended.
    pub fn impact_since(&self, before: Losses) -> Option<f64> {
        let lost = (self.lost - before.lost) as f64;
        let responses = (self.responses - before.responses) as f64;
        (responses > 0.0).then(|| lost / responses)
    }
}

impl Conservatism {
    /// A guard for a drive of so many cylinders that turns once in `period`.
    pub fn new(caution: Caution, period: Duration, cylinders: u32) -> Self {
        let mut conservatism = Conservatism {
            caution,
            period,
            // A choice: the part of a seek curve that goes with the root of the distance.
            short: cylinders / 16,
            lateness: Default::default(),
            price: PRICE,
            guards: [Duration::ZERO; 4],
            widening: 1.0,
            lost: 0.0,
            responses: 0.0,
            unsettled: 0,
            losses: Losses::default(),
        };
        conservatism.set_guards();
        conservatism
    }

    /// The guards for a gap: those of a seek over about as many cylinders. Most detours are to places
    /// near one of the two ends, so that one of the two seeks is about as long as the way without
    /// it.
    pub fn guard(&self, gap: &Gap) -> Guard {
        let distance = gap
            .source
            .cylinder
            .abs_diff(gap.destination.position.cylinder);
        let guards = self.guards();
        Guard {
            to_free: guards[self.class(Direction::Read, distance)],
            to_destination: guards[self.class(gap.direction, distance)],
        }
    }

    /// Whether the gap may be filled at all.
    pub fn admits(&self, latency: Duration) -> bool {
        match self.caution {
            Caution::Fixed { near_miss, .. } => latency + near_miss <= self.period,
            Caution::Learned { .. } => true,
        }
    }

    /// How much later the foreground command is expected to end because of the plan.
    pub fn expected_loss(&self, gap: &Gap, latency: Duration, plan: &GapPlan) -> Duration {
        if let Caution::Fixed { .. } = self.caution {
            return Duration::ZERO;
        }
        let mut late = 0.0;
        for stop in plan.stops().filter(|stop| stop.kind != Kind::Source) {
            late += self.chance(gap, Direction::Read, stop.slack.as_nanos() as i64);
        }
        if plan.stops().all(|stop| stop.kind != Kind::Merged) {
            late += self.chance(gap, gap.direction, plan.slack.as_nanos() as i64);
        }
        late += self.luck(gap, latency);
        self.turns(late)
    }

    /// How much sooner than believed the command is expected to end without a plan: a seek that is
    /// believed to just miss the sector might just make it, and any plan takes that away.
    pub fn expected_luck(&self, gap: &Gap, latency: Duration) -> Duration {
        match self.caution {
            Caution::Fixed { .. } => Duration::ZERO,
            Caution::Learned { .. } => self.turns(self.luck(gap, latency)),
        }
    }

    /// The chance that the command ends a revolution sooner than believed without a plan.
    fn luck(&self, gap: &Gap, latency: Duration) -> f64 {
        let short_of_turn = latency.as_nanos() as i64 - self.period.as_nanos() as i64;
        1.0 - self.chance(gap, gap.direction, short_of_turn)
    }

    /// The chance that a seek of about the gap's distance is later than believed by more than
    /// `slack` nanoseconds.
    fn chance(&self, gap: &Gap, direction: Direction, slack: i64) -> f64 {
        let distance = gap
            .source
            .cylinder
            .abs_diff(gap.destination.position.cylinder);
        self.lateness[self.class(direction, distance)].chance(slack)
    }

    /// So many revolutions.
    fn turns(&self, turns: f64) -> Duration {
        Duration::from_nanos((turns * self.period.as_nanos() as f64) as u64)
    }

    /// Whether reading for `reading`, which is only worked out if it matters, is worth an expected
    /// loss.
    pub fn pays(&self, reading: impl FnOnce() -> Duration, loss: Duration) -> bool {
        match self.caution {
            Caution::Fixed { .. } => true,
            Caution::Learned { .. } => {
                loss.is_zero() || reading().as_nanos() as f64 >= self.price * loss.as_nanos() as f64
            }
        }
    }

    /// A command ended: it was believed to wait so long for its sector, after a seek over so many
    /// cylinders, and took so many revolutions more than believed.
    pub fn observe(
        &mut self,
        direction: Direction,
        distance: u32,
        wait: Duration,
        revolutions: i64,
    ) {
        let class = self.class(direction, distance);
        self.lateness[class].observe(wait, self.period, revolutions);
    }

    /// A foreground request ended after `response`; a plan before it made it and those behind it,
    /// `delayed` in all, later by `lost` nanoseconds (negative: earlier) than they would have been
    /// on average, with their [luck](Self::expected_luck).
    pub fn finished(&mut self, response: Duration, lost: i64, delayed: usize) {
        self.responses += response.as_nanos() as f64;
        self.lost += lost as f64 * delayed as f64;
        self.losses.responses += response.as_nanos();
        self.losses.lost += lost * delayed as i64;
        self.unsettled += 1;
        if self.unsettled >= SETTLE_EVERY {
            self.unsettled = 0;
            self.settle();
        }
    }

    /// A plan is carried out because of which others are expected to wait for so much longer in all.
    pub fn delayed(&mut self, waiting: Duration) {
        self.lost += waiting.as_nanos() as f64;
        self.losses.lost += waiting.as_nanos() as i64;
    }

    /// The present guards, by direction and for short and long seeks.
    pub fn guards(&self) -> [Duration; 4] {
        let wide = |guard: Duration| guard.as_nanos() as f64 * self.widening;
        self.guards
            .map(|guard| Duration::from_nanos(wide(guard) as u64))
    }

    /// Seeks are believed to take another time: what was observed of the old one counts little.
    pub fn doubt(&mut self) {
        for lateness in &mut self.lateness {
            lateness.doubt();
        }
    }

    /// From now on guards are so many times as long as given or learned.
    pub fn widen(&mut self, times: f64) {
        self.widening = times;
    }

    /// The share of the mean response time that the foreground is measured to lose, over the last
    /// few thousand requests.
    pub fn impact(&self) -> f64 {
        if self.responses > 0.0 {
            self.lost / self.responses
        } else {
            0.0
        }
    }

    /// What was lost since the beginning.
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// How much longer foreground requests may take on average, in parts per million; `None` if
    /// the guard is fixed.
    pub fn budget(&self) -> Option<u32> {
        match self.caution {
            Caution::Learned { impact_ppm } => Some(impact_ppm),
            Caution::Fixed { .. } => None,
        }
    }

    /// They may take so much longer from now on. The price follows as it does after a change of the
    /// load: by 5 % every 256 requests at most. A fixed guard keeps to no budget, and stays.
    pub fn set_budget(&mut self, ppm: u32) {
        if let Caution::Learned { impact_ppm } = &mut self.caution {
            *impact_ppm = ppm;
        }
    }

    fn settle(&mut self) {
        let Caution::Learned { impact_ppm } = self.caution else {
            return;
        };
        let budget = AIM * f64::from(impact_ppm.max(1)) / 1e6;
        let over = (self.impact() / budget - 1.0).clamp(-1.0, 1.0);
        self.price = (self.price * (1.0 + STEP * over)).clamp(*PRICES.start(), *PRICES.end());
        self.lost *= MEMORY;
        self.responses *= MEMORY;
        for lateness in &mut self.lateness {
            lateness.learn();
        }
        self.set_guards();
    }

    fn set_guards(&mut self) {
        self.guards = match self.caution {
            Caution::Fixed { guard, .. } => [guard; 4],
            Caution::Learned { .. } => {
                let price = self.price * self.period.as_nanos() as f64;
                std::array::from_fn(|class| self.lateness[class].guard(price))
            }
        };
    }

    fn class(&self, direction: Direction, distance: u32) -> usize {
        let long = usize::from(distance > self.short);
        match direction {
            Direction::Read => long,
            Direction::Write => 2 + long,
        }
    }
}
