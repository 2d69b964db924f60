//! Whether another stream fits: a closed form over sums, in head time.
//!
//! In every round of length T each of the streams is due r T bytes, and the round is one sorted
//! sweep. With n extents in it, the load U = sum of r / R, and D the least time for which a full
//! buffer lasts beyond what the application was promised,
//!
//! ```text
//!   frozen                 sweep done                         its data are needed    next freezing
//!     |-- one of others --|----- P + U T at worst -----|              |                   |
//!     t                                                           t + D - T             t + T
//!
//!   P      = n (revolution + overhead + settle) + seeks of the sweep + stall
//!   needed : FG + P + U T <= D - T    the sweep is over in time, whatever had just begun
//!            P + U T + f T <= T       rounds do not pile up; f is promised to the foreground
//!   so     T = (D - P - FG) / (1 + U),  and  T (1 - f - U) >= P
//! ```
//!
//! This is the specification's `D >= P (2 - f) / (1 - f - U)` with FG counted where it delays a
//! deadline, and not a second time where rounds must not pile up: a foreground command is safe
//! only while the sweeps after it still end in time, so one FG is never followed by another.
//!
//! **Whole tracks.** A drive that takes a whole track up at any sector has no rotational latency
//! over it. If batches are cut at the ends of tracks (all of them then are whole tracks), the
//! revolution of each batch falls away; in return up to one track stays due for the next round,
//! so that D is shorter by a track's time at rate r, and a round may be longer by one track. The
//! form with the smaller share of the head is chosen.

mod form;
mod forms;
mod refusal;
mod relearning;

use std::collections::BTreeMap;

use block::{Direction, Duration};

use crate::head_times::{Cylinders, HeadTimes, Zone};
use crate::rate::{Rate, SECOND};
use form::{Contribution, Sums};
use forms::forms;
pub use refusal::{Reason, Refusal};
pub use relearning::Promises;

/// Terms in the form that admission computes with: a rate that is not zero, memory that is set, and the
/// worst place of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Reading or recording.
    pub direction: Direction,
    /// Bytes in a second.
    pub rate: Rate,
    /// Bytes that the application reads or writes beyond its playout point at most.
    pub buffer: u64,
    /// Memory that the stream may have in all, in bytes.
    pub memory: u64,
    /// The slowest zone of its extents.
    pub zone: Zone,
    /// At most how many extents a batch touches.
    pub extents: u64,
    /// Batches are whole pages of so many bytes.
    pub page: u64,
}

/// What holds for all streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The share of head time that is promised to the foreground, in thousandths.
    pub foreground_permille: u32,
    /// How late the host may notice anything: timers, dispatch, and the time between two reports
    /// of a playout point that moves (ABISS: timer slack and worst dispatch delay).
    pub latency: Duration,
    /// Rounds are not longer than this, unless their seeks would take too much: a stream that comes
    /// or comes back waits so long for its first one. Shorter rounds leave less to others.
    pub longest_round: Duration,
    /// Streams at most; at the bound others are refused.
    pub streams: usize,
}

/// How batches end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cutting {
    /// Anywhere: an access waits for its first sector.
    Anywhere,
    /// At the end of a track.
    Tracks,
}

/// How rounds go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// From one freezing to the next.
    pub round: Duration,
    /// From a freezing to the moment when all of its batches have to be done.
    pub within: Duration,
    /// The longest that a sweep takes.
    pub worst: Duration,
    /// How batches end.
    pub cutting: Cutting,
    /// The share of head time that streams take at worst, in billionths.
    pub share: u64,
}

/// A stream is granted.
#[derive(Debug, PartialEq, Eq)]
pub struct Grant {
    /// How rounds go from now on.
    pub plan: Plan,
    /// What the stream is due in a round, in bytes.
    pub batch: u64,
    /// The memory that was set, in bytes; what was asked for.
    pub memory: u64,
    /// The memory that the stream needs for these rounds. The rest of what was set is for rounds
    /// that get longer when others leave.
    pub needed: u64,
    /// To be given back when the stream ends.
    pub held: Held,
}

/// What one stream holds of the sums; not to be copied.
#[derive(Debug, PartialEq, Eq)]
pub struct Held {
    part: Contribution,
}

/// The streams that were granted, as sums.
#[derive(Clone, Debug)]
pub struct Admission {
    times: HeadTimes,
    rules: Rules,
    sums: Sums,
    /// How often each D is there, batches cut anywhere.
    lasts: BTreeMap<Duration, usize>,
    /// The same, batches cut at tracks.
    lasts_cut: BTreeMap<Duration, usize>,
    /// How often each is the lowest cylinder of a stream.
    low: BTreeMap<u32, usize>,
    /// How often each is the highest one.
    high: BTreeMap<u32, usize>,
    /// How rounds go with them: asked for at every turn.
    plan: Option<Plan>,
    standing: Promises,
}

