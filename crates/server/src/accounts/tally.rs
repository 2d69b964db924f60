//! The counters of a loop: totals, the last second, and the last ten seconds.
//!
//! All times are the drive's.

use std::collections::VecDeque;

use block::{Class, Direction, Duration, Extent, Finished, Instant};
use hdrhistogram::Histogram;

use crate::status::{ByKind, HeadKind, RESPONSE_BOUNDS_US, Responses};

/// The counters.
pub struct Tally {
    classes: [ClassTally; CLASSES],
    /// The second that is counted now.
    second: u64,
    head: HeadUse,
    /// Failed commands: reads, writes, flushes.
    pub failed: [u64; 3],
    /// The last extent that was read or written.
    pub last: Option<Extent>,
}

/// The requests of one class.
#[derive(Clone, Debug)]
pub struct ClassTally {
    /// Successful requests: reads and writes.
    pub requests: [u64; 2],
    /// Their blocks.
    pub blocks: [u64; 2],
    /// Both in the last whole second.
    pub last_second: [Flow; 2],
    this_second: [Flow; 2],
    /// Response times in nanoseconds: of the last seconds, and of those before.
    recent: [Histogram<u64>; 2],
    /// Response times since the start, by the bounds of [`RESPONSE_BOUNDS_US`].
    all: [u64; RESPONSE_BOUNDS_US.len() + 1],
    /// The sum of all response times in nanoseconds: 584 years of waiting.
    all_nanos: u64,
}

/// Requests and blocks of a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// The number of requests.
    pub requests: u64,
    /// The number of blocks.
    pub blocks: u64,
}

/// The use of head time.
#[derive(Debug, Default)]
struct HeadUse {
    /// The stretches of the last second, in their order.
    stretches: VecDeque<Stretch>,
    total: [Duration; HeadKind::ALL.len()],
    /// The end of the last known stretch.
    until: Instant,
}

/// A stretch of time with one use of the head.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: Instant,
    to: Instant,
    kind: HeadKind,
}

/// The use of the head in the last second.
#[derive(Clone, Debug, Default)]
pub struct LastSecond {
    /// Slices of equal duration, the oldest first, each with its main use.
    pub timeline: Vec<HeadKind>,
    /// The duration of a slice.
    pub slice: Duration,
    /// The whole second by use.
    pub second: ByKind,
    /// The time since the start by use.
    pub total: ByKind,
}

/// Real-time, seven best-effort priorities, background.
pub const CLASSES: usize = 9;

/// The period of percentiles, in seconds. They are of the present and the last period.
const RECENT_SECONDS: u64 = 5;

/// Slices of the last second.
const SLICES: u64 = 200;

const SECOND: u64 = 1_000_000_000;

impl Default for Tally {
    fn default() -> Self {
        Tally {
            classes: std::array::from_fn(|_| ClassTally::default()),
            second: 0,
            head: HeadUse::default(),
            failed: [0; 3],
            last: None,
        }
    }
}

impl Default for ClassTally {
    fn default() -> Self {
        ClassTally {
            requests: [0; 2],
            blocks: [0; 2],
            last_second: [Flow::default(); 2],
            this_second: [Flow::default(); 2],
            recent: [empty(), empty()],
            all: [0; RESPONSE_BOUNDS_US.len() + 1],
            all_nanos: 0,
        }
    }
}

/// A histogram with three digits up to an hour: 150 KiB.
pub(crate) fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1_000, 3_600 * SECOND, 3).expect("bounds that make sense")
}

impl ClassTally {
    /// Whether there was a request.
    pub fn is_used(&self) -> bool {
        self.requests != [0; 2]
    }

    /// Response times of recent requests.
    pub fn responses(&self) -> Histogram<u64> {
        let mut both = self.recent[0].clone();
        // The bounds are the same.
        let _ = both.add(&self.recent[1]);
        both
    }

    /// Adds the response times since the start.
    pub fn add_all(&self, to: &mut Responses) {
        to.counts.resize(self.all.len(), 0);
        for (count, more) in to.counts.iter_mut().zip(self.all) {
            *count += more;
        }
        to.sum_us += self.all_nanos as f64 / 1e3;
    }
}

