//! Pages that are newer than the volume: in which order they became so, and what has left the cache
//! before it was written.
//!
//! ```text
//!   first ->  page <-> page <-> page  <- last         the oldest is written first, with what
//!             serial 3    5        9                  follows it on the volume
//! ```

use block::{Duration, Instant};

use super::pages::Place;

/// No place.
const NONE: u32 = u32::MAX;

/// A page that is not older than this is not written of itself. A choice: a fifth of what Linux waits
/// before it looks (dirty_writeback_centisecs, 5 s), so that little is lost where nobody flushes.
const AGE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
struct Link {
    newer: u32,
    older: u32,
    block: u64,
    serial: u64,
    since: Instant,
}

/// A block that has no frame any more and is not written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    pub(super) block: u64,
    pub(super) place: Place,
    pub(super) serial: u64,
}

/// All pages that are not written.
pub(super) struct Unwritten {
    /// By place.
    links: Box<[Link]>,
    first: u32,
    last: u32,
    count: usize,
    /// At most so many may be unwritten: it has as many places beyond the frames.
    limit: usize,
    /// In the order in which they left.
    pub(super) leaving: Vec<Leaving>,
    /// It writes until a quarter of the limit is left.
    is_writing: bool,
    /// Somebody waits for all of it to be written.
    pub(super) is_urgent: bool,
    /// Something could not be written: the next flush says so.
    pub(super) has_failed: bool,
    /// Blocks that were written, and those of them that could not be.
    pub(super) written: u64,
    pub(super) failed: u64,
}

impl Unwritten {
    /// None yet, of pages at so many places.
    pub(super) fn new(places: usize, limit: usize) -> Self {
        let none = Link {
            newer: NONE,
            older: NONE,
            block: 0,
            serial: 0,
            since: Instant::ZERO,
        };
        Unwritten {
            links: vec![none; places].into_boxed_slice(),
            first: NONE,
            last: NONE,
            count: 0,
            limit,
            leaving: Vec::with_capacity(limit),
            is_writing: false,
            is_urgent: false,
            has_failed: false,
            written: 0,
            failed: 0,
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count + self.leaving.len()
    }

    /// Whether so many more may become unwritten.
    pub(super) fn has_room(&self, more: u64) -> bool {
        self.count() as u64 + more <= self.limit as u64
    }

    /// Whether the page is newer than the volume.
    pub(super) fn has(&self, place: Place) -> bool {
        let at = place.index() as u32;
        self.links[place.index()].newer != NONE || self.last == at
    }

    /// The page is newer than the volume from now on; if it was before, its place in the order stays.
    pub(super) fn add(&mut self, now: Instant, place: Place, block: u64, serial: u64) {
        if self.has(place) {
            return;
        }
        let at = place.index() as u32;
        self.links[place.index()] = Link {
            newer: NONE,
            older: self.last,
            block,
            serial,
            since: now,
        };
        match self.links.get_mut(self.last as usize) {
            Some(last) => last.newer = at,
            None => self.first = at,
        }
        self.last = at;
        self.count += 1;
    }

    /// The page is as the volume will be. Says its serial if it was newer.
    pub(super) fn remove(&mut self, place: Place) -> Option<u64> {
        if !self.has(place) {
            return None;
        }
        let Link {
            newer,
            older,
            serial,
            ..
        } = self.links[place.index()];
        match self.links.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.first = newer,
        }
        match self.links.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.last = older,
        }
        let link = &mut self.links[place.index()];
        (link.newer, link.older) = (NONE, NONE);
        self.count -= 1;
        Some(serial)
    }

    /// The block of the page that has been unwritten the longest, and its serial.
    pub(super) fn oldest(&self) -> Option<(u64, u64)> {
        let link = self.links.get(self.first as usize)?;
        Some((link.block, link.serial))
    }

    /// The blocks of all pages in frames that are unwritten.
    pub(super) fn blocks(&self) -> impl Iterator<Item = u64> {
        let mut at = self.first;
        std::iter::from_fn(move || {
            let link = self.links.get(at as usize)?;
            at = link.newer;
            Some(link.block)
        })
    }

    /// The least serial of what has not even begun to be written.
    pub(super) fn least_serial(&self) -> Option<u64> {
        let leaving = self.leaving.iter().map(|leaving| leaving.serial);
        leaving.chain(self.oldest().map(|(_, serial)| serial)).min()
    }

    /// Whether something is to be written now.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        if self.count() == 0 {
            self.is_writing = false;
            self.is_urgent = false;
            return false;
        }
        self.is_writing |= self.count() * 2 > self.limit;
        self.is_writing &= self.count() * 4 > self.limit;
        let is_old = self.next_due().is_some_and(|then| then <= now);
        self.is_urgent || self.is_writing || is_old || !self.leaving.is_empty()
    }

    /// When the oldest page is old enough to be written.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let link = self.links.get(self.first as usize)?;
        Some(link.since + AGE)
    }
}
