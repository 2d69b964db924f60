//! The habits of owners, which the idling policies learn: how soon the next read of each comes, and how far away.
//!
//! ```text
//!   reads of an owner    | read a |. think .| read b |
//!   blocks               [= a =].... seek ....[= b =]
//!
//!   owners   [ p3 ][ p7 ][ c1 ]        at most MOST_OWNERS; of a further one the least recently active makes room
//! ```
//!
//! Iyer, Druschel, SOSP 2001, 3.2; Linux 2.6, `block/as-iosched.c`, has the same averages for each process. Owners whose
//! habits are not known yet are taken for what first reads of others were.

use block::{Duration, Extent, Instant, Lba, Owner};

use crate::policy::anticipation::IdleHistory;

/// What is expected of an owner after a read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Habits {
    /// From the end of a read to the arrival of the next, in nanoseconds.
    think: DecayingMean,
    /// From the end of a read to the begin of the next, in blocks, in either direction.
    seek: DecayingMean,
    /// The success of idling for it.
    pub(super) idling: IdleHistory,
}

/// A mean in which each new sample weighs an eighth.
#[derive(Clone, Copy, Debug, Default)]
struct DecayingMean {
    /// The weight of all samples, in parts of [`WHOLE`].
    weight: u64,
    /// Their weighted sum, in the same parts.
    sum: u64,
}

/// One owner.
#[derive(Clone, Copy, Debug)]
struct KnownOwner {
    owner: Owner,
    habits: Habits,
    /// The end of its last read that has arrived.
    sweep: Lba,
    /// The end of its last read that was served, once it is known.
    ended: Option<Instant>,
    /// The arrival of its next read before that end was known.
    arrived: Option<Instant>,
    /// The number of the last event of any owner that was this one's.
    active: u64,
}

/// Whether the owner has reads that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backlog {
    /// It has none.
    None,
    /// It has some.
    Some,
}

/// The habits of all owners.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners {
    /// By owner.
    known: Vec<KnownOwner>,
    /// The habits of owners at their first reads.
    newcomers: Habits,
    /// The owner of the last served read, if its end is not known yet.
    serving: Option<Owner>,
    events: u64,
}

impl Owners {
    /// A read of a known owner has arrived.
    pub(super) fn arrived(
        &mut self,
        owner: Owner,
        extent: Extent,
        submitted: Instant,
        backlog: Backlog,
    ) {
        let (place, is_new) = self.place(owner);
        let (one, newcomers) = (&mut self.known[place], &mut self.newcomers);
        let before = std::mem::replace(&mut one.sweep, extent.end());
        if is_new {
            return;
        }
        let distance = before.0.abs_diff(extent.start().0);
        one.habits.seek_was(distance, newcomers);
        match (backlog, one.ended) {
            // It did not wait for the one before.
            (Backlog::Some, _) => one.habits.thought(Duration::ZERO, newcomers),
            (Backlog::None, Some(ended)) => {
                one.habits.thought(submitted.since(ended), newcomers);
            }
            (Backlog::None, None) => one.arrived = Some(submitted),
        }
    }

    /// A read of a known owner is served.
    pub(super) fn served(&mut self, owner: Owner) {
        let (place, _) = self.place(owner);
        let one = &mut self.known[place];
        (one.ended, one.arrived) = (None, None);
        self.serving = Some(owner);
    }

    /// The last served request ends at `end`, as far as is known.
    pub(super) fn ended(&mut self, end: Instant) {
        let Some(owner) = self.serving.take() else {
            return;
        };
        let Ok(place) = self.find(owner) else {
            return;
        };
        let (one, newcomers) = (&mut self.known[place], &mut self.newcomers);
        one.ended = Some(end);
        if let Some(arrived) = one.arrived.take() {
            one.habits.thought(arrived.since(end), newcomers);
        }
    }

    /// The habits of an owner; those of newcomers, if it has none yet.
    pub(super) fn habits(&mut self, owner: Owner) -> &mut Habits {
        match self.find(owner) {
            Ok(place) if self.known[place].habits.think.weight > 0 => &mut self.known[place].habits,
            _ => &mut self.newcomers,
        }
    }

