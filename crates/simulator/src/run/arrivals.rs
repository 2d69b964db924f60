//! The arrivals of a load in order of time. One independent arrival is read ahead; the others
//! depend on the end of a request.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use block::{Finished, Instant, Refused, Sectors};

use crate::driver::earlier;
use crate::load::{Arrival, Load, LoadPart};
use crate::run::{LATEST_ARRIVAL, MOST_SKIPPED, Options, PastEnd, RunError};

/// The checked and sorted arrivals of a load.
pub(super) struct Arrivals<'a> {
    load: &'a mut dyn Load,
    capacity: Sectors,
    past_end: PastEnd,
    /// Number of arrivals that the run may still accept.
    left: u64,
    until: Option<Instant>,
    /// The next independent arrival.
    ahead: Option<Arrival>,
    /// The lower bound for the time of the next independent arrival.
    reached: Instant,
    /// The dependent arrivals: at most one for each client of the load.
    followers: BinaryHeap<Reverse<DependentArrival>>,
    followed: u64,
    taken: u64,
    skipped: u64,
    /// Number of consecutive skipped arrivals.
    skipped_in_a_row: u64,
    /// The time of the next arrival. It is asked for several times at each event.
    due: Option<Instant>,
}

/// An arrival that the end of a request caused, ordered by time, then by the order of those ends.
struct DependentArrival {
    arrival: Arrival,
    known: u64,
}

impl<'a> Arrivals<'a> {
    pub(super) fn new(
        load: &'a mut dyn Load,
        options: &Options,
        capacity: Sectors,
    ) -> Result<Self, RunError> {
        let mut arrivals = Arrivals {
            load,
            capacity,
            past_end: options.past_end,
            left: options.requests.unwrap_or(u64::MAX),
            until: options.until,
            ahead: None,
            reached: Instant::ZERO,
            followers: BinaryHeap::new(),
            followed: 0,
            taken: 0,
            skipped: 0,
            skipped_in_a_row: 0,
            due: None,
        };
        arrivals.look_ahead()?;
        arrivals.note_due();
        Ok(arrivals)
    }

    /// The time of the next known arrival.
    #[inline]
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Notes the time of the next arrival, after each change.
    fn note_due(&mut self) {
        let ahead = self.ahead.map(|arrival| arrival.at);
        let follower = self.followers.peek().map(|Reverse(f)| f.arrival.at);
        let due = earlier(ahead, follower);
        self.due = due.filter(|_| self.left > 0);
    }

    /// Removes the next arrival and returns it with its number.
    pub(super) fn take(&mut self) -> Result<Option<(u64, Arrival)>, RunError> {
        if self.left == 0 {
            return Ok(None);
        }
        let follower = self.followers.peek().map(|Reverse(f)| f.arrival.at);
        let arrival = match (self.ahead, follower) {
            (Some(ahead), at) if at.is_none_or(|at| ahead.at < at) => {
                self.look_ahead()?;
                ahead
            }
            (_, Some(_)) => match self.followers.pop() {
                Some(Reverse(follower)) => follower.arrival,
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let number = self.taken;
        self.taken += 1;
        self.left -= 1;
        self.note_due();
        Ok(Some((number, arrival)))
    }

    /// Reports an end to the load, and keeps the arrival that it causes.
    pub(super) fn on_finished(
        &mut self,
        now: Instant,
        part: LoadPart,
        finished: &Finished,
    ) -> Result<(), RunError> {
        // An arrival is large, and is not moved.
        let caused = self.load.on_finished(now, part, finished);
        if let Ok(Some(follower)) = &caused
            && !self.keep(now, follower)?
        {
            self.replace(follower)?;
        }
        self.note_due();
        caused?;
        Ok(())
    }

    /// Accepts no further arrivals.
    pub(super) fn close(&mut self) {
        self.left = 0;
        self.due = None;
    }

    /// Number of skipped arrivals.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Reads the next independent arrival.
    fn look_ahead(&mut self) -> Result<(), RunError> {
        self.ahead = None;
        while let Some(arrival) = self.load.next_arrival()? {
            self.check_time(&arrival, self.reached)?;
            self.reached = arrival.at;
            if self.is_late(&arrival) {
                return Ok(());
            }
            if self.fits(&arrival)? {
                self.ahead = Some(arrival);
                return Ok(());
            }
            self.replace(&arrival)?;
        }
        Ok(())
    }

    /// Keeps an arrival that an end, or a skipped arrival, caused at `now`. The answer is whether its blocks are on the
    /// drive, or the run stops before it.
    fn keep(&mut self, now: Instant, arrival: &Arrival) -> Result<bool, RunError> {
        self.check_time(arrival, now)?;
        if self.is_late(arrival) {
            return Ok(true);
        }
        if !self.fits(arrival)? {
            return Ok(false);
        }
        let known = self.followed;
        self.followed += 1;
        self.followers.push(Reverse(DependentArrival {
            arrival: *arrival,
            known,
        }));
        Ok(true)
    }

    /// Keeps the arrival that the load has instead of one that was skipped.
    #[cold]
    fn replace(&mut self, skipped: &Arrival) -> Result<(), RunError> {
        let mut now = skipped.at;
        let mut next = self.load.on_skipped(now, skipped)?;
        while let Some(arrival) = next
            && !self.keep(now, &arrival)?
        {
            now = arrival.at;
            next = self.load.on_skipped(now, &arrival)?;
        }
        Ok(())
    }

    fn check_time(&self, arrival: &Arrival, reached: Instant) -> Result<(), RunError> {
        if arrival.at > LATEST_ARRIVAL && !self.is_late(arrival) {
            return Err(RunError::TooLate {
                place: self.load.place(),
                at_ns: arrival.at.as_nanos(),
            });
        }
        if arrival.at >= reached {
            return Ok(());
        }
        Err(RunError::Backwards {
            place: self.load.place(),
            at_ns: arrival.at.as_nanos(),
            before_ns: reached.as_nanos(),
        })
    }

    /// Whether the run stops before this arrival.
    fn is_late(&self, arrival: &Arrival) -> bool {
        self.until.is_some_and(|until| arrival.at > until)
    }

    /// Whether the blocks are on the drive. Counts skipped arrivals.
    fn fits(&mut self, arrival: &Arrival) -> Result<bool, RunError> {
        let extent = arrival.demand.extent;
        if extent.end().0 <= self.capacity.0 {
            self.skipped_in_a_row = 0;
            return Ok(true);
        }
        match self.past_end {
            PastEnd::Skip if self.skipped_in_a_row == MOST_SKIPPED => Err(RunError::NeverFits {
                place: self.load.place(),
            }),
            PastEnd::Skip => {
                self.skipped += 1;
                self.skipped_in_a_row += 1;
                Ok(false)
            }
            PastEnd::Stop => Err(RunError::PastEnd {
                place: self.load.place(),
                refused: Refused::PastEnd {
                    extent,
                    capacity: self.capacity.0,
                },
            }),
        }
    }
}

impl DependentArrival {
    fn key(&self) -> (Instant, u64) {
        (self.arrival.at, self.known)
    }
}

impl PartialEq for DependentArrival {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for DependentArrival {}

impl PartialOrd for DependentArrival {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DependentArrival {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
