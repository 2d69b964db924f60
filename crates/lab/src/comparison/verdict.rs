//! The verdict on a comparison, in two sentences: what dominated the mean response of the best policy, and what is
//! unusual, with a flag to try next.
//!
//! ```text
//!   Waiting for other requests is 99 % of the mean response of 34.2 s.
//!   Requests come in bursts: the disk is idle 94 % of the time, yet one finds about 700 ahead of it; try --closed.
//! ```
//!
//! The second sentence states the first finding of `Finding` whose condition holds.

mod facts;

use serde::Serialize;
use simulator::ledger::RunReport;

use super::load::LoadSource;
use facts::{Facts, OpenLoad, Pace, Part};

/// The verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparisonVerdict {
    /// The policy with the shortest mean response time.
    pub policy: String,
    /// The largest part of that mean: waiting, seek, rotation, transfer, electronics, bus or unaccounted.
    pub dominant: &'static str,
    /// Its share of the mean.
    pub dominant_percent: f64,
    /// What is unusual: overload, one-burst, bursts, others-overloaded, long-tail, busy, buffered, transfer, bus, idle,
    /// closed-queue or nothing.
    pub finding: &'static str,
    /// The sentences.
    pub sentences: Vec<String>,
}

/// What is unusual about the best run. The order of the variants is the order of the questions.
#[derive(Clone, Copy, Debug)]
enum Finding<'a> {
    /// Requests arrived faster than the drive served them.
    Overload(OpenLoad),
    /// All requests arrived at once.
    OneBurst(OpenLoad),
    /// Requests wait although the drive is idle for long.
    Bursts(OpenLoad),
    /// Another policy could not keep up with the arrivals.
    OthersOverloaded(&'a Facts),
    /// The best mean comes with a long tail beside this policy's.
    LongTail(&'a Facts),
    /// Open arrivals near the drive's limit.
    Busy(OpenLoad),
    /// The drive's buffer answers.
    Buffered,
    /// The head mostly transfers.
    Transfer,
    /// A slow bus is much of the mean.
    Bus,
    /// The drive has little to do.
    Idle(Pace),
    /// The queue is that of the load's own clients.
    ClosedQueue(u32),
    /// None of these.
    Nothing,
}

/// The share from which a part dominates: half. With less, all other parts together are larger.
const DOMINANT: f64 = 0.5;

/// Surplus of arrivals from which the queue is said to grow: 5 %. A choice: the backlog at the end is then at least a
/// twentieth of all requests, which the fluctuations of a stable queue of hundreds of requests hardly reach.
const SURPLUS: f64 = 1.05;

/// The idle share up to which a drive counts as saturated. A choice, as small as the surplus.
const SATURATED_IDLE: f64 = 0.05;

/// Waits of so many times those of independent arrivals are called bursts. A choice: batches of `b` requests that
/// arrive independently on a nearly idle drive wait `b - 1` half head times each, and independent ones a fraction of a
/// head time, so that this holds from a few requests at once.
const BURST_FACTOR: f64 = 10.0;

/// The idle share up to which a drive is called busy: at 80 % busy, independent arrivals wait four times the rest of a
/// command (Pollaczek and Khinchine: busy / idle), and the curve is steep.
const BUSY_IDLE: f64 = 0.2;

/// The idle share from which a drive has little to do. A choice, the mirror image of [`BUSY_IDLE`].
const LITTLE_TO_DO: f64 = 0.8;

/// The ratio of 99.9th percentiles that is a long tail. A choice: twice.
const TAIL_FACTOR: f64 = 2.0;

/// The share of a second part that is worth its words. A choice.
const WORTH_SAYING: f64 = 0.1;

impl ComparisonVerdict {
    /// The verdict on runs of one load, each with its policy's name; `None` if a run has no account.
    pub fn new<'a>(
        source: &LoadSource,
        runs: impl Iterator<Item = (&'a str, &'a RunReport)>,
    ) -> Option<ComparisonVerdict> {
        let facts = runs.map(|(name, report)| Facts::of(name, report));
        ComparisonVerdict::on(Pace::of(source), facts.collect::<Option<_>>()?)
    }

    fn on(pace: Pace, mut runs: Vec<Facts>) -> Option<ComparisonVerdict> {
        runs.sort_by(|one, other| one.mean_ms.total_cmp(&other.mean_ms));
        let (best, others) = runs.split_first()?;
        let &(part, ms) = best.parts.first()?;
        let finding = Finding::of(pace, best, others);
        Some(ComparisonVerdict {
            policy: best.name.clone(),
            dominant: part.name(),
            dominant_percent: (ms / best.mean_ms.max(f64::MIN_POSITIVE) * 1e5).round() / 1e3,
            finding: finding.name(),
            sentences: vec![
                first_sentence(best, others, pace),
                finding.sentence(best, others),
            ],
        })
    }
}

