//! Readahead of Linux 5 and 6, on demand: a read of a marked page fetches the next window.
//!
//! ```text
//!   |---------- window ----------|
//!   start         ^ marker        start + size
//!                 |<-async_size->|
//! ```
//!
//! Linux 6.12 `mm/readahead.c` with Jan Kara's patches of June 2024, by the description in
//! `shared/specs/cache-and-pfc.md`, 4; without larger folios. There is one window per file. Interleaved
//! streams of a file recover their window from the cached pages before a miss.

use super::context::{CONTEXT, ContextState, Contexts};
use super::{Advice, Ahead, FetchMode, LONGEST_WALK, Prefetcher, Seen, Site};
use crate::lru_map::LruMap;
use crate::replacement::Verdict;
use crate::residency::{Neighbours, Residency};
use crate::settings::{AlgorithmSettings, Parameter, Values};
use block::Interval;

/// A Linux 6 prefetcher: the window of each file, and the marked pages.
#[derive(Clone, Debug)]
pub struct Linux6 {
    rules: WindowRules,
    files: Contexts<Window>,
    marked: LruMap<u64, ()>,
}

#[derive(Clone, Copy, Debug)]
struct WindowRules {
    most: u64,
    optimal: u64,
    kernel: Kernel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kernel {
    /// Linux from 6.11 on.
    From611,
    /// Linux up to 6.10.
    UpTo610,
}

/// The most recent window of a file.
#[derive(Clone, Copy, Debug)]
struct Window {
    start: u64,
    size: u64,
    async_size: u64,
    /// The last page of the previous read.
    previous: Option<u64>,
}

/// The parameters.
pub const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "max",
        what: "The largest window in blocks; Linux: read_ahead_kb, 128 KiB.",
        values: Values::Number {
            range: 1..=4096,
            default: 32,
        },
    },
    Parameter {
        key: "optimal",
        what: "The device's optimal I/O size in blocks; a larger request may have a window of this \
               size. 0, as most disks say: unknown.",
        values: Values::Number {
            range: 0..=4096,
            default: 0,
        },
    },
    Parameter {
        key: "kernel",
        what: "Which rules: those from 6.11 on, or those before.",
        values: Values::Words(&["6.11", "6.10"]),
    },
    CONTEXT,
];

impl ContextState for Window {
    const NEW: Self = Window {
        start: 0,
        size: 0,
        async_size: 0,
        previous: None,
    };

    fn continues(&self, blocks: Interval) -> bool {
        let window = Interval::of(self.start, self.size.saturating_add(1));
        let previous = self.previous;
        self.size > 0 && window.contains(blocks.first)
            || previous
                .is_some_and(|at| at == blocks.first || at.checked_add(1) == Some(blocks.first))
    }
}

impl Linux6 {
    /// A prefetcher with these settings. Windows have at least two pages per marker, so that the markers of all
    /// cached pages fit.
    pub fn new(settings: &AlgorithmSettings, site: &Site) -> Self {
        let marks = (site.frames / 2).saturating_add(16);
        Linux6 {
            rules: WindowRules {
                most: settings.get("max"),
                optimal: settings.get("optimal"),
                kernel: match settings.get("kernel") {
                    0 => Kernel::From611,
                    _ => Kernel::UpTo610,
                },
            },
            files: Contexts::new(settings),
            marked: LruMap::new(marks.try_into().unwrap_or(usize::MAX)),
        }
    }
}

impl Prefetcher for Linux6 {
    fn on_request(&mut self, seen: &Seen, residency: &Residency, advice: &mut Advice) {
        let walk = seen.walk();
        let length = walk.len();
        let mut most = self.rules.most;
        if length > most && self.rules.optimal > most {
            most = length.min(self.rules.optimal);
        }
        let mut reading = PageRead {
            window: self.files.of(seen),
            marked: &mut self.marked,
            kernel: self.rules.kernel,
            most,
            seen,
            near: residency.neighbours(seen.blocks.first),
            from: advice.ahead.len(),
            ahead: &mut advice.ahead,
            plain: None,
            at: walk.first,
        };
        for page in walk.blocks() {
            let rest = walk.last - page + 1;
            reading.at = page;
            if !reading.is_present(page) {
                reading.on_missing(page, rest);
            }
            if reading.marked.get(page).is_some() {
                reading.marked.remove(page);
                reading.on_marker(page, rest);
            }
        }
        reading.window.previous = Some(seen.blocks.last);
    }

    fn on_evict(&mut self, block: u64) -> Verdict {
        self.marked.remove(block);
        Verdict::Evict
    }

    /// The stream continues after silently used blocks.
    fn on_silent_use(&mut self, seen: &Seen) {
        self.files.of(seen).previous = Some(seen.blocks.last);
    }
}

/// A request in progress.
struct PageRead<'a> {
    window: &'a mut Window,
    marked: &'a mut LruMap<u64, ()>,
    kernel: Kernel,
    most: u64,
    seen: &'a Seen,
    /// The cached pages, looked up in order.
    near: Neighbours<'a>,
    /// The index of this request's first fetch.
    from: usize,
    ahead: &'a mut Vec<Ahead>,
    /// The page from which on the request is read without a window.
    plain: Option<u64>,
    /// The current page: the request's pages before it are present.
    at: u64,
}

