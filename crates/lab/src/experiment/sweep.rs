//! Runs an experiment on all cores.
//!
//! ```text
//!   file --parse--> combinations --plan--> setups, one for each seed --rayon--> measures
//!                                                                     |
//!                                                       Results <-----'  in the order of the file
//! ```
//!
//! A run equals that of `headtime simulate` with the same settings.

use std::io;

use block::Finished;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use simulator::run::{self, Watch};

use super::measure::RunMeasures;
use super::plan::{ExperimentPlan, ExperimentRun};
use super::results::Results;
use crate::{Failure, Progress};

impl ExperimentPlan {
    /// Runs everything, with this many threads, whose number does not change the figures. Each run
    /// is `UNITS` of the progress.
    ///
    /// # Errors
    /// If a run fails: the first error in the order of the file.
    pub fn measure(
        self,
        threads: Option<u16>,
        progress: &dyn Progress,
    ) -> Result<Results, Failure> {
        let all: Vec<usize> = (0..self.runs.len()).collect();
        let done = self.measure_runs(&all, threads, progress)?;
        Ok(Results::new(self, done))
    }

    /// The measures of the runs at these places, in their order.
    pub(super) fn measure_runs(
        &self,
        places: &[usize],
        threads: Option<u16>,
        progress: &dyn Progress,
    ) -> Result<Vec<RunMeasures>, Failure> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.map_or(0, usize::from))
            .build()
            .map_err(Failure::failed)?;
        progress.expect(places.len() as u64 * UNITS);
        // All results in order first, so that the reported error does not depend on timing.
        let done: Vec<Result<RunMeasures, Failure>> = pool.install(|| {
            let runs = places.par_iter();
            runs.map(|&place| self.one(&self.runs[place], progress))
                .collect()
        });
        done.into_iter().collect()
    }

    fn one(&self, run: &ExperimentRun, progress: &dyn Progress) -> Result<RunMeasures, Failure> {
        let mut watch = RunProgress {
            progress,
            requests: run.setup.requests,
            hundredths: run.setup.scan.as_ref().map(|s| s.background().hundredths),
            shown: 0,
        };
        let policy = run.setup.policies[0];
        let ran = run.setup.run(policy, &mut watch);
        progress.advance(UNITS.saturating_sub(watch.shown));
        let ran = ran.map_err(|failure| self.complain(run, failure))?;
        Ok(RunMeasures::new(&ran))
    }
}

/// The part of a run in the whole progress.
struct RunProgress<'a> {
    progress: &'a dyn Progress,
    requests: Option<u64>,
    /// The hundredth of the scan at which the load ends.
    hundredths: Option<u32>,
    shown: u64,
}

impl RunProgress<'_> {
    fn show(&mut self, share: f64) {
        let so_far = (share.min(1.0) * UNITS as f64) as u64;
        self.progress.advance(so_far.saturating_sub(self.shown));
        self.shown = self.shown.max(so_far);
    }
}

impl Watch for RunProgress<'_> {
    fn finished(&mut self, _: &Finished) -> io::Result<()> {
        match self.progress.is_cancelled() {
            true => Err(io::Error::other("interrupted")),
            false => Ok(()),
        }
    }

    fn progress(&mut self, progress: run::RunProgress) {
        let by_requests = self
            .requests
            .map(|requests| progress.finished as f64 / requests as f64);
        let by_scan = progress.scanned.zip(self.hundredths);
        let by_scan = by_scan.map(|(share, end)| share * 100.0 / f64::from(end));
        if let Some(share) = by_requests.or(by_scan) {
            self.show(share);
        }
    }
}

/// Units of a run's progress: finer than a bar's cells.
const UNITS: u64 = 1000;
