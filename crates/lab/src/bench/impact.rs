//! The impact of a scan on the foreground under truths that no belief has.
//!
//! The reference is the same load on the same drive without the scan. Everything is in virtual time.

use std::sync::Arc;

use block::{Duration, Switch};
use drive::host::MeasuredPath;
use drive::imperfection::{AheadTrigger, Chance, HeldLookAhead, Periodic, UnalignedWrites};
use drive::{HostJitter, Imperfections, Profile};
use scheduler::freeblock::SameTrack;
use serde::Serialize;

use super::beside::{BesideCase, BesideFigures};
use crate::{Failure, Label, Progress, named};

/// The settings of the benchmark.
#[derive(Clone, Debug)]
pub struct ImpactBench {
    /// Drives of the catalogue, or profile files.
    pub drives: Vec<String>,
    /// The policies.
    pub policies: Vec<String>,
    /// The truths by name; all without any.
    pub truths: Vec<String>,
    /// Seeds for each case.
    pub seeds: u64,
    /// The impact budget in parts per million.
    pub impact_ppm: u32,
    /// How long each run lasts, in virtual seconds.
    pub seconds: u64,
}

/// One truth on one drive.
#[derive(Clone, Debug, Serialize)]
pub struct ImpactFigures {
    /// The drive.
    pub drive: String,
    /// The policy.
    pub policy: String,
    /// The relation between belief and truth.
    pub mode: Label,
    /// The truth.
    pub truth: &'static str,
    /// Whether free reads may be commands of their own on the tracks of the foreground.
    pub same_track: bool,
    /// The seed of load and drive.
    pub seed: u64,
    /// Megabytes of free blocks a second.
    pub free_mb_s: f64,
    /// The mean response time without the scan, in milliseconds.
    pub baseline_ms: f64,
    /// How much longer it is beside the scan, in per cent.
    pub foreground_loss_percent: f64,
    /// The loss of the worst five minutes.
    pub worst_window_percent: f64,
    /// How much longer than the mean the worst five minutes without the scan are: chance.
    pub chance_window_percent: f64,
    /// The engine's own estimate of the loss over the whole run.
    pub estimated_percent: f64,
    /// The budget.
    pub budget_percent: f64,
}

/// A truth: what the drive does that no belief has.
pub(super) struct HostileTruth {
    pub(super) name: &'static str,
    pub(super) imperfections: fn() -> Imperfections,
    pub(super) write_cache: Switch,
    same_track: SameTrack,
}

/// The truths. Sizes are choices, after the hostile tests and ../shared/specs/scheduling.md, 7.
pub(super) const TRUTHS: &[HostileTruth] = &[
    HostileTruth::of("none", Imperfections::default),
    HostileTruth::of("noise-60us", || noise(60)),
    HostileTruth {
        same_track: SameTrack::Allowed,
        ..HostileTruth::of("noise-60us", || noise(60))
    },
    HostileTruth::of("noise-150us-late-2ms", || Imperfections {
        settle_retry: chance(20_000, 2_000),
        ..noise(150)
    }),
    HostileTruth::of("late-1.5ms", || Imperfections {
        settle_retry: chance(10_000, 1_500),
        ..noise(60)
    }),
    HostileTruth::of("electronics-100us", || Imperfections {
        overhead_noise: Duration::from_micros(100),
        ..noise(60)
    }),
    HostileTruth::of("drift-20ppm", || Imperfections {
        spindle_ppm: 20,
        spindle_drift_ppm: 5,
        ..noise(60)
    }),
    HostileTruth::of("media-retries", || Imperfections {
        media_retry: chance(2_000, 700),
        ..noise(60)
    }),
    HostileTruth::of("recalibration", || Imperfections {
        recalibration: periodic(10_000, 300),
        ..noise(60)
    }),
    HostileTruth::of("irregular-scan", || Imperfections {
        irregular_scan: periodic(400, 20),
        ..noise(60)
    }),
    HostileTruth::of("host-nbd", || {
        behind_host(HostJitter::measured(MeasuredPath::Nbd))
    }),
    HostileTruth::of("host-fuse-loop", || {
        behind_host(HostJitter::measured(MeasuredPath::FuseLoop))
    }),
    HostileTruth::of("host-100us", || {
        behind_host(HostJitter::exponential(Duration::from_micros(100)))
    }),
    HostileTruth {
        write_cache: Switch::On,
        ..HostileTruth::of("write-cache", || noise(60))
    },
    HostileTruth::of("held-look-ahead", || held(AheadTrigger::SameTrack)),
    HostileTruth {
        same_track: SameTrack::Allowed,
        ..HostileTruth::of("held-look-ahead", || held(AheadTrigger::SameTrack))
    },
    HostileTruth::of("held-look-ahead-every", || held(AheadTrigger::EveryRead)),
    HostileTruth {
        same_track: SameTrack::Allowed,
        ..HostileTruth::of("held-look-ahead-every", || held(AheadTrigger::EveryRead))
    },
    HostileTruth::of("read-modify-write", || Imperfections {
        unaligned_writes: UnalignedWrites::ReadFirst,
        ..noise(60)
    }),
];

