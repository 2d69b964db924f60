//! The safe set: what may be served now without any batch being late (Reuther, Pohlack, RTSS
//! 2003, as closed sums over sweeps).
//!
//! ```text
//!   now     c         group 0            group 1          the next one, as planned
//!    |----------|------ W0 ------|.|------ W1 ------|....|------ W ------|
//!                                 ^ its deadline     ^ its deadline       ^ and its
//! ```
//!
//! A group is what was frozen at once: one sorted sweep, whose deadline is the earliest of its
//! batches. W is a sweep's worst case from a head that is anywhere, over the batches that still
//! wait, and what may befall a round besides. A command is safe if after its worst case all groups, back to back in the order of their
//! deadlines, and the one that is to be frozen next, still end in time.
//!
//! A batch may have been held up by earlier requests over its blocks. It is counted like any other, so that
//! nothing else takes its time. But what it waits for, and then itself, goes only if all that were not held up
//! are in time after it ([`Rounds::next`]).
//!
//! Batches that were given to the drive are not counted any more: `now` is then the moment at
//! which the last of them ends at worst. A group that is served to its end begins at its nearer
//! end, and goes on from there: [`Rounds::first`] has no memory, because after each batch of a
//! sweep the nearer end is the next one.

use block::{Duration, Instant};

use crate::admission::Plan;
use crate::head_times::{Cylinders, HeadTimes};

/// A batch's access: one extent of one stream in one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The transfer of which the caller knows it.
    pub key: u64,
    /// The cylinder of its first block.
    pub cylinder: u32,
    /// The cylinder of its last block.
    pub last: u32,
    /// Its worst case without the seek: access and transfer.
    pub work: Duration,
    /// When it has to be done.
    pub deadline: Instant,
}

/// Where a batch is in the groups; good until the batch is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    group: u64,
    index: usize,
}

/// The groups that wait, and the plan of those to come.
#[derive(Clone, Debug)]
pub struct Rounds {
    times: HeadTimes,
    /// When the next group is frozen, if one is, and how it will be.
    coming: Option<(Instant, Plan)>,
    /// In the order of their deadlines.
    groups: Vec<Group>,
    /// Lists of groups that are over, to be filled again.
    spare: Vec<Vec<PlacedBatch>>,
    /// Groups so far.
    frozen: u64,
}

#[derive(Clone, Debug)]
struct Group {
    number: u64,
    /// When it is to be done.
    deadline: Instant,
    /// When it has to be: later, if it was in a hurry.
    promised: Instant,
    /// By cylinder.
    entries: Vec<PlacedBatch>,
    /// All that wait are in `low..high`, and both ends of that wait.
    low: usize,
    high: usize,
    /// How many wait, and their work.
    waiting: u64,
    work: Duration,
    /// Cylinders from their first to their last blocks.
    strays: u64,
    /// How many are not done.
    undone: usize,
    /// How many of those nothing has held up.
    promised_undone: usize,
}

/// What a sweep over batches has to do.
#[derive(Clone, Copy, Debug, Default)]
struct SweepDemand {
    /// How many they are.
    waiting: u64,
    work: Duration,
    strays: u64,
}

#[derive(Clone, Copy, Debug)]
struct PlacedBatch {
    batch: Batch,
    state: BatchState,
    promise: BatchPromise,
}

/// Whether a batch has to be in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchPromise {
    /// It has.
    InTime,
    /// Earlier requests over its blocks came first: it goes as soon as no other one is late for it.
    HeldUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchState {
    Waiting,
    AtDrive,
    Done,
}

/// Groups that may wait at once. Two are there when a sweep ends after the next freezing (by the
/// longest foreground command, see `admission`), a third one while plans change; a choice.
pub const GROUPS: usize = 4;

impl Rounds {
    /// Nothing waits.
    pub fn new(times: HeadTimes) -> Self {
        Rounds {
            times,
            coming: None,
            groups: Vec::with_capacity(GROUPS),
            spare: Vec::with_capacity(GROUPS),
            frozen: 0,
        }
    }