    /// The place of an owner, and whether it was unknown.
    fn place(&mut self, owner: Owner) -> (usize, bool) {
        self.events += 1;
        let found = self.find(owner);
        let place = found.unwrap_or_else(|place| self.insert(place, owner));
        self.known[place].active = self.events;
        (place, found.is_err())
    }

    fn find(&self, owner: Owner) -> Result<usize, usize> {
        self.known.binary_search_by_key(&owner, |one| one.owner)
    }

    /// Adds an owner, before the one at `place`.
    fn insert(&mut self, mut place: usize, owner: Owner) -> usize {
        if self.known.len() == MOST_OWNERS {
            let all = self.known.iter().enumerate();
            let idlest = all.min_by_key(|(_, one)| one.active);
            let idlest = idlest.map_or(0, |(idlest, _)| idlest);
            self.known.remove(idlest);
            place -= usize::from(idlest < place);
        } else if self.known.capacity() == 0 {
            self.known.reserve_exact(MOST_OWNERS);
        }
        let one = KnownOwner {
            owner,
            habits: Habits::default(),
            sweep: Lba(0),
            ended: None,
            arrived: None,
            active: 0,
        };
        self.known.insert(place, one);
        place
    }
}

impl Habits {
    /// Whether its next read comes within `patience`, as far as is known.
    pub(super) fn comes_within(&self, patience: Duration) -> bool {
        self.think.mean() <= patience.as_nanos()
    }

    /// Whether a read at this distance is nearer than its next read will be.
    pub(super) fn is_nearer(&self, distance: u64) -> bool {
        distance < self.seek.mean()
    }

    fn thought(&mut self, think: Duration, newcomers: &mut Habits) {
        let nanos = think.as_nanos().min(LONGEST_THINK.as_nanos());
        if self.think.weight == 0 {
            newcomers.think.add(nanos);
        }
        self.think.add(nanos);
    }

    fn seek_was(&mut self, distance: u64, newcomers: &mut Habits) {
        if self.seek.weight == 0 {
            newcomers.seek.add(distance);
        }
        let more = match self.seek.weight {
            ..=FEW => ODD_SEEK_OF_FEW,
            _ => ODD_SEEK,
        };
        let most = (4 * self.seek.mean() + more).min(LONGEST_SEEK);
        self.seek.add(distance.min(most));
    }
}

impl DecayingMean {
    fn add(&mut self, sample: u64) {
        self.weight = (7 * self.weight + WHOLE) / 8;
        self.sum = (7 * self.sum + WHOLE * sample) / 8;
    }

    /// The mean; zero without samples.
    fn mean(&self) -> u64 {
        (self.sum + self.weight / 2)
            .checked_div(self.weight)
            .unwrap_or(0)
    }
}

/// The largest number of owners whose habits are remembered. A choice: far above the readers that a disk serves well, and
/// 12 KiB a queue.
pub(super) const MOST_OWNERS: usize = 128;

/// One sample, in the units of a weight. A choice: Linux's 256 loses 3 % of the weight to rounding.
const WHOLE: u64 = 1 << 16;

/// The longest think time that counts (Linux: `MAX_THINKTIME`, a 50th of a second).
const LONGEST_THINK: Duration = Duration::from_millis(20);

/// The weight of a few seeks: two (Linux, `as_update_seekdist`: 60 of 256).
const FEW: u64 = WHOLE * 60 / 256;

/// How far a seek counts beyond four times the mean, in blocks (Linux, in sectors), so that one odd seek does not change the mean
/// for long.
const ODD_SEEK_OF_FEW: u64 = 2 * 1024 * 1024;
const ODD_SEEK: u64 = 2 * 1024 * 64;

