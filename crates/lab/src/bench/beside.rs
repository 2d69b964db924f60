//! A scan beside a load that is never idle, in virtual time, and the same load without it.

use std::io;
use std::sync::Arc;

use block::{Duration, Finished, Instant};
use drive::{Certainty, Imperfections, Profile};
use engine::{Limits, Rules};
use scheduler::NamedPolicy;
use scheduler::freeblock::{Caution, SameTrack, WantedBlocks};
use simulator::run::{Options, Watch};
use simulator::scenario::{Background, Scenario};

use super::never_idle;
use crate::{Failure, Label, named};

/// One drive, what is believed of it, and the rules of the scan.
#[derive(Clone, Debug)]
pub struct BesideCase {
    /// The drive.
    pub truth: Arc<Profile>,
    /// What the drive does that no belief has.
    pub imperfections: Imperfections,
    /// The belief.
    pub belief: Arc<Profile>,
    /// The policy.
    pub policy: NamedPolicy,
    /// The seed of load and drive.
    pub seed: u64,
    /// The impact budget in parts per million.
    pub impact_ppm: u32,
    /// Whether free reads may be commands of their own on the tracks of the foreground.
    pub same_track: SameTrack,
    /// How long the load lasts.
    pub length: Duration,
    /// How long a window is, whose worst loss is reported.
    pub window: Duration,
}

impl BesideCase {
    /// The mean response time, in milliseconds, that the requests for blocks which the belief guesses have if
    /// it knows all of them, without the scan; zero without any.
    ///
    /// # Errors
    /// If the run fails.
    pub fn guessed_if_known_ms(&self) -> Result<f64, Failure> {
        let whole = Scenario {
            belief: Arc::clone(&self.truth),
            ..self.scenario().baseline()
        };
        let (windows, _) = self.play(&whole)?;
        Ok(mean(windows.sides[1]))
    }

    /// The label of the figures.
    pub fn mode(&self) -> Label {
        let is_truth = Arc::ptr_eq(&self.belief, &self.truth);
        let belief = (!is_truth).then_some(self.belief.provenance);
        match self.imperfections == Imperfections::default() {
            true => Label::of(belief),
            false => Label::of(belief).with_noise(),
        }
    }
}

/// The figures of one case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BesideFigures {
    /// The relation between belief and truth.
    pub mode: Label,
    /// Megabytes of free blocks a second.
    pub free_mb_s: f64,
    /// The mean response time without the scan, in milliseconds.
    pub baseline_ms: f64,
    /// That of requests whose blocks the belief knows, and of the others; zero without any.
    pub known_ms: f64,
    /// See `known_ms`.
    pub guessed_ms: f64,
    /// The mean response time under C-LOOK, without the scan.
    pub plain_ms: f64,
    /// That of requests for blocks which the belief guesses; zero without any.
    pub guessed_plain_ms: f64,
    /// How much longer the mean response time is beside the scan, in per cent.
    pub loss_percent: f64,
    /// The loss of the worst window against the mean of the run without a scan, in per cent.
    pub worst_window_percent: f64,
    /// The same without the scan: how far chance alone takes a window.
    pub chance_window_percent: f64,
    /// The engine's own estimate of the loss over the whole run, in per cent.
    pub estimated_percent: f64,
}

/// The mean response times of a run, whole and by windows.
#[derive(Debug)]
struct ResponseWindows {
    belief: Arc<Profile>,
    window: Duration,
    /// Requests and the sum of their response times, in nanoseconds, of known and of guessed blocks.
    sides: [(u64, u64); 2],
    /// Requests and the sum of their response times, in nanoseconds.
    sums: Vec<(u64, u64)>,
}

