//! Vectors of the specification, and a slow oracle that goes page by page through the text.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::tests::Level;

/// The specification, 4, word by word: sets of pages, and no thought of speed.
#[derive(Default)]
struct Oracle {
    cached: BTreeSet<u64>,
    marked: BTreeSet<u64>,
    start: i64,
    size: i64,
    async_size: i64,
    previous: Option<i64>,
    windows: Vec<(i64, i64, Option<i64>)>,
    is_old: bool,
}

const MAX: i64 = 32;

fn init(pages: i64) -> i64 {
    let mut size = 1;
    while size < pages {
        size *= 2;
    }
    if size <= MAX / 32 {
        4 * size
    } else if size <= MAX / 4 {
        2 * size
    } else {
        MAX
    }
}

fn next(size: i64) -> i64 {
    if size < MAX / 16 {
        4 * size
    } else if size <= MAX / 2 {
        2 * size
    } else {
        MAX
    }
}

impl Oracle {
    fn read(&mut self, first: i64, pages: i64) {
        for page in first..first + pages {
            let rest = first + pages - page;
            if !self.cached.contains(&(page as u64)) {
                self.sync(page, rest);
                // A window of the old kernels may begin after it: then it is read alone.
                self.cached.insert(page as u64);
            }
            if self.marked.remove(&(page as u64)) {
                self.on_marker(page, rest);
            }
        }
        self.previous = Some(first + pages - 1);
    }

    fn sync(&mut self, page: i64, rest: i64) {
        let expected = self.start + self.size - self.async_size;
        let end = self.start + self.size;
        if self.is_old && page != 0 && self.size > 0 && (page == expected || page == end) {
            self.start += self.size;
            self.size = next(self.size);
            self.async_size = self.size;
            return self.submit(page);
        }
        let follows = self
            .previous
            .is_some_and(|before| (0..=1).contains(&(page - before)));
        if page == 0 || rest > MAX || follows {
            self.start = page;
            self.size = init(rest);
            self.async_size = match (self.size > rest, self.is_old) {
                (true, _) => self.size - rest,
                (false, false) => self.size / 2,
                (false, true) => self.size,
            };
            return self.submit(page);
        }
        let mut cached = 0;
        while cached < MAX && page > cached && self.cached.contains(&((page - cached - 1) as u64)) {
            cached += 1;
        }
        if cached <= rest {
            for one in page..page + rest {
                self.cached.insert(one as u64);
            }
            self.windows.push((page, rest, None));
            return;
        }
        if cached >= page {
            cached *= 2;
        }
        self.start = page;
        self.size = (cached + rest).min(MAX);
        self.async_size = 1;
        self.submit(page);
    }

    fn on_marker(&mut self, page: i64, rest: i64) {
        let expected = self.start + self.size - self.async_size;
        let is_end = self.is_old && page == self.start + self.size;
        if self.size > 0 && (page == expected || is_end) {
            self.start += self.size;
            self.size = next(self.size);
        } else {
            let mut absent =
                (page + 1..=page + MAX).filter(|one| !self.cached.contains(&(*one as u64)));
            let Some(found) = absent.next() else {
                return;
            };
            self.start = found;
            self.size = next(found - page + rest);
        }
        self.async_size = self.size;
        self.submit(page);
    }

    fn submit(&mut self, page: i64) {
        if self.is_old && page == self.start && self.size == self.async_size {
            let add = next(self.size);
            if self.size + add <= MAX {
                self.async_size = add;
                self.size += add;
            } else {
                self.size = MAX;
                self.async_size = MAX / 2;
            }
        }
        let marker = self.start + self.size - self.async_size;
        let mut put = None;
        for one in self.start..self.start + self.size {
            if self.cached.insert(one as u64) && one == marker {
                self.marked.insert(one as u64);
                put = Some(one);
            }
        }
        self.windows.push((self.start, self.size, put));
    }
}

/// What the oracle reads for requests of (first, pages).
fn windows(requests: &[(i64, i64)]) -> Vec<(i64, i64, Option<i64>)> {
    let mut oracle = Oracle::default();
    for &(first, pages) in requests {
        oracle.read(first, pages);
    }
    oracle.windows
}