/// The best policy, its lead, and the parts of its mean.
fn first_sentence(best: &Facts, others: &[Facts], pace: Pace) -> String {
    let parts = parts_of_mean(best);
    let mean = time(best.mean_ms);
    let Some(next) = others.first() else {
        let parts = capital(&parts);
        return format!("{parts} of the mean response of {mean}.");
    };
    let parts = format!("{parts} of it");
    let (name, other) = (&best.name, &next.name);
    let lead = (1.0 - best.mean_ms / next.mean_ms.max(f64::MIN_POSITIVE)) * 100.0;
    match best.noise_beside(next, pace) {
        Some(noise) if next.mean_ms - best.mean_ms <= noise => format!(
            "The means of {name} and {other} cannot be told apart: {mean} and {}, a difference of {lead:.1} % with a \
             noise of {:.1} %; {parts}.",
            time(next.mean_ms),
            noise / next.mean_ms * 100.0
        ),
        Some(noise) => format!(
            "{name} has the shortest mean response, {mean}: {lead:.1} % below {other} (noise {:.1} %); {parts}.",
            noise / next.mean_ms * 100.0
        ),
        None => format!(
            "{name} has the shortest mean response, {mean}: {lead:.1} % below {other} (too few requests to tell the \
             noise); {parts}."
        ),
    }
}

/// The largest parts of the mean, without its name: "waiting is 71 %, rotation 12 %".
fn parts_of_mean(best: &Facts) -> String {
    let mut parts = best.parts.iter();
    let mut text = match parts.next() {
        Some(&(part, _)) => format!("{} is {}", part.subject(), percent(best.share(part))),
        None => return String::new(),
    };
    let second = parts.next().map(|&(part, _)| (part, best.share(part)));
    if let Some((part, share)) = second.filter(|(_, share)| *share >= WORTH_SAYING) {
        text = format!("{text} and {} {}", part.subject(), percent(share));
    }
    text
}

impl<'a> Finding<'a> {
    /// The first finding whose condition holds.
    fn of(pace: Pace, best: &Facts, others: &'a [Facts]) -> Finding<'a> {
        if let Pace::Open(load) = pace
            && let Some(finding) = Finding::of_arrivals(load, best, others)
        {
            return finding;
        }
        let is_waiting = best.share(Part::Waiting) >= DOMINANT;
        let shorter = others
            .iter()
            .filter(|other| best.p999_ms >= TAIL_FACTOR * other.p999_ms)
            .min_by(|one, other| one.p999_ms.total_cmp(&other.p999_ms));
        if let Some(other) = shorter {
            return Finding::LongTail(other);
        }
        match pace {
            Pace::Open(load) if is_waiting && best.idle <= BUSY_IDLE => Finding::Busy(load),
            _ if best.buffered >= DOMINANT => Finding::Buffered,
            _ if best.transfer >= DOMINANT => Finding::Transfer,
            _ if best.share(Part::Bus) >= WORTH_SAYING => Finding::Bus,
            _ if best.idle >= LITTLE_TO_DO => Finding::Idle(pace),
            Pace::ClosedLoad(most) | Pace::ClosedTrace(most) if is_waiting => {
                Finding::ClosedQueue(most)
            }
            _ => Finding::Nothing,
        }
    }

    /// A finding that explains waits by the times of open arrivals.
    fn of_arrivals(load: OpenLoad, best: &Facts, others: &'a [Facts]) -> Option<Finding<'a>> {
        let share = best.share(Part::Waiting);
        let is_waiting = share >= DOMINANT;
        let independent = best.independent_wait_ms();
        if is_waiting && best.arrivals_ms <= best.head_ms {
            return Some(Finding::OneBurst(load));
        }
        if is_overloaded(best) {
            return Some(Finding::Overload(load));
        }
        if is_waiting && share * best.mean_ms >= BURST_FACTOR * independent {
            return Some(Finding::Bursts(load));
        }
        let slowest = others.iter().rev().find(|other| is_overloaded(other));
        slowest.map(Finding::OthersOverloaded)
    }

    fn name(self) -> &'static str {
        match self {
            Finding::Overload(_) => "overload",
            Finding::OneBurst(_) => "one-burst",
            Finding::Bursts(_) => "bursts",
            Finding::OthersOverloaded(_) => "others-overloaded",
            Finding::LongTail(_) => "long-tail",
            Finding::Busy(_) => "busy",
            Finding::Buffered => "buffered",
            Finding::Transfer => "transfer",
            Finding::Bus => "bus",
            Finding::Idle(_) => "idle",
            Finding::ClosedQueue(_) => "closed-queue",
            Finding::Nothing => "nothing",
        }
    }

    /// The finding, and what to try.
    fn sentence(self, best: &Facts, others: &[Facts]) -> String {
        let name = &best.name;
        let ahead = count(best.ahead());
        let (idle, busy) = (percent(best.idle), percent(1.0 - best.idle));
        match self {
            Finding::Overload(load) => format!(
                "Requests arrive {:.2} times as fast as {name} serves them, so the queue grows with the run; {}.",
                best.pressure(),
                relief(load, best)
            ),
            Finding::OneBurst(load) => format!(
                "All {} requests arrive at once, and one finds about {ahead} ahead of it; {}.",
                best.requests,
                spread(load)
            ),
            Finding::Bursts(load) => format!(
                "Requests come in bursts: the disk is idle {idle} of the time, yet one finds about {ahead} ahead of \
                 it; {}.",
                spread(load)
            ),
            Finding::OthersOverloaded(other) => format!(
                "Requests arrive {:.2} times as fast as {} serves them, so its queue and mean grow with the run, and \
                 those of {name} do not.",
                other.pressure(),
                other.name
            ),
            Finding::LongTail(other) => format!(
                "The 99.9th percentile of {name}, {}, is {:.1} times that of {}; try --policy aged-sptf, or --why 5 for the \
                 slowest requests.",
                time(best.p999_ms),
                best.p999_ms / other.p999_ms.max(f64::MIN_POSITIVE),
                other.name
            ),
            Finding::Busy(load) => format!(
                "The disk is busy {busy} of the time, where waits grow steeply with the load; {}.",
                relief(load, best)
            ),
            Finding::Buffered => format!(
                "The drive's buffer answers {} of the requests, so policies differ little; try --look-ahead off to \
                 see the platter.",
                percent(best.buffered)
            ),
            Finding::Transfer => format!(
                "Transfer is {} of the busy time: requests are large or sequential; try --preempt for small requests \
                 beside them.",
                percent(best.transfer)
            ),
            Finding::Bus => format!(
                "The bus is {} of the mean, and holds up requests behind it; try --bus-mb-s 80, or what your host has.",
                percent(best.share(Part::Bus))
            ),
            Finding::Idle(pace) => format!(
                "The disk is idle {idle} of the time, so a policy has little to choose from; {}.",
                more(pace)
            ),
            Finding::ClosedQueue(most) => format!(
                "The queue is the load's own, at most {most} requests, so compare requests per second; {}.",
                compare(best, others)
            ),
            Finding::Nothing => format!(
                "Nothing is unusual: the disk is busy {busy} of the time, and a request finds {ahead} ahead of it; {}.",
                compare(best, others)
            ),
        }
    }
}

/// Whether the queue grew until the last arrival.
fn is_overloaded(run: &Facts) -> bool {
    run.idle <= SATURATED_IDLE && run.pressure() >= SURPLUS
}

/// How to lower the rate of arrivals to one that the drive serves.
fn relief(load: OpenLoad, best: &Facts) -> String {
    let factor = best.pressure() * (1.0 - best.idle) / (1.0 - BUSY_IDLE);
    match load {
        OpenLoad::Synthetic(rate) => format!("try --rate {}", two_digits(rate / factor)),
        OpenLoad::Trace => format!("try --closed, or --scale-time {}", two_digits(factor)),
    }
}

/// How to remove the bursts.
fn spread(load: OpenLoad) -> &'static str {
    match load {
        OpenLoad::Trace => "try --closed",
        OpenLoad::Synthetic(_) => "try --tasks 10 --think-ms 0",
    }
}