impl Watch for ResponseWindows {
    fn finished(&mut self, finished: &Finished) -> io::Result<()> {
        let window = finished.at.as_nanos() / self.window.as_nanos().max(1);
        let window = window as usize;
        if self.sums.len() <= window {
            self.sums.resize(window + 1, (0, 0));
        }
        let (requests, responses) = &mut self.sums[window];
        *requests += 1;
        let response = finished.at.since(finished.submitted).as_nanos();
        *responses += response;
        let certainty = self.belief.certainty(finished.request.extent);
        let side = &mut self.sides[usize::from(certainty == Certainty::Guessed)];
        *side = (side.0 + 1, side.1 + response);
        Ok(())
    }
}

/// A mean in milliseconds.
fn mean((requests, responses): (u64, u64)) -> f64 {
    responses as f64 / 1e6 / requests.max(1) as f64
}

impl ResponseWindows {
    fn mean_ms(&self) -> f64 {
        let [known, guessed] = self.sides;
        mean((known.0 + guessed.0, known.1 + guessed.1))
    }

    /// The mean of the slowest whole window.
    fn worst_ms(&self, length: Duration) -> f64 {
        let whole = (length.as_nanos() / self.window.as_nanos().max(1)) as usize;
        let means = self.sums.iter().take(whole.max(1)).map(|&sum| mean(sum));
        means.fold(0.0, f64::max)
    }
}

impl BesideCase {
    /// Runs the load with and without the scan.
    ///
    /// # Errors
    /// If a run fails.
    pub fn measure(&self) -> Result<BesideFigures, Failure> {
        let scenario = self.scenario();
        let (with, scanned) = self.play(&scenario)?;
        let (without, _) = self.play(&scenario.baseline())?;
        let plain = Scenario {
            policy: named::policy("c-look")?,
            ..scenario.baseline()
        };
        let (plain, _) = self.play(&plain)?;
        let baseline_ms = without.mean_ms();
        let more = |mean: f64| (mean / baseline_ms - 1.0) * 100.0;
        Ok(BesideFigures {
            mode: self.mode(),
            free_mb_s: scanned.0,
            baseline_ms,
            known_ms: mean(without.sides[0]),
            guessed_ms: mean(without.sides[1]),
            plain_ms: plain.mean_ms(),
            guessed_plain_ms: mean(plain.sides[1]),
            loss_percent: more(with.mean_ms()),
            worst_window_percent: more(with.worst_ms(self.length)),
            chance_window_percent: more(without.worst_ms(self.length)),
            estimated_percent: scanned.1 * 100.0,
        })
    }

    fn scenario(&self) -> Scenario {
        Scenario {
            belief: Arc::clone(&self.belief),
            truth: Arc::clone(&self.truth),
            imperfections: self.imperfections.clone(),
            seed: self.seed,
            policy: self.policy,
            limits: Limits::suited_to(self.policy, &self.belief),
            preemption: None,
            background: Some(Background::new(
                Rules {
                    caution: Caution::Learned {
                        impact_ppm: self.impact_ppm,
                    },
                    same_track: self.same_track,
                    ..Rules::default()
                },
                WantedBlocks::all(&self.belief.geometry),
            )),
            mirror: None,
        }
    }

    /// The response times, and the free bandwidth in MB/s with the engine's estimate of the loss.
    fn play(&self, scenario: &Scenario) -> Result<(ResponseWindows, (f64, f64)), Failure> {
        let mut load = never_idle::load(Some(self.seed), &self.truth)?;
        let options = Options {
            until: Some(Instant::ZERO + self.length),
            ..Options::default()
        };
        let mut windows = ResponseWindows {
            belief: Arc::clone(&self.belief),
            window: self.window,
            sides: Default::default(),
            sums: Vec::new(),
        };
        let played = scenario.play(&mut load, &options, &mut windows);
        let played = played.map_err(Failure::failed)?;
        let scanned = played.scan.map_or((0.0, 0.0), |scan| {
            let [free, _, paid] = scan.rates(100, self.truth.block_bytes);
            (free + paid, scan.losses.share())
        });
        Ok((windows, scanned))
    }
}
