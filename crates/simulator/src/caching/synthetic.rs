//! Loads for caches, synthetic: made after a trace's figures and those that papers give of traces that
//! nobody has any more.
//!
//! ```text
//!   places    | run 1 |  run 7 |     | run 3 |        the disk; fresh runs stand where nothing was read
//!   readers   r0 --run 3--> r1 --run 1 again--> ..    so many runs are read side by side
//!   request   which reader goes on? if its run is over, it begins a fresh one or an old one again
//! ```
//!
//! A fresh run begins whenever less than its due of the footprint has been read, so that all of it has
//! been read in time; otherwise a run is read again: in the order of a loop, or one that began a time ago
//! whose logarithm is about evenly spread, as the reuse distances of the genuine prefixes are. What a load is made
//! from is a file of `workloads/levels`; [`super::figures`] says what it came to.

use block::{Direction, Instant, Interval};
use document::DocumentError;

use super::load::CacheArrival;
use crate::workload::dice::{Chance, Dice, Toss};

mod parse;
mod space;

use space::{RunPlace, Space};

/// A load that can be generated.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticCacheLoad {
    /// What it is called.
    pub name: String,
    /// What it is like, in a sentence.
    pub summary: String,
    /// Requests of the whole load.
    pub requests: u64,
    /// Blocks that have been read at its end.
    pub footprint: u64,
    /// When requests come; none: each when the last one is answered.
    pub gaps: Vec<Gap>,
    /// The share of the requests in which all of the footprint is read for the first time.
    pub first_pass: f64,
    /// What is read.
    pub files: Vec<FileKind>,
    /// Whether prefetchers know where files end.
    pub ends: Ends,
    /// Requests begin at multiples of so many blocks where a run begins.
    pub align: u64,
    /// The share of fresh runs that stand near an earlier one.
    pub near: f64,
    /// Runs that are read side by side.
    pub readers: u32,
    /// The share of requests of the reader that had the last one.
    pub same_reader: f64,
    /// How much likelier the other readers are that had a request not long ago: 1 is not at all.
    pub skew: f64,
    /// Lengths of runs, and what is fresh of them.
    pub runs: Vec<RunKind>,
    /// Blocks of the first request of a run.
    pub first: Vec<Size>,
    /// Blocks of the others.
    pub following: Vec<Size>,
    /// The share of runs that are read again in the order in which they were read first, from the
    /// oldest on: a loop over all that has been read.
    pub looping: f64,
    /// How much likelier the others are read again that were begun not long ago: 1 is an evenly spread
    /// logarithm of the time.
    pub recency: f64,
    /// The share of the others that begin with the last block of the one before.
    pub overlap: f64,
    /// What papers say of the trace in whose place it stands.
    pub target: PaperFigures,
}

/// Gaps between requests: exponential ones, of several means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// How often.
    pub weight: u64,
    /// The mean, in milliseconds; 0 for requests that come together.
    pub mean_ms: f64,
}

/// Files or volumes of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileKind {
    /// How many.
    pub count: u64,
    /// Blocks of each, from; the logarithm is evenly spread.
    pub from: u64,
    /// Blocks of each, to.
    pub to: u64,
}

/// Whether prefetchers know where files end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// They do, as in a file system.
    Known,
    /// They do not: a server of blocks does not see files.
    Unknown,
}

/// Runs of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunKind {
    /// How often.
    pub weight: u64,
    /// How long.
    pub length: Length,
}

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// So many requests; the logarithm is evenly spread.
    Requests {
        /// From.
        from: u64,
        /// To.
        to: u64,
    },
    /// A whole file.
    File,
}

/// A size of requests, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// How often.
    pub weight: u64,
    /// How many blocks.
    pub blocks: u64,
}

/// What a paper says of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaperFigures {
    /// Requests that are no continuation, in percent.
    pub random_percent: f64,
    /// All blocks that are read, in megabytes of 10^6 bytes, times `scale`.
    pub footprint_mb: f64,
    /// Files, where there are any.
    pub files: Option<u64>,
    /// The part of the paper's footprint that the load has: 1 is all of it.
    pub scale: f64,
}

/// A load that is built in.
#[derive(Clone, Copy, Debug)]
pub struct BuiltInCacheLoad {
    /// What it is called.
    pub name: &'static str,
    /// Its file's text.
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

impl BuiltInCacheLoad {
    /// The load.
    ///
    /// # Errors
    /// Never for a load of [`ALL`]: a test reads them all.
    pub fn load(&self) -> Result<SyntheticCacheLoad, DocumentError> {
        SyntheticCacheLoad::parse(&format!("workloads/levels/{}.toml", self.name), self.text)
    }
}

/// How much of a load, and whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLoadSlice {
    /// One part in so many of its requests and of its footprint.
    pub part: u64,
    /// The readers are dealt to so many clients.
    pub clients: u32,
    /// Chance.
    pub seed: u64,
}

/// A run under way.
#[derive(Clone, Debug, Default)]
struct ActiveRun {
    place: RunPlace,
    /// The next block.
    at: u64,
    /// Sizes of the requests that are left, the next one last.
    left: Vec<u64>,
}

/// A run that was read.
#[derive(Clone, Copy, Debug)]
struct FinishedRun {
    place: RunPlace,
    requests: u64,
}

impl SyntheticCacheLoad {
    /// Its requests, on a disk of so many blocks, in the order of their times.
    pub fn arrivals(&self, extent: &CacheLoadSlice, disk: u64) -> Vec<CacheArrival> {
        Walk::new(self, extent, disk).collect()
    }

    /// Whether requests come at their own times.
    pub fn is_open(&self) -> bool {
        !self.gaps.is_empty()
    }
}

/// A load being made.
struct Walk<'a> {
    of: &'a SyntheticCacheLoad,
    requests: u64,
    footprint: u64,
    clients: u32,
    made: u64,
    now: f64,
    space: Space,
    readers: Vec<ActiveRun>,
    /// Readers, the one that had the last request last.
    order: Vec<usize>,
    /// Runs in the order in which they were begun.
    history: Vec<FinishedRun>,
    /// The fresh ones of them, and which was the last one in the loop.
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

    /// The reader that goes on.
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

    /// Evenly spread from 0 to 1.
    fn even(&mut self) -> f64 {
        (self.dice.any() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number between the two whose logarithm is evenly spread.
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

    /// An earlier run once more.
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
                Ends::Known => reader.place.within,
                Ends::Unknown => self.space.disk(),
            },
            direction: Direction::Read,
        };
        self.made += 1;
        self.now += self.gap();
        Some(arrival)
    }
}

/// Which of several, by their weights.
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

/// `even`, from 0 to 1, as a number between the two whose logarithm is evenly spread.
fn log_even(even: f64, from: u64, to: u64) -> u64 {
    let ratio = (to + 1) as f64 / from as f64;
    let drawn = from as f64 * libm::pow(ratio, even);
    (drawn as u64).clamp(from, to)
}

/// Marks a size: the request begins with the last block of the one before.
const OVERLAPS: u64 = 1 << 63;

const NANOS_PER_MS: f64 = 1e6;

#[cfg(test)]
mod tests;
