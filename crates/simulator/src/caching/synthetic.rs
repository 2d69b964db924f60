//! Synthetic loads for caches, modelled on the statistics of a trace and on those that papers give
//! of unpublished traces.
//!
//! ```text
//!   places    | run 1 |  run 7 |     | run 3 |        the disk; fresh runs stand where nothing was read
//!   readers   r0 --run 3--> r1 --run 1 again--> ..    so many runs are read side by side
//!   request   which reader goes on? if its run is over, it begins a fresh one or an old one again
//! ```
//!
//! A fresh run starts whenever the load is behind its share of the footprint, so that all of it is
//! read in time. Otherwise a run is read again: in the order of a loop, or one whose age is
//! log-uniformly distributed, like the reuse distances of the genuine prefixes. The parameters are
//! a file of `workloads/levels`; [`super::figures`] measures the result.

use block::{Direction, Instant, Interval};
use document::DocumentError;

use super::load::CacheArrival;
use crate::workload::dice::{Chance, Dice, Toss};

mod parse;
mod space;

use space::{RunPlace, Space};

/// The parameters of a generated load.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticCacheLoad {
    /// The name of the load.
    pub name: String,
    /// A description in one sentence.
    pub summary: String,
    /// Number of requests of the whole load.
    pub requests: u64,
    /// Number of distinct blocks of the whole load.
    pub footprint: u64,
    /// The gaps between requests; empty: a closed loop.
    pub gaps: Vec<Gap>,
    /// The fraction of the requests in which all of the footprint is read for the first time.
    pub first_pass: f64,
    /// The files or volumes.
    pub files: Vec<FileKind>,
    /// Whether prefetchers know the ends of files.
    pub ends: Ends,
    /// The first request of a run starts at a multiple of this number of blocks.
    pub align: u64,
    /// The fraction of fresh runs that start near an earlier one.
    pub near: f64,
    /// Number of runs that are read concurrently.
    pub readers: u32,
    /// The fraction of requests of the reader that sent the last one.
    pub same_reader: f64,
    /// The preference for recently active readers among the others: 1 is none.
    pub skew: f64,
    /// The lengths of runs.
    pub runs: Vec<RunKind>,
    /// The size of the first request of a run.
    pub first: Vec<Size>,
    /// The size of its other requests.
    pub following: Vec<Size>,
    /// The fraction of repeated runs that follow the order of first reads, oldest first: a loop
    /// over all blocks.
    pub looping: f64,
    /// The preference for recent runs among the other repeated ones: 1 is a log-uniform age.
    pub recency: f64,
    /// The fraction of non-first requests that begin with the last block of the one before.
    pub overlap: f64,
    /// The paper's statistics of the trace that the load replaces.
    pub target: PaperFigures,
}

/// An exponential distribution of gaps, with its weight in a mixture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// The weight.
    pub weight: u64,
    /// The mean in milliseconds; 0 for simultaneous requests.
    pub mean_ms: f64,
}

/// Files or volumes with one distribution of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileKind {
    /// Number of files.
    pub count: u64,
    /// The minimum.
    pub from: u64,
    /// The maximum.
    pub to: u64,
}

/// Whether prefetchers know the ends of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// They do, as in a file system.
    Known,
    /// Those of the first level do; the others see blocks alone.
    Above,
    /// They do not: a block server does not see files.
    Unknown,
}

/// A kind of run, with its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunKind {
    /// The weight.
    pub weight: u64,
    /// The length.
    pub length: Length,
}

/// The length of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// A log-uniform number of requests.
    Requests {
        /// From.
        from: u64,
        /// To.
        to: u64,
    },
    /// A whole file.
    File,
}

/// A size of requests, with its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The weight.
    pub weight: u64,
    /// Number of blocks.
    pub blocks: u64,
}

/// A paper's statistics of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaperFigures {
    /// Random requests, in percent.
    pub random_percent: f64,
    /// The footprint in units of 10^6 bytes.
    pub footprint_mb: f64,
    /// Number of files, if the trace has files.
    pub files: Option<u64>,
    /// The fraction of the paper's footprint that the load has: 1 is all of it.
    pub scale: f64,
}

/// A built-in load.
#[derive(Clone, Copy, Debug)]
pub struct BuiltInCacheLoad {
    /// The name of the load.
    pub name: &'static str,
    /// The text of its file.
    pub text: &'static str,
}

/// The built-in loads: one file each in `workloads/levels/`, one line each here.
pub const ALL: &[BuiltInCacheLoad] = &[
    BuiltInCacheLoad {
        name: "oltp-like",
        text: include_str!("../../../../workloads/levels/oltp-like.toml"),
    },
    BuiltInCacheLoad {
        name: "websearch-like",
        text: include_str!("../../../../workloads/levels/websearch-like.toml"),
    },
    BuiltInCacheLoad {
        name: "multi-like",
        text: include_str!("../../../../workloads/levels/multi-like.toml"),
    },
];

