//! The arrivals of a load in the order of their times: those that depend on nothing, one ahead,
//! and those that an end gave rise to.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use block::{Finished, Instant, Refused, Sectors};

use crate::load::{Arrival, Load, LoadPart};
use crate::run::{LATEST_ARRIVAL, MOST_SKIPPED, Options, PastEnd, RunError};

/// A load, checked and sorted.
pub(super) struct Arrivals<'a, L: ?Sized> {
    load: &'a mut L,
    capacity: Sectors,
    past_end: PastEnd,
    /// How many may still be taken.
    left: u64,
    until: Option<Instant>,
    /// The next one that depends on nothing.
    ahead: Option<Arrival>,
    /// Before this moment nothing that depends on nothing can arrive any more.
    reached: Instant,
    /// Those that an end gave rise to: at most as many as the load has clients.
    followers: BinaryHeap<Reverse<DependentArrival>>,
    followed: u64,
    taken: u64,
    skipped: u64,
    /// Those left out since the last one that was not.
    skipped_in_a_row: u64,
}

/// An arrival, sorted by its time, then by when it became known.
struct DependentArrival {
    arrival: Arrival,
    known: u64,
}

impl<'a, L: Load + ?Sized> Arrivals<'a, L> {
    pub(super) fn new(
        load: &'a mut L,
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
        };
        arrivals.look_ahead()?;
        Ok(arrivals)
    }

    /// When the next one arrives, as far as is known.
    pub(super) fn due(&self) -> Option<Instant> {
        if self.left == 0 {
            return None;
        }
        let ahead = self.ahead.map(|arrival| arrival.at);
        let follower = self.followers.peek().map(|Reverse(f)| f.arrival.at);
        match (ahead, follower) {
            (Some(ahead), Some(follower)) => Some(ahead.min(follower)),
            (ahead, follower) => ahead.or(follower),
        }
    }

    /// Takes the next one and its number.
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
        Ok(Some((number, arrival)))
    }

    /// Tells the load of an end, and remembers what follows from it.
    pub(super) fn on_finished(
        &mut self,
        now: Instant,
        part: LoadPart,
        finished: &Finished,
    ) -> Result<(), RunError> {
        let follower = self.load.on_finished(now, part, finished)?;
        self.follow(now, follower)
    }

    /// Nothing arrives any more.
    pub(super) fn close(&mut self) {
        self.left = 0;
    }

    /// Arrivals that were left out.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Fetches the next arrival that depends on nothing.
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
            let instead = self.load.on_skipped(arrival.at, &arrival)?;
            self.follow(arrival.at, instead)?;
        }
        Ok(())
    }

    /// Remembers an arrival that an end, or a skipped arrival, at `now` gave rise to.
    fn follow(&mut self, now: Instant, arrival: Option<Arrival>) -> Result<(), RunError> {
        let (mut now, mut next) = (now, arrival);
        while let Some(arrival) = next {
            self.check_time(&arrival, now)?;
            if self.is_late(&arrival) {
                return Ok(());
            }
            if self.fits(&arrival)? {
                let known = self.followed;
                self.followed += 1;
                self.followers
                    .push(Reverse(DependentArrival { arrival, known }));
                return Ok(());
            }
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

    /// Whether the run stops before this one arrives.
    fn is_late(&self, arrival: &Arrival) -> bool {
        self.until.is_some_and(|until| arrival.at > until)
    }

    /// Whether the blocks are on the drive; counts those that are left out.
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
