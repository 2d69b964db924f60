//! Slow heads in virtual time: how soon one is found, and how often a healthy drive is taken for one.
//!
//! Healthy drives do what no belief has: noise, drift, retries, late seeks, scans of their own, delays of the host, a write
//! cache. Their load changes every few minutes between hot files, writes, sequential reads and bursts. Slow drives have one
//! head whose reads take longer, by lost revolutions, from the tenth minute on.

use std::sync::Arc;

use block::{Duration, Instant, Switch};
use drive::imperfection::{Later, SlowHead, UnalignedWrites};
use drive::{HostJitter, Imperfections, Profile};
use engine::Limits;
use profiler::{Findings, Offers, belief, slow_heads};
use rayon::prelude::*;
use serde::Serialize;
use simulator::run::Options;
use simulator::scenario::{Scenario, ScenarioResult};

use super::impact::{HostileTruth, TRUTHS};
use crate::cpu_time::cpu_time;
use crate::profiling::rehearsal::{self, RehearsalNoise, RehearsalPath};
use crate::{Failure, Label, Progress, named};

mod phases;

use phases::Phases;

/// The settings of the benchmark.
#[derive(Clone, Debug)]
pub struct FailSlowBench {
    /// Drives of the catalogue, or profile files.
    pub drives: Vec<String>,
    /// The policy.
    pub policy: String,
    /// Days of healthy drives in all; they are divided among drives and truths.
    pub drive_days: u32,
    /// Requests a second of healthy drives, in the mean.
    pub per_second: f64,
    /// Runs with a slow head for each drive and each load.
    pub seeds: u64,
    /// By how much longer the reads of the slow head take, in per cent.
    pub slower_percent: f64,
    /// Requests a second of slow drives, in the mean.
    pub rates: Vec<f64>,
    /// The belief is what the profiler finds in so many minutes of the drive's time; without it, the truth without its
    /// noise.
    pub profiled_minutes: Option<u64>,
}

/// The load of a drive with a slow head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlowLoad {
    /// Two reads to one write, anywhere, at a steady rate.
    Anywhere,
    /// Another kind and rate every few minutes.
    Changing,
}

/// The figures of the benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct FailSlowReport {
    /// The relation between belief and truth.
    pub mode: Label,
    /// The healthy drives, by drive and truth.
    pub healthy: Vec<HealthyFigures>,
    /// The slow drives, a run each.
    pub slow: Vec<SlowFigures>,
    /// Days of healthy drives in all.
    pub drive_days: u32,
    /// False alarms in all.
    pub false_alarms: u64,
    /// Slow heads that were found within ten minutes of load, in per cent of all.
    pub found_percent: f64,
    /// CPU time of all runs, in seconds.
    pub cpu_s: f64,
}

/// The healthy days of one drive with one truth.
#[derive(Clone, Debug, Serialize)]
pub struct HealthyFigures {
    /// The drive.
    pub drive: String,
    /// What the drive does that its belief does not have.
    pub truth: &'static str,
    /// Days.
    pub days: u32,
    /// Requests.
    pub requests: u64,
    /// Reads whose ends were compared.
    pub compared_reads: u64,
    /// Those of them that were late by a revolution or more, in per cent.
    pub late_percent: f64,
    /// Alarms, all of them false.
    pub alarms: u64,
}

/// One drive with a slow head.
#[derive(Clone, Debug, Serialize)]
pub struct SlowFigures {
    /// The drive.
    pub drive: String,
    /// What the drive does besides.
    pub truth: &'static str,
    /// The load.
    pub load: SlowLoad,
    /// Requests a second.
    pub per_second: f64,
    /// The seed.
    pub seed: u64,
    /// The slow head.
    pub head: u32,
    /// The time from when it is slow until it is found, in seconds of load; null if that took longer than an hour.
    pub found_after_s: Option<f64>,
    /// By how much longer its reads were said to take, in per cent.
    pub measured_percent: Option<f64>,
    /// Alarms about other heads.
    pub false_alarms: u64,
}

/// A drive and its belief.
struct BelievedDrive {
    truth: Profile,
    belief: Profile,
}

/// One run.
struct FailSlowCase<'a> {
    drive: &'a BelievedDrive,
    load: SlowLoad,
    truth: &'a HostileTruth,
    per_second: f64,
    seed: u64,
}

/// The time until a head becomes slow. A choice: the belief is confirmed long before.
const HEALTHY: Duration = Duration::from_secs(600);

/// The longest time in which a slow head is looked for.
const LONGEST: Duration = Duration::from_secs(3_600);

/// The time within which a slow head has to be found: issue 26.
const GOAL_S: f64 = 600.0;

/// The noise of a drive that is profiled: as `headtime profile`.
const SEEK_NOISE: Duration = Duration::from_micros(60);
const ELECTRONICS: Duration = Duration::from_micros(20);

const DAY: Duration = Duration::from_secs(86_400);