/// OLTP calibrated to other figures of the paper than that of [`ALL`]: its volume, number of requests, and hit ratio.
pub const OLTP_BY_VOLUME: BuiltInCacheLoad = BuiltInCacheLoad {
    name: "oltp-by-volume",
    text: include_str!("../../../../workloads/levels/oltp-by-volume.toml"),
};

/// OLTP with the paper's number of requests at the mean rate of the trace that it names, read again in a loop.
pub const OLTP_IN_A_LOOP: BuiltInCacheLoad = BuiltInCacheLoad {
    name: "oltp-in-a-loop",
    text: include_str!("../../../../workloads/levels/oltp-in-a-loop.toml"),
};

/// Multi in requests of eight blocks.
pub const MULTI_IN_32_KIB: BuiltInCacheLoad = BuiltInCacheLoad {
    name: "multi-in-32-kib",
    text: include_str!("../../../../workloads/levels/multi-in-32-kib.toml"),
};

impl BuiltInCacheLoad {
    /// Parses the load.
    ///
    /// # Errors
    /// Never for a built-in load: a test reads them all.
    pub fn load(&self) -> Result<SyntheticCacheLoad, DocumentError> {
        SyntheticCacheLoad::parse(&format!("workloads/levels/{}.toml", self.name), self.text)
    }
}

/// The part of a load that is generated, and its distribution among clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLoadSlice {
    /// The divisor of the number of requests and of the footprint.
    pub part: u64,
    /// Number of clients, to which the readers are dealt.
    pub clients: u32,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// A run in progress.
#[derive(Clone, Debug, Default)]
struct ActiveRun {
    place: RunPlace,
    /// The next block.
    at: u64,
    /// The sizes of the remaining requests, the next one last.
    left: Vec<u64>,
}

/// A completed run.
#[derive(Clone, Copy, Debug)]
struct FinishedRun {
    place: RunPlace,
    requests: u64,
}

impl SyntheticCacheLoad {
    /// The requests on a disk of `disk` blocks, in order of time.
    pub fn arrivals(&self, extent: &CacheLoadSlice, disk: u64) -> Vec<CacheArrival> {
        Walk::new(self, extent, disk).collect()
    }

    /// Whether requests have times of their own.
    pub fn is_open(&self) -> bool {
        !self.gaps.is_empty()
    }
}

/// The generator of a load.
struct Walk<'a> {
    of: &'a SyntheticCacheLoad,
    requests: u64,
    footprint: u64,
    clients: u32,
    made: u64,
    now: f64,
    space: Space,
    readers: Vec<ActiveRun>,
    /// Readers in order of activity, the last active one at the end.
    order: Vec<usize>,
    /// Runs in order of their start.
    history: Vec<FinishedRun>,
    /// The fresh runs among them, and the position of the loop.
    first_reads: Vec<FinishedRun>,
    looped: usize,
    dice: Dice,
    times: Dice,
}

impl<'a> Walk<'a> {
    fn new(of: &'a SyntheticCacheLoad, extent: &CacheLoadSlice, disk: u64) -> Self {
        let part = extent.part.max(1);
        let readers = of.readers.max(extent.clients) as usize;
        let footprint = (of.footprint / part).max(1);
        let mut dice = Dice::new(extent.seed, 1);
        Walk {
            of,
            requests: (of.requests / part).max(1),
            footprint,
            clients: extent.clients.max(1),
            made: 0,
            now: 0.0,
            space: Space::new(of, part, disk, &mut dice),
            readers: vec![ActiveRun::default(); readers],
            order: (0..readers).collect(),
            history: Vec::new(),
            first_reads: Vec::new(),
            looped: 0,
            dice,
            times: Dice::new(extent.seed, 2),
        }
    }

    /// Chooses the reader of the next request.
    fn reader(&mut self) -> usize {
        let last = self.order.len() - 1;
        let is_same = self.dice.happens(Chance::new(self.of.same_reader));
        let rank = match is_same {
            Toss::Yes => 0,
            Toss::No => {
                let even = self.even();
                (libm::pow(even, self.of.skew) * last as f64) as usize + 1
            }
        };
        let reader = self.order.remove(last - rank.min(last));
        self.order.push(reader);
        reader
    }

