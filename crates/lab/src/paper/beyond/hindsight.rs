//! A firmware that knows the drive and not the noise of its seeks, with the best fixed guard: chosen in hindsight, from
//! runs with each.

use block::Duration;
use scheduler::freeblock::Caution;

use super::{
    BUDGET_PPM, FreeblockBeyond, HALF, NEAR_MISS, NOISE, inside, known, learned, withheld,
};
use crate::paper::finding::Finding;
use crate::paper::grounds::OtherSetup;
use crate::paper::scene::Noise;
use crate::paper::trial::{ScanTrial, TrialOutcome};
use crate::{Failure, Label};

/// Step of the fixed guards, which reach four sigma: a third of a sigma. A choice.
const STEP: Duration = Duration::from_micros(20);
/// Guards with, and as many without, leaving near misses alone.
const CANDIDATES: u64 = 13;

/// The name of that setup.
fn in_hindsight() -> String {
    let guards = 2 * CANDIDATES;
    format!(
        "in a firmware with the same noise, with the best of {guards} fixed guards, chosen in hindsight"
    )
}

/// The candidates for the fixed guard.
pub(super) fn candidates(policy: &'static str, noise: Noise) -> Vec<ScanTrial> {
    let of = |near_miss: Duration| {
        (0..CANDIDATES).map(move |step| ScanTrial {
            noise,
            caution: Caution::Fixed {
                guard: STEP * step,
                near_miss,
            },
            ..inside(policy)
        })
    };
    of(Duration::ZERO).chain(of(NEAR_MISS)).collect()
}

fn is_within_budget(outcome: &TrialOutcome) -> bool {
    outcome.mean_loss <= f64::from(BUDGET_PPM) / 1e4
}

impl FreeblockBeyond<'_> {
    /// The best candidate within the budget; if there is none, the cheapest one.
    fn best(
        &self,
        policy: &'static str,
        noise: Noise,
    ) -> Result<(ScanTrial, &TrialOutcome), Failure> {
        let mut best: Option<(ScanTrial, &TrialOutcome)> = None;
        for trial in candidates(policy, noise) {
            let outcome = self.of(trial)?;
            let is_better = best.is_none_or(|(_, other)| match is_within_budget(outcome) {
                true => !is_within_budget(other) || outcome.until(HALF) > other.until(HALF),
                false => outcome.mean_loss < other.mean_loss,
            });
            if is_better {
                best = Some((trial, outcome));
            }
        }
        best.ok_or_else(|| Failure::failed("no guard to choose from"))
    }

    /// Its share of the noise-free firmware's free bandwidth over the first half, in percent.
    fn best_share(&self, policy: &'static str, noise: Noise) -> Result<f64, Failure> {
        let (_, outcome) = self.best(policy, noise)?;
        Ok(self.shares(outcome, policy)?[1])
    }

    /// That share as the setup of a claim with one figure.
    pub(super) fn share_in_hindsight(&self, policy: &'static str) -> Result<OtherSetup, Failure> {
        Ok(OtherSetup::one(
            in_hindsight(),
            self.best_share(policy, NOISE)?,
        ))
    }

    /// The shares with late seeks, of both policies.
    pub(super) fn tail_in_hindsight(&self) -> Result<OtherSetup, Failure> {
        self.of_tails(&in_hindsight(), |policy, noise| {
            self.best_share(policy, noise)
        })
    }

    pub(super) fn same_noise(
        &self,
        id: &'static str,
        policy: &'static str,
    ) -> Result<Finding, Failure> {
        let trial = learned(policy, NOISE);
        let outside = self.of(trial)?;
        let (best, noisy) = self.best(policy, NOISE)?;
        let share = |outcome: &TrialOutcome| outcome.until(HALF) / noisy.until(HALF) * 100.0;
        let Caution::Fixed { guard, near_miss } = best.caution else {
            return Err(Failure::failed("a candidate without a fixed guard"));
        };
        let more = format!(
            "the firmware knows the drive and not the noise of its seeks; of {CANDIDATES} fixed \
             guards in steps of {STEP}, each with and without leaving gaps alone that are {NEAR_MISS} \
             short of a revolution, that with the most free bandwidth at <= 1 % mean loss: {guard}, \
             {near_miss}, with {:.2} MB/s at {:.2} %; outside {:.2} MB/s at {:.2} %",
            noisy.until(HALF),
            noisy.mean_loss,
            outside.until(HALF),
            outside.mean_loss,
        );
        let note = self.note(trial, &more)?;
        let by_the_truth = self.of(known::known(policy, NOISE))?;
        let all_planned = self.of(withheld::all_planned(policy, NOISE))?;
        let finding = Finding::one(id, Label::External, share(outside), note);
        Ok(finding.beside([
            OtherSetup::one(known::BY_THE_TRUTH, share(by_the_truth)),
            OtherSetup::one(withheld::ALL_PLANNED, share(all_planned)),
        ]))
    }
}
