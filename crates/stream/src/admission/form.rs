//! What streams add up to, and the closed form over it.

use block::{Direction, Duration};

use super::{Cutting, Demand, Plan, Rules};
use crate::head_times::{Cylinders, WholeTracks, Zone};
use crate::rate::SECOND;

/// What streams add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) streams: usize,
    /// Extents of a round that are read.
    pub(super) read: u64,
    /// Extents of a round that are written.
    pub(super) written: u64,
    /// Cylinders over which what is due in a second goes on, in billionths.
    pub(super) pace: u64,
    /// Streams with one extent in a batch at most.
    pub(super) ones: u64,
    /// The pace of those.
    pub(super) pace_of_ones: u64,
    /// U, in billionths.
    pub(super) load: u64,
    /// U where whole tracks are read, in billionths.
    pub(super) load_cut: u64,
    /// One page more for each extent.
    pub(super) pages: Duration,
    /// Parts of tracks around the gaps between extents.
    pub(super) partial: Duration,
    /// By which a round may be longer than the others.
    pub(super) peak: Duration,
    /// Streams that cannot be cut at tracks.
    pub(super) uncut: usize,
}

/// What one stream adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contribution {
    pub(super) sums: Sums,
    pub(super) lasts: Duration,
    pub(super) lasts_cut: Duration,
    pub(super) cylinders: Cylinders,
}

/// A closed form: everything of it but D.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub(super) cutting: Cutting,
    pub(super) fixed: Duration,
    pub(super) peak: Duration,
    pub(super) load: u64,
    /// Rounds may not be longer; none: however long.
    pub(super) longest: Option<Duration>,
}

impl Sums {
    /// Extents of a round.
    pub(super) fn extents(&self) -> u64 {
        self.read.saturating_add(self.written)
    }

    pub(super) fn with(&self, other: &Sums) -> Sums {
        Sums {
            streams: self.streams + other.streams,
            read: self.read.saturating_add(other.read),
            written: self.written.saturating_add(other.written),
            pace: self.pace.saturating_add(other.pace),
            ones: self.ones + other.ones,
            pace_of_ones: self.pace_of_ones.saturating_add(other.pace_of_ones),
            load: self.load.saturating_add(other.load),
            load_cut: self.load_cut.saturating_add(other.load_cut),
            pages: self.pages + other.pages,
            partial: self.partial + other.partial,
            peak: self.peak + other.peak,
            uncut: self.uncut + other.uncut,
        }
    }

    pub(super) fn without(&self, other: &Sums) -> Sums {
        Sums {
            streams: self.streams - other.streams,
            read: self.read - other.read,
            written: self.written - other.written,
            pace: self.pace - other.pace,
            ones: self.ones - other.ones,
            pace_of_ones: self.pace_of_ones - other.pace_of_ones,
            load: self.load - other.load,
            load_cut: self.load_cut - other.load_cut,
            pages: self.pages - other.pages,
            partial: self.partial - other.partial,
            peak: self.peak - other.peak,
            uncut: self.uncut - other.uncut,
        }
    }
}

impl Form {
    /// The rounds, if D lasts long enough.
    pub(super) fn plan(
        &self,
        lasts: Duration,
        rules: &Rules,
        foreground: Duration,
    ) -> Option<Plan> {
        let spent = self.fixed + self.peak + foreground;
        let rest = lasts.as_nanos().checked_sub(spent.as_nanos())?;
        let round = share(rest, SECOND, SECOND.saturating_add(self.load))?;
        let longest = self.longest.map_or(u64::MAX, Duration::as_nanos);
        let round = round.min(longest);
        let left = SECOND.checked_sub(self.load.checked_add(rules.promised())?)?;
        let fits = u128::from(round) * u128::from(left);
        if round == 0 || fits < u128::from(self.fixed.as_nanos()) * u128::from(SECOND) {
            return None;
        }
        let shortest = share(self.fixed.as_nanos(), SECOND, left)?.saturating_add(1);
        let round = round.min(rules.longest_round.as_nanos().max(shortest));
        let transfer = share(round, self.load, SECOND)?.saturating_add(1);
        let taken = share(self.fixed.as_nanos(), SECOND, round)?;
        Some(Plan {
            round: Duration::from_nanos(round),
            within: lasts.saturating_sub(Duration::from_nanos(round)),
            worst: self.fixed + self.peak + Duration::from_nanos(transfer),
            cutting: self.cutting,
            share: taken.saturating_add(self.load),
        })
    }

    /// What D has to be.
    pub(super) fn needed(&self, rules: &Rules, foreground: Duration) -> Option<Duration> {
        let left = SECOND.checked_sub(self.load.checked_add(rules.promised())?)?;
        // Rounded up, and one more, so that the plan that is made of it fits after its roundings.
        let shortest = share(self.fixed.as_nanos(), SECOND, left)?.saturating_add(2);
        if self
            .longest
            .is_some_and(|longest| shortest > longest.as_nanos())
        {
            return None;
        }
        let both = share(shortest, SECOND.saturating_add(self.load), SECOND)?.saturating_add(2);
        Some(self.fixed + self.peak + foreground + Duration::from_nanos(both))
    }
}

impl Demand {
    /// The same demand with memory that lasts so long beyond the application's part.
    pub fn lasting(self, length: Duration, latency: Duration) -> Demand {
        let memory = self.own_part(latency);
        let memory = memory.saturating_add(self.rate.bytes_until(length));
        Demand { memory, ..self }
    }

    /// D: how long a full buffer lasts beyond the application's part.
    fn lasts(&self, latency: Duration) -> Duration {
        let rest = self.memory.saturating_sub(self.own_part(latency));
        self.rate.at_least(rest)
    }

    /// What it adds.
    pub(super) fn part(&self, rules: &Rules) -> Contribution {
        let Zone {
            sustained,
            tracks,
            cylinders,
            stride,
        } = self.zone;
        let pace = self.rate.share_of(stride);
        let ones = u64::from(self.extents == 1);
        let (read, written) = match self.direction {
            Direction::Read => (self.extents, 0),
            Direction::Write => (0, self.extents),
        };
        let lasts = self.lasts(rules.latency);
        let mut sums = Sums {
            streams: 1,
            read,
            written,
            pace,
            ones,
            pace_of_ones: pace * ones,
            load: self.rate.share_of(sustained),
            pages: sustained.at_most(self.page) * self.extents,
            ..Sums::default()
        };
        let Some(WholeTracks {
            bytes,
            time,
            sustained: cut,
        }) = tracks
        else {
            sums.uncut = 1;
            return Contribution {
                sums,
                lasts,
                lasts_cut: Duration::ZERO,
                cylinders,
            };
        };
        sums.load_cut = self.rate.share_of(cut);
        sums.partial = time * 2 * self.extents.saturating_sub(1);
        sums.peak = time;
        Contribution {
            sums,
            lasts,
            lasts_cut: lasts.saturating_sub(self.rate.at_most(bytes)),
            cylinders,
        }
    }
}

/// number * of / per, rounded down; `None` if it is not a number of 64 bits.
pub(super) fn share(number: u64, of: u64, per: u64) -> Option<u64> {
    let product = u128::from(number) * u128::from(of);
    u64::try_from(product.checked_div(u128::from(per))?).ok()
}
