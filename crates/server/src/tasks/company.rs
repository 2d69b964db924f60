//! Response times of the foreground, alone and beside background tasks.

use block::{Class, Duration, Finished, Instant};
use hdrhistogram::Histogram;
use scheduler::freeblock::Losses;

use crate::accounts::tally::empty;
use crate::status::{Foreground, TaskImpact};

/// The response times of a drive. All requests but background ones are foreground, as in the engine's
/// measure of the impact.
pub(crate) struct Company {
    presence: Presence,
    /// Without tasks: the last period, and the one before.
    alone: [Histogram<u64>; 2],
    /// The time without tasks since the periods were exchanged.
    passed: Duration,
    last: Instant,
    /// With tasks, since the start.
    beside: Histogram<u64>,
}

/// The presence of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// No task reads.
    Alone,
    /// At least one task reads.
    Tasks,
}

/// The duration of a period without tasks. A choice: some ten thousand requests of a busy disk, of the
/// present load.
const ALONE: Duration = Duration::from_secs(300);

impl Default for Company {
    fn default() -> Self {
        Company {
            presence: Presence::Alone,
            alone: [empty(), empty()],
            passed: Duration::ZERO,
            last: Instant::ZERO,
            beside: empty(),
        }
    }
}

impl Company {
    /// Notes that tasks are present from `now` on, or not.
    pub(super) fn turn(&mut self, now: Instant, presence: Presence) {
        self.advance(now);
        self.presence = presence;
    }

    /// Advances the clock to `now`.
    pub(crate) fn advance(&mut self, now: Instant) {
        let passed = now.since(self.last);
        self.last = now;
        if self.presence == Presence::Tasks {
            return;
        }
        self.passed += passed;
        if self.passed > ALONE {
            self.passed = Duration::ZERO;
            self.alone.swap(0, 1);
            self.alone[0].reset();
        }
    }

    pub(crate) fn finished(&mut self, finished: &Finished) {
        if finished.request.class == Class::Background {
            return;
        }
        let histogram = match self.presence {
            Presence::Alone => &mut self.alone[0],
            Presence::Tasks => &mut self.beside,
        };
        histogram.saturating_record(finished.response().as_nanos());
    }
}

/// The effect of one task on the foreground.
pub(super) struct Beside {
    losses: Losses,
    alone: Option<Foreground>,
    /// The response times beside earlier tasks, until the task ends.
    before: Option<Histogram<u64>>,
    /// The result at the end.
    whole: Option<TaskImpact>,
}

impl Beside {
    /// The begin of a task.
    pub(super) fn begin(company: &Company, losses: Losses) -> Self {
        let mut alone = company.alone[0].clone();
        // The bounds are the same.
        let _ = alone.add(&company.alone[1]);
        Beside {
            losses,
            alone: figures(&alone),
            before: Some(company.beside.clone()),
            whole: None,
        }
    }

    /// The effect so far.
    pub(super) fn until(&self, company: &Company, losses: Losses) -> TaskImpact {
        self.whole.unwrap_or_else(|| {
            let mut beside = company.beside.clone();
            if let Some(before) = &self.before {
                // It has only grown since.
                let _ = beside.subtract(before);
            }
            let share = losses.impact_since(self.losses);
            TaskImpact {
                measured_percent: share.map(|share| share * 100.0),
                alone: self.alone,
                beside: figures(&beside),
            }
        })
    }

    /// The task has ended.
    pub(super) fn end(&mut self, company: &Company, losses: Losses) {
        self.whole = Some(self.until(company, losses));
        self.before = None;
    }
}

fn figures(histogram: &Histogram<u64>) -> Option<Foreground> {
    (!histogram.is_empty()).then(|| Foreground {
        requests: histogram.len(),
        mean_us: histogram.mean() / 1e3,
        p50_us: histogram.value_at_quantile(0.5) as f64 / 1e3,
        p99_us: histogram.value_at_quantile(0.99) as f64 / 1e3,
    })
}

#[cfg(test)]
mod tests {
    use block::{
        Direction, Durability, Extent, Finished, Instant, Lba, Request, RequestId, Sectors, Status,
    };

    use super::*;

    fn ended(company: &mut Company, class: Class, ms: u64) {
        let request = Request {
            id: RequestId(0),
            direction: Direction::Read,
            extent: Extent::new(Lba(0), Sectors(1)).expect("an extent"),
            class,
            durability: Durability::Volatile,
            owner: block::Owner::NOBODY,
        };
        company.finished(&Finished {
            request,
            submitted: Instant::ZERO,
            at: Instant::from_nanos(ms * 1_000_000),
            waited: Duration::ZERO,
            waited_order: Duration::ZERO,
            account: None,
            status: Status::Good,
        });
    }

    #[test]
    fn requests_beside_a_task_and_without_one_are_told_apart() {
        let mut company = Company::default();
        let first = Class::BestEffort(0);
        ended(&mut company, first, 10);
        ended(&mut company, Class::Background, 900);
        company.turn(Instant::ZERO, Presence::Tasks);
        ended(&mut company, first, 40);
        let losses = Losses::default();
        let mut task = Beside::begin(&company, losses);
        ended(&mut company, first, 20);
        ended(&mut company, first, 30);
        let now = Losses {
            responses: 100,
            lost: 2,
        };
        let found = task.until(&company, now);
        let (alone, beside) = (found.alone.expect("one"), found.beside.expect("two"));
        assert_eq!((alone.requests, beside.requests), (1, 2));
        assert!((alone.mean_us / 1e4 - 1.0).abs() < 1e-3, "{alone:?}");
        assert!((beside.mean_us / 2.5e4 - 1.0).abs() < 1e-3, "{beside:?}");
        assert_eq!(found.measured_percent, Some(2.0));
        task.end(&company, now);
        ended(&mut company, first, 50);
        assert_eq!(task.until(&company, Losses::default()), found);
    }

    #[test]
    fn what_is_compared_with_is_of_lately_and_waits_for_tasks_to_end() {
        let mut company = Company::default();
        let first = Class::BestEffort(0);
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let alone = |company: &Company| {
            let task = Beside::begin(company, Losses::default());
            task.alone.map_or(0, |alone| alone.requests)
        };
        ended(&mut company, first, 10);
        company.turn(at(200), Presence::Tasks);
        company.advance(at(5_000));
        assert_eq!(alone(&company), 1);
        company.turn(at(5_000), Presence::Alone);
        company.advance(at(5_101));
        ended(&mut company, first, 10);
        assert_eq!(alone(&company), 2);
        company.advance(at(5_402));
        assert_eq!(alone(&company), 1, "the first is of long ago");
        company.advance(at(5_703));
        assert_eq!(alone(&company), 0);
    }
}
