//! Statistics of a load: the basis for calibrating generated loads and for comparing them with
//! genuine ones.
//!
//! All counts are in blocks, the unit of caches. A request *continues* if it begins with the last
//! block of one of the last 32 requests for its file, or with the next block. Otherwise it is
//! *random*.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::load::CacheArrival;

/// The statistics of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadFigures {
    /// Number of requests.
    pub requests: u64,
    /// The fraction of requests that are random.
    pub random: f64,
    /// Number of distinct blocks.
    pub footprint: u64,
    /// Number of files or volumes.
    pub files: u64,
    /// Mean number of blocks per request.
    pub blocks: f64,
    /// First references to a block as a fraction of all references.
    pub cold: f64,
    /// The fraction of references whose reuse distance is below 2^8 blocks.
    pub near_reuse: f64,
    /// The fraction of references whose reuse distance is below 2^12 blocks.
    pub far_reuse: f64,
    /// The fraction of continuing requests that continue the immediately preceding one.
    pub next: f64,
    /// The fraction of continuing requests with more than 24 others in between.
    pub late: f64,
    /// The fraction of requests in runs of 8 and more.
    pub long_runs: f64,
    /// Blocks of all touched 256 KiB regions, divided by the footprint.
    pub spread: f64,
    /// The mean gap between requests, in milliseconds.
    pub gap_ms: f64,
    /// The standard deviation of gaps, divided by the mean.
    pub gap_deviation: f64,
}

/// The end of a request, and the run that it belongs to.
#[derive(Clone, Copy, Debug)]
struct RunEnd {
    block: u64,
    request: u64,
    run: u64,
}

/// Number of requests to remember per file, as in `shared/traces/README.md`.
const REMEMBERED: usize = 32;

/// Blocks per region: 256 KiB.
const REGION: u64 = 64;

impl LoadFigures {
    /// The statistics of these requests.
    pub fn of(arrivals: &[CacheArrival]) -> Self {
        let mut figures = LoadFigures {
            requests: arrivals.len() as u64,
            ..LoadFigures::default()
        };
        let requests = arrivals.len().max(1) as f64;
        let asked: u64 = arrivals.iter().map(|arrival| arrival.blocks.len()).sum();
        figures.blocks = asked as f64 / requests;
        figures.count_runs(arrivals);
        figures.count_reuse(arrivals, asked);
        figures.count_gaps(arrivals);
        figures
    }

    fn count_runs(&mut self, arrivals: &[CacheArrival]) {
        let mut ends: BTreeMap<u64, VecDeque<RunEnd>> = BTreeMap::new();
        let mut runs: BTreeMap<u64, u64> = BTreeMap::new();
        let (mut continued, mut next, mut late) = (0u64, 0u64, 0u64);
        for (number, arrival) in (0u64..).zip(arrivals) {
            let of_file = ends.entry(arrival.file).or_default();
            let first = arrival.blocks.first;
            let is_before = |end: &&RunEnd| end.block == first || end.block + 1 == first;
            let before = of_file.iter().rev().find(is_before).copied();
            let run = before.map_or(number, |end| end.run);
            if let Some(end) = before {
                continued += 1;
                next += u64::from(number - end.request == 1);
                late += u64::from(number - end.request > 24);
            }
            *runs.entry(run).or_default() += 1;
            of_file.push_back(RunEnd {
                block: arrival.blocks.last,
                request: number,
                run,
            });
            if of_file.len() > REMEMBERED {
                of_file.pop_front();
            }
        }
        self.files = ends.len() as u64;
        let requests = arrivals.len().max(1) as f64;
        self.random = 1.0 - continued as f64 / requests;
        let continued = continued.max(1) as f64;
        self.next = next as f64 / continued;
        self.late = late as f64 / continued;
        let long: u64 = runs.values().filter(|&&length| length >= 8).sum();
        self.long_runs = long as f64 / requests;
    }