impl FailSlowBench {
    /// Measures all cases.
    ///
    /// # Errors
    /// If a drive or the policy is unknown, or a run fails.
    pub fn run(&self, progress: &dyn Progress) -> Result<FailSlowReport, Failure> {
        let begun = cpu_time();
        named::policy(&self.policy)?;
        let drives = self.drives.iter().map(|name| self.believed(name, progress));
        let drives: Vec<BelievedDrive> = drives.collect::<Result<_, _>>()?;
        let slow = self.slow(&drives, progress)?;
        let healthy = self.healthy(&drives, progress)?;
        let is_found = |one: &&SlowFigures| one.found_after_s.is_some_and(|after| after <= GOAL_S);
        let found = slow.iter().filter(is_found).count();
        Ok(FailSlowReport {
            mode: match self.profiled_minutes {
                Some(_) => Label::External,
                None => Label::Noisy,
            },
            drive_days: healthy.iter().map(|one| one.days).sum(),
            false_alarms: healthy.iter().map(|one| one.alarms).sum::<u64>()
                + slow.iter().map(|one| one.false_alarms).sum::<u64>(),
            found_percent: found as f64 / slow.len().max(1) as f64 * 100.0,
            cpu_s: cpu_time().saturating_sub(begun).as_secs_f64(),
            healthy,
            slow,
        })
    }

    /// A drive with the belief that the settings ask for.
    fn believed(&self, name: &str, progress: &dyn Progress) -> Result<BelievedDrive, Failure> {
        let truth = named::drive(name)?;
        let Some(minutes) = self.profiled_minutes else {
            let belief = truth.clone();
            return Ok(BelievedDrive { truth, belief });
        };
        progress.begin(&format!("{name}, profile"));
        let noise = RehearsalNoise {
            seek: SEEK_NOISE,
            electronics: ELECTRONICS,
            seed: 1,
        };
        let path = RehearsalPath {
            offers: Offers::CacheControl,
            jitter: HostJitter::default(),
        };
        let budget = Duration::from_secs(60 * minutes);
        let whole = Arc::new(truth.clone());
        let found = rehearsal::of_drive(&whole, noise, path, budget, &Findings::default())?;
        let clock = found.findings.clock.as_ref();
        let clock = clock.ok_or_else(|| Failure::failed(format!("{name}: no clock was found")))?;
        let belief = belief::live(&found.profile()?, clock);
        Ok(BelievedDrive { truth, belief })
    }

    /// Healthy drives; the days are divided as evenly as they can be.
    fn healthy(
        &self,
        drives: &[BelievedDrive],
        progress: &dyn Progress,
    ) -> Result<Vec<HealthyFigures>, Failure> {
        let cases: Vec<(&BelievedDrive, &HostileTruth)> = drives
            .iter()
            .flat_map(|drive| truths().map(move |truth| (drive, truth)))
            .collect();
        let count = cases.len() as u32;
        let one = |(place, &(drive, truth)): (usize, &(&BelievedDrive, &HostileTruth))| {
            let days =
                self.drive_days / count + u32::from((place as u32) < self.drive_days % count);
            let mut figures = HealthyFigures {
                drive: drive.truth.name.clone(),
                truth: truth.name,
                days,
                requests: 0,
                compared_reads: 0,
                late_percent: 0.0,
                alarms: 0,
            };
            let mut late = 0;
            for day in 0..days {
                progress.begin(&format!("{}, {}, day {day}", drive.truth.name, truth.name));
                let case = FailSlowCase {
                    drive,
                    load: SlowLoad::Changing,
                    truth,
                    per_second: self.per_second,
                    seed: u64::from(day) * u64::from(count) + place as u64 + 1,
                };
                let played = case.play(&self.policy, None, DAY)?;
                figures.requests += played.ran.requests;
                for heads in &played.slow_heads {
                    figures.compared_reads += heads.compared().reads;
                    late += heads.compared().late;
                    figures.alarms += heads.alarms();
                }
            }
            figures.late_percent = late as f64 / figures.compared_reads.max(1) as f64 * 100.0;
            Ok(figures)
        };
        let figures: Result<Vec<HealthyFigures>, Failure> =
            cases.par_iter().enumerate().map(one).collect();
        Ok(figures?.into_iter().filter(|one| one.days > 0).collect())
    }

    /// Drives with a slow head.
    fn slow(
        &self,
        drives: &[BelievedDrive],
        progress: &dyn Progress,
    ) -> Result<Vec<SlowFigures>, Failure> {
        let all: Vec<&HostileTruth> = truths().collect();
        let mut cases = Vec::new();
        for drive in drives {
            for load in [SlowLoad::Anywhere, SlowLoad::Changing] {
                for &per_second in &self.rates {
                    cases.extend((1..=self.seeds).map(|seed| FailSlowCase {
                        drive,
                        load,
                        truth: all[(seed - 1) as usize % all.len()],
                        per_second,
                        seed,
                    }));
                }
            }
        }
        cases
            .par_iter()
            .map(|case| self.slow_one(case, progress))
            .collect()
    }

