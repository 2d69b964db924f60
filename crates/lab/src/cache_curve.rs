//! Miss-ratio curves of a trace: how much memory is worth what, under each replacement policy.
//!
//! ```text
//!   trace --> demands for blocks of 4 KiB --sampled?--> lru: stack distances, every size in one pass
//!                                                  '--> other policies: one replay for each size
//! ```
//!
//! A sample keeps the demands of a fixed share of the blocks, chosen by a hash, and caches shrink by the same
//! share: SHARDS (Waldspurger et al., FAST 2015) for the stack distances, and miniature simulations
//! (Waldspurger et al., USENIX ATC 2017) for the other policies. The difference between the sample's demands
//! and their expected number counts as hits, as in SHARDS-adj.
//!
//! Reads and writes are demands alike: a written block is resident afterwards.

use std::path::PathBuf;

use cache::{HitCurve, Replay, StackDistances, replacement};
use rayon::prelude::*;
use serde::Serialize;

use crate::{Failure, Progress};
use demands::Demands;

pub use ahead::PrefetchFigures;
pub use answer::{Better, CurveSummary, MemoryWorth};
pub use counts::ReplayCounts;
pub use demands::Sampling;
pub use own::{OwnAlgorithms, OwnPrefetcher, OwnReplacement, Resident};
pub use table::miss_ratios;

mod ahead;
mod answer;
mod counts;
mod demands;
mod own;
mod printed;
mod table;

/// Bytes of a block.
pub const BLOCK_BYTES: u64 = 4096;

/// Sizes of a curve, if none are given: the trace's footprint, halved again and again. A choice.
const SIZES: u32 = 12;

/// The settings of the curves.
#[derive(Clone, Debug)]
pub struct CurveSettings {
    /// The trace.
    pub trace: PathBuf,
    /// The format: one of `headtime trace`, `oracle-general` or `csv`. Default: detected; a file whose name has
    /// `oracleGeneral` has that format.
    pub format: Option<String>,
    /// The columns of a `csv` trace, in libCacheSim's words.
    pub columns: Option<String>,
    /// Whether bad lines are skipped and counted.
    pub skip_bad: bool,
    /// The replacement policies; empty: all.
    pub replacement: Vec<String>,
    /// The prefetchers whose figures are added; they need a trace of block requests.
    pub prefetch: Vec<String>,
    /// The sizes of the cache, in blocks; empty: the footprint, and halves of it.
    pub sizes: Vec<u64>,
    /// The share of the blocks that is sampled.
    pub sampling: Sampling,
}

/// A miss ratio.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MissRatio {
    /// The replacement policy.
    pub replacement: String,
    /// The size of the cache, in blocks of 4 KiB.
    pub blocks: u64,
    /// The share of demanded blocks that the cache does not have.
    pub miss_ratio: f64,
}

/// The curves of a trace.
#[derive(Clone, Debug)]
pub struct MissCurves {
    /// Demands for single blocks, sampled or not.
    pub demands: u64,
    /// Different blocks; estimated from the sample, if there is one.
    pub distinct: u64,
    /// Skipped bad lines.
    pub bad_lines: u64,
    /// The sizes, in blocks, in ascending order.
    pub sizes: Vec<u64>,
    /// The policies, in the order of the table or of the settings.
    pub replacements: Vec<String>,
    /// By policy, then by size.
    pub ratios: Vec<MissRatio>,
    /// By policy, by prefetcher, then by size; empty without prefetchers.
    pub prefetched: Vec<PrefetchFigures>,
    lru: LruCurve,
}

/// LRU at every size.
#[derive(Clone, Debug)]
struct LruCurve {
    hits: HitCurve,
    /// Demands of the sample.
    demands: u64,
    sampling: Sampling,
    /// Demands that the sample stands for, as the sample would have them.
    expected: f64,
}

impl CurveSettings {
    /// Reads the trace, and replays it. The progress counts demands.
    ///
    /// # Errors
    /// If the trace cannot be read, or a policy or size is illegal.
    pub fn run(&self, progress: &dyn Progress) -> Result<MissCurves, Failure> {
        self.run_beside(&OwnAlgorithms::default(), progress)
    }