    /// When the next group will be frozen, and how rounds go; none if none will be.
    pub fn expect(&mut self, coming: Option<(Instant, Plan)>) {
        self.coming = coming;
    }

    /// When the next group is to be frozen.
    pub fn next_freezing(&self) -> Option<Instant> {
        self.coming.map(|(at, _)| at)
    }

    /// Whether another group may be frozen. Those that wait only for what was held up do not count.
    pub fn is_open(&self) -> bool {
        let groups = self.groups.iter();
        groups.filter(|group| group.promised_undone > 0).count() < GROUPS
    }

    /// Groups that are not done.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Whether nothing waits: the last of them may be at the drive.
    pub fn is_idle(&self) -> bool {
        self.groups.iter().all(|group| group.waiting == 0)
    }

    /// Freezes the batches into a group, and says of each where it is. They are to be done by `soon`,
    /// if that is earlier than their deadlines. At the bound of groups ([`Rounds::is_open`]) nothing
    /// is frozen.
    pub fn freeze(
        &mut self,
        batches: &[Batch],
        soon: Option<Instant>,
        mut placed: impl FnMut(u64, Slot),
    ) {
        let promised = batches.iter().map(|batch| batch.deadline).min();
        let Some(promised) = promised.filter(|_| self.is_open()) else {
            return;
        };
        let deadline = soon.map_or(promised, |soon| soon.min(promised));
        let mut entries = self.spare.pop().unwrap_or_default();
        entries.clear();
        entries.extend(batches.iter().map(|&batch| PlacedBatch {
            batch,
            state: BatchState::Waiting,
            promise: BatchPromise::InTime,
        }));
        entries.sort_unstable_by_key(|entry| (entry.batch.cylinder, entry.batch.key));
        let number = self.frozen;
        self.frozen += 1;
        for (index, entry) in entries.iter().enumerate() {
            let group = number;
            placed(entry.batch.key, Slot { group, index });
        }
        let group = Group {
            number,
            deadline,
            promised,
            low: 0,
            high: entries.len(),
            waiting: entries.len() as u64,
            work: batches.iter().map(|batch| batch.work).sum(),
            strays: batches.iter().map(|batch| batch.strays()).sum(),
            undone: entries.len(),
            promised_undone: entries.len(),
            entries,
        };
        let place = self
            .groups
            .partition_point(|other| other.deadline <= deadline);
        self.groups.insert(place, group);
    }

    /// Whether a command of others that takes at most `worst` may be given to a drive that is free
    /// from `now` on.
    pub fn safe(&self, now: Instant, worst: Duration) -> bool {
        self.fits(now + worst, None)
    }

    /// Earlier requests over the blocks of a batch come before it.
    pub fn held_up(&mut self, slot: Slot) {
        let Some(group) = self.group(slot) else {
            return;
        };
        let entry = &mut group.entries[slot.index];
        if entry.state != BatchState::Done && entry.promise == BatchPromise::InTime {
            entry.promise = BatchPromise::HeldUp;
            group.promised_undone -= 1;
        }
    }

    /// Whether a promise is broken already: a batch that nothing held up was not done by its deadline, and its
    /// group is not done. With true head times that never is; see ARCHITECTURE.md, "a broken promise".
    pub fn is_late(&self, now: Instant) -> bool {
        let mut groups = self.groups.iter();
        groups.any(|group| group.promised < now && group.promised_undone > 0)
    }

    /// Whether a batch may go out of its turn, where the policy wants it, taking at most `worst`.
    pub fn may_join(&self, now: Instant, worst: Duration, slot: Slot) -> bool {
        self.fits(now + worst, Some(slot))
    }

    /// The batch that has to go now, because nothing of others is safe: even their longest
    /// command is not. None while there is slack.
    pub fn due(&self, now: Instant, head: u32) -> Option<Batch> {
        if self.safe(now, self.times.foreground_worst()) {
            return None;
        }
        self.first(head)
    }

