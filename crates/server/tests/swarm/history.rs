//! What the volume may have: what a reader may find, and what is safe from a power cut.
//!
//! ```text
//!   write, ended         readers find it                 the medium may have it or what was there before
//!   flush, ended         readers find it                 the medium has it
//!   power cut            readers may find all that the medium may have
//! ```

use crate::model::{Change, Model, Stamp};

/// Two models that see the same changes: a change counts in the second only once it is durable.
#[derive(Clone)]
pub struct History {
    found: Model,
    medium: Model,
    /// Changes that have ended and may be lost, in the order of their ends, each with the failures of the drive before
    /// it was submitted. A change that a shorter volume has lost in part is `None`.
    volatile: Vec<(Option<Change>, usize)>,
    /// How many have left the front of that list.
    settled: usize,
    cuts: usize,
    /// How often anything that readers have found may have been lost.
    losses: usize,
}

/// The value of each block of a volume that is filled. No write has it.
pub const FILLED: Stamp = 0xFFFF_FFFE;

/// A moment of the history, at which a read begins.
#[derive(Clone, Copy, Debug)]
pub struct Glance {
    now: u64,
    losses: usize,
}

/// A moment of the history, at which a flush begins.
#[derive(Clone, Copy, Debug)]
pub struct Moment(usize);

impl History {
    /// All zeroes, or what a volume has that is filled.
    pub fn new(blocks: u64, is_filled: bool) -> History {
        let mut history = History {
            found: Model::new(blocks),
            medium: Model::new(blocks),
            volatile: Vec::new(),
            settled: 0,
            cuts: 0,
            losses: 0,
        };
        if is_filled {
            let change = history.submit(0, blocks, FILLED);
            history.done(change, true, 0);
        }
        history
    }

    pub fn stamp(&mut self) -> Stamp {
        self.medium.stamp();
        self.found.stamp()
    }

    pub fn submit(&mut self, first: u64, count: u64, stamp: Stamp) -> Change {
        let change = self.found.submit(first, count, stamp);
        assert_eq!(self.medium.submit(first, count, stamp), change, "in step");
        change
    }

    /// A change has ended well that was submitted after so many failures.
    pub fn done(&mut self, change: Change, is_durable: bool, failed: usize) {
        self.found.done(change);
        self.medium.end(change);
        match is_durable {
            true => self.medium.settle(change),
            false => self.volatile.push((Some(change), failed)),
        }
    }

    /// A change has ended, and nobody knows what it did.
    pub fn unknown(&mut self, change: Change) {
        self.found.end(change);
        self.medium.end(change);
    }

    /// A flush begins now.
    pub fn moment(&self) -> Moment {
        Moment(self.settled + self.volatile.len())
    }

    /// A flush of a client has ended well, which had been told of so many failures of the drive: all that had ended at
    /// its begin is safe, but for changes that one of those failures may have lost.
    pub fn flushed(&mut self, begun: Moment, told: usize) {
        let count = begun.0.saturating_sub(self.settled);
        for (change, failed) in self.volatile.drain(..count) {
            if let Some(change) = change.filter(|_| failed >= told) {
                self.medium.settle(change);
                self.found.settle(change);
            }
        }
        self.settled += count;
    }

    /// A read begins now.
    pub fn glance(&self) -> Glance {
        Glance {
            now: self.found.now(),
            losses: self.losses,
        }
    }

    /// A read that began then has found these values from a block on. Later reads find these or later ones, unless something
    /// may have been lost since.
    pub fn read(&mut self, begun: Glance, first: u64, stamps: &[Stamp]) {
        if begun.losses == self.losses {
            for (block, &stamp) in (first..).zip(stamps) {
                self.found.found(block, stamp, begun.now);
            }
        }
    }

    /// The drive has failed something: readers may find what was there before all that is volatile.
    pub fn doubt(&mut self) {
        self.losses += 1;
        self.found = self.medium.clone();
    }

    /// The drive has lost its power: readers find what the medium has.
    pub fn cut(&mut self) {
        self.cuts += 1;
        self.lose();
    }

    /// What is volatile may be lost.
    fn lose(&mut self) {
        // A later flush makes nothing of it safe: the medium has it, or has lost it.
        self.settled += self.volatile.len();
        self.volatile.clear();
        self.losses += 1;
        self.found = self.medium.clone();
    }

    /// The volume has become shorter: unwritten pages from this block on are lost.
    pub fn shrink(&mut self, end: u64) {
        for (change, _) in &mut self.volatile {
            *change = change.filter(|change| change.first + change.count <= end);
        }
        self.losses += 1;
        self.found.restore(end, &self.medium);
    }