impl Demand {
    /// What of the memory is not for the disk's sake: the application's part, what the host may
    /// notice late (when reading on and when asking for more), and three pages of which only
    /// parts count: the first one, the last one, and the one that is not yet due.
    pub fn own_part(&self, latency: Duration) -> u64 {
        let late = self.rate.bytes_until(latency);
        let parts = [self.buffer, late, late, self.page.saturating_mul(3)];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

impl Rules {
    /// f, in billionths.
    fn promised(&self) -> u64 {
        u64::from(self.foreground_permille) * (SECOND / 1000)
    }
}

impl Admission {
    /// A disk without streams.
    pub fn new(times: HeadTimes, rules: Rules) -> Self {
        Admission {
            times,
            rules,
            sums: Sums::default(),
            lasts: BTreeMap::new(),
            lasts_cut: BTreeMap::new(),
            low: BTreeMap::new(),
            high: BTreeMap::new(),
            plan: None,
            standing: Promises::Kept,
        }
    }

    /// The drive's worst times.
    pub fn times(&self) -> &HeadTimes {
        &self.times
    }

    /// What holds for all.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Streams that were granted and not given back.
    pub fn streams(&self) -> usize {
        self.sums.streams
    }

    /// How rounds go with the present streams; none without streams.
    pub fn plan(&self) -> Option<Plan> {
        self.plan
    }

    /// What a stream of this demand would take of the head at worst, in billionths, by itself.
    pub fn alone(&self, demand: &Demand) -> u64 {
        let part = demand.part(&self.rules);
        let lasts = [part.lasts, part.lasts_cut];
        let plan = self.plan_of(&part.sums, lasts, part.cylinders);
        plan.map_or(SECOND, |plan| plan.share)
    }

    /// Grants a stream, or says why not.
    ///
    /// # Errors
    /// The reason, and what would be granted instead.
    pub fn admit(&mut self, demand: &Demand) -> Result<Grant, Refusal> {
        if self.sums.streams >= self.rules.streams {
            return Err(Refusal {
                reason: Reason::Full {
                    limit: self.rules.streams,
                },
                largest_rate: None,
                least_memory: None,
            });
        }
        let part = demand.part(&self.rules);
        let Some(plan) = self.plan_with(&part) else {
            return Err(self.refusal(demand, &part));
        };
        self.take(&part);
        self.plan = Some(plan);
        let unused = match plan.cutting {
            Cutting::Anywhere => part.lasts.saturating_sub(plan.within + plan.round),
            Cutting::Tracks => part.lasts_cut.saturating_sub(plan.within + plan.round),
        };
        Ok(Grant {
            plan,
            batch: demand.rate.bytes_until(plan.round),
            memory: demand.memory,
            needed: demand.memory - demand.rate.bytes_within(unused),
            held: Held { part },
        })
    }

    /// Takes back what a stream held.
    pub fn release(&mut self, held: Held) {
        self.give_back(held);
        self.plan_anew();
    }

    fn take(&mut self, part: &Contribution) {
        self.sums = self.sums.with(&part.sums);
        *self.lasts.entry(part.lasts).or_default() += 1;
        *self.lasts_cut.entry(part.lasts_cut).or_default() += 1;
        *self.low.entry(part.cylinders.low).or_default() += 1;
        *self.high.entry(part.cylinders.high).or_default() += 1;
    }

    fn give_back(&mut self, held: Held) {
        let Contribution {
            sums,
            lasts,
            lasts_cut,
            cylinders,
        } = held.part;
        self.sums = self.sums.without(&sums);
        forget(&mut self.lasts, lasts);
        forget(&mut self.lasts_cut, lasts_cut);
        forget(&mut self.low, cylinders.low);
        forget(&mut self.high, cylinders.high);
    }

    fn plan_with(&self, part: &Contribution) -> Option<Plan> {
        let sums = self.sums.with(&part.sums);
        let lasts = self.shortest(Some(part.lasts));
        let lasts = [lasts, self.shortest_cut(Some(part.lasts_cut))];
        self.plan_of(&sums, lasts, self.cylinders_with(part))
    }

    /// Where the streams are; none without streams.
    fn cylinders(&self) -> Option<Cylinders> {
        let (&low, _) = self.low.first_key_value()?;
        let (&high, _) = self.high.last_key_value()?;
        Some(Cylinders { low, high })
    }

    fn cylinders_with(&self, part: &Contribution) -> Cylinders {
        let present = self.cylinders();
        present.map_or(part.cylinders, |present| present.and(part.cylinders))
    }

    /// The form that takes the smaller share of the head, of those that fit.
    fn plan_of(
        &self,
        sums: &Sums,
        [lasts, lasts_cut]: [Duration; 2],
        place: Cylinders,
    ) -> Option<Plan> {
        let foreground = self.times.foreground_worst();
        let forms = forms(&self.times, &self.rules, sums, place);
        let plans = forms.filter_map(|form| {
            let lasts = match form.cutting {
                Cutting::Anywhere => lasts,
                Cutting::Tracks => lasts_cut,
            };
            form.plan(lasts, &self.rules, foreground)
        });
        plans.min_by_key(|plan| plan.share)
    }

    fn shortest(&self, other: Option<Duration>) -> Duration {
        shortest(&self.lasts, other)
    }

    fn shortest_cut(&self, other: Option<Duration>) -> Duration {
        shortest(&self.lasts_cut, other)
    }

    fn refusal(&self, demand: &Demand, part: &Contribution) -> Refusal {
        if self.standing == Promises::Strained {
            return Refusal {
                reason: Reason::Strained,
                largest_rate: None,
                least_memory: None,
            };
        }
        let sums = self.sums.with(&part.sums);
        let own_part = demand.own_part(self.rules.latency);
        let promised = self.rules.promised();
        let taken = self.sums.load.saturating_add(promised);
        let place = self.cylinders_with(part);
        let anywhere = forms::anywhere(&self.times, &self.rules, &sums, place);
        let needed = anywhere.needed(&self.rules, self.times.foreground_worst());
        let reason = match needed {
            None => Reason::AboveDisk {
                rate: demand.rate,
                sustained: demand.zone.sustained,
                left_permille: SECOND.saturating_sub(taken) / (SECOND / 1000),
            },
            Some(_) if demand.memory <= own_part => Reason::BufferTooSmall {
                memory: demand.memory,
                least: own_part,
            },
            Some(needed) => Reason::HeadTime {
                lasts: self.shortest(Some(part.lasts)),
                needed,
                extents: sums.extents(),
            },
        };
        Refusal {
            reason,
            largest_rate: self.largest_rate(demand),
            least_memory: self.least_memory(demand),
        }
    }

    /// The largest rate below the one asked for that would be granted now. A larger rate is a
    /// larger load and a shorter D, so that halving finds it.
    fn largest_rate(&self, demand: &Demand) -> Option<Rate> {
        let fits = |bytes| {
            let rate = Rate::new(bytes)?;
            self.plan_with(&Demand { rate, ..*demand }.part(&self.rules))
                .map(|_| rate)
        };
        let (mut granted, mut refused) = (0, demand.rate.bytes());
        while refused - granted > 1 {
            let middle = granted + (refused - granted) / 2;
            match fits(middle) {
                Some(_) => granted = middle,
                None => refused = middle,
            }
        }
        Rate::new(granted)
    }

    /// The least memory with which the rate would be granted now, whichever form that takes; none
    /// if others' buffers are too short for one stream more.
    fn least_memory(&self, demand: &Demand) -> Option<u64> {
        let own_part = demand.own_part(self.rules.latency);
        let unbounded = Demand {
            memory: u64::MAX,
            ..*demand
        };
        let part = unbounded.part(&self.rules);
        let (sums, place) = (self.sums.with(&part.sums), self.cylinders_with(&part));
        let foreground = self.times.foreground_worst();
        let forms = forms(&self.times, &self.rules, &sums, place);
        let least = forms.filter_map(|form| {
            let (others, track) = match form.cutting {
                Cutting::Anywhere => (&self.lasts, 0),
                Cutting::Tracks => (&self.lasts_cut, demand.zone.tracks?.bytes),
            };
            let others = others.first_key_value();
            let needed = form.needed(&self.rules, foreground)?;
            if others.is_some_and(|(&lasts, _)| lasts < needed) {
                return None;
            }
            let bytes = demand.rate.bytes_until(needed);
            Some(own_part.saturating_add(bytes).saturating_add(track))
        });
        // Bytes are whole and times are, too: what one rounds away the next bytes bring back.
        let least = least.min();
        least.map(|bytes| bytes.saturating_add(SLOP))
    }
}

/// What roundings between bytes and nanoseconds may take off a buffer, in bytes: a nanosecond at
/// 1 GB/s is one, and there are four roundings.
const SLOP: u64 = 4;

/// One of them is not there any more.
fn forget<T: Ord>(all: &mut BTreeMap<T, usize>, one: T) {
    if let Some(count) = all.get_mut(&one) {
        *count -= 1;
        if *count == 0 {
            all.remove(&one);
        }
    }
}

/// The shortest of them and of one more.
fn shortest(all: &BTreeMap<Duration, usize>, other: Option<Duration>) -> Duration {
    let present = all.first_key_value().map(|(&lasts, _)| lasts);
    let both = [present, other];
    both.into_iter().flatten().min().unwrap_or_default()
}

#[cfg(test)]
mod tests;