/// The longest seek that counts, in blocks: beyond all drives, so that no sum overflows.
const LONGEST_SEEK: u64 = 1 << 40;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use block::Sectors;
    use proptest::prelude::*;

    use super::*;

    fn millis(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn blocks(start: u64) -> Extent {
        Extent::new(Lba(start), Sectors(8)).expect("blocks")
    }

    /// A read that arrives, is served and ends.
    fn read(owners: &mut Owners, process: u32, start: u64, (arrives, ends): (u64, u64)) {
        let owner = Owner::process(process);
        owners.arrived(owner, blocks(start), millis(arrives), Backlog::None);
        owners.served(owner);
        owners.ended(millis(ends));
    }

    #[test]
    fn an_owner_is_known_by_its_own_reads() {
        let mut owners = Owners::default();
        for number in 0..20 {
            // One reads on at once, the other thinks for 9 ms and reads far away.
            read(&mut owners, 1, 8 * number, (20 * number, 20 * number + 5));
            read(
                &mut owners,
                2,
                90_000 * number,
                (20 * number + 5, 20 * number + 16),
            );
        }
        // Means are rounded.
        let habits = owners.habits(Owner::process(2));
        assert!(habits.comes_within(Duration::from_micros(9_010)));
        assert!(!habits.comes_within(Duration::from_micros(8_990)));
        assert!(habits.is_nearer(89_000) && !habits.is_nearer(90_500));
        let habits = owners.habits(Owner::process(1));
        assert!(habits.comes_within(Duration::from_micros(15_010)));
        assert!(!habits.comes_within(Duration::from_micros(14_990)));
        assert!(!habits.is_nearer(0), "it reads on");
    }

    #[test]
    fn an_end_that_is_known_late_and_a_backlog_count() {
        let mut owners = Owners::default();
        let owner = Owner::process(1);
        read(&mut owners, 1, 0, (0, 5));
        owners.arrived(owner, blocks(8), millis(6), Backlog::None);
        owners.served(owner);
        // It arrives before the policy is told when the one before ended.
        owners.arrived(owner, blocks(16), millis(14), Backlog::None);
        owners.ended(millis(11));
        let mean = owners.habits(owner).think.mean();
        assert!((1_900_000..2_200_000).contains(&mean), "{mean}: 1 and 3 ms");
        owners.arrived(owner, blocks(24), millis(30), Backlog::Some);
        let less = owners.habits(owner).think.mean();
        assert!(less < mean * 3 / 4, "{less}: it waits for two at once");
    }

    #[test]
    fn newcomers_are_taken_for_what_newcomers_were() {
        let mut owners = Owners::default();
        assert!(
            owners
                .habits(Owner::process(1))
                .comes_within(Duration::ZERO)
        );
        for process in 1..20 {
            read(&mut owners, process, 0, (0, 5));
            read(&mut owners, process, 0, (22, 30));
        }
        let mut thinks_long = |process| {
            let habits = owners.habits(Owner::process(process));
            !habits.comes_within(Duration::from_millis(10))
        };
        assert!(thinks_long(77), "nothing is known of it");
        assert!(thinks_long(3));
    }

    proptest! {
        /// The least recently active owners are forgotten, and no others, and nothing is allocated after the first.
        #[test]
        fn the_most_recent_owners_are_remembered(
            events in prop::collection::vec((0..3 * MOST_OWNERS as u32, any::<bool>()), 1..900),
        ) {
            let mut owners = Owners::default();
            let mut last = BTreeMap::new();
            let mut room = None;
            for (number, (process, arrives)) in events.into_iter().enumerate() {
                let owner = Owner::process(process + 1);
                match arrives {
                    true => owners.arrived(owner, blocks(0), Instant::ZERO, Backlog::None),
                    false => owners.served(owner),
                }
                last.insert(owner, number);
                prop_assert_eq!(*room.get_or_insert(owners.known.capacity()), owners.known.capacity());
            }
            let mut recent: Vec<(usize, Owner)> = last.into_iter().map(|(owner, at)| (at, owner)).collect();
            recent.sort_unstable_by(|one, other| other.cmp(one));
            recent.truncate(MOST_OWNERS);
            let mut recent: Vec<Owner> = recent.into_iter().map(|(_, owner)| owner).collect();
            recent.sort_unstable();
            let known: Vec<Owner> = owners.known.iter().map(|one| one.owner).collect();
            prop_assert_eq!(known, recent);
        }
    }
}