    /// The service was killed. What it wrote is at the drive, and in no danger. Pages that only the service had are
    /// lost.
    pub fn kill(&mut self, has_pages: bool) {
        if !has_pages {
            self.flushed(self.moment(), 0);
        }
        self.lose();
    }

    /// The service has stopped. If it says that it stopped well, after so many failures of the drive, all is safe that
    /// was submitted after them.
    pub fn stop(&mut self, well: Option<usize>) {
        if let Some(failed) = well {
            self.flushed(self.moment(), failed);
        }
        self.lose();
    }

    /// A block was changed behind the service's back.
    pub fn change(&mut self, block: u64, stamp: Stamp) {
        let change = self.submit(block, 1, stamp);
        self.done(change, true, 0);
    }

    /// How often the power was cut.
    pub fn cuts(&self) -> usize {
        self.cuts
    }

    /// What a read that is submitted now may find.
    pub fn possible(&self, first: u64, count: u64) -> Vec<Vec<Stamp>> {
        self.found.possible(first, count)
    }
}

#[test]
fn a_power_cut_gives_back_what_was_not_flushed_and_nothing_else() {
    let mut history = History::new(2, false);
    let possible = |history: &History| history.possible(0, 1)[0].clone();
    let one = history.submit(0, 1, 1);
    history.done(one, false, 0);
    let flush = history.moment();
    let two = history.submit(0, 1, 2);
    history.done(two, false, 0);
    assert_eq!(possible(&history), [2]);
    history.flushed(flush, 0);
    history.cut();
    assert_eq!(
        possible(&history),
        [1, 2],
        "the second came after the flush"
    );
    let flush = history.moment();
    history.flushed(flush, 0);
    history.cut();
    assert_eq!(possible(&history), [1, 2], "a flush brings nothing back");
    let three = history.submit(0, 1, 3);
    history.done(three, true, 0);
    history.cut();
    assert_eq!(possible(&history), [3]);
    let four = history.submit(0, 1, 4);
    history.unknown(four);
    assert_eq!(possible(&history), [3, 4]);
}

#[test]
fn what_was_read_is_not_followed_by_what_was_there_before() {
    let mut history = History::new(1, false);
    let possible = |history: &History| history.possible(0, 1)[0].clone();
    let trimmed = history.submit(0, 1, 0);
    history.unknown(trimmed);
    let one = history.submit(0, 1, 1);
    let glance = history.glance();
    assert_eq!(possible(&history), [0, 0, 1]);
    history.read(glance, 0, &[1]);
    assert_eq!(
        possible(&history),
        [1],
        "it was written before it was acknowledged"
    );
    history.done(one, false, 0);
    let failed = history.submit(0, 1, 2);
    let glance = history.glance();
    history.unknown(failed);
    history.read(glance, 0, &[1]);
    assert_eq!(possible(&history), [1, 2], "the read may have been first");
    let glance = history.glance();
    history.doubt();
    history.read(glance, 0, &[2]);
    assert_eq!(possible(&history), [0, 0, 1, 2], "it may be lost since");
    history.read(history.glance(), 0, &[2]);
    assert_eq!(possible(&history), [2]);
}

#[test]
fn a_flush_makes_nothing_safe_that_its_client_knows_to_be_in_doubt() {
    let mut history = History::new(2, false);
    let possible = |history: &History| history.possible(0, 2);
    let before = history.submit(0, 1, 1);
    history.done(before, false, 0);
    history.doubt();
    assert_eq!(possible(&history), [vec![0, 1], vec![0]]);
    let after = history.submit(1, 1, 2);
    history.done(after, false, 1);
    assert_eq!(possible(&history), [vec![0, 1], vec![2]]);
    let mut unaware = history.clone();
    history.flushed(history.moment(), 1);
    history.cut();
    assert_eq!(possible(&history), [vec![0, 1], vec![2]]);
    // A client that was not told may rely on its flush.
    unaware.flushed(unaware.moment(), 0);
    unaware.cut();
    assert_eq!(possible(&unaware), [vec![1], vec![2]]);
}

#[test]
fn a_shorter_volume_loses_what_is_not_flushed_past_its_end() {
    let mut history = History::new(3, false);
    let all = history.submit(0, 3, 1);
    history.done(all, true, 0);
    let within = history.submit(0, 1, 2);
    history.done(within, false, 0);
    let across = history.submit(1, 2, 3);
    history.done(across, false, 0);
    history.shrink(2);
    assert_eq!(history.possible(0, 3), [vec![2], vec![3], vec![1, 3]]);
    history.flushed(history.moment(), 0);
    history.cut();
    let possible = history.possible(0, 3);
    assert_eq!(possible, [vec![2], vec![1, 3], vec![1, 3]]);
}