    /// A random number, uniform from 0 to 1.
    fn even(&mut self) -> f64 {
        (self.dice.any() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A log-uniform random number between the bounds.
    fn log_even(&mut self, from: u64, to: u64) -> u64 {
        let even = self.even();
        log_even(even, from, to)
    }

    fn begin(&mut self, reader: usize) {
        let passed = (self.made + 1) as f64 / (self.requests as f64 * self.of.first_pass);
        let due = self.footprint as f64 * passed.min(1.0);
        let is_fresh = self.history.is_empty() || (self.space.touched() as f64) < due;
        let begun = match is_fresh {
            true => self.fresh(),
            false => self.again(),
        };
        let sizes = self.sizes(&begun);
        self.readers[reader] = ActiveRun {
            place: begun.place,
            at: begun.place.blocks.first,
            left: sizes,
        };
        let mut read = begun;
        if is_fresh {
            read.place.blocks.last = self.end_of(reader);
            self.space.touch(read.place.blocks);
            self.first_reads.push(read);
        }
        self.history.push(read);
    }

    fn fresh(&mut self) -> FinishedRun {
        let weights = self.of.runs.iter().map(|runs| runs.weight);
        let at = drawn(&mut self.dice, weights);
        match self.of.runs[at].length {
            Length::File => FinishedRun {
                place: self.space.next_file(&mut self.dice),
                requests: u64::MAX,
            },
            Length::Requests { from, to } => {
                let requests = self.log_even(from, to);
                // What it is expected to come to.
                let blocks = self.expected(requests);
                FinishedRun {
                    place: self.space.place(blocks, self.of, &mut self.dice),
                    requests,
                }
            }
        }
    }

    /// An earlier run, repeated.
    fn again(&mut self) -> FinishedRun {
        let runs = self.history.len() as u64;
        if self.dice.happens(Chance::new(self.of.looping)) == Toss::Yes {
            self.looped = (self.looped + 1) % self.first_reads.len();
            return self.first_reads[self.looped];
        }
        let even = libm::pow(self.even(), self.of.recency);
        let back = log_even(even, 1, runs);
        self.history[(runs - back) as usize]
    }

    fn expected(&self, requests: u64) -> u64 {
        let mean = |sizes: &[Size]| {
            let weight: u64 = sizes.iter().map(|size| size.weight).sum();
            let all: u64 = sizes.iter().map(|size| size.weight * size.blocks).sum();
            all as f64 / weight.max(1) as f64
        };
        let more = (requests - 1) as f64 * (mean(&self.of.following) - self.of.overlap).max(0.0);
        (mean(&self.of.first) + more) as u64 + 1
    }

    /// The sizes of a run's requests, the first one last.
    fn sizes(&mut self, run: &FinishedRun) -> Vec<u64> {
        let mut sizes = Vec::new();
        let mut left = run.place.blocks.len();
        while left > 0 && (sizes.len() as u64) < run.requests {
            let of = match sizes.is_empty() {
                true => &self.of.first,
                false => &self.of.following,
            };
            let at = drawn(&mut self.dice, of.iter().map(|size| size.weight));
            let size = of[at].blocks.min(left);
            let is_over = Chance::new(self.of.overlap);
            let overlap = match (sizes.is_empty(), self.dice.happens(is_over)) {
                (false, Toss::Yes) => OVERLAPS,
                _ => 0,
            };
            left -= size - u64::from(overlap > 0).min(size);
            sizes.push(size | overlap);
        }
        sizes.reverse();
        sizes
    }

    /// The last block of the reader's run.
    fn end_of(&self, reader: usize) -> u64 {
        let reader = &self.readers[reader];
        let new = |size: &u64| (size & !OVERLAPS) - u64::from(size & OVERLAPS > 0);
        reader.at + reader.left.iter().map(new).sum::<u64>() - 1
    }

    fn gap(&mut self) -> f64 {
        let gaps = &self.of.gaps;
        if gaps.is_empty() {
            return 0.0;
        }
        let at = drawn(&mut self.times, gaps.iter().map(|gap| gap.weight));
        -self.times.ln_uniform() * gaps[at].mean_ms
    }
}

impl Iterator for Walk<'_> {
    type Item = CacheArrival;

    fn next(&mut self) -> Option<CacheArrival> {
        if self.made == self.requests {
            return None;
        }
        let number = self.reader();
        if self.readers[number].left.is_empty() {
            self.begin(number);
        }
        let reader = &mut self.readers[number];
        let size = reader.left.pop().expect("a run has a request");
        let first = reader.at - u64::from(size & OVERLAPS > 0);
        let blocks = Interval::of(first, size & !OVERLAPS);
        reader.at = blocks.last + 1;
        let arrival = CacheArrival {
            at: Instant::from_nanos((self.now * NANOS_PER_MS) as u64),
            client: number as u32 % self.clients,
            file: reader.place.file,
            blocks,
            within: match self.of.ends {
                Ends::Known | Ends::Above => reader.place.within,
                Ends::Unknown => self.space.disk(),
            },
            direction: Direction::Read,
        };
        self.made += 1;
        self.now += self.gap();
        Some(arrival)
    }
}

/// A random index with these weights.
fn drawn(dice: &mut Dice, weights: impl Iterator<Item = u64> + Clone) -> usize {
    let mut left = dice.below(weights.clone().sum());
    for (at, weight) in weights.enumerate() {
        if left < weight {
            return at;
        }
        left -= weight;
    }
    0
}

/// Maps `even`, uniform from 0 to 1, to a log-uniform number between the bounds.
fn log_even(even: f64, from: u64, to: u64) -> u64 {
    let ratio = (to + 1) as f64 / from as f64;
    let drawn = from as f64 * libm::pow(ratio, even);
    (drawn as u64).clamp(from, to)
}

/// Flag in a size: the request begins with the last block of the one before.
const OVERLAPS: u64 = 1 << 63;

const NANOS_PER_MS: f64 = 1e6;

#[cfg(test)]
mod tests;