    /// Computes reuse distances with a tree of sums over the references; only the last reference of
    /// each block counts.
    fn count_reuse(&mut self, arrivals: &[CacheArrival], asked: u64) {
        let mut tree = vec![0u32; asked as usize + 1];
        let add = |tree: &mut Vec<u32>, at: u64, by: i32| {
            let mut at = at as usize;
            while at < tree.len() {
                tree[at] = tree[at].wrapping_add_signed(by);
                at += at & at.wrapping_neg();
            }
        };
        let up_to = |tree: &Vec<u32>, at: u64| {
            let (mut at, mut sum) = (at as usize, 0u64);
            while at > 0 {
                sum += u64::from(tree[at]);
                at &= at - 1;
            }
            sum
        };
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        let (mut now, mut near, mut far) = (0u64, 0u64, 0u64);
        for block in arrivals.iter().flat_map(|arrival| arrival.blocks.blocks()) {
            now += 1;
            if let Some(before) = last.insert(block, now) {
                let distance = up_to(&tree, now - 1) - up_to(&tree, before);
                near += u64::from(distance < 1 << 8);
                far += u64::from(distance < 1 << 12);
                add(&mut tree, before, -1);
            }
            add(&mut tree, now, 1);
        }
        let regions: BTreeSet<u64> = last.keys().map(|block| block / REGION).collect();
        self.footprint = last.len() as u64;
        let asked = asked.max(1) as f64;
        self.cold = self.footprint as f64 / asked;
        self.near_reuse = near as f64 / asked;
        self.far_reuse = far as f64 / asked;
        self.spread = (regions.len() as u64 * REGION) as f64 / self.footprint.max(1) as f64;
    }

    fn count_gaps(&mut self, arrivals: &[CacheArrival]) {
        let gaps = || {
            let pairs = arrivals.windows(2);
            pairs.map(|pair| pair[1].at.since(pair[0].at).as_nanos() as f64 / 1e6)
        };
        let count = arrivals.len().saturating_sub(1).max(1) as f64;
        let mean = gaps().sum::<f64>() / count;
        let variance = gaps().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / count;
        self.gap_ms = mean;
        self.gap_deviation = match mean > 0.0 {
            true => libm::sqrt(variance) / mean,
            false => 0.0,
        };
    }

    /// The footprint in millions of bytes.
    pub fn footprint_mb(&self) -> f64 {
        self.footprint as f64 * 4096.0 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use block::{Direction, Instant, Interval};

    use super::LoadFigures;
    use crate::caching::CacheArrival;

    fn read(file: u64, first: u64, blocks: u64, at_ms: u64) -> CacheArrival {
        CacheArrival {
            at: Instant::from_nanos(at_ms * 1_000_000),
            client: 0,
            file,
            blocks: Interval::of(first, blocks),
            within: Interval::new(0, 1 << 20),
            direction: Direction::Read,
        }
    }

    #[test]
    fn figures_of_a_small_load_are_those_counted_by_hand() {
        let figures = LoadFigures::of(&[
            read(0, 0, 4, 0),
            // Of another file: it continues nothing.
            read(1, 4, 2, 1),
            // Continues the first, two requests later, and again from its last block.
            read(0, 4, 2, 2),
            read(0, 5, 1, 5),
            // The first ones again: no continuation.
            read(0, 0, 1, 5),
        ]);
        assert_eq!((figures.requests, figures.files), (5, 2));
        assert!((figures.random - 0.6).abs() < 1e-9);
        assert!((figures.next - 0.5).abs() < 1e-9);
        assert_eq!(figures.footprint, 6);
        assert!((figures.blocks - 2.0).abs() < 1e-9);
        // Of ten blocks four were asked for before: 4, 5, 5 and 0.
        assert!((figures.cold - 0.6).abs() < 1e-9);
        assert!((figures.near_reuse - 0.4).abs() < 1e-9);
        assert!((figures.gap_ms - 1.25).abs() < 1e-9);
        assert!((figures.spread - 64.0 / 6.0).abs() < 1e-9);
    }
}
