//! Profiles of drives whose surfaces differ in density, after some minutes of the drive's time.
//!
//! The drives have 2 to 10 surfaces that differ by up to 8 %, serpentines with odd rows, and slipped
//! tracks. Each is profiled with cache control and by reads alone. A profile is usable if it brings half
//! of the free bandwidth of the whole map, and complete at 95 % (issue 20).

use std::sync::Arc;

use block::Duration;
use drive::{HostJitter, Profile};
use profiler::{Findings, Offers, belief};
use rayon::prelude::*;
use scheduler::freeblock::SameTrack;
use serde::Serialize;

use super::beside::{BesideCase, BesideFigures};
use super::partial::uneven;
use crate::profiling::check;
use crate::profiling::rehearsal::{self, RehearsalNoise, RehearsalPath};
use crate::{Failure, Label, named};

/// The settings of the benchmark.
#[derive(Clone, Debug)]
pub struct DensitiesBench {
    /// The numbers of surfaces.
    pub surfaces: Vec<u32>,
    /// Drives for each number of surfaces.
    pub seeds: u64,
    /// Budgets of the profiler, in minutes of the drive's time.
    pub minutes: Vec<u64>,
    /// How the profiler reaches the drive.
    pub paths: Vec<ProbingPath>,
    /// The policy beside which free bandwidth is measured.
    pub policy: String,
    /// The impact budget in parts per million.
    pub impact_ppm: u32,
    /// The standard deviation of seek times.
    pub seek_noise_us: f64,
    /// How long each run of the load lasts, in virtual seconds.
    pub seconds: u64,
}

/// How the profiler reaches a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbingPath {
    /// With cache control.
    CacheControl,
    /// By reads alone, with look-ahead on.
    ReadsAlone,
}

/// One profile of one drive.
#[derive(Clone, Debug, Serialize)]
pub struct DensityFigures {
    /// The drive.
    pub drive: String,
    /// Its surfaces.
    pub surfaces: u32,
    /// How the profiler reached it.
    pub path: ProbingPath,
    /// The budget in minutes of the drive's time.
    pub minutes: u64,
    /// The drive's time that the profiler took, in seconds.
    pub drive_seconds: f64,
    /// The share of blocks whose tracks are said to be known, in per cent.
    pub known_percent: f64,
    /// The share of those that are exact, in per cent.
    pub true_percent: f64,
    /// How far predicted head times of random known blocks are off in the mean; null if none are known.
    pub head_time_mean_us: Option<f64>,
    /// Whether a service would use the profile.
    pub usable: bool,
    /// The relation between belief and truth of `free_mb_s`.
    pub mode: Label,
    /// Megabytes of free blocks a second with the profile; zero if it is not usable.
    pub free_mb_s: f64,
    /// The same with the truth as belief, but for its noise.
    pub whole_mb_s: f64,
    /// The first as a share of the second, in per cent.
    pub share_percent: f64,
    /// How much longer the mean response time is beside the scan, in per cent.
    pub foreground_loss_percent: f64,
    /// The engine's own estimate of that.
    pub estimated_percent: f64,
    /// The budget.
    pub budget_percent: f64,
    /// Why a service would not use it.
    pub doubt: Option<String>,
}

/// One case.
struct DensityCase {
    surfaces: u32,
    seed: u64,
}

/// The standard deviation of the electronics' overheads while it is profiled: as `headtime profile`.
const ELECTRONICS: Duration = Duration::from_micros(20);

impl DensitiesBench {
    /// Measures all cases.
    ///
    /// # Errors
    /// If a run fails.
    pub fn run(&self) -> Result<Vec<DensityFigures>, Failure> {
        let seeds = |&surfaces: &u32| {
            let case = move |seed| DensityCase { surfaces, seed };
            (1..=self.seeds).map(case)
        };
        let cases: Vec<DensityCase> = self.surfaces.iter().flat_map(seeds).collect();
        let figures = cases.par_iter().map(|case| self.of_drive(case));
        let figures: Vec<Vec<DensityFigures>> = figures.collect::<Result<_, _>>()?;
        Ok(figures.concat())
    }

    fn of_drive(&self, case: &DensityCase) -> Result<Vec<DensityFigures>, Failure> {
        let drive = uneven(case.surfaces, case.seed)?;
        let whole = self.beside(&drive, &drive, case.seed)?;
        let mut figures = Vec::new();
        for &path in &self.paths {
            for &minutes in &self.minutes {
                figures.push(self.figures(&drive, case, (path, minutes), &whole)?);
            }
        }
        Ok(figures)
    }

    fn figures(
        &self,
        drive: &Arc<Profile>,
        case: &DensityCase,
        (path, minutes): (ProbingPath, u64),
        whole: &BesideFigures,
    ) -> Result<DensityFigures, Failure> {
        let noise = RehearsalNoise {
            seek: self.seek_noise(),
            electronics: ELECTRONICS,
            seed: case.seed,
        };
        let reached = RehearsalPath {
            offers: match path {
                ProbingPath::CacheControl => Offers::CacheControl,
                ProbingPath::ReadsAlone => Offers::Nothing,
            },
            jitter: HostJitter::default(),
        };
        let budget = Duration::from_secs(60 * minutes);
        let found = rehearsal::of_drive(drive, noise, reached, budget, &Findings::default())?;
        let checked = check::check(&found, drive)?;
        let believed = match &found.findings.clock {
            Some(clock) if checked.usable => Some(belief::live(&found.profile()?, clock)),
            _ => None,
        };
        let with = believed.map(|belief| self.beside(drive, &Arc::new(belief), case.seed));
        let with = with.transpose()?;
        let free_mb_s = with.map_or(0.0, |with| with.free_mb_s);
        let doubt = found.needs_belief().err().map(|doubt| doubt.to_string());
        Ok(DensityFigures {
            drive: drive.name.clone(),
            surfaces: case.surfaces,
            path,
            minutes,
            drive_seconds: checked.drive_seconds,
            known_percent: checked.known * 100.0,
            true_percent: checked.known_true.unwrap_or(0.0) * 100.0,
            head_time_mean_us: checked.head_time.map(|errors| errors.mean_us),
            usable: checked.usable,
            mode: with.map_or(Label::External, |with| with.mode),
            free_mb_s,
            whole_mb_s: whole.free_mb_s,
            share_percent: free_mb_s / whole.free_mb_s * 100.0,
            foreground_loss_percent: with.map_or(0.0, |with| with.loss_percent),
            estimated_percent: with.map_or(0.0, |with| with.estimated_percent),
            budget_percent: f64::from(self.impact_ppm) / 1e4,
            doubt,
        })
    }

    fn seek_noise(&self) -> Duration {
        Duration::from_nanos((self.seek_noise_us * 1e3) as u64)
    }

    /// Free bandwidth beside a load that is never idle.
    fn beside(
        &self,
        truth: &Arc<Profile>,
        belief: &Arc<Profile>,
        seed: u64,
    ) -> Result<BesideFigures, Failure> {
        let length = Duration::from_secs(self.seconds);
        let case = BesideCase {
            truth: Arc::clone(truth),
            imperfections: drive::Imperfections {
                seek_noise: self.seek_noise(),
                ..drive::Imperfections::default()
            },
            belief: Arc::clone(belief),
            policy: named::policy(&self.policy)?,
            seed,
            impact_ppm: self.impact_ppm,
            same_track: SameTrack::Never,
            length,
            window: length,
        };
        case.measure()
    }
}
