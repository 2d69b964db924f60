//! Free blocks under OLTP (sections 1, 2.2, 5.3, 5.4 and 7; Figures 9 and 10): external, in the firmware,
//! and in the firmware with the external rule of one command per track.
//!
//! All figures are those of the whole scan, of the drive of Table 1. Other truths, parts, policies and
//! units stand beside them.

use block::Duration;

use super::atlas::{BIASED, CHEETAH, JUDGED, PaperDrive, TRUTHS};
use super::finding::Finding;
use super::grounds::OtherSetup;
use super::trial::{ScanTrial, Tracks, TrialLoad, TrialOutcome, Trials, fixed, remark};
use super::{Effort, Measurement, MeasurementOutcome, PaperBench};
use crate::{Failure, Label};

mod beside;
mod drawn;
mod effort;

/// The measurement.
pub const MEASUREMENT: Measurement = Measurement {
    what: "free blocks",
    claims: &[
        SHARE_INSIDE,
        SCANS_INSIDE,
        BANDWIDTH,
        SHARE,
        SCANS,
        IMPACT,
        UTILISATION,
        GUARD_300,
        GUARD_400,
        SSTF_VS_SPTF,
        SW60_BETWEEN,
        VS_FIRMWARE,
        VS_NO_TRACK,
    ],
    run,
};

const SHARE_INSIDE: &str = "fb.simulated.share";
const SCANS_INSIDE: &str = "fb.simulated.scans";
const BANDWIDTH: &str = "fb.external.bandwidth";
const SHARE: &str = "fb.external.share";
const SCANS: &str = "fb.external.scans";
const IMPACT: &str = "fb.external.impact";
const UTILISATION: &str = "fb.external.utilisation";
const GUARD_300: &str = "fb.conservatism.0.3";
const GUARD_400: &str = "fb.conservatism.0.4";
const SSTF_VS_SPTF: &str = "fb.policy.sstf-vs-sptf";
const SW60_BETWEEN: &str = "fb.policy.sptf-sw60";
const VS_FIRMWARE: &str = "fb.external-vs-firmware";
const VS_NO_TRACK: &str = "fb.external-vs-no-track-simulation";

fn run(bench: &PaperBench) -> Result<MeasurementOutcome, Failure> {
    let trials = Trials::of(bench, trials())?;
    let free = Free {
        trials: &trials,
        effort: bench.effort,
    };
    Ok(MeasurementOutcome {
        findings: vec![
            free.share_inside()?,
            free.scans_inside()?,
            free.bandwidth()?,
            free.share()?,
            free.scans()?,
            free.impact()?,
            free.utilisation()?,
            free.guard(GUARD_300, 300)?,
            free.guard(GUARD_400, 400)?,
            free.sstf_beside_sptf()?,
            free.sw60_between()?,
            free.beside_firmware()?,
            free.beside_no_track()?,
        ],
        drawings: drawn::all(&trials)?,
        tables: vec![free.rates()?, effort::table(&trials)?],
    })
}

/// The runs of all findings, drawings and tables.
fn trials() -> Vec<ScanTrial> {
    let mut all = Vec::new();
    for policy in POLICIES {
        all.extend(GUARDS.map(|guard| outside(JUDGED, policy, guard)));
    }
    for drive in inside_drives() {
        all.extend(POLICIES.map(|policy| inside(drive, policy)));
    }
    for drive in outside_drives() {
        all.extend(POLICIES.map(|policy| outside(drive, policy, GUARD)));
        all.extend([0, 400].map(|guard| outside(drive, SW60, guard)));
        all.push(no_track(drive, GUARD));
    }
    for guard in GUARDS {
        all.push(guarded(guard));
        all.push(no_track(JUDGED, guard));
    }
    all.extend(effort::SEARCHES.map(effort::trial));
    all.push(small_files());
    all
}

