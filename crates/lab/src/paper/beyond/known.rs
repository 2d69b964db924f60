//! The cost of a profiled belief: the same rules on the same noisy drive, with the truth and with a
//! profile as belief.

use super::{FreeblockBeyond, HALF, KNOWN, NOISE, SPTF, SW60, learned};
use crate::paper::finding::Finding;
use crate::paper::trial::{ScanTrial, TrialBelief};
use crate::{Failure, Label};

/// The learned guard on a drive whose noise alone is unknown.
pub(super) fn known(policy: &'static str) -> ScanTrial {
    ScanTrial {
        known: TrialBelief::Truth,
        ..learned(policy, NOISE)
    }
}

impl FreeblockBeyond<'_> {
    pub(super) fn known(&self) -> Result<Finding, Failure> {
        let rates = |policy| {
            let [found, known] = [learned(policy, NOISE), known(policy)].map(|trial| {
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
