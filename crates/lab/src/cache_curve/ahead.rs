//! Prefetching beside a replacement policy: misses saved, and blocks fetched in vain.
//!
//! Every fetch is complete at once, so that the hits are an upper bound: no prefetch is late.

use block::{Instant, RequestId};
use cache::coordinator::{Purpose, UpperRequest};
use cache::level::{Composition, Ending, LevelCounters};
use cache::{Level, Stack};
use rayon::prelude::*;
use serde::Serialize;
use simulator::caching::{CacheArrival, traced};
use simulator::trace::Record;

use super::{CurveSettings, LRU, OwnPrefetcher, Sampling};
use crate::{Failure, Progress};

/// The figures of a cache with a prefetcher.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PrefetchFigures {
    /// The replacement policy.
    pub replacement: String,
    /// The prefetcher.
    pub prefetcher: String,
    /// The size of the cache, in blocks of 4 KiB.
    pub blocks: u64,
    /// The share of demanded blocks that the cache does not have.
    pub miss_ratio: f64,
    /// Blocks fetched ahead.
    pub prefetched: u64,
    /// Blocks fetched ahead that nobody demanded before they were evicted, or until the end.
    pub unused: u64,
}

/// Blocks of the disk on which devices follow each other: more than any trace has.
const DISK: u64 = 1 << 44;

impl CurveSettings {
    /// The figures of each prefetcher, named or of the caller's, with each of the named policies (lru if none is named), at each size.
    ///
    /// # Errors
    /// If the trace has no neighbours, or an algorithm or size is illegal.
    pub(super) fn prefetched(
        &self,
        sizes: &[u64],
        own: &[Box<dyn OwnPrefetcher>],
        progress: &dyn Progress,
    ) -> Result<Vec<PrefetchFigures>, Failure> {
        if self.prefetch.is_empty() && own.is_empty() {
            return Ok(Vec::new());
        }
        if self.objects()?.is_some() || self.sampling != Sampling::WHOLE {
            return Err(Failure::input(
                "--prefetch: expected a trace of block requests, without --sample; objects and samples have no \
                 neighbours",
            ));
        }
        let arrivals = self.arrivals()?;
        let lru = [LRU.to_owned()];
        let replacements = match self.replacement.is_empty() {
            true => &lru[..],
            false => &self.replacement,
        };
        let named = self.prefetch.iter().map(|name| Chosen::Named(name));
        let own = own.iter().map(|own| Chosen::Own(&**own));
        let prefetchers: Vec<Chosen<'_>> = named.chain(own).collect();
        let mut points = Vec::new();
        for replacement in replacements {
            for &prefetcher in &prefetchers {
                points.extend(sizes.iter().map(|&size| (replacement, prefetcher, size)));
            }
        }
        progress.expect(points.len() as u64 * arrivals.len() as u64);
        progress.begin("prefetching");
        let each = points.par_iter().map(|&(replacement, prefetcher, size)| {
            let level = prefetcher.level(replacement, size);
            let counts = level.and_then(|level| run(level, &arrivals, progress));
            progress.advance(arrivals.len() as u64);
            let counts = counts?;
            let misses = counts.asked - counts.hits - counts.hits_in_flight;
            Ok(PrefetchFigures {
                replacement: replacement.clone(),
                prefetcher: prefetcher.name().to_owned(),
                blocks: size,
                miss_ratio: misses as f64 / counts.asked.max(1) as f64,
                prefetched: counts.prefetched,
                unused: counts.prefetched - counts.ahead_used,
            })
        });
        each.collect()
    }

    /// The requests of the trace, each device a volume.
    fn arrivals(&self) -> Result<Vec<CacheArrival>, Failure> {
        let records = self.reader()?.collect::<Result<Vec<Record>, _>>();
        let records = records.map_err(Failure::input)?;
        let arrivals = traced::arrivals(&records, DISK, 1);
        arrivals.map_err(|error| Failure::input(format!("{}: {error}", self.trace.display())))
    }
}

/// A prefetcher of the table, or of the caller's.
#[derive(Clone, Copy)]
enum Chosen<'a> {
    Named(&'a str),
    Own(&'a dyn OwnPrefetcher),
}

impl Chosen<'_> {
    fn name(&self) -> &str {
        match self {
            Chosen::Named(name) => name,
            Chosen::Own(own) => own.name(),
        }
    }

    /// A cache with it.
    fn level(&self, replacement: &str, size: u64) -> Result<Level, Failure> {
        let level = Level::new(&Composition {
            capacity: size,
            replacement,
            prefetch: match self {
                Chosen::Named(name) => name,
                Chosen::Own(_) => "none",
            },
            coordinator: "none",
            requests: 1,
        });
        let level = level.map_err(Failure::input)?;
        match self {
            Chosen::Named(_) => Ok(level),
            Chosen::Own(own) => Ok(level.with_prefetcher(own.make(size)?)),
        }
    }
}

/// Serves the requests one after the other.
fn run(
    level: Level,
    arrivals: &[CacheArrival],
    progress: &dyn Progress,
) -> Result<LevelCounters, Failure> {
    let mut stack = Stack::new(vec![level]);
    for (number, arrival) in (0..).zip(arrivals) {
        progress.check()?;
        let asked = UpperRequest {
            client: arrival.client,
            file: arrival.file,
            blocks: arrival.blocks,
            within: arrival.within,
            purpose: Purpose::Demand,
            direction: arrival.direction,
        };
        stack
            .submit(Instant::ZERO, RequestId(number), asked)
            .map_err(Failure::failed)?;
        while let Some(fetch) = stack.poll() {
            stack.complete(Instant::ZERO, fetch.id, Ending::Done);
        }
        while stack.poll_finished().is_some() {}
    }
    Ok(stack.levels()[0].counts())
}
