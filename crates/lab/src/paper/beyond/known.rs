//! The cost of a profiled belief: the same rules on the same noisy drive, with the truth and with a
//! profile as belief.

use super::{FreeblockBeyond, HALF, KNOWN, NOISE, SPTF, SW60, learned};
use crate::paper::finding::Finding;
use crate::paper::grounds::OtherSetup;
use crate::paper::scene::Noise;
use crate::paper::trial::{ScanTrial, TrialBelief};
use crate::{Failure, Label};

/// The learned guard on a drive whose noise alone is unknown.
pub(super) fn known(policy: &'static str, noise: Noise) -> ScanTrial {
    ScanTrial {
        known: TrialBelief::Truth,
        ..learned(policy, noise)
    }
}

/// The name of that setup.
pub(super) const BY_THE_TRUTH: &str = "belief = the truth without its noise, instead of a profile";

impl FreeblockBeyond<'_> {
    /// The share of the firmware's free bandwidth with such a belief.
    pub(super) fn share_of_known(&self, policy: &'static str) -> Result<OtherSetup, Failure> {
        let [_, half] = self.shares(self.of(known(policy, NOISE))?, policy)?;
        Ok(OtherSetup::one(BY_THE_TRUTH, half))
    }

    /// The same with late seeks, of both policies.
    pub(super) fn tail_of_known(&self) -> Result<OtherSetup, Failure> {
        self.of_tails(BY_THE_TRUTH, |policy, noise| {
            Ok(self.shares(self.of(known(policy, noise))?, policy)?[1])
        })
    }

    pub(super) fn known(&self) -> Result<Finding, Failure> {
        let rates = |policy| {
            let [found, known] = [learned(policy, NOISE), known(policy, NOISE)].map(|trial| {
                self.of(trial)
                    .map(|outcome| (outcome.until(HALF), outcome.mean_loss))
            });
            Ok::<_, Failure>((found?, known?))
        };
        let (sw60, sptf) = (rates(SW60)?, rates(SPTF)?);
        let share = |((found, _), (known, _)): ((f64, f64), (f64, f64))| found / known * 100.0;
        let said = |((found, loss), (known, known_loss)): ((f64, f64), (f64, f64))| {
            format!(
                "{found:.2} MB/s at {loss:.2} % mean loss of {known:.2} MB/s at {known_loss:.2} %"
            )
        };
        let more = format!(
            "both with the same noise and rules; {SW60}: {}; {SPTF}: {}",
            said(sw60),
            said(sptf)
        );
        let ours = [
            ("sptf_sw60_percent", share(sw60)),
            ("sptf_percent", share(sptf)),
        ];
        let note = self.note(learned(SW60, NOISE), &more)?;
        Ok(Finding::several(KNOWN, Label::External, &ours, note))
    }
}
