//! The runs of which all figures about caches in levels are made: each load through each system, on all
//! cores.

use std::collections::BTreeMap;

use rayon::prelude::*;
use simulator::caching::cases::{self, Case};
use simulator::caching::{BadSetup, Report, Scheduler};

use super::loads::{self, Ready, Which};
use crate::Failure;
use crate::cpu_time;
use crate::paper::{Effort, PaperBench};

/// A run.
#[derive(Clone, Debug, PartialEq)]
pub struct CachingRun {
    /// What is served.
    pub load: Which,
    /// By which caches.
    pub case: Case,
    /// Under which coordinator, as users write it.
    pub coordinator: String,
    /// What stands before the disk.
    pub scheduler: Scheduler,
}

/// What a run came to.
#[derive(Clone, Copy, Debug)]
pub struct ServedCase {
    /// The mean response time in milliseconds.
    pub mean_ms: f64,
    /// Within which 50, 99 and 99.9 percent were answered, in milliseconds.
    pub percentiles_ms: [f64; 3],
    /// L2's.
    pub hit_ratio: f64,
    /// Blocks that L2 fetched ahead, its coordinator's included.
    pub ahead: u64,
    /// Blocks that L2 fetched ahead and nobody used.
    pub unused: u64,
    /// Blocks in L1 and L2 at the end.
    pub duplicated: u64,
    /// Time in which the disk was busy, in seconds.
    pub busy_s: f64,
    /// What became of wishes for readmore.
    pub wishes: Wishes,
    /// What the disk's requests lost to background reads, in percent of their time, as the engine measures it.
    pub lost_percent: f64,
}

/// Wishes for readmore, in blocks.
#[derive(Clone, Copy, Debug)]
pub struct Wishes {
    /// All.
    pub wished: u64,
    /// Those that were read and kept.
    pub granted: u64,
    /// Of what was read more, wished or not, what was used.
    pub used: u64,
}

/// All runs.
#[derive(Debug)]
pub struct CachingRuns {
    loads: BTreeMap<Which, Ready>,
    all: Vec<(CachingRun, ServedCase)>,
}

impl CachingRun {
    /// This load and these caches.
    pub fn new(load: Which, case: Case, coordinator: &str) -> Self {
        CachingRun {
            load,
            case,
            coordinator: coordinator.to_owned(),
            scheduler: Scheduler::Elevator,
        }
    }

    /// The same with this before the disk.
    pub fn over(self, scheduler: Scheduler) -> Self {
        CachingRun { scheduler, ..self }
    }

    /// The same without coordination.
    pub fn alone(&self) -> CachingRun {
        CachingRun::new(self.load, self.case, "none").over(self.scheduler.clone())
    }
}

impl CachingRuns {
    /// Serves them all, each once, one part in `part` of each load.
    ///
    /// # Errors
    /// If a load cannot be had, or a system cannot be built or cannot serve it.
    pub fn of(
        bench: &PaperBench,
        part: u64,
        wanted: Vec<CachingRun>,
    ) -> Result<CachingRuns, Failure> {
        let mut runs: Vec<CachingRun> = Vec::new();
        for run in wanted {
            if !runs.contains(&run) {
                runs.push(run);
            }
        }
        bench.expect(runs.len());
        let mut names: Vec<Which> = runs.iter().map(|run| run.load).collect();
        names.sort();
        names.dedup();
        let ready = |which: Which| Ok((which, which.ready(bench.part(which, part)?)?));
        let loads: Result<BTreeMap<Which, Ready>, Failure> =
            names.into_par_iter().map(ready).collect();
        let loads = loads?;
        let (drive, _) = loads::drive()?;
        let begun = cpu_time();
        let serve = |run: CachingRun| {
            let load = &loads[&run.load];
            let mut setup = run
                .case
                .setup(load.figures.footprint, &run.coordinator, &drive);
            setup.scheduler = run.scheduler.clone();
            let report = cases::serve(&setup, &load.arrivals, load.pace);
            let bad = |error: BadSetup| Failure::input(format!("{}: {error}", run.load.name()));
            let served = ServedCase::of(&report.map_err(bad)?);
            bench.done();
            Ok((run, served))
        };
        let all: Result<Vec<_>, Failure> = runs.into_par_iter().map(serve).collect();
        let all = all?;
        let time = cpu_time().saturating_sub(begun);
        let seconds = time.as_secs_f64();
        let remark = format!("{} runs, {seconds:.0} s of CPU time", all.len());
        bench.progress.remark(&remark);
        Ok(CachingRuns { loads, all })
    }

    /// Makes more loads ready, to be looked at.
    ///
    /// # Errors
    /// If one cannot be had.
    pub fn also(&mut self, bench: &PaperBench, loads: &[Which]) -> Result<(), Failure> {
        for &which in loads {
            let ready = which.ready(bench.part(which, 1)?)?;
            self.loads.insert(which, ready);
        }
        Ok(())
    }

    /// What a run came to.
    ///
    /// # Errors
    /// If it is none of them.
    pub fn get(&self, run: &CachingRun) -> Result<&ServedCase, Failure> {
        let found = self.all.iter().find(|(other, _)| other == run);
        let found = found.ok_or_else(|| Failure::failed(format!("not run: {run:?}")))?;
        Ok(&found.1)
    }

    /// By how many percent a run's mean response is shorter than without coordination.
    ///
    /// # Errors
    /// If one of the two was not run.
    pub fn gain(&self, run: &CachingRun) -> Result<f64, Failure> {
        let alone = self.get(&run.alone())?.mean_ms;
        Ok(100.0 * (1.0 - self.get(run)?.mean_ms / alone.max(f64::MIN_POSITIVE)))
    }

    /// The load, if it was served.
    pub fn load(&self, which: Which) -> Option<&Ready> {
        self.loads.get(&which)
    }
}

impl ServedCase {
    fn of(report: &Report) -> Self {
        let lower = report.levels.get(1).copied().unwrap_or_default();
        ServedCase {
            mean_ms: report.response.mean_ms(),
            percentiles_ms: [50.0, 99.0, 99.9].map(|of| report.response.percentile_ms(of)),
            hit_ratio: lower.hit_ratio(),
            ahead: lower.fetched_ahead(),
            unused: lower.unused,
            duplicated: report.duplicated,
            busy_s: report.disk.busy.as_nanos() as f64 / 1e9,
            wishes: Wishes {
                wished: lower.wished,
                granted: lower.granted,
                used: lower.readmore_used,
            },
            lost_percent: report.slack.lost_percent(),
        }
    }
}

impl PaperBench<'_> {
    /// One part in how many of a load is served.
    fn part(&self, which: Which, part: u64) -> Result<u64, Failure> {
        let requests = match which {
            Which::Calibrated(at, _) => loads::calibrated(at)?.requests,
            Which::Genuine(_) => 25_000,
        };
        Ok(match self.effort {
            Effort::Full => part,
            Effort::Quick => part.max(1) * QUICK,
            Effort::Requests(wanted) => requests.div_ceil(wanted.max(1)).max(1),
        })
    }
}

/// With `--quick`. A choice: as the other papers' tenth, and half of that, as there are hundreds of runs.
const QUICK: u64 = 20;
