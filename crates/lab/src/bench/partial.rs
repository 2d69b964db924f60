//! Free blocks and their impact where a part of a drive's tracks is known.
//!
//! For each drive and seed: the whole map, then shares of it in one piece and scattered. The rest of
//! each belief is guessed wrongly. Free bandwidth should be at least 0.7 of the square of the share
//! times that of the whole map (both ends of a gap have to be known), and the loss within the budget.

use std::sync::Arc;

use block::Duration;
use drive::{Imperfections, Profile};
use scheduler::freeblock::SameTrack;
use serde::Serialize;

use super::beside::{BesideCase, BesideFigures};
use crate::{Failure, Label, Progress, named};

mod drives;
mod map;

use drives::invented;
pub(super) use drives::uneven;
pub use map::{KnownPlaces, partly_known};

/// The settings of the benchmark.
#[derive(Clone, Debug)]
pub struct PartialBench {
    /// Drives of the catalogue, or profile files.
    pub drives: Vec<String>,
    /// The number of invented drives.
    pub invented: u64,
    /// The shares of known tracks, in thousandths.
    pub permilles: Vec<u64>,
    /// Seeds for each drive.
    pub seeds: u64,
    /// The policy.
    pub policy: String,
    /// The impact budget in parts per million.
    pub impact_ppm: u32,
    /// The standard deviation of seek times, which no belief has.
    pub seek_noise_us: f64,
    /// How long each run lasts, in virtual seconds.
    pub seconds: u64,
}

/// One belief on one drive.
#[derive(Clone, Debug, Serialize)]
pub struct PartialFigures {
    /// The drive.
    pub drive: String,
    /// The policy.
    pub policy: String,
    /// The seed of belief, load and drive.
    pub seed: u64,
    /// The relation between belief and truth.
    pub mode: Label,
    /// Where the known tracks are; null for the whole map.
    pub places: Option<KnownPlaces>,
    /// The share of known tracks in per cent.
    pub known_percent: f64,
    /// Megabytes of free blocks a second.
    pub free_mb_s: f64,
    /// 0.7 of the square of the share times the free bandwidth of the whole map.
    pub least_mb_s: f64,
    /// The mean response time without the scan, in milliseconds.
    pub baseline_ms: f64,
    /// That of requests for known blocks, and for others; zero without any.
    pub known_ms: f64,
    /// See `known_ms`.
    pub guessed_ms: f64,
    /// The mean response time under C-LOOK, without the scan.
    pub plain_ms: f64,
    /// What requests for guessed blocks take under C-LOOK, and if the whole map is known; zero without any.
    pub guessed_plain_ms: f64,
    /// See `guessed_plain_ms`.
    pub guessed_whole_ms: f64,
    /// How much longer it is beside the scan, in per cent.
    pub foreground_loss_percent: f64,
    /// The engine's own estimate of that, over the whole run.
    pub estimated_percent: f64,
    /// The budget.
    pub budget_percent: f64,
}

/// The least share of the expected free bandwidth: issue 20.
const LEAST_SHARE: f64 = 0.7;

impl PartialBench {
    /// Measures all cases.
    ///
    /// # Errors
    /// If a drive is unknown, or a run fails.
    pub fn run(&self, progress: &dyn Progress) -> Result<Vec<PartialFigures>, Failure> {
        let mut drives = Vec::new();
        for name in &self.drives {
            drives.push(Arc::new(named::drive(name)?));
        }
        for seed in 1..=self.invented {
            drives.push(invented(seed)?);
        }
        let mut figures = Vec::new();
        for drive in &drives {
            for seed in 1..=self.seeds {
                progress.begin(&format!("{}, seed {seed}", drive.name));
                self.of_drive(drive, seed, &mut figures)?;
            }
        }
        Ok(figures)
    }

    fn of_drive(
        &self,
        drive: &Arc<Profile>,
        seed: u64,
        figures: &mut Vec<PartialFigures>,
    ) -> Result<(), Failure> {
        // The host of a scan turns the write cache off: it hides where the head is.
        let drive = &Arc::new(drive.switched(block::Switch::On, block::Switch::Off));
        let whole = self.case(drive, drive, seed)?.measure()?;
        figures.push(self.figures(drive, seed, None, 1_000, (&whole, &whole)));
        for places in [KnownPlaces::Contiguous, KnownPlaces::Scattered] {
            for &permille in &self.permilles {
                let belief = partly_known(drive, permille, places, seed)?;
                let case = self.case(drive, &belief, seed)?;
                let both = (&case.measure()?, &whole);
                let line = self.figures(drive, seed, Some(places), permille, both);
                figures.push(PartialFigures {
                    guessed_whole_ms: case.guessed_if_known_ms()?,
                    ..line
                });
            }
        }
        Ok(())
    }