impl Tally {
    /// The requests of a class.
    pub fn served(&self, class: Class) -> &ClassTally {
        &self.classes[place(class)]
    }

    /// Advances the clock to `now`. The answer is whether a second is over.
    pub(crate) fn advance(&mut self, now: Instant) -> bool {
        let second = now.as_nanos() / SECOND;
        if second == self.second {
            return false;
        }
        let is_next = second == self.second + 1;
        let is_stale = second / RECENT_SECONDS != self.second / RECENT_SECONDS;
        for served in &mut self.classes {
            let over = std::mem::take(&mut served.this_second);
            served.last_second = match is_next {
                true => over,
                false => Default::default(),
            };
            if is_stale {
                served.recent.swap(0, 1);
                served.recent[0].reset();
            }
        }
        self.second = second;
        true
    }

    pub(crate) fn finished(&mut self, finished: &Finished) {
        let request = &finished.request;
        let served = &mut self.classes[place(request.class)];
        let way = match request.direction {
            Direction::Read => 0,
            Direction::Write => 1,
        };
        let blocks = request.extent.length().0;
        served.requests[way] += 1;
        served.blocks[way] += blocks;
        served.this_second[way].requests += 1;
        served.this_second[way].blocks += blocks;
        let response = finished.response().as_nanos();
        served.recent[0].saturating_record(response);
        let place = RESPONSE_BOUNDS_US.partition_point(|bound| bound * 1_000 < response);
        served.all[place] += 1;
        served.all_nanos = served.all_nanos.saturating_add(response);
    }

    /// Counts a command from `given` to `now`. It took `lost` longer than predicted because a plan before
    /// it failed.
    pub(crate) fn held_head(
        &mut self,
        given: Instant,
        now: Instant,
        kind: HeadKind,
        lost: Duration,
    ) {
        let from = given.max(self.head.until);
        if from >= now {
            return;
        }
        let lost = Duration::from_nanos(lost.as_nanos().min(now.since(from).as_nanos()));
        let middle = from + lost;
        self.head.add(from, middle, HeadKind::Lost);
        self.head.add(middle, now, kind);
        self.head.until = now;
        self.head.forget(now);
    }

    /// The use of the head in the second before `now`.
    pub fn last_second(&self, now: Instant) -> LastSecond {
        let from = now.as_nanos().saturating_sub(SECOND);
        let slice = SECOND / SLICES;
        let mut shares = vec![[0u64; HeadKind::ALL.len()]; SLICES as usize];
        for stretch in &self.head.stretches {
            let begin = stretch.from.as_nanos().max(from);
            let end = stretch.to.as_nanos().min(now.as_nanos());
            let kind = stretch.kind as usize;
            let mut at = begin;
            while at < end {
                let place = ((at - from) / slice).min(SLICES - 1);
                let next = (from + (place + 1) * slice).min(end).max(at + 1);
                shares[place as usize][kind] += next - at;
                at = next;
            }
        }
        let length = now.as_nanos() - from;
        let mut second = ByKind::default();
        let mut timeline = Vec::with_capacity(shares.len());
        for (place, share) in (0u64..).zip(&mut shares) {
            let used: u64 = share.iter().sum();
            let there = length.saturating_sub(place * slice).min(slice);
            share[HeadKind::Unused as usize] = there.saturating_sub(used);
            let most = HeadKind::ALL
                .into_iter()
                .max_by_key(|&kind| share[kind as usize]);
            timeline.push(most.unwrap_or_default());
        }
        for kind in HeadKind::ALL {
            let nanos: u64 = shares.iter().map(|share| share[kind as usize]).sum();
            second.add(kind, nanos / 1000);
        }
        let mut total = ByKind::default();
        let mut unused = now.as_nanos();
        for kind in HeadKind::ALL {
            let nanos = self.head.total[kind as usize].as_nanos();
            unused = unused.saturating_sub(nanos);
            total.add(kind, nanos / 1000);
        }
        total.add(HeadKind::Unused, unused / 1000);
        LastSecond {
            timeline,
            slice: Duration::from_nanos(slice),
            second,
            total,
        }
    }
}