/// The names of all truths.
pub fn truths() -> Vec<&'static str> {
    let mut names: Vec<&str> = TRUTHS.iter().map(|truth| truth.name).collect();
    names.dedup();
    names
}

impl HostileTruth {
    const fn of(name: &'static str, imperfections: fn() -> Imperfections) -> Self {
        HostileTruth {
            name,
            imperfections,
            write_cache: Switch::Off,
            same_track: SameTrack::Never,
        }
    }
}

fn noise(us: u64) -> Imperfections {
    Imperfections {
        seek_noise: Duration::from_micros(us),
        ..Imperfections::default()
    }
}

fn behind_host(host: HostJitter) -> Imperfections {
    Imperfections { host, ..noise(60) }
}

fn chance(per_million: u32, us: u64) -> Chance {
    Chance {
        per_million,
        costs: Duration::from_micros(us),
    }
}

fn periodic(every_ms: u64, ms: u64) -> Periodic {
    Periodic {
        every: Duration::from_millis(every_ms),
        costs: Duration::from_millis(ms),
    }
}

/// A look-ahead of 64 blocks: a fifth of an outer track of the Atlas 10K.
fn held(after: AheadTrigger) -> Imperfections {
    Imperfections {
        held_look_ahead: HeldLookAhead { blocks: 64, after },
        ..noise(60)
    }
}

/// The windows over which the budget has to hold: issue 20.
const WINDOW: Duration = Duration::from_secs(300);

impl ImpactBench {
    /// Measures all cases.
    ///
    /// # Errors
    /// If a drive, a policy or a truth is unknown, or a run fails.
    pub fn run(&self, progress: &dyn Progress) -> Result<Vec<ImpactFigures>, Failure> {
        for name in &self.truths {
            if !truths().contains(&name.as_str()) {
                return Err(Failure::unknown("truth", name, &truths()));
            }
        }
        let mut figures = Vec::new();
        for name in &self.drives {
            let drive = named::drive(name)?;
            for policy in &self.policies {
                for truth in TRUTHS.iter().filter(|truth| self.includes(truth.name)) {
                    for seed in 1..=self.seeds {
                        progress.begin(&format!("{name}, {policy}, {}, seed {seed}", truth.name));
                        let measured = self.measure(&drive, policy, truth, seed)?;
                        figures.push(self.figures((&drive, policy, truth, seed), &measured));
                    }
                }
            }
        }
        Ok(figures)
    }

    fn includes(&self, name: &str) -> bool {
        self.truths.is_empty() || self.truths.iter().any(|wanted| wanted == name)
    }

    fn measure(
        &self,
        drive: &Profile,
        policy: &str,
        truth: &HostileTruth,
        seed: u64,
    ) -> Result<BesideFigures, Failure> {
        let imperfections = (truth.imperfections)();
        let mut drive = drive.switched(Switch::On, truth.write_cache);
        if imperfections.unaligned_writes == UnalignedWrites::ReadFirst {
            drive.physical_block_bytes = 4096;
        }
        let drive = Arc::new(drive);
        let case = BesideCase {
            truth: Arc::clone(&drive),
            imperfections,
            belief: drive,
            policy: named::policy(policy)?,
            seed,
            impact_ppm: self.impact_ppm,
            same_track: truth.same_track,
            length: Duration::from_secs(self.seconds),
            window: WINDOW,
        };
        case.measure()
    }

    fn figures(
        &self,
        (drive, policy, truth, seed): (&Profile, &str, &HostileTruth, u64),
        measured: &BesideFigures,
    ) -> ImpactFigures {
        ImpactFigures {
            drive: drive.name.clone(),
            policy: policy.to_owned(),
            mode: measured.mode,
            truth: truth.name,
            same_track: truth.same_track == SameTrack::Allowed,
            seed,
            free_mb_s: measured.free_mb_s,
            baseline_ms: measured.baseline_ms,
            foreground_loss_percent: measured.loss_percent,
            worst_window_percent: measured.worst_window_percent,
            chance_window_percent: measured.chance_window_percent,
            estimated_percent: measured.estimated_percent,
            budget_percent: f64::from(self.impact_ppm) / 1e4,
        }
    }
}
