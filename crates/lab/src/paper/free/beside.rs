//! Findings that compare two runs: guards, policies, external and firmware.

use super::{
    CHEETAH, Free, GUARD, GUARDS, HALF, JUDGED, PARTS, POLICIES, SPTF, SSTF, SSTF_VS_SPTF, SW60,
    SW60_BETWEEN, VS_FIRMWARE, VS_NO_TRACK, WHOLE, inside, no_track, outside, outside_drives,
};
use crate::paper::Table;
use crate::paper::atlas::PaperDrive;
use crate::paper::finding::Finding;
use crate::paper::grounds::OtherSetup;
use crate::{Failure, Label};

/// Two figures by their names in a claim.
type Pair = [(&'static str, f64); 2];

impl Free<'_> {
    /// The effect of a guard on the foreground's throughput and on free bandwidth.
    pub(super) fn guard(&self, id: &'static str, guard: u64) -> Result<Finding, Failure> {
        let both = |drive, policy, part| {
            let with = self.of(outside(drive, policy, guard))?;
            let without = self.of(outside(drive, policy, 0))?;
            let lost = percent_less(with.until(part), without.until(part));
            Ok::<Pair, Failure>([
                ("foreground_loss_percent", with.throughput_loss),
                ("free_bandwidth_loss_percent", lost),
            ])
        };
        let ours = both(JUDGED, SW60, WHOLE)?;
        let mut setups = vec![OtherSetup::several(
            "free bandwidth of the first half",
            &both(JUDGED, SW60, HALF)?,
        )];
        for policy in [SSTF, SPTF] {
            setups.push(OtherSetup::several(policy, &both(JUDGED, policy, WHOLE)?));
        }
        for drive in outside_drives().skip(1) {
            setups.push(OtherSetup::several(drive.name, &both(drive, SW60, WHOLE)?));
        }
        let note = self.note(outside(JUDGED, SW60, guard))?;
        let finding = Finding::several(id, Label::External, &ours, note);
        Ok(finding
            .beside(setups)
            .read_as(format!("{SW60}, whole scan")))
    }

    pub(super) fn sstf_beside_sptf(&self) -> Result<Finding, Failure> {
        let both = |drive, part| {
            let sstf = self.of(outside(drive, SSTF, GUARD))?;
            let sptf = self.of(outside(drive, SPTF, GUARD))?;
            Ok::<Pair, Failure>([
                (
                    "foreground_loss_percent",
                    percent_less(sstf.rate, sptf.rate),
                ),
                ("free_bandwidth_ratio", sstf.until(part) / sptf.until(part)),
            ])
        };
        self.policies(SSTF_VS_SPTF, SSTF, both)
    }

    pub(super) fn sw60_between(&self) -> Result<Finding, Failure> {
        let both = |drive, part| {
            let of = |policy| self.of(outside(drive, policy, GUARD));
            let (sstf, sw60, sptf) = (of(SSTF)?, of(SW60)?, of(SPTF)?);
            let share = sw60.until(part) / sstf.until(part) * 100.0;
            Ok::<Pair, Failure>([
                ("free_bandwidth_share_of_sstf_percent", share),
                (
                    "foreground_loss_percent",
                    percent_less(sw60.rate, sptf.rate),
                ),
            ])
        };
        self.policies(SW60_BETWEEN, SW60, both)
    }

    /// A comparison of policies on the judged drive, and on the others.
    fn policies(
        &self,
        id: &'static str,
        policy: &'static str,
        both: impl Fn(PaperDrive, u32) -> Result<Pair, Failure>,
    ) -> Result<Finding, Failure> {
        let ours = both(JUDGED, WHOLE)?;
        let mut setups = vec![
            OtherSetup::several("the start of the scan", &both(JUDGED, 1)?),
            OtherSetup::several("the first half of the scan", &both(JUDGED, HALF)?),
        ];
        for drive in outside_drives().skip(1) {
            setups.push(OtherSetup::several(drive.name, &both(drive, WHOLE)?));
        }
        let note = self.note(outside(JUDGED, policy, GUARD))?;
        let finding = Finding::several(id, Label::External, &ours, note);
        Ok(finding.beside(setups).read_as("whole scan, guard 0.3 ms"))
    }

    pub(super) fn beside_firmware(&self) -> Result<Finding, Failure> {
        let share = |drive: PaperDrive, policy, part| {
            let external = self.of(outside(drive, policy, GUARD))?;
            let firmware = self.of(inside(drive, policy))?;
            Ok::<_, Failure>(external.until(part) / firmware.until(part) * 100.0)
        };
        let ours = share(JUDGED, SW60, WHOLE)?;
        let mut setups = Vec::new();
        for (part, name) in [
            (1, "the start of the scan"),
            (HALF, "the first half of the scan"),
        ] {
            setups.push(OtherSetup::one(name, share(JUDGED, SW60, part)?));
        }
        for policy in [SSTF, SPTF] {
            setups.push(OtherSetup::one(policy, share(JUDGED, policy, WHOLE)?));
        }
        for drive in outside_drives().skip(1) {
            setups.push(OtherSetup::one(drive.name, share(drive, SW60, WHOLE)?));
        }
        let note = self.note(outside(JUDGED, SW60, GUARD))?;
        let finding = Finding::one(VS_FIRMWARE, Label::External, ours, note);
        Ok(finding.beside(setups).read_as(format!(
            "{SW60}, whole scan, guard 0.3 ms, of a simulated firmware without noise and guard whose free \
             commands go to all tracks"
        )))
    }

    /// The distance from the simulation with the same rule, from the guard on that hides the noise.
    pub(super) fn beside_no_track(&self) -> Result<Finding, Failure> {
        let distance = |drive, guard, part| {
            let external = self.of(outside(drive, SW60, guard))?;
            let firmware = self.of(no_track(drive, guard))?;
            Ok::<_, Failure>(percent_less(external.until(part), firmware.until(part)).abs())
        };
        let ours = distance(JUDGED, GUARD, WHOLE)?;
        let mut setups = Vec::new();
        for (part, name) in [
            (1, "the start of the scan"),
            (HALF, "the first half of the scan"),
        ] {
            setups.push(OtherSetup::one(name, distance(JUDGED, GUARD, part)?));
        }
        for guard in GUARDS.into_iter().filter(|guard| *guard != GUARD) {
            let name = format!("guard {:.1} ms", guard as f64 / 1e3);
            setups.push(OtherSetup::one(name, distance(JUDGED, guard, WHOLE)?));
        }
        for drive in outside_drives().skip(1) {
            setups.push(OtherSetup::one(drive.name, distance(drive, GUARD, WHOLE)?));
        }
        let note = self.note(outside(JUDGED, SW60, GUARD))?;
        let finding = Finding::one(VS_NO_TRACK, Label::External, ours, note);
        Ok(finding.beside(setups).read_as(format!(
            "{SW60}, whole scan, the distance at 0.3 ms, as the one that the paper quotes"
        )))
    }

    /// Free bandwidth and foreground of all drives and policies at the paper's guard.
    pub(super) fn rates(&self) -> Result<Table, Failure> {
        let columns = [
            "drive",
            "policy",
            "start MB/s",
            "first half",
            "whole",
            "foreground requests/s",
            "mean response %",
            "late of 1,000",
        ];
        let mut table = Table::new("Free blocks at a guard of 0.3 ms, external", &columns);
        table.words = 2;
        for drive in outside_drives() {
            for policy in POLICIES {
                let found = self.of(outside(drive, policy, GUARD))?;
                let mut row = vec![drive.name.to_owned(), policy.to_owned()];
                row.extend(PARTS.map(|part| format!("{:.2}", found.until(part))));
                row.push(format!("{:.1}", found.rate));
                row.push(format!("{:+.2}", found.mean_loss));
                row.push(format!("{:.1}", found.mispredicted));
                table.rows.push(row);
            }
        }
        let noise = CHEETAH.noise;
        table.summary = Some(format!(
            "Atlas 10K: {}; {}: {noise}.",
            JUDGED.noise, CHEETAH.name
        ));
        Ok(table)
    }
}

/// The difference in percent of `other`.
fn percent_less(one: f64, other: f64) -> f64 {
    (1.0 - one / other) * 100.0
}
