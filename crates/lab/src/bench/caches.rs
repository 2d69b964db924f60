//! Two cache levels with and without a coordinator, live and simulated under the same load.
//!
//! ```text
//!   sequential reader -> L1 (headtime serve, a cache) -.
//!                                                       +-> L2 (headtime serve, coordinator, cache)
//!   mixed reader      -> L1 (headtime serve, a cache) -'         `-> emulated drive
//! ```
//!
//! Each reader waits for its answer and requests the next blocks at once. Live and simulated
//! readers request the same blocks in the same order. Messages between the levels are free in the
//! simulator; live they cost what this machine needs. In the simulator either our engine dispatches
//! to the disk, or the elevator of the paper's model. With the elevator both drives take one
//! command at a time. All times are the drive's.

use serde::Serialize;
use server::cache_setting::Readmore;

use crate::{Failure, Progress};
use gains::CoordinatorRuns;

pub use gains::{
    CacheFigures, CachesReport, CoordinatorFigures, GOAL, LiveFigures, LiveGain, Verdict,
};

pub mod gains;
mod live;
mod page_cache;
mod readers;
mod simulated;

/// The settings of the benchmark.
#[derive(Clone, Debug)]
pub struct CachesBench {
    /// The coordinators of the lower level. Each is compared with no coordination.
    pub coordinator: Vec<String>,
    /// The prefetcher of both levels.
    pub prefetch: String,
    /// The replacement of both levels.
    pub replacement: String,
    /// The size of each reader's cache, in blocks of 4 KiB. Default: 5 % of the reader's footprint
    /// (Zhang et al.).
    pub upper: Option<u64>,
    /// The size of the shared cache, in blocks of 4 KiB. Default: twice that of a reader.
    pub lower: Option<u64>,
    /// The footprint of each reader, in blocks of 4 KiB.
    pub footprint: u64,
    /// Requests of the mixed reader. The sequential reader issues three times as many.
    pub requests: u32,
    /// The slow-down of the emulated drive.
    pub time_scale: f64,
    /// Live runs of each configuration, in turns.
    pub rounds: u32,
    /// The seed of the mixed reader.
    pub seed: u64,
    /// The emulated drive.
    pub drive: String,
    /// How readmore is fetched: with the request, or from free blocks.
    pub readmore: Readmore,
    /// The dispatcher to the simulated disk. With the elevator the live drive takes one command at
    /// a time, too.
    pub simulated_disk: SimulatedDisk,
    /// The engine's policy. Default: sptf-sw, as in a service; with the elevator c-look.
    pub policy: Option<String>,
    /// What the upper level is in live runs.
    pub above: Above,
    /// Whether only the simulator runs.
    pub only_simulated: bool,
}

/// The upper level of live runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Above {
    /// A service with a cache for each reader.
    Service,
    /// The kernel's page cache over a file system on the volume, bounded for each reader.
    PageCache,
}

/// The dispatcher to the simulated disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SimulatedDisk {
    /// The one-way elevator of Zhang et al., one command at a time.
    Elevator,
    /// Our engine, whose belief equals the truth.
    Engine,
}

/// The name of the baseline: no coordinator.
const NONE: &str = "none";

impl CachesBench {
    /// Simulates and measures all coordinators. The progress counts requests.
    ///
    /// # Errors
    /// If the settings exclude each other, or a service does not run.
    pub fn run(&self, progress: &dyn Progress) -> Result<CachesReport, Failure> {
        if self.readmore == Readmore::Free && self.simulated_disk == SimulatedDisk::Elevator {
            return Err(Failure::input(
                "--readmore free with --simulated-disk elevator: expected engine, the elevator has no free blocks",
            ));
        }
        let coordinators = self.coordinators();
        let runs = coordinators.len() as u64 * u64::from(1 + self.rounds());
        let requests = readers::CacheReader::both(self).map(|reader| u64::from(reader.left));
        progress.expect(runs * requests.iter().sum::<u64>());
        progress.begin("simulated");
        let mut cases = Vec::with_capacity(coordinators.len());
        for coordinator in &coordinators {
            let simulated = simulated::simulated(self, coordinator, progress)?;
            cases.push(CoordinatorRuns::new(coordinator, simulated));
        }
        let files = match (self.above, self.rounds()) {
            (Above::Service, _) | (_, 0) => None,
            (Above::PageCache, _) => Some(page_cache::ReadersFiles::create(self)?),
        };
        progress.begin("live");
        for which in turns(self.rounds(), coordinators.len()) {
            let round = match &files {
                None => live::once(self, coordinators[which], progress)?,
                Some(files) => files.once(self, coordinators[which], progress)?,
            };
            cases[which].rounds.push(round);
        }
        Ok(CachesReport::new(self, gains::compare(cases)))
    }

    /// The sizes of a reader's cache and of the shared one, in blocks (Zhang et al., 4.2: 5 %;
    /// twice that is their largest).
    pub fn sizes(&self) -> (u64, u64) {
        let upper = self.upper.unwrap_or(self.footprint / 20);
        (upper, self.lower.unwrap_or(2 * upper))
    }

    /// The name of the engine's policy.
    pub fn policy(&self) -> &str {
        match (&self.policy, self.simulated_disk) {
            (Some(policy), _) => policy,
            (None, SimulatedDisk::Engine) => "sptf-sw",
            (None, SimulatedDisk::Elevator) => "c-look",
        }
    }

    /// The baseline, then the named coordinators.
    fn coordinators(&self) -> Vec<&str> {
        let named = self.coordinator.iter().map(String::as_str);
        std::iter::once(NONE).chain(named).collect()
    }

    fn rounds(&self) -> u32 {
        match self.only_simulated {
            true => 0,
            false => self.rounds,
        }
    }
}

/// The order of the turns: whole rounds, so that disturbances of the machine affect all
/// coordinators.
fn turns(rounds: u32, coordinators: usize) -> impl Iterator<Item = usize> {
    (0..rounds).flat_map(move |_| 0..coordinators)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_compared_takes_turns() {
        let all: Vec<usize> = turns(2, 3).collect();
        assert_eq!(all, [0, 1, 2, 0, 1, 2]);
        assert_eq!(turns(0, 3).count(), 0);
    }
}