    /// The next batch of the earliest group in the order of its sweep, for a head at a cylinder.
    pub fn first(&self, head: u32) -> Option<Batch> {
        Some(self.first_placed(head)?.batch)
    }

    /// The batch that is served next, once the drive is free at `free` with its head at a cylinder. It is the first
    /// of its sweep. If that was held up, its command takes at most `worst`; where another batch would be late for
    /// that, the first one that was not held up comes next. While a promise is broken already, all have their turn.
    pub fn next(
        &self,
        now: Instant,
        free: Instant,
        head: u32,
        worst: impl FnOnce(Batch) -> Duration,
    ) -> Option<Batch> {
        let first = self.first_placed(head)?;
        if first.promise == BatchPromise::InTime
            || self.is_late(now)
            || self.spares_others(free, worst(first.batch))
        {
            return Some(first.batch);
        }
        let mut groups = self.groups.iter().map(Group::in_time);
        groups.find_map(|mut batches| {
            let low = batches.next()?;
            Some(nearer(head, low, batches.last().unwrap_or(low)))
        })
    }

    /// Whether all batches that nothing held up are in time after a command that takes at most `worst`.
    pub fn spares_others(&self, free: Instant, worst: Duration) -> bool {
        self.fits_by(free + worst, None, |group| {
            if group.promised_undone == group.undone {
                return group.demand();
            }
            let nothing = SweepDemand::default();
            group.in_time().fold(nothing, |demand, batch| SweepDemand {
                waiting: demand.waiting + 1,
                work: demand.work + batch.work,
                strays: demand.strays + batch.strays(),
            })
        })
    }

    /// The batches that wait and that nothing has held up, in the order of groups and cylinders.
    pub fn waiting_in_time(&self) -> impl Iterator<Item = Batch> + '_ {
        self.groups.iter().flat_map(Group::in_time)
    }

    fn first_placed(&self, head: u32) -> Option<PlacedBatch> {
        let group = self.groups.iter().find(|group| group.waiting > 0)?;
        let low = group.entries[group.low];
        let high = group.entries[group.high - 1];
        let nearer = nearer(head, low.batch, high.batch);
        Some(if nearer == high.batch { high } else { low })
    }

    /// A batch that is not done.
    pub fn batch(&self, slot: Slot) -> Option<Batch> {
        let mut groups = self.groups.iter();
        let group = groups.find(|group| group.number == slot.group)?;
        Some(group.entries.get(slot.index)?.batch)
    }

    /// All batches that wait, in the order of groups and cylinders: those of which the policy may
    /// choose one to join.
    pub fn waiting(&self) -> impl Iterator<Item = (Slot, Batch)> + '_ {
        let placed = self.groups.iter().flat_map(Group::waiting);
        placed.map(|(slot, entry)| (slot, entry.batch))
    }

    /// The earliest deadline of what waits or is at the drive.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.groups.first().map(|group| group.deadline)
    }

    /// The latest deadline of what waits or is at the drive.
    pub fn last_deadline(&self) -> Option<Instant> {
        self.groups.last().map(|group| group.deadline)
    }

    /// A batch was given to the drive.
    pub fn taken(&mut self, slot: Slot) {
        let Some(group) = self.group(slot) else {
            return;
        };
        let entry = &mut group.entries[slot.index];
        if entry.state != BatchState::Waiting {
            return;
        }
        entry.state = BatchState::AtDrive;
        group.waiting -= 1;
        group.work = group.work.saturating_sub(entry.batch.work);
        group.strays -= entry.batch.strays();
        let waits =
            |entry: Option<&PlacedBatch>| entry.is_some_and(|e| e.state == BatchState::Waiting);
        while group.low < group.high && !waits(group.entries.get(group.low)) {
            group.low += 1;
        }
        while group.low < group.high && !waits(group.entries.get(group.high - 1)) {
            group.high -= 1;
        }
    }

    /// A batch is done, however it ended, or will not be.
    pub fn done(&mut self, slot: Slot) {
        self.taken(slot);
        let Some(group) = self.group(slot) else {
            return;
        };
        let entry = &mut group.entries[slot.index];
        if entry.state == BatchState::Done {
            return;
        }
        entry.state = BatchState::Done;
        group.undone -= 1;
        group.promised_undone -= usize::from(entry.promise == BatchPromise::InTime);
        if group.undone == 0 {
            self.groups.retain_mut(|group| {
                if group.number != slot.group {
                    return true;
                }
                self.spare.push(std::mem::take(&mut group.entries));
                false
            });
        }
    }

    /// All groups that wait, and those to come, are reckoned with these times from now on.
    pub fn relearn(&mut self, times: HeadTimes) {
        self.times = times;
    }

    fn group(&mut self, slot: Slot) -> Option<&mut Group> {
        let mut groups = self.groups.iter_mut();
        groups.find(|group| group.number == slot.group)
    }

    /// Whether everything ends in time if the drive comes free at `free`; `but` is served by then.
    fn fits(&self, free: Instant, but: Option<Slot>) -> bool {
        self.fits_by(free, but, Group::demand)
    }

    /// The same, of what `demand` says of each group.
    fn fits_by(
        &self,
        free: Instant,
        but: Option<Slot>,
        demand: impl Fn(&Group) -> SweepDemand,
    ) -> bool {
        let mut end = free;
        for group in &self.groups {
            let mut demand = demand(group);
            if let Some(slot) = but.filter(|slot| slot.group == group.number) {
                let work = group.entries[slot.index].batch.work;
                demand.waiting -= 1;
                demand.work = demand.work.saturating_sub(work);
            }
            let SweepDemand {
                waiting,
                work,
                strays,
            } = demand;
            if waiting == 0 {
                continue;
            }
            // One more stray than there may be is a bound as well.
            let sweep = self.times.sweep(waiting, group.cylinders(), strays);
            end = end + self.times.stall + work + sweep;
            if end > group.deadline {
                return false;
            }
        }
        // A joined batch that ends after its own deadline is late as well.
        let late = |slot: Slot| {
            let group = self.groups.iter().find(|group| group.number == slot.group);
            group.is_some_and(|group| free > group.deadline)
        };
        if but.is_some_and(late) {
            return false;
        }
        match self.coming {
            None => true,
            Some((at, plan)) => end.max(at) + plan.worst <= at + plan.within,
        }
    }
}

