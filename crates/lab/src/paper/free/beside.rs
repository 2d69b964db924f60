//! Findings that compare two runs: guards, policies, external and firmware.

use super::{
    ATLAS, EXTRACTED, Free, GUARD, GUARDS, HALF, PARTS, SPTF, SSTF, SSTF_VS_SPTF, SW60,
    SW60_BETWEEN, VS_FIRMWARE, VS_NO_TRACK, WHOLE, cheetah, extracted, late, no_track, outside,
    quiet,
};
use crate::paper::finding::Finding;
use crate::paper::prediction;
use crate::paper::trial::ScanTrial;
use crate::{Failure, Label};

impl Free<'_> {
    /// The effect of a guard on the foreground's throughput and on free bandwidth.
    pub(super) fn guard(&self, id: &'static str, guard: u64) -> Result<Finding, Failure> {
        let both = |with: ScanTrial, without: ScanTrial| {
            let (with, without) = (self.of(with)?, self.of(without)?);
            let lost = percent_less(with.until(WHOLE), without.until(WHOLE));
            Ok::<_, Failure>((with.throughput_loss, lost))
        };
        let (foreground, background) = both(outside(SW60, guard), outside(SW60, 0))?;
        let said =
            |(foreground, background): (f64, f64)| format!("{foreground:.2} / {background:.2}");
        let unguarded = self.of(outside(SW60, 0))?;
        let more = format!(
            "judged: {SW60}, whole scan; both for {SSTF} {}, {SPTF} {}; sigma 60 us: {SW60} {}; {}: \
             {SW60} {}; Cheetah 18LP, {}: {SW60} {}; without a guard {SW60} loses {:.1} % of its \
             throughput",
            said(both(outside(SSTF, guard), outside(SSTF, 0))?),
            said(both(outside(SPTF, guard), outside(SPTF, 0))?),
            said(both(quiet(outside(SW60, guard)), quiet(outside(SW60, 0)))?),
            prediction::ATLAS,
            said(both(late(outside(SW60, guard)), late(outside(SW60, 0)))?),
            prediction::CHEETAH,
            said(both(cheetah(SW60, guard), cheetah(SW60, 0))?),
            unguarded.throughput_loss,
        );
        let ours = [
            ("foreground_loss_percent", foreground),
            ("free_bandwidth_loss_percent", background),
        ];
        let note = self.note(outside(SW60, guard), &more)?;
        Ok(Finding::several(id, Label::External, &ours, note))
    }

    pub(super) fn sstf_beside_sptf(&self) -> Result<Finding, Failure> {
        let both = |trial: fn(ScanTrial) -> ScanTrial| {
            let sstf = self.of(trial(outside(SSTF, GUARD)))?;
            let sptf = self.of(trial(outside(SPTF, GUARD)))?;
            let ratio = PARTS.map(|part| sstf.until(part) / sptf.until(part));
            Ok::<_, Failure>((percent_less(sstf.rate, sptf.rate), ratio))
        };
        let said = |(loss, [start, half, whole]): BesideRates| {
            format!("{loss:.2} %, {start:.2} / {half:.2} / {whole:.2}")
        };
        let (loss, [.., whole]) = both(|trial| trial)?;
        let more = elsewhere("ratio", both, said)?;
        let ours = [
            ("foreground_loss_percent", loss),
            ("free_bandwidth_ratio", whole),
        ];
        let note = self.note(outside(SSTF, GUARD), &more)?;
        Ok(Finding::several(SSTF_VS_SPTF, Label::External, &ours, note))
    }

    pub(super) fn sw60_between(&self) -> Result<Finding, Failure> {
        let both = |trial: fn(ScanTrial) -> ScanTrial| {
            let [sstf, sw60, sptf] =
                [SSTF, SW60, SPTF].map(|policy| self.of(trial(outside(policy, GUARD))));
            let (sstf, sw60, sptf) = (sstf?, sw60?, sptf?);
            let share = PARTS.map(|part| sw60.until(part) / sstf.until(part) * 100.0);
            Ok::<_, Failure>((percent_less(sw60.rate, sptf.rate), share))
        };
        let said = |(loss, [start, half, whole]): BesideRates| {
            format!("{loss:.2} %, {start:.1} / {half:.1} / {whole:.1} %")
        };
        let (loss, [.., whole]) = both(|trial| trial)?;
        let more = elsewhere("share", both, said)?;
        let ours = [
            ("free_bandwidth_share_of_sstf_percent", whole),
            ("foreground_loss_percent", loss),
        ];
        let note = self.note(outside(SW60, GUARD), &more)?;
        Ok(Finding::several(SW60_BETWEEN, Label::External, &ours, note))
    }

    pub(super) fn beside_firmware(&self) -> Result<Finding, Failure> {
        let share = |outside: ScanTrial, inside: ScanTrial| {
            let (outside, inside) = (self.of(outside)?, self.of(inside)?);
            let share = |part| outside.until(part) / inside.until(part) * 100.0;
            let [start, half, whole] = PARTS.map(share);
            Ok::<_, Failure>(format!("{start:.1} / {half:.1} / {whole:.1}"))
        };
        let inside = |policy| ScanTrial::in_firmware(ATLAS, policy);
        let mut said = Vec::new();
        for policy in [SSTF, SW60, SPTF] {
            let here = outside(policy, GUARD);
            said.push(format!("{policy} {}", share(here, inside(policy))?));
        }
        let here = outside(SW60, GUARD);
        let more = format!(
            "judged: {SW60}, first half of the scan, guard 0.3 ms, beside a simulated firmware \
             without noise and guard whose free commands go to all tracks; start / first half / \
             whole: {}; {SW60} with sigma 60 us: {}; with head switch 0.176 ms: {}; Cheetah 18LP: {}",
            said.join(", "),
            share(quiet(here), inside(SW60))?,
            share(extracted(here), ScanTrial::in_firmware(EXTRACTED, SW60))?,
            share(
                cheetah(SW60, GUARD),
                ScanTrial::in_firmware(super::CHEETAH, SW60)
            )?,
        );
        let ours = self.of(here)?.until(HALF) / self.of(inside(SW60))?.until(HALF) * 100.0;
        let note = self.note(here, &more)?;
        Ok(Finding::one(VS_FIRMWARE, Label::External, ours, note))
    }

    /// The distance from the simulation with the same rule, from the guard on that hides the noise.
    pub(super) fn beside_no_track(&self) -> Result<Finding, Failure> {
        let distance = |guard, part| {
            let (outside, inside) = (self.of(outside(SW60, guard))?, self.of(no_track(guard))?);
            Ok::<_, Failure>(percent_less(outside.until(part), inside.until(part)).abs())
        };
        let mut said = Vec::new();
        for guard in GUARDS {
            let distances = [distance(guard, HALF)?, distance(guard, WHOLE)?];
            let [half, whole] = distances.map(|distance| format!("{distance:.2}"));
            said.push(format!("{:.1} ms {half} / {whole}", guard as f64 / 1e3));
        }
        let more = format!(
            "judged: {SW60}, whole scan, the distance at 0.3 ms, which is the largest from there on; \
             first half / whole, by guard: {}",
            said.join(", ")
        );
        let ours = distance(GUARD, WHOLE)?;
        let note = self.note(outside(SW60, GUARD), &more)?;
        Ok(Finding::one(VS_NO_TRACK, Label::External, ours, note))
    }
}

/// The difference in percent of `other`.
fn percent_less(one: f64, other: f64) -> f64 {
    (1.0 - one / other) * 100.0
}

/// The lost throughput, and a figure for each part of the scan.
type BesideRates = (f64, [f64; 3]);

/// The figures as judged, and under other circumstances.
fn elsewhere(
    what: &str,
    both: impl Fn(fn(ScanTrial) -> ScanTrial) -> Result<BesideRates, Failure>,
    said: impl Fn(BesideRates) -> String,
) -> Result<String, Failure> {
    Ok(format!(
        "judged: whole scan, guard 0.3 ms; throughput lost, and {what} at the start / first half / \
         whole: {}; sigma 60 us: {}; head switch 0.176 ms: {}; Cheetah 18LP: {}",
        said(both(|trial| trial)?),
        said(both(quiet)?),
        said(both(extracted)?),
        said(both(|trial| cheetah(trial.policy, GUARD))?),
    ))
}