    fn slow_one(
        &self,
        case: &FailSlowCase<'_>,
        progress: &dyn Progress,
    ) -> Result<SlowFigures, Failure> {
        let heads = case.drive.truth.geometry.surfaces();
        let head = (case.seed % u64::from(heads.max(1))) as u32;
        progress.begin(&format!("{}, head {head} slow", case.drive.truth.name));
        let slow = SlowHead {
            head,
            slower_ppm: (self.slower_percent * 1e4) as u32,
        };
        let played = case.play(&self.policy, Some(slow), HEALTHY + LONGEST)?;
        let all = played
            .slow_heads
            .iter()
            .flat_map(slow_heads::SlowHeads::slow);
        let (right, wrong): (Vec<_>, Vec<_>) = all.partition(|one| {
            // An alarm before the head is slow is false, too.
            one.head == head && one.found >= Instant::ZERO + HEALTHY
        });
        let right = right.first();
        Ok(SlowFigures {
            drive: case.drive.truth.name.clone(),
            truth: case.truth.name,
            load: case.load,
            per_second: case.per_second,
            seed: case.seed,
            head,
            found_after_s: right.map(|one| one.found.as_secs_f64() - HEALTHY.as_secs_f64()),
            measured_percent: right.map(|one| one.slower_ppm as f64 / 1e4),
            false_alarms: wrong.len() as u64,
        })
    }
}

/// The truths by name, each once: whether free reads are allowed does not matter here.
fn truths() -> impl Iterator<Item = &'static HostileTruth> {
    let is_first = |place: usize| place == 0 || TRUTHS[place - 1].name != TRUTHS[place].name;
    let places = (0..TRUTHS.len()).filter(move |&place| is_first(place));
    places.map(|place| &TRUTHS[place])
}

impl FailSlowCase<'_> {
    fn play(
        &self,
        policy: &str,
        slow: Option<SlowHead>,
        length: Duration,
    ) -> Result<ScenarioResult, Failure> {
        let mut imperfections = (self.truth.imperfections)();
        let write_cache = self.truth.write_cache;
        let mut drive = self.drive.truth.switched(Switch::On, write_cache);
        let mut belief = self.drive.belief.switched(Switch::On, write_cache);
        if imperfections.unaligned_writes == UnalignedWrites::ReadFirst {
            // A drive that reads first has larger sectors than blocks, and says so.
            drive.physical_block_bytes = 4096;
            belief.physical_block_bytes = 4096;
        }
        if slow.is_some() {
            let later = Imperfections {
                slow_head: slow,
                ..imperfections.clone()
            };
            imperfections.later = Some(Later {
                from: Instant::ZERO + HEALTHY,
                imperfections: Box::new(later),
            });
        }
        let drive = Arc::new(drive);
        let policy = named::policy(policy)?;
        let belief = Arc::new(belief);
        let blocks = drive.geometry.sectors().0;
        let kinds = match (slow, self.load) {
            (None, _) => phases::ALL,
            (Some(_), SlowLoad::Changing) => phases::BUSY,
            (Some(_), SlowLoad::Anywhere) => phases::STEADY,
        };
        let shape = (blocks, drive.block_bytes);
        let mut load = Phases::new(self.seed, kinds, shape, self.per_second);
        let scenario = Scenario {
            limits: Limits::suited_to(policy, &belief),
            belief,
            truth: drive,
            imperfections,
            seed: self.seed,
            policy,
            preemption: None,
            background: None,
            mirror: None,
        };
        let options = Options {
            until: Some(Instant::ZERO + length),
            ..Options::default()
        };
        let played = scenario.play(&mut load, &options, &mut ());
        played.map_err(Failure::failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The short form of what issue 26 asks for; `headtime bench fail-slow --drive-days 1000` is the long one.
    #[test]
    fn slow_heads_are_found_within_ten_minutes_and_healthy_drives_are_not_slow() {
        let bench = FailSlowBench {
            drives: vec![
                "quantum-atlas-10k".to_owned(),
                "toshiba-x300-5tb".to_owned(),
            ],
            policy: "sptf-sw60".to_owned(),
            drive_days: 2,
            per_second: 1.0,
            seeds: 1,
            slower_percent: 20.0,
            rates: vec![40.0],
            profiled_minutes: None,
        };
        let report = bench.run(&()).expect("it runs");
        assert_eq!(report.drive_days, 2);
        assert_eq!(report.false_alarms, 0, "{:?}", report.healthy);
        assert_eq!(report.found_percent, 100.0, "{:?}", report.slow);
        for one in &report.slow {
            let measured = one.measured_percent.expect("it was found");
            assert!((12.0..35.0).contains(&measured), "{one:?}");
        }
        for one in &report.healthy {
            assert!(one.compared_reads > 1_000, "{one:?}");
        }
    }
}
