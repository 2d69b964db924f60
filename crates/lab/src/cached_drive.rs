//! A trace on caches over a drive, in virtual time.
//!
//! ```text
//!   trace --> cache 1 --link--> cache 2 --link--> .. --> engine --> drive
//!                    coordinator in front of each cache but the first
//! ```
//!
//! The engine's belief is the truth, so that results are *in-firmware*. Caches and drive treat a write as a read
//! of its blocks, as the simulators of the papers do.

use std::sync::Arc;

use block::Instant;
use drive::Profile;
use serde::Serialize;
use simulator::caching::{
    ArrivalTiming, BadSetup, CacheArrival, CachingReport, CachingSetup, EngineScheduling, FileEnds,
    LevelReport, Link, LowerLevel, Scheduler, System, Writes, run, traced,
};
use simulator::replay::{AddressFit, DeviceChoice, ReplayPace, ReplayPlan};
use simulator::trace::{Record, TraceReader};

use crate::comparison::load::{LoadSettings, LoadSource};
use crate::{Failure, Label, Progress, named};
use spec::SpecifiedCache;

pub use table::levels;

mod spec;
mod table;
mod verdict;

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct CachedSettings {
    /// The drive: a shipped name, or a profile file.
    pub drive: String,
    /// The profile, if it is not the one of that name.
    pub profile: Option<Arc<Profile>>,
    /// The trace.
    pub load: LoadSettings,
    /// The caches, from the one that clients reach: `SIZE,REPLACEMENT,PREFETCHER,COORDINATOR`.
    pub caches: Vec<String>,
    /// The link between caches: `none`, or `lan` (Zhang et al., ICDCS 2008, 4.1).
    pub link: String,
    /// The policy below the last cache.
    pub policy: String,
    /// The largest number of requests.
    pub requests: Option<u64>,
}

/// The figures of a run.
#[derive(Clone, Debug, Serialize)]
pub struct CachedFigures {
    /// The drive.
    pub drive: String,
    /// The relation between belief and truth.
    pub mode: Label,
    /// Requests of the trace.
    pub requests: u64,
    /// The caches, from the one that clients reach.
    pub levels: Vec<CacheLevelFigures>,
    /// The mean response time.
    pub mean_ms: f64,
    /// The median response time.
    pub p50_ms: f64,
    /// The response time that 1 % of the requests exceed.
    pub p99_ms: f64,
    /// Commands of the drive.
    pub disk_commands: u64,
    /// Blocks of 4 KiB of these commands.
    pub disk_blocks: u64,
    /// The share of the time in which the drive had a command, in percent.
    pub disk_busy_percent: f64,
    /// Skipped bad lines.
    pub bad_lines: u64,
    /// What the caches answer, and what is unusual, in sentences.
    pub verdict: Vec<String>,
}

/// The figures of a cache.
#[derive(Clone, Debug, Serialize)]
pub struct CacheLevelFigures {
    /// The cache as its algorithms are named.
    pub cache: String,
    /// Demanded blocks of 4 KiB that were resident or in flight.
    pub hits: u64,
    /// Demanded blocks that were not.
    pub misses: u64,
    /// Blocks that the prefetcher fetched.
    pub prefetched: u64,
    /// Blocks that the coordinator added to requests.
    pub readmore: u64,
    /// Blocks fetched ahead and never demanded.
    pub unused: u64,
    /// Hits among demanded blocks, 0 to 1.
    pub hit_ratio: f64,
}

/// The names of links.
const LINKS: [&str; 2] = ["none", "lan"];

/// No cost: levels in one machine.
const NO_COST: Link = Link {
    start: block::Duration::ZERO,
    page: block::Duration::ZERO,
};

impl CachedSettings {
    /// Runs the trace. The progress counts requests.
    ///
    /// # Errors
    /// If the settings are illegal, or the trace cannot be read or does not fit.
    pub fn run(&self, progress: &dyn Progress) -> Result<CachedFigures, Failure> {
        let plan = self.plan()?;
        let profile = match &self.profile {
            Some(profile) => Arc::clone(profile),
            None => Arc::new(named::drive(&self.drive)?),
        };
        let caches = self.specified()?;
        let setup = CachingSetup {
            clients: vec![caches[0].cache.clone()],
            lower: self.lower(&caches[1..])?,
            drive: Arc::clone(&profile),
            scheduler: Scheduler::Engine(EngineScheduling::by(&self.policy)),
            file_ends: FileEnds::AllLevels,
            writes: Writes::AsReads,
        };
        let mut system = System::new(&setup).map_err(Failure::input)?;
        progress.begin("trace");
        let (records, bad_lines) = self.records(&plan, progress)?;
        let blocks = profile.geometry.sectors().0 * u64::from(profile.block_bytes) / BLOCK_BYTES;
        let arrivals = traced::arrivals(&records, blocks, 1);
        let arrivals = arrivals.map_err(|error: BadSetup| {
            Failure::input(format!("{}: {error}", plan.path.display()))
        })?;
        let (timing, factor) = timing(plan.pace)?;
        progress.expect(arrivals.len() as u64);
        progress.begin("simulated");
        let arrivals = arrivals.into_iter().map(|arrival| {
            progress.advance(1);
            scaled(arrival, factor)
        });
        let mut arrivals = arrivals.take_while(|_| !progress.is_cancelled());
        let report = run(&mut system, &mut arrivals, timing).map_err(Failure::failed)?;
        progress.check()?;
        Ok(self.figures(&caches, &report, bad_lines))
    }