/// The drives of an external scheduler, the judged one first.
fn outside_drives() -> impl Iterator<Item = PaperDrive> {
    [JUDGED].into_iter().chain(TRUTHS).chain([BIASED, CHEETAH])
}

/// The drives of a scheduler in the firmware, which knows no noise.
fn inside_drives() -> impl Iterator<Item = PaperDrive> {
    [JUDGED].into_iter().chain(TRUTHS).chain([CHEETAH])
}

/// The paper's external scheduler with a guard in microseconds.
fn outside(drive: PaperDrive, policy: &'static str, guard: u64) -> ScanTrial {
    ScanTrial::external(drive.model, drive.noise, policy, micros(guard))
}

/// The simulated firmware.
fn inside(drive: PaperDrive, policy: &'static str) -> ScanTrial {
    ScanTrial::in_firmware(drive.model, policy)
}

/// The simulated firmware with a guard that it does not need.
fn guarded(guard: u64) -> ScanTrial {
    ScanTrial {
        caution: fixed(micros(guard)),
        ..inside(JUDGED, SW60)
    }
}

/// The simulated firmware with one command per track.
fn no_track(drive: PaperDrive, guard: u64) -> ScanTrial {
    ScanTrial {
        tracks: Tracks::Others,
        caution: fixed(micros(guard)),
        ..inside(drive, SW60)
    }
}

/// The load of section 5.4 with the guard of section 5.4.
fn small_files() -> ScanTrial {
    ScanTrial {
        load: TrialLoad::SmallFiles,
        part: FILES_PART,
        ..outside(JUDGED, SW60, 400)
    }
}

fn micros(guard: u64) -> Duration {
    Duration::from_micros(guard)
}

/// The runs of all findings.
struct Free<'a> {
    trials: &'a Trials,
    effort: Effort,
}