impl PageRead<'_> {
    /// Whether the page is cached, or being read for this request.
    fn is_present(&mut self, page: u64) -> bool {
        let is_read = page < self.at || self.plain.is_some_and(|plain| plain <= page);
        let mut asked = self.ahead[self.from..].iter().rev();
        is_read && self.seen.blocks.contains(page)
            || asked.any(|one| one.blocks.contains(page))
            || self.near.is_resident(page)
    }

    /// `page_cache_sync_ra`: handles an absent page.
    fn on_missing(&mut self, page: u64, rest: u64) {
        if self.kernel == Kernel::UpTo610
            && page != self.seen.within.first
            && self.is_expected(page)
        {
            return self.advance(page, FetchMode::Sync);
        }
        let previous = self.window.previous;
        let follows =
            previous.is_some_and(|before| page == before || before.checked_add(1) == Some(page));
        if page == self.seen.within.first || rest > self.most || follows {
            self.window.start = page;
            self.window.size = initial(rest, self.most);
            self.window.async_size = match self.window.size.checked_sub(rest) {
                Some(more) if more > 0 => more,
                _ if self.kernel == Kernel::UpTo610 => self.window.size,
                _ => self.window.size / 2,
            };
            return self.submit(page, FetchMode::Sync);
        }
        let cached = self.cached_before(page);
        if cached <= rest {
            self.plain = Some(page);
            return;
        }
        // A run that begins with the file was read by one reader: twice as much.
        let is_from_start = cached >= page - self.seen.within.first;
        let cached = if is_from_start { 2 * cached } else { cached };
        self.window.start = page;
        self.window.size = (cached + rest).min(self.most);
        self.window.async_size = 1;
        self.submit(page, FetchMode::Sync);
    }

    /// `page_cache_async_ra`: handles a read of a marked page.
    fn on_marker(&mut self, page: u64, rest: u64) {
        if self.is_expected(page) {
            return self.advance(page, FetchMode::Async);
        }
        // The file's state has another stream's window: the next one begins after the cached pages.
        let looked = super::following(page, self.most);
        let Some(start) = looked.blocks().find(|&at| !self.is_present(at)) else {
            return;
        };
        self.window.start = start;
        self.window.size = next((start - page).saturating_add(rest), self.most);
        self.window.async_size = self.window.size;
        self.submit(page, FetchMode::Async);
    }

    /// Whether the window continues at this page.
    fn is_expected(&self, page: u64) -> bool {
        let Window {
            start,
            size,
            async_size,
            ..
        } = *self.window;
        let end = start.saturating_add(size);
        size > 0
            && (page == end.saturating_sub(async_size)
                || self.kernel == Kernel::UpTo610 && page == end)
    }

    /// Advances to the next window.
    fn advance(&mut self, page: u64, mode: FetchMode) {
        self.window.start = self.window.start.saturating_add(self.window.size);
        self.window.size = next(self.window.size, self.most);
        self.window.async_size = self.window.size;
        self.submit(page, mode);
    }

    /// Fetches the window, and marks its page unless that is cached.
    fn submit(&mut self, page: u64, mode: FetchMode) {
        let window = &mut *self.window;
        let is_merged = self.kernel == Kernel::UpTo610
            && page == window.start
            && window.size == window.async_size;
        if is_merged {
            let more = next(window.size, self.most);
            if window.size + more <= self.most {
                window.async_size = more;
                window.size += more;
            } else {
                window.size = self.most;
                window.async_size = self.most >> 1;
            }
        }
        let blocks = Interval::of(window.start, window.size);
        let marker = window.start.saturating_add(window.size - window.async_size);
        if blocks.contains(marker) && self.seen.within.contains(marker) && !self.is_present(marker)
        {
            self.marked.insert(marker, ());
        }
        self.ahead.push(Ahead { blocks, mode });
    }

    /// The number of cached pages just before this one, at most a window.
    fn cached_before(&mut self, page: u64) -> u64 {
        let most = self
            .most
            .min(page - self.seen.within.first)
            .min(LONGEST_WALK);
        let before = (page - most..page).rev();
        before.take_while(|&at| self.is_present(at)).count() as u64
    }
}

/// `get_init_ra_size`; with at most 32 pages: 4 for 1 and 2, 8 for 3 and 4, 16 to 8, then 32.
fn initial(pages: u64, most: u64) -> u64 {
    let size = pages.max(1).checked_next_power_of_two().unwrap_or(most);
    if size <= most / 32 {
        size * 4
    } else if size <= most / 4 {
        size * 2
    } else {
        most
    }
}

/// `get_next_ra_size`; with at most 32 pages: 4 after 1, double after 2 to 16, then 32.
fn next(size: u64, most: u64) -> u64 {
    if size < most / 16 {
        size * 4
    } else if size <= most / 2 {
        size * 2
    } else {
        most
    }
}

#[cfg(test)]
mod tests;