    /// The same beside algorithms of the caller's.
    ///
    /// # Errors
    /// As [`CurveSettings::run`]; if an algorithm of the caller's fails.
    pub fn run_beside(
        &self,
        own: &OwnAlgorithms,
        progress: &dyn Progress,
    ) -> Result<MissCurves, Failure> {
        let is_named = !self.replacement.is_empty() || own.replacements.is_empty();
        let mut replacements = match is_named {
            true => self.replacements()?,
            false => Vec::new(),
        };
        progress.begin("trace");
        let demands = Demands::read(self, progress)?;
        let distinct = self.sampling.whole(u64::from(demands.distinct));
        let sizes = self.sizes(distinct);
        let replayed: Vec<&str> = replacements
            .iter()
            .map(String::as_str)
            .filter(|name| *name != LRU)
            .collect();
        let each = demands.blocks.len() as u64;
        progress.expect(each * (1 + replayed.len() as u64 * sizes.len() as u64));
        progress.begin("lru");
        let lru = LruCurve::of(&demands, self.sampling, progress)?;
        progress.advance(each);
        progress.begin("other policies");
        let points: Vec<(&str, u64)> = replayed
            .iter()
            .flat_map(|&name| sizes.iter().map(move |&size| (name, size)))
            .collect();
        let misses = points
            .par_iter()
            .map(|&(name, size)| {
                let misses = self.replayed(name, size, &demands, progress);
                progress.advance(each);
                misses
            })
            .collect::<Result<Vec<f64>, Failure>>()?;
        let mut misses = misses.into_iter();
        let mut ratios = Vec::new();
        for name in &replacements {
            for &blocks in &sizes {
                let miss_ratio = match name.as_str() {
                    LRU => lru.miss_ratio(blocks),
                    _ => misses.next().expect("one for each point"),
                };
                ratios.push(MissRatio {
                    replacement: name.clone(),
                    blocks,
                    miss_ratio,
                });
            }
        }
        for own in &own.replacements {
            replacements.push(own.name().to_owned());
            ratios.extend(self.ratios_of(&**own, &sizes, &demands, progress)?);
        }
        let prefetched = self.prefetched(&sizes, &own.prefetchers, progress)?;
        Ok(MissCurves {
            demands: demands.all,
            distinct,
            bad_lines: demands.bad_lines,
            sizes,
            replacements,
            ratios,
            prefetched,
            lru,
        })
    }

    /// The miss ratios of a replacement of the caller's.
    fn ratios_of(
        &self,
        own: &dyn OwnReplacement,
        sizes: &[u64],
        demands: &Demands,
        progress: &dyn Progress,
    ) -> Result<Vec<MissRatio>, Failure> {
        let ratio = |&blocks: &u64| {
            let frames = self.frames(blocks, demands);
            let hits = own::replayed(own, frames, &demands.blocks, progress)?;
            Ok(MissRatio {
                replacement: own.name().to_owned(),
                blocks,
                miss_ratio: self.miss_ratio(hits, demands),
            })
        };
        sizes.iter().map(ratio).collect()
    }

    /// The policies, checked.
    fn replacements(&self) -> Result<Vec<String>, Failure> {
        if self.replacement.is_empty() {
            return Ok(replacement::ALL
                .iter()
                .map(|entry| entry.name.to_owned())
                .collect());
        }
        for name in &self.replacement {
            Replay::named(name, 1).map_err(Failure::input)?;
        }
        Ok(self.replacement.clone())
    }

    /// The sizes in ascending order, each once.
    fn sizes(&self, distinct: u64) -> Vec<u64> {
        let mut sizes = match self.sizes.is_empty() {
            true => (0..SIZES).map(|half| (distinct >> half).max(1)).collect(),
            false => self.sizes.clone(),
        };
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// The miss ratio of a policy at a size.
    fn replayed(
        &self,
        name: &str,
        size: u64,
        demands: &Demands,
        progress: &dyn Progress,
    ) -> Result<f64, Failure> {
        let frames = self.frames(size, demands);
        let mut replay = Replay::named(name, frames).map_err(Failure::input)?;
        let mut hits = 0;
        for blocks in demands.blocks.chunks(UNCANCELLED) {
            progress.check()?;
            hits += replay.demand(blocks, demands.distinct);
        }
        Ok(self.miss_ratio(hits, demands))
    }

    /// The frames of the sample's cache for a cache of this size.
    fn frames(&self, size: u64, demands: &Demands) -> u64 {
        let frames = self.sampling.part(size).ceil().max(1.0) as u64;
        // More frames than blocks change nothing, and take memory.
        frames.min(u64::from(demands.distinct).max(1))
    }

    /// The miss ratio of the trace with so many hits of the sample.
    fn miss_ratio(&self, hits: u64, demands: &Demands) -> f64 {
        let misses = demands.blocks.len() as f64 - hits as f64;
        (misses / self.sampling.part(demands.all)).min(1.0)
    }
}

impl LruCurve {
    fn of(demands: &Demands, sampling: Sampling, progress: &dyn Progress) -> Result<Self, Failure> {
        let mut distances = StackDistances::new();
        for blocks in demands.blocks.chunks(UNCANCELLED) {
            progress.check()?;
            for &block in blocks {
                distances.demand(block);
            }
        }
        Ok(LruCurve {
            hits: distances.curve(),
            demands: distances.demands(),
            sampling,
            expected: sampling.part(demands.all),
        })
    }

    fn miss_ratio(&self, blocks: u64) -> f64 {
        let frames = self.sampling.part(blocks).ceil() as u64;
        let misses = self.demands - self.hits.hits(frames);
        (misses as f64 / self.expected).min(1.0)
    }
}

/// Demands between two looks for a cancellation. A choice: milliseconds.
const UNCANCELLED: usize = 1 << 16;

/// The policy that needs one pass.
const LRU: &str = "lru";

#[cfg(test)]
mod tests;