/// How to give the drive more to do.
fn more(pace: Pace) -> &'static str {
    match pace {
        Pace::Open(OpenLoad::Trace) => "try --closed, or --scale-time 0.1",
        Pace::Open(OpenLoad::Synthetic(_)) => "try a higher --rate",
        Pace::ClosedLoad(_) => "try more --tasks or a shorter --think-ms",
        Pace::ClosedTrace(_) => "try --closed=32",
        Pace::Several => "try more clients",
    }
}

/// The next comparison.
fn compare(best: &Facts, others: &[Facts]) -> String {
    match (others.is_empty(), best.name.as_str()) {
        (false, _) => "try --why 5 for the slowest requests".to_owned(),
        (true, "sptf") => "try --policy c-look,sptf".to_owned(),
        (true, name) => format!("try --policy {name},sptf"),
    }
}

/// A mean number of requests.
fn count(requests: f64) -> String {
    match requests < 9.95 {
        true => format!("{requests:.1}"),
        false => format!("{requests:.0}"),
    }
}

/// A share in percent, with a digit where it is small or nearly everything.
fn percent(share: f64) -> String {
    match share * 100.0 {
        few if few < 9.95 => format!("{few:.1} %"),
        most if (99.5..100.0).contains(&most) => format!("{:.1} %", most.min(99.9)),
        many => format!("{many:.0} %"),
    }
}

/// A time of three digits: 0.31 ms, 18.9 ms, 34.2 s.
fn time(ms: f64) -> String {
    let (value, unit) = match ms < 1_000.0 {
        true => (ms, "ms"),
        false => (ms / 1e3, "s"),
    };
    match value {
        v if v < 9.995 => format!("{v:.2} {unit}"),
        v if v < 99.95 => format!("{v:.1} {unit}"),
        v => format!("{v:.0} {unit}"),
    }
}

/// A number with two digits.
fn two_digits(value: f64) -> String {
    let power = 10f64.powf(value.abs().max(1e-9).log10().floor() - 1.0);
    let rounded = (value / power).round() * power;
    match power >= 1.0 {
        true => format!("{rounded:.0}"),
        false => format!("{rounded:.*}", (-power.log10()).round() as usize),
    }
}

/// The text with a capital, as the beginning of a sentence.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

#[cfg(test)]
mod tests;