#[test]
fn the_oracle_agrees_with_the_vectors_of_the_specification() {
    let singles: Vec<_> = (0..61).map(|page| (page, 1)).collect();
    let expected = [
        (0, 4, 1),
        (4, 8, 4),
        (12, 16, 12),
        (28, 32, 28),
        (60, 32, 60),
        (92, 32, 92),
    ];
    assert_eq!(windows(&singles), expected.map(|(a, b, c)| (a, b, Some(c))));
    let fours: Vec<_> = (0..15).map(|step| (4 * step, 4)).collect();
    let expected = [
        (0, 8, 4),
        (8, 16, 8),
        (24, 32, 24),
        (56, 32, 56),
        (88, 32, 88),
    ];
    assert_eq!(windows(&fours), expected.map(|(a, b, c)| (a, b, Some(c))));
    let jumps = [(1000, 1), (5000, 1), (5001, 1), (5002, 4)];
    let expected = [
        (1000, 1, None),
        (5000, 1, None),
        (5001, 4, Some(5002)),
        (5005, 8, Some(5005)),
        (5013, 16, Some(5013)),
    ];
    assert_eq!(windows(&jumps), expected);
    let two: Vec<_> = (0..36)
        .map(|step| (step / 2 + 100_000 * (step % 2), 1))
        .collect();
    let expected = [
        (0, 4, Some(1)),
        (100_000, 1, None),
        (4, 8, Some(4)),
        (100_001, 1, None),
        (100_002, 3, Some(100_004)),
        (12, 18, Some(12)),
        (100_005, 4, Some(100_005)),
        (100_009, 8, Some(100_009)),
        (100_017, 16, Some(100_017)),
        (30, 32, Some(30)),
        (100_033, 32, Some(100_033)),
    ];
    assert_eq!(windows(&two), expected);
}

#[test]
fn a_run_that_begins_with_the_file_counts_twice() {
    // Eight pages from the beginning, a jump, and on: 2 x 8 pages and the one that was asked for.
    let requests = [(0, 4), (500, 1), (8, 1)];
    let expected = [(0, 8, Some(4)), (500, 1, None), (8, 17, Some(24))];
    assert_eq!(windows(&requests), expected);
    compare("linux-6", false, &[(0, 4), (500, 1), (8, 1)]);
    let mut level = Level::new("linux-6", 4096);
    assert_eq!(level.runs(&[(0, 3), (500, 500), (8, 8)]), [(4, 7), (9, 24)]);
}

/// Reads the same through both; the cached pages are to be the same after every request.
fn compare(name: &str, is_old: bool, requests: &[(u64, u64)]) {
    let mut level = Level::new(name, 4096);
    let mut oracle = Oracle {
        is_old,
        ..Oracle::default()
    };
    for &(first, pages) in requests {
        oracle.read(first as i64, pages as i64);
        level.read(first, first + pages - 1);
        let residency = level.cache.residency();
        for page in 0..1100 {
            let cached = oracle.cached.contains(&page);
            assert_eq!(
                residency.is_resident(page),
                cached,
                "{page} of {requests:?}"
            );
        }
        // Pages go now and then, with their markers.
        if first % 3 == 0 {
            let gone: Vec<u64> = (first..first + 9).collect();
            for page in gone {
                level.cache.withdraw(page);
                level.prefetcher.on_evict(page);
                oracle.cached.remove(&page);
                oracle.marked.remove(&page);
            }
        }
    }
}

fn requests() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let one = (0u64..400, prop_oneof![1u64..6, 1u64..50], 0u8..8);
    prop::collection::vec(one, 1..40).prop_map(|steps| {
        let mut ends = [0u64, 200];
        let step = |(place, pages, kind): (u64, u64, u8)| {
            // Two sequential readers, and jumps.
            let stream = usize::from(kind % 2);
            let first = if kind < 6 {
                ends[stream].min(900)
            } else {
                place
            };
            ends[stream] = first + pages;
            (first, pages)
        };
        steps.into_iter().map(step).collect()
    })
}

proptest! {
    #[test]
    fn it_reads_what_the_oracle_reads(requests in requests()) {
        compare("linux-6", false, &requests);
    }

    #[test]
    fn the_rules_before_6_11_are_the_oracle_s_too(requests in requests()) {
        compare("linux-6(kernel=6.10)", true, &requests);
    }
}