    /// The trace, if the flags ask for nothing that caches do not do.
    fn plan(&self) -> Result<ReplayPlan, Failure> {
        let LoadSource::Trace(plan) = self.load.source()? else {
            return Err(Failure::input(
                "--cache with --workload: expected --trace; built-in loads do not run on caches",
            ));
        };
        match plan.fit {
            AddressFit::AsTheyAre => Ok(plan),
            AddressFit::Wrap | AddressFit::Scale => Err(Failure::input(
                "--cache with --fit: expected none; untouched regions of a larger trace are left out",
            )),
        }
    }

    fn specified(&self) -> Result<Vec<SpecifiedCache>, Failure> {
        let each = self.caches.iter().enumerate();
        let caches: Vec<_> = each
            .map(|(level, text)| {
                SpecifiedCache::parse(level, text)
                    .map_err(|problem| Failure::input(format!("--cache \"{text}\": {problem}")))
            })
            .collect::<Result<_, _>>()?;
        match caches.is_empty() {
            true => Err(Failure::input("no cache: expected at least one")),
            false => Ok(caches),
        }
    }

    /// The caches below the first one.
    fn lower(&self, caches: &[SpecifiedCache]) -> Result<Vec<LowerLevel>, Failure> {
        let link = match self.link.as_str() {
            "none" => NO_COST,
            "lan" => Link::LAN,
            other => return Err(Failure::unknown("link", other, &LINKS)),
        };
        let lower = |cache: &SpecifiedCache| LowerLevel {
            level: cache.cache.clone(),
            coordinator: cache.coordinator.clone(),
            link,
        };
        Ok(caches.iter().map(lower).collect())
    }

    /// The requests of the trace, and the number of its bad lines.
    fn records(
        &self,
        plan: &ReplayPlan,
        progress: &dyn Progress,
    ) -> Result<(Vec<Record>, u64), Failure> {
        let mut reader = TraceReader::open(&plan.path, plan.form.clone(), plan.on_bad)
            .map_err(Failure::input)?;
        let most = self.requests.unwrap_or(u64::MAX);
        let mut records = Vec::new();
        while (records.len() as u64) < most {
            let Some(record) = reader.next() else { break };
            progress.check()?;
            let record = record.map_err(Failure::input)?;
            let is_meant = match &plan.devices {
                DeviceChoice::Named(name) => reader.devices().name(record.device) == name.as_str(),
                DeviceChoice::Only | DeviceChoice::All => true,
            };
            if is_meant {
                records.push(record);
            }
        }
        match records.is_empty() {
            true => Err(Failure::input(format!(
                "{}: no request of the device: expected one of {}",
                plan.path.display(),
                reader.devices().names().collect::<Vec<_>>().join(", ")
            ))),
            false => Ok((records, reader.skipped().total())),
        }
    }

    fn figures(
        &self,
        caches: &[SpecifiedCache],
        report: &CachingReport,
        bad_lines: u64,
    ) -> CachedFigures {
        let span = report.ended.since(Instant::ZERO).as_nanos().max(1) as f64;
        let level = |(cache, level): (&SpecifiedCache, &LevelReport)| CacheLevelFigures {
            cache: cache.name(),
            hits: level.valid + level.in_flight,
            misses: level.asked - level.valid - level.in_flight,
            prefetched: level.prefetched,
            readmore: level.readmore,
            unused: level.unused,
            hit_ratio: level.hit_ratio(),
        };
        let levels: Vec<_> = caches.iter().zip(&report.levels).map(level).collect();
        let disk_busy_percent = 100.0 * report.disk.busy.as_nanos() as f64 / span;
        CachedFigures {
            verdict: verdict::sentences(&levels, disk_busy_percent),
            drive: self.drive.clone(),
            mode: Label::InFirmware,
            requests: report.requests,
            levels,
            mean_ms: report.response.mean_ms(),
            p50_ms: report.response.percentile_ms(50.0),
            p99_ms: report.response.percentile_ms(99.0),
            disk_commands: report.disk.commands,
            disk_blocks: report.disk.blocks,
            disk_busy_percent,
            bad_lines,
        }
    }
}

/// Bytes of a block of caches.
const BLOCK_BYTES: u64 = 4096;

/// The times of requests, and their factor.
fn timing(pace: ReplayPace) -> Result<(ArrivalTiming, f64), Failure> {
    match pace {
        ReplayPace::Timed { factor } => Ok((ArrivalTiming::Open, factor)),
        ReplayPace::Closed { depth: 1 } => Ok((ArrivalTiming::Closed, 1.0)),
        ReplayPace::Closed { depth } => Err(Failure::input(format!(
            "--cache with --closed={depth}: expected --closed=1, one client that waits for each answer"
        ))),
    }
}

fn scaled(arrival: CacheArrival, factor: f64) -> CacheArrival {
    let nanos = arrival.at.as_nanos() as f64 * factor;
    CacheArrival {
        at: Instant::from_nanos(nanos as u64),
        ..arrival
    }
}

#[cfg(test)]
mod tests;
