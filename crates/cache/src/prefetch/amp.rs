//! AMP: adapts each sequence's degree and trigger distance to the use of its blocks.
//!
//! ```text
//!    set: read as one I/O, its last page keeps p and g
//!   |--------------------t------l|   t: tagged, g before the last page l; a hit on it fetches
//!                        |<- g ->|      the p pages that follow the set
//! ```
//!
//! Gill, Bathen, FAST 2007. The state is stored with the pages, without a table of streams. p grows
//! when a set is read to its end, g when a reader waits for a set. Both shrink when an unread page
//! reaches the end of the cache, which then gets a second chance. Open points of the papers follow
//! `shared/specs/cache-and-pfc.md`, 6.

use super::{Advice, Ahead, FetchMode, PrefetchWaiter, Prefetcher, Seen, Site, following};
use crate::lru_map::LruMap;
use crate::replacement::{FirstTouch, Verdict};
use crate::residency::{Neighbours, Residency};
use crate::settings::{AlgorithmSettings, Parameter, Values};
use block::Interval;

/// An AMP prefetcher: the state of cached pages.
#[derive(Clone, Debug)]
pub struct Amp {
    /// The largest degree.
    most: u64,
    /// A degree beyond this one has a trigger distance.
    threshold: u64,
    /// The number of cached pages before a miss that make it sequential.
    before: u64,
    pages: LruMap<u64, Page>,
}

#[derive(Clone, Copy, Debug)]
struct Page {
    /// The last page of its set.
    last: u64,
    /// In the last page of a set: the number of following pages per fetch.
    degree: u64,
    /// In the last page of a set: the distance of the next set's trigger from the end.
    distance: u64,
    is_accessed: bool,
    /// Whether it has reached the end of the cache once.
    is_old: bool,
    is_tagged: bool,
}

/// The parameters.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "apt",
        what: "Beyond this degree sets are asked for before the last one is read to its end; Gill, \
               Bathen: 4.",
        values: Values::Number {
            range: 1..=4096,
            default: 4,
        },
    },
    Parameter {
        key: "max",
        what: "The largest degree; 256 as in CMimircache's tests, never more than a quarter of the \
               cache.",
        values: Values::Number {
            range: 1..=4096,
            default: 256,
        },
    },
    Parameter {
        key: "before",
        what: "Cached pages before a miss that make it sequential; CMimircache: 1.",
        values: Values::Number {
            range: 1..=64,
            default: 1,
        },
    },
];

impl Amp {
    /// A prefetcher with these settings.
    pub fn new(settings: &AlgorithmSettings, site: &Site) -> Self {
        Amp {
            most: settings.get("max").min(site.frames / 4).max(1),
            threshold: settings.get("apt"),
            before: settings.get("before"),
            pages: LruMap::new(site.frames.try_into().unwrap_or(usize::MAX)),
        }
    }

    /// The last page of the newest set of the page's run, one set ahead of its own.
    fn last_in_sequence(&self, page: u64) -> u64 {
        let Some(known) = self.pages.get(page) else {
            return page;
        };
        let last = known.last;
        let next = last.checked_add(1);
        if next.is_none_or(|next| self.pages.get(next).is_none()) {
            return last;
        }
        let degree = self.pages.get(last).map_or(0, |known| known.degree);
        match last.checked_add(degree) {
            Some(far) if self.pages.get(far).is_some() => far,
            _ => last,
        }
    }

    /// Grows the degree after a set was read to its end.
    fn grow(&mut self, page: u64, by: u64) {
        let (most, threshold) = (self.most, self.threshold);
        let last = self.last_in_sequence(page);
        let Some(known) = self.pages.get_mut(last) else {
            return;
        };
        let before = known.degree;
        known.degree = known.degree.saturating_add(by).min(most);
        if before <= threshold && known.degree > threshold && known.distance == 0 {
            self.begin_early(last);
        }
    }

    /// Sets a trigger distance, because the degree requires the next set before this one is read.
    fn begin_early(&mut self, last: u64) {
        let distance = self.threshold / 2;
        let trigger = last.saturating_sub(distance);
        let is_ahead = self
            .pages
            .get(trigger)
            .is_some_and(|page| page.last == last && !page.is_accessed);
        if let Some(known) = self.pages.get_mut(last) {
            known.distance = distance;
            // A trigger that was read already would never be hit: then the old one stays.
            known.is_tagged &= !is_ahead;
        }
        if is_ahead && let Some(page) = self.pages.get_mut(trigger) {
            page.is_tagged = true;
        }
    }

    /// Handles a cached page of the request.
    fn on_hit(&mut self, page: u64, reading: &mut StreamRead) {
        let Some(known) = self.pages.touch(page) else {
            return;
        };
        known.is_accessed = true;
        let was_tagged = std::mem::take(&mut known.is_tagged);
        let (last, is_old) = (known.last, known.is_old);
        if page == last && !is_old {
            self.grow(page, reading.size);
        }
        if was_tagged {
            let degree = self.pages.get(last).map_or(0, |known| known.degree);
            self.prefetch(last, degree, FetchMode::Async, reading);
        }
    }

