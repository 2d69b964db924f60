//! Free bandwidth over the size of a declared set and its scatter.
//!
//! A task reads a set beside a load that is never idle. The set is in one piece or in several of equal size
//! at random places of the drive.

use block::Duration;
use scheduler::background::DeclaredSet;
use serde::Serialize;

use super::busy::{BegunTask, BeliefSource, BusyDrive, ServedBeside};
use crate::{Failure, Label, Progress, named};

/// The settings of the benchmark.
#[derive(Clone, Debug)]
pub struct SetsBench {
    /// A drive of the catalogue, or a profile file.
    pub drive: String,
    /// The policy.
    pub policy: String,
    /// What the scheduler believes of the drive.
    pub belief: BeliefSource,
    /// The seeds of load, drive and places.
    pub seeds: u64,
    /// The impact budget in parts per million.
    pub impact_ppm: u32,
    /// The sizes of the sets in MiB.
    pub sizes_mib: Vec<u64>,
    /// The numbers of pieces.
    pub pieces: Vec<u64>,
    /// The longest run, in virtual seconds.
    pub seconds: u64,
}

/// One set.
#[derive(Clone, Debug, Serialize)]
pub struct SetsFigures {
    /// The drive.
    pub drive: String,
    /// The policy.
    pub policy: String,
    /// The relation between belief and truth.
    pub mode: Label,
    /// The seed.
    pub seed: u64,
    /// MiB of the set.
    pub size_mib: u64,
    /// Its pieces.
    pub pieces: u64,
    /// KiB of a piece.
    pub piece_kib: u64,
    /// Megabytes a second until half of the set was read; null if the run was too short.
    pub half_mb_s: Option<f64>,
    /// Megabytes a second until nine tenths were read.
    pub nine_tenths_mb_s: Option<f64>,
    /// Megabytes a second over the run.
    pub run_mb_s: f64,
    /// The share of the set that was read in the run.
    pub read_percent: f64,
    /// The engine's estimate of the foreground's loss.
    pub estimated_loss_percent: f64,
    /// The budget.
    pub budget_percent: f64,
}

/// The least size of a piece in KiB: a page of a file. Smaller ones are left out.
const LEAST_PIECE_KIB: u64 = 4;

impl SetsBench {
    /// Measures all sets that fit on half of the drive.
    ///
    /// # Errors
    /// If a name is unknown, or a run fails.
    pub fn run(&self, progress: &dyn Progress) -> Result<Vec<SetsFigures>, Failure> {
        let drive = named::drive(&self.drive)?;
        let policy = named::policy(&self.policy)?;
        let capacity_kib = drive.geometry.sectors().0 * u64::from(drive.block_bytes) / 1024;
        let mut figures = Vec::new();
        for seed in 1..=self.seeds {
            let dice = (seed, self.impact_ppm);
            let busy = BusyDrive::new(&drive, self.belief, policy, dice, progress)?;
            for &size_mib in &self.sizes_mib {
                for &pieces in &self.pieces {
                    let piece_kib = size_mib * 1024 / pieces.max(1);
                    if piece_kib >= LEAST_PIECE_KIB && size_mib * 2048 <= capacity_kib {
                        progress.begin(&format!("{size_mib} MiB in {pieces} pieces, seed {seed}"));
                        figures.push(self.measure(&busy, seed, (size_mib, pieces, piece_kib))?);
                    }
                }
            }
        }
        Ok(figures)
    }

    fn measure(
        &self,
        busy: &BusyDrive,
        seed: u64,
        (size_mib, pieces, piece_kib): (u64, u64, u64),
    ) -> Result<SetsFigures, Failure> {
        let set = DeclaredSet::all(busy.scattered(seed, pieces, piece_kib << 10)?);
        let set = set.map_err(Failure::input)?;
        let blocks = set.blocks().0;
        let run = busy.serve(&ServedBeside {
            tasks: vec![BegunTask::of(set)],
            client: None,
            most: Duration::from_secs(self.seconds),
        })?;
        let task = &run.tasks[0];
        let until = |share: f64, place: usize| {
            let at = task.shares[place]?;
            Some(busy.megabytes((blocks as f64 * share) as u64) / at.as_secs_f64())
        };
        // Slices at the ends of pieces are read as a whole, and count for their part in the set.
        let delivered = task.delivered as f64 / task.asked as f64;
        Ok(SetsFigures {
            drive: self.drive.clone(),
            policy: self.policy.clone(),
            mode: busy.mode(),
            seed,
            size_mib,
            pieces,
            piece_kib,
            half_mb_s: until(0.5, 0),
            nine_tenths_mb_s: until(0.9, 1),
            run_mb_s: busy.megabytes(blocks) * delivered / run.end.as_secs_f64(),
            read_percent: delivered * 100.0,
            estimated_loss_percent: run.losses.share() * 100.0,
            budget_percent: f64::from(self.impact_ppm) / 1e4,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scattered_set_is_read_faster_than_a_contiguous_one() {
        let bench = SetsBench {
            drive: "quantum-atlas-10k".to_owned(),
            policy: "sptf-sw60".to_owned(),
            belief: BeliefSource::Truth,
            seeds: 1,
            impact_ppm: 10_000,
            sizes_mib: vec![64, 1 << 20],
            pieces: vec![1, 256],
            seconds: 60,
        };
        let measured = bench.run(&()).expect("all runs end");
        let [one, many] = &measured[..] else {
            panic!("a set larger than the drive is left out: {measured:?}");
        };
        assert!(many.run_mb_s > 2.0 * one.run_mb_s, "{measured:?}");
    }
}