    fn case(
        &self,
        truth: &Arc<Profile>,
        belief: &Arc<Profile>,
        seed: u64,
    ) -> Result<BesideCase, Failure> {
        let length = Duration::from_secs(self.seconds);
        Ok(BesideCase {
            truth: Arc::clone(truth),
            imperfections: Imperfections {
                seek_noise: Duration::from_nanos((self.seek_noise_us * 1e3) as u64),
                ..Imperfections::default()
            },
            belief: Arc::clone(belief),
            policy: named::policy(&self.policy)?,
            seed,
            impact_ppm: self.impact_ppm,
            same_track: SameTrack::Never,
            length,
            window: length,
        })
    }

    fn figures(
        &self,
        drive: &Profile,
        seed: u64,
        places: Option<KnownPlaces>,
        permille: u64,
        (partial, whole): (&BesideFigures, &BesideFigures),
    ) -> PartialFigures {
        let share = permille as f64 / 1e3;
        PartialFigures {
            drive: drive.name.clone(),
            policy: self.policy.clone(),
            seed,
            mode: partial.mode,
            places,
            known_percent: share * 100.0,
            free_mb_s: partial.free_mb_s,
            least_mb_s: LEAST_SHARE * share * share * whole.free_mb_s,
            baseline_ms: partial.baseline_ms,
            known_ms: partial.known_ms,
            guessed_ms: partial.guessed_ms,
            plain_ms: partial.plain_ms,
            guessed_plain_ms: partial.guessed_plain_ms,
            guessed_whole_ms: 0.0,
            foreground_loss_percent: partial.loss_percent,
            estimated_percent: partial.estimated_percent,
            budget_percent: f64::from(self.impact_ppm) / 1e4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a belief knows is the truth, and most of what it does not is not.
    #[test]
    fn known_blocks_are_where_they_are_and_guessed_ones_elsewhere() {
        let atlas = Arc::new(named::drive("quantum-atlas-10k").expect("a shipped drive"));
        let drives = [atlas, invented(1).expect("a drive")];
        for drive in &drives {
            for places in [KnownPlaces::Contiguous, KnownPlaces::Scattered] {
                let belief = partly_known(drive, 300, places, 5).expect("a belief");
                let confidence = belief.confidence.as_ref().expect("known blocks");
                let blocks = drive.geometry.sectors().0;
                let (mut known, mut wrong) = (0, 0);
                for nth in 0..1_000 {
                    let lba = block::Lba(blocks / 1_000 * nth);
                    let (truth, believed) =
                        (drive.geometry.locate(lba), belief.geometry.locate(lba));
                    let is_right = truth.map(|place| (place.cylinder, place.head, place.angle))
                        == believed.map(|place| (place.cylinder, place.head, place.angle));
                    let is_known = confidence.is_known(lba);
                    assert!(
                        is_right || !is_known,
                        "{}: {lba:?}: {truth:?} {believed:?}",
                        drive.name
                    );
                    known += u32::from(is_known);
                    wrong += u32::from(!is_right);
                }
                assert!((250..350).contains(&known), "{known}");
                assert!(wrong > 600, "{wrong}");
            }
        }
    }

    /// A short variant of the benchmark: a minute is too short to tell the loss by better than a per
    /// cent.
    #[test]
    fn a_partly_known_map_brings_free_blocks_within_the_budget() {
        let bench = PartialBench {
            drives: vec!["quantum-atlas-10k".to_owned()],
            invented: 0,
            permilles: vec![600],
            seeds: 1,
            policy: "sptf-sw60".to_owned(),
            impact_ppm: 10_000,
            seek_noise_us: 60.0,
            seconds: 60,
        };
        let measured = bench.run(&()).expect("all runs end");
        assert_eq!(measured.len(), 3);
        for line in &measured {
            assert!(line.free_mb_s >= line.least_mb_s, "{line:?}");
            assert!(
                line.foreground_loss_percent < line.budget_percent + 1.0,
                "{line:?}"
            );
            // Requests that nobody predicts wait no fifth longer than if they were predicted.
            assert!(line.guessed_ms <= 1.2 * line.guessed_whole_ms, "{line:?}");
            assert!(line.baseline_ms < 1.02 * line.plain_ms, "{line:?}");
        }
    }
}