    /// Handles absent pages of the request, up to a cached one or to its end.
    fn on_miss(&mut self, run: Interval, reading: &mut StreamRead) {
        let first = run.first;
        let is_sequential = first >= self.before
            && (first - self.before..first)
                .all(|page| reading.blocks.contains(page) || reading.near.is_resident(page));
        let previous = first
            .checked_sub(1)
            .filter(|_| is_sequential)
            .and_then(|page| self.pages.get(self.pages.get(page)?.last))
            .copied();
        for page in run.blocks() {
            let known = Page {
                last: run.last,
                degree: 0,
                distance: 0,
                is_accessed: true,
                is_old: false,
                is_tagged: false,
            };
            self.pages.insert(page, known);
        }
        let carried = previous.map_or(0, |page| page.degree);
        if let Some(last) = self.pages.get_mut(run.last) {
            last.degree = carried;
            last.distance = previous.map_or(0, |page| page.distance);
        }
        self.grow_own(run.last, reading.size);
        if is_sequential && run.last == reading.blocks.last {
            let degree = previous.map_or(reading.size, |page| page.degree);
            self.prefetch(run.last, degree.min(self.most), FetchMode::Sync, reading);
        }
    }

    /// Grows the degree of a set that was just read on demand.
    fn grow_own(&mut self, last: u64, by: u64) {
        let (most, threshold) = (self.most, self.threshold);
        if let Some(known) = self.pages.get_mut(last) {
            let before = known.degree;
            known.degree = before.saturating_add(by).min(most);
            if before <= threshold && known.degree > threshold && known.distance == 0 {
                known.distance = threshold / 2;
            }
        }
    }

    /// Fetches the pages after a set, up to the first cached one.
    fn prefetch(&mut self, last: u64, degree: u64, mode: FetchMode, reading: &mut StreamRead) {
        let wanted = following(last, degree).intersection(reading.within);
        let absent = wanted
            .blocks()
            .take_while(|&page| !reading.is_present(page))
            .count() as u64;
        let set = Interval::of(wanted.first, absent);
        if set.is_empty() {
            return;
        }
        let before = self.pages.get(last).copied();
        let distance = before.map_or(0, |page| page.distance);
        let degree = before.map_or(degree, |page| page.degree.max(distance + 1));
        let trigger = set.last.saturating_sub(distance).max(set.first);
        for page in set.blocks() {
            let known = Page {
                last: set.last,
                degree,
                distance,
                is_accessed: false,
                is_old: false,
                is_tagged: page == trigger,
            };
            self.pages.insert(page, known);
        }
        reading.ahead.push(Ahead { blocks: set, mode });
    }
}

/// One request under way.
struct StreamRead<'a> {
    blocks: Interval,
    within: Interval,
    /// Pages of the request.
    size: u64,
    /// The cached pages, looked up in order.
    near: Neighbours<'a>,
    /// What this request asked for so far begins here.
    from: usize,
    ahead: &'a mut Vec<Ahead>,
}

impl StreamRead<'_> {
    fn is_present(&mut self, page: u64) -> bool {
        let mut asked = self.ahead[self.from..].iter();
        asked.any(|one| one.blocks.contains(page)) || self.near.is_resident(page)
    }
}

impl Prefetcher for Amp {
    fn on_request(&mut self, seen: &Seen, residency: &Residency, advice: &mut Advice) {
        let blocks = seen.walk();
        let mut reading = StreamRead {
            blocks,
            within: seen.within,
            size: blocks.len(),
            near: residency.neighbours(blocks.first),
            from: advice.ahead.len(),
            ahead: &mut advice.ahead,
        };
        let mut missed: Option<u64> = None;
        for page in blocks.blocks() {
            let is_present = reading.is_present(page);
            if is_present && let Some(first) = missed.take() {
                self.on_miss(Interval::new(first, page - 1), &mut reading);
            }
            if is_present {
                self.on_hit(page, &mut reading);
            } else {
                missed = missed.or(Some(page));
            }
        }
        if let Some(first) = missed {
            self.on_miss(Interval::new(first, blocks.last), &mut reading);
        }
    }

    fn on_prefetch_complete(&mut self, blocks: Interval, waiting: PrefetchWaiter) {
        if waiting == PrefetchWaiter::Nobody {
            return;
        }
        let last = self.last_in_sequence(blocks.first);
        if let Some(known) = self.pages.get_mut(last) {
            known.distance = (known.distance + 1).min(known.degree.saturating_sub(1));
        }
    }

    fn on_evict(&mut self, block: u64) -> Verdict {
        let Some(known) = self.pages.get_mut(block) else {
            return Verdict::Evict;
        };
        if known.is_accessed || known.is_old {
            self.pages.remove(block);
            return Verdict::Evict;
        }
        known.is_old = true;
        known.is_tagged = false;
        let last = self.last_in_sequence(block);
        if let Some(last) = self.pages.get_mut(last) {
            last.degree = last.degree.saturating_sub(1).max(1);
            last.distance = last.distance.saturating_sub(1).min(last.degree - 1);
        }
        Verdict::SecondChance
    }

    /// What was used in passing has been read.
    fn on_silent_use(&mut self, seen: &Seen) {
        let blocks = seen.walk();
        for page in blocks.blocks() {
            let Some(known) = self.pages.get_mut(page) else {
                continue;
            };
            known.is_accessed = true;
            if known.last == page && !known.is_old {
                self.grow(page, blocks.len());
            }
        }
    }

    fn first_touch(&self) -> FirstTouch {
        FirstTouch::Unnoticed
    }
}