impl HeadUse {
    fn add(&mut self, from: Instant, to: Instant, kind: HeadKind) {
        if from == to {
            return;
        }
        self.total[kind as usize] += to.since(from);
        match self.stretches.back_mut() {
            Some(last) if last.kind == kind && last.to == from => last.to = to,
            _ => self.stretches.push_back(Stretch { from, to, kind }),
        }
    }

    /// Removes stretches that ended more than a second ago. Of too many the oldest are removed, on a back
    /// end faster than a drive.
    fn forget(&mut self, now: Instant) {
        while let Some(first) = self.stretches.front()
            && (now.since(first.to).as_nanos() > SECOND || self.stretches.len() > MOST_STRETCHES)
        {
            self.stretches.pop_front();
        }
    }
}

/// The largest number of stretches: twenty for each slice. A choice.
const MOST_STRETCHES: usize = 20 * SLICES as usize;

fn place(class: Class) -> usize {
    match class {
        Class::RealTime { .. } => 0,
        Class::BestEffort(priority) => 1 + usize::from(priority.min(6)),
        Class::Background => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::{Durability, Lba, Request, RequestId, Sectors, Status};

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn the_last_second_adds_up_to_a_second() {
        let mut tally = Tally::default();
        tally.held_head(at(0), at(900), HeadKind::Foreground, Duration::ZERO);
        tally.held_head(at(1000), at(1200), HeadKind::Free, Duration::ZERO);
        // It was given while the one before was in service.
        tally.held_head(
            at(1100),
            at(1260),
            HeadKind::Foreground,
            Duration::from_millis(10),
        );
        let shown = tally.last_second(at(1500));
        let second = shown.second;
        assert_eq!(second.foreground, 400_000 + 50_000);
        assert_eq!(second.free, 200_000);
        assert_eq!(second.lost, 10_000);
        assert_eq!(second.unused, 340_000);
        assert_eq!(shown.timeline.len(), 200);
        assert_eq!(shown.timeline[0], HeadKind::Foreground);
        assert_eq!(shown.timeline[90], HeadKind::Unused);
        assert_eq!(shown.timeline[120], HeadKind::Free);
        assert_eq!(shown.total.foreground, 950_000);
        assert_eq!(shown.total.unused, 1_500_000 - 950_000 - 200_000 - 10_000);
    }

    #[test]
    fn response_times_are_counted_since_the_start() {
        let mut tally = Tally::default();
        let times = [99_999, 100_000, 100_001, 31 * SECOND];
        for nanos in times {
            tally.finished(&Finished {
                request: Request {
                    id: RequestId(1),
                    direction: Direction::Read,
                    extent: Extent::new(Lba(1), Sectors(1)).unwrap(),
                    class: Class::Background,
                    durability: Durability::Volatile,
                    owner: block::Owner::NOBODY,
                },
                submitted: at(5),
                at: at(5) + Duration::from_nanos(nanos),
                status: Status::Good,
                waited: Duration::ZERO,
                waited_order: Duration::ZERO,
                account: None,
            });
        }
        tally.advance(at(60_000));
        let mut all = Responses::default();
        tally.served(Class::Background).add_all(&mut all);
        // A bound belongs to its bucket.
        assert_eq!(all.counts[..2], [2, 1]);
        assert_eq!(all.counts.last(), Some(&1), "{all:?}");
        assert_eq!(all.counts.iter().sum::<u64>(), 4);
        assert_eq!(all.sum_us, 300.0 + 31e6);
    }

    #[test]
    fn a_second_is_shown_when_it_is_over_and_no_longer_than_the_next() {
        let mut tally = Tally::default();
        tally.classes[1].this_second[0].requests = 7;
        tally.advance(at(999));
        assert_eq!(tally.classes[1].last_second[0].requests, 0);
        tally.advance(at(1001));
        assert_eq!(tally.classes[1].last_second[0].requests, 7);
        tally.advance(at(2001));
        assert_eq!(tally.classes[1].last_second[0].requests, 0);
        tally.classes[1].this_second[0].requests = 7;
        tally.advance(at(9000));
        assert_eq!(tally.classes[1].last_second[0].requests, 0, "an old second");
    }
}