impl Free<'_> {
    fn of(&self, trial: ScanTrial) -> Result<&TrialOutcome, Failure> {
        self.trials.get(&trial)
    }

    /// The note of a finding under a trial's circumstances.
    fn note(&self, trial: ScanTrial) -> Result<String, Failure> {
        let rule = match trial.tracks {
            Tracks::Others => "no commands of their own on the foreground's tracks",
            Tracks::All => "free commands on all tracks, in up to two ranges",
        };
        Ok(format!(
            "{}OLTP, ten requests always pending, 2 commands at the drive; {}; {rule}",
            remark(self.effort),
            trial.scene()?,
        ))
    }

    /// A finding with one figure of one trial: judged over the whole scan; beside it parts of the scan,
    /// the same trial of other policies, and that of other drives.
    fn alike(
        &self,
        id: &'static str,
        mode: Label,
        (policy, drives): (&'static str, Vec<PaperDrive>),
        trial: impl Fn(PaperDrive, &'static str) -> ScanTrial,
        figure: impl Fn(&TrialOutcome, u32) -> f64,
    ) -> Result<Finding, Failure> {
        let judged = trial(JUDGED, policy);
        let ours = figure(self.of(judged)?, WHOLE);
        let mut setups = Vec::new();
        for (part, name) in [
            (1, "the start of the scan"),
            (HALF, "the first half of the scan"),
        ] {
            setups.push(OtherSetup::one(name, figure(self.of(judged)?, part)));
        }
        for other in POLICIES.into_iter().filter(|other| *other != policy) {
            let value = figure(self.of(trial(JUDGED, other))?, WHOLE);
            setups.push(OtherSetup::one(other, value));
        }
        for drive in drives.into_iter().filter(|drive| *drive != JUDGED) {
            let value = figure(self.of(trial(drive, policy))?, WHOLE);
            setups.push(OtherSetup::one(drive.name, value));
        }
        let finding = Finding::one(id, mode, ours, self.note(judged)?);
        Ok(finding.beside(setups))
    }

    fn share_inside(&self) -> Result<Finding, Failure> {
        let drives = (SW60, inside_drives().collect());
        let finding = self.alike(
            SHARE_INSIDE,
            Label::InFirmware,
            drives,
            inside,
            |of, part| of.share(part),
        )?;
        let potential = self.of(inside(JUDGED, SW60))?.drive.streaming;
        Ok(finding.read_as(format!(
            "{SW60}, whole scan, of the {potential:.1} MB/s of a sequential read of the whole disk"
        )))
    }

    fn scans_inside(&self) -> Result<Finding, Failure> {
        let drives = (SSTF, inside_drives().collect());
        let finding = self.alike(
            SCANS_INSIDE,
            Label::InFirmware,
            drives,
            inside,
            |of, part| of.scans_a_day(part),
        )?;
        Ok(finding.read_as(format!("{SSTF}, whole scan")))
    }

    /// The headline with its dependencies.
    fn bandwidth(&self) -> Result<Finding, Failure> {
        let drives = (SW60, outside_drives().collect());
        let trial = |drive, policy| outside(drive, policy, GUARD);
        let binary = |of: &TrialOutcome, part| of.until(part) / BINARY;
        let finding = self.alike(BANDWIDTH, Label::External, drives, trial, binary)?;
        let decimal = self.of(trial(JUDGED, SW60))?.until(WHOLE);
        let units = OtherSetup::one("1 MB is 10^6 bytes", decimal);
        let harder = effort::SEARCHES.map(|search| effort::setup(self.trials, search));
        let harder = harder.into_iter().collect::<Result<Vec<_>, Failure>>()?;
        Ok(finding
            .read_as(BINARY_READING)
            .beside([units])
            .beside(harder))
    }

    fn share(&self) -> Result<Finding, Failure> {
        let drives = (SW60, outside_drives().collect());
        let trial = |drive, policy| outside(drive, policy, GUARD);
        let finding = self.alike(SHARE, Label::External, drives, trial, |of, part| {
            of.share(part)
        })?;
        let found = self.of(trial(JUDGED, SW60))?;
        let media = OtherSetup::one(
            format!("of the {:.1} MB/s of the medium", found.drive.potential),
            found.until(WHOLE) / found.drive.potential * 100.0,
        );
        Ok(finding.beside([media]).read_as(format!(
            "{SW60}, whole scan, guard 0.3 ms, the setting of the 3.1 MB/s that the abstract names beside it: \
             15 % are 3.1 of 20.7 MB/s, a rate of sequential reads; ours is {:.1} MB/s, or {:.1} of 2^20 bytes, \
             over the whole disk",
            found.drive.streaming,
            found.drive.streaming / BINARY,
        )))
    }

    fn scans(&self) -> Result<Finding, Failure> {
        let drives = (SSTF, outside_drives().collect());
        let trial = |drive, policy| outside(drive, policy, GUARD);
        let finding = self.alike(SCANS, Label::External, drives, trial, |of, part| {
            of.scans_a_day(part)
        })?;
        Ok(finding.read_as(format!(
            "{SSTF}, whole scan, guard 0.3 ms: 3.1 MB/s would be 29 scans, so that the two figures cannot \
             belong to one policy"
        )))
    }

    fn impact(&self) -> Result<Finding, Failure> {
        let drives = (SW60, outside_drives().collect());
        let trial = |drive, policy| outside(drive, policy, GUARD);
        // The response is that of the whole run: it has no parts.
        let loss = |of: &TrialOutcome, _| of.mean_loss;
        let mut finding = self.alike(IMPACT, Label::External, drives, trial, loss)?;
        finding.grounds.setups.drain(..2);
        let p99 = self.of(trial(JUDGED, SW60))?.p99_loss;
        let setups = [OtherSetup::one("99th percentile instead of the mean", p99)];
        Ok(finding.beside(setups).read_as(format!(
            "{SW60}, mean response over the whole scan, guard 0.3 ms"
        )))
    }

    fn utilisation(&self) -> Result<Finding, Failure> {
        let drives = (SW60, outside_drives().collect());
        // Other policies were run with the other guard.
        let trial = |drive, policy| match policy {
            SW60 => outside(drive, policy, 400),
            _ => outside(drive, policy, GUARD),
        };
        let finding = self.alike(UTILISATION, Label::External, drives, trial, |of, part| {
            of.utilisation(part)
        })?;
        let near = self.of(outside(JUDGED, SW60, GUARD))?.utilisation(WHOLE);
        let files = self.of(small_files())?;
        let finding = finding
            .beside([
                OtherSetup::one("guard 0.3 ms", near),
                OtherSetup::one(SMALL_FILES, files.utilisation(FILES_PART)),
            ])
            .read_as(format!(
                "foreground and free bytes over foreground bytes; {SW60}, guard 0.4 ms (section 5.4), whole scan of \
                 OLTP, the load of the abstract's other figures; {SSTF} and {SPTF} with a guard of 0.3 ms"
            ));
        Ok(finding.bounded(self.of(outside(JUDGED, SW60, 400))?.beside_the_abstract()))
    }
}

impl TrialOutcome {
    /// The abstract's free bandwidth beside this foreground, which excludes its utilisation under this load.
    fn beside_the_abstract(&self) -> String {
        let foreground = self.foreground;
        let free = PUBLISHED_FREE * BINARY;
        let needed = (PUBLISHED_UTILISATION - 1.0) * foreground;
        format!(
            "excluded by the abstract's own free bandwidth: {PUBLISHED_FREE} MB/s of 2^20 bytes beside this foreground of \
             {foreground:.2} MB/s ({:.0} requests a second) is {:.1} x, and {PUBLISHED_UTILISATION:.0} x would take \
             {needed:.1} MB/s free, {:.0} % of a sequential read where the abstract has 15",
            self.rate,
            (foreground + free) / foreground,
            needed / self.drive.streaming * 100.0,
        )
    }
}

/// The name of the other load of section 5.4.
const SMALL_FILES: &str = "reads of small files, ten always pending, which is the load of section 5.4's CPU time; nine tenths of the scan";

/// Hundredths of a scan beside small files. The heads seldom pass the last tracks between groups of files: 90 % are
/// read after 6,000 s and 99 % after 9,000 s; the last 0.1 % was not after 40 minutes of CPU time (a46eac5d).
const FILES_PART: u32 = 90;

/// The abstract's free bandwidth in MB/s, and its utilisation (`fb.external.bandwidth`, `fb.external.utilisation`).
const PUBLISHED_FREE: f64 = 3.1;
const PUBLISHED_UTILISATION: f64 = 6.0;

const SSTF: &str = "sstf";
const SW60: &str = "sptf-sw60";
const SPTF: &str = "sptf";

/// The policies of the paper.
const POLICIES: [&str; 3] = [SSTF, SW60, SPTF];

/// The paper's guard, in microseconds.
const GUARD: u64 = 300;

/// The guards of Figures 9 and 10, in microseconds.
const GUARDS: [u64; 6] = [0, 100, 200, 300, 400, 500];

/// Parts of a scan, in hundredths: its start, its first half, all of it.
const PARTS: [u32; 3] = [1, HALF, WHOLE];
const HALF: u32 = 50;
const WHOLE: u32 = 100;

/// 10^6 bytes in the paper's MB. Its Table 1 gives 27 to 18 MB/s for 334 to 224 sectors at 10,025 rpm,
/// which are 28.6 to 19.2 times 10^6 bytes, or 27.2 to 18.3 times 2^20.
const BINARY: f64 = 1.048_576;

/// The reading of the headline.
const BINARY_READING: &str = "SPTF-SW60, whole scan, guard 0.3 ms; 1 MB is 2^20 bytes, as the paper's Table 1 gives \
    27 to 18 MB/s for 334 to 224 sectors: so 3.25 times 10^6 bytes";
