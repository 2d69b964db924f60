//! Caches in two levels, live, with and without the coordinator between them,
//! beside what the simulator says of the same load.
//!
//! ```text
//!   sequential reader -> L1 (headtime serve, a cache) -.
//!                                                       +-> L2 (headtime serve, coordinator, cache)
//!   mixed reader      -> L1 (headtime serve, a cache) -'         `-> emulated drive
//! ```
//!
//! Each reader waits for its answer and asks at once for what is next. Both live and in the simulator
//! they ask for the same blocks in the same order. The messages between the levels cost the simulator
//! nothing, and the service what they do on this machine. In the simulator our engine stands before the
//! disk, too, or the elevator of the paper's model: then both drives take one command at a time. All
//! times are the drive's.

use serde::Serialize;
use server::config::caching::Readmore;

use crate::{Failure, Progress};
use told::CoordinatorRuns;

pub use told::{
    CacheFigures, CachesReport, CoordinatorFigures, GOAL, LiveFigures, LiveGain, Verdict,
};

mod live;
mod readers;
mod simulated;
pub mod told;

/// How caches in two levels are measured, live and simulated.
#[derive(Clone, Debug)]
pub struct CachesBench {
    /// The coordinators in front of the lower level; each is compared with none.
    pub coordinator: Vec<String>,
    /// The prefetcher of both levels.
    pub prefetch: String,
    /// The replacement of both levels.
    pub replacement: String,
    /// The cache of each reader, in blocks of 4 KiB. Without it, 5 % of what it reads of (Zhang et al.).
    pub upper: Option<u64>,
    /// The cache that they share. Without it, twice that of a reader.
    pub lower: Option<u64>,
    /// Blocks that each reader reads of.
    pub footprint: u64,
    /// Requests of the mixed reader; the sequential one has three times as many.
    pub requests: u32,
    /// How many times as slow as the drive everything is.
    pub time_scale: f64,
    /// How often each is run live, one after the other in turns.
    pub rounds: u32,
    /// The dice of the mixed reader.
    pub seed: u64,
    /// The emulated drive.
    pub drive: String,
    /// What becomes of what a coordinator reads more: fetched with the request, or read on free blocks.
    pub readmore: Readmore,
    /// What stands before the simulated disk: our engine, as in the service; or the elevator of the paper's
    /// model, and then the live drive takes one command at a time, too.
    pub simulated_disk: SimulatedDisk,
    /// The policy of the engine. Without it, sptf-sw as in a service; beside the elevator c-look, whose order
    /// that is.
    pub policy: Option<String>,
    /// Only what the simulator says.
    pub only_simulated: bool,
}

/// What stands before the simulated disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SimulatedDisk {
    /// The one-way elevator of Zhang et al., one command at a time.
    Elevator,
    /// Our engine, whose belief is the truth.
    Engine,
}

/// The coordinator with which the others are compared.
const NONE: &str = "none";

impl CachesBench {
    /// Simulates and measures all coordinators. A request is a unit of the progress.
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
        let requests = readers::Reader::both(self).map(|reader| u64::from(reader.left));
        progress.expect(runs * requests.iter().sum::<u64>());
        progress.begin("simulated");
        let mut cases = Vec::with_capacity(coordinators.len());
        for coordinator in &coordinators {
            let simulated = simulated::simulated(self, coordinator, progress)?;
            cases.push(CoordinatorRuns::new(coordinator, simulated));
        }
        progress.begin("live");
        for which in turns(self.rounds(), coordinators.len()) {
            let round = live::once(self, coordinators[which], progress)?;
            cases[which].rounds.push(round);
        }
        Ok(CachesReport::new(self, told::compare(cases)))
    }

    /// Blocks of each reader's cache, and of the one that they share (Zhang et al., 4.2: 5 %; twice that
    /// is the largest of theirs).
    pub fn sizes(&self) -> (u64, u64) {
        let upper = self.upper.unwrap_or(self.footprint / 20);
        (upper, self.lower.unwrap_or(2 * upper))
    }

    /// The policy of the engine.
    pub fn policy(&self) -> &str {
        match (&self.policy, self.simulated_disk) {
            (Some(policy), _) => policy,
            (None, SimulatedDisk::Engine) => "sptf-sw",
            (None, SimulatedDisk::Elevator) => "c-look",
        }
    }

    /// What coordinators are run: none, and those that were named.
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

/// Whose turn it is, time after time: all of a round before the next one, so that what the machine does
/// meanwhile meets all of them.
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
