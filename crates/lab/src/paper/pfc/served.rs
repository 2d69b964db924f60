//! The runs of all figures about cache levels: each load through each system, on all cores.

use std::collections::BTreeMap;

use rayon::prelude::*;
use simulator::caching::cases::{self, CachingCase};
use simulator::caching::{BadSetup, CachingReport, Scheduler};

use super::loads::{self, Ready, Which};
use crate::Failure;
use crate::cpu_time;
use crate::paper::{Effort, PaperBench};

/// A run.
#[derive(Clone, Debug, PartialEq)]
pub struct CachingRun {
    /// The load.
    pub load: Which,
    /// The caches.
    pub case: CachingCase,
    /// The coordinator, in users' words.
    pub coordinator: String,
    /// The dispatcher to the disk.
    pub scheduler: Scheduler,
}

/// The results of a run.
#[derive(Clone, Copy, Debug)]
pub struct ServedCase {
    /// The mean response time in milliseconds.
    pub mean_ms: f64,
    /// The 50th, 99th and 99.9th percentiles of the response times, in milliseconds.
    pub percentiles_ms: [f64; 3],
    /// The hit ratio of L2.
    pub hit_ratio: f64,
    /// Blocks that L2 prefetched, including readmore.
    pub ahead: u64,
    /// Prefetched blocks of L2 that were never used.
    pub unused: u64,
    /// Blocks in L1 and L2 at the end.
    pub duplicated: u64,
    /// The busy time of the disk, in seconds.
    pub busy_s: f64,
    /// The counts of standing background reads for readmore.
    pub wishes: Wishes,
    /// The loss of the disk's requests to background reads, in percent, as the engine measured it.
    pub lost_percent: f64,
}

/// Standing background reads for readmore, in blocks.
#[derive(Clone, Copy, Debug)]
pub struct Wishes {
    /// The requested blocks.
    pub wished: u64,
    /// The blocks that were read and kept.
    pub granted: u64,
    /// The readmore blocks that were used, whether fetched with requests or in the background.
    pub used: u64,
}

/// The results of all runs.
#[derive(Debug)]
pub struct CachingRuns {
    loads: BTreeMap<Which, Ready>,
    /// The seed of the calibrated loads.
    pub seed: u64,
    all: Vec<(CachingRun, ServedCase)>,
}

impl CachingRun {
    /// A run of this load through these caches.
    pub fn new(load: Which, case: CachingCase, coordinator: &str) -> Self {
        CachingRun {
            load,
            case,
            coordinator: coordinator.to_owned(),
            scheduler: Scheduler::Elevator,
        }
    }

    /// The same run over this dispatcher.
    pub fn over(self, scheduler: Scheduler) -> Self {
        CachingRun { scheduler, ..self }
    }

    /// The same run without coordination.
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
        let ready = |which: Which| Ok((which, which.ready(bench.part(which, part)?, bench.seed)?));
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
            setup.file_ends = load.file_ends;
            setup.writes = load.writes;
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
        Ok(CachingRuns {
            loads,
            seed: bench.seed,
            all,
        })
    }

    /// Makes more loads ready, to be looked at.
    ///
    /// # Errors
    /// If one cannot be had.
    pub fn also(&mut self, bench: &PaperBench, loads: &[Which]) -> Result<(), Failure> {
        for &which in loads {
            let ready = which.ready(bench.part(which, 1)?, bench.seed)?;
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

    /// The load, if it was run.
    pub fn load(&self, which: Which) -> Option<&Ready> {
        self.loads.get(&which)
    }
}

impl ServedCase {
    fn of(report: &CachingReport) -> Self {
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
    /// The divisor of a load's length.
    fn part(&self, which: Which, part: u64) -> Result<u64, Failure> {
        let requests = match which.calibrated()? {
            Some(load) => load.requests,
            None => loads::MOST_GENUINE as u64,
        };
        Ok(match self.effort {
            Effort::Full => part,
            Effort::Quick => part.max(1) * QUICK,
            Effort::Requests(wanted) => requests.div_ceil(wanted.max(1)).max(1),
        })
    }
}

/// Divisor of a load's length with `--quick`. A choice: half of the other papers' tenth, as there
/// are hundreds of runs.
const QUICK: u64 = 20;