impl Batch {
    fn strays(&self) -> u64 {
        self.cylinder.abs_diff(self.last).into()
    }
}

impl Group {
    /// What waits of it, and where.
    fn waiting(&self) -> impl Iterator<Item = (Slot, PlacedBatch)> + '_ {
        let places = (self.low..self.high).map(|index| (index, self.entries[index]));
        let waiting = places.filter(|(_, entry)| entry.state == BatchState::Waiting);
        let group = self.number;
        waiting.map(move |(index, entry)| (Slot { group, index }, entry))
    }

    /// What waits of it and was not held up, by cylinder.
    fn in_time(&self) -> impl Iterator<Item = Batch> + '_ {
        let waiting = self.waiting().map(|(_, entry)| entry);
        let in_time = waiting.filter(|entry| entry.promise == BatchPromise::InTime);
        in_time.map(|entry| entry.batch)
    }

    /// All that waits of it.
    fn demand(&self) -> SweepDemand {
        SweepDemand {
            waiting: self.waiting,
            work: self.work,
            strays: self.strays,
        }
    }

    /// Where those are that wait: there are some.
    fn cylinders(&self) -> Cylinders {
        Cylinders {
            low: self.entries[self.low].batch.cylinder,
            high: self.entries[self.high - 1].batch.cylinder,
        }
    }
}

/// The end of a sweep at which a head begins.
fn nearer(head: u32, low: Batch, high: Batch) -> Batch {
    let is_high = head.abs_diff(high.cylinder) < head.abs_diff(low.cylinder);
    if is_high { high } else { low }
}

#[cfg(test)]
mod tests;
