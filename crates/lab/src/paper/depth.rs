//! Throughput over the queue depth (section 5.2, Figure 8): an external scheduler with two commands
//! at the drive, and the drive's own queue with all.

use crate::plot::{Curve, Panel};
use rayon::prelude::*;
use simulator::workload::Overrides;

use super::atlas::{BIASED, CHEETAH, JUDGED, PaperDrive, TRUTHS};
use super::finding::{Finding, ShapeVerdict};
use super::grounds::OtherSetup;
use super::scene::{PaperScene, PolicyRunSpec, load};
use super::{Drawing, Measurement, MeasurementOutcome, PaperBench};
use crate::{Failure, Label};

/// The measurement.
pub const MEASUREMENT: Measurement = Measurement {
    what: "throughput over depth",
    claims: &[ID],
    run,
};

const ID: &str = "fb.sptf.external-matches-firmware";

/// Throughputs by policy, then by depth.
struct DepthSweep {
    drive: PaperDrive,
    scene: PaperScene,
    rates: Vec<Vec<f64>>,
}

fn run(bench: &PaperBench) -> Result<MeasurementOutcome, Failure> {
    let drives = [JUDGED, CHEETAH].into_iter().chain(TRUTHS).chain([BIASED]);
    let drives: Vec<PaperDrive> = drives.collect();
    bench.expect(drives.len() * POLICIES.len() * DEPTHS.len());
    let sweeps = drives
        .into_iter()
        .map(|drive| sweep(bench, drive))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(MeasurementOutcome {
        findings: vec![finding(&sweeps)],
        drawings: vec![drawing(&sweeps[..2])],
        ..MeasurementOutcome::default()
    })
}

fn sweep(bench: &PaperBench, drive: PaperDrive) -> Result<DepthSweep, Failure> {
    let scene = PaperScene::external(drive.model, drive.noise)?;
    let points: Vec<(&str, u32)> = POLICIES
        .iter()
        .flat_map(|policy| DEPTHS.map(|depth| (*policy, depth)))
        .collect();
    let rates = points
        .par_iter()
        .map(|&(policy, depth)| {
            let flags = Overrides {
                tasks: Some(depth),
                ..Overrides::default()
            };
            let asked = PolicyRunSpec {
                load: &load("uniform-4k", &flags)?,
                policy,
                requests: bench.requests(REQUESTS),
            };
            let report = scene.run(&asked, &mut ())?;
            bench.done();
            Ok(report.requests_per_second)
        })
        .collect::<Result<Vec<f64>, Failure>>()?;
    Ok(DepthSweep {
        drive,
        scene,
        rates: rates.chunks(DEPTHS.len()).map(<[f64]>::to_vec).collect(),
    })
}

impl DepthSweep {
    fn rate(&self, policy: &str, depth: u32) -> f64 {
        let policy = POLICIES.iter().position(|other| *other == policy);
        let depth = DEPTHS.iter().position(|other| *other == depth);
        match (policy, depth) {
            (Some(policy), Some(depth)) => self.rates[policy][depth],
            _ => f64::NAN,
        }
    }

    /// The lead of one policy over another, in percent.
    fn lead(&self, policy: &str, other: &str, depth: u32) -> f64 {
        (self.rate(policy, depth) / self.rate(other, depth) - 1.0) * 100.0
    }

    /// The largest distance between external and firmware.
    fn distance(&self) -> f64 {
        let leads = DEPTHS.map(|depth| self.lead(SPTF, DRIVE, depth));
        leads
            .into_iter()
            .fold(0.0, |most: f64, lead| match lead.abs() > most.abs() {
                true => lead,
                false => most,
            })
    }

    fn figures(&self) -> [(&'static str, f64); 5] {
        [
            ("external_over_drive_percent", self.distance()),
            ("sptf_over_sw60_percent", self.lead(SPTF, SW60, DEEP)),
            ("sw60_over_sstf_percent", self.lead(SW60, SSTF, DEEP)),
            ("sptf_over_sstf_percent", self.lead(SPTF, SSTF, DEEP)),
            (
                "sptf_over_sstf_at_4_percent",
                self.lead(SPTF, SSTF, SHALLOW),
            ),
        ]
    }

    fn checks(&self) -> [bool; 4] {
        [
            self.distance().abs() <= COINCIDES,
            self.lead(SPTF, SW60, DEEP) > 0.0,
            self.lead(SW60, SSTF, DEEP) > 0.0,
            self.lead(SPTF, SSTF, DEEP) > self.lead(SPTF, SSTF, SHALLOW),
        ]
    }
}

/// The finding on the paper's two drives, and on each of the drives alone.
fn finding(sweeps: &[DepthSweep]) -> Finding {
    let papers = &sweeps[..2];
    let checks: Vec<bool> = papers.iter().flat_map(DepthSweep::checks).collect();
    let lines = papers.iter().map(|sweep| {
        let at = |depth| {
            let rates = POLICIES.map(|policy| format!("{:.0}", sweep.rate(policy, depth)));
            format!("depth {depth}: {}", rates.join(" / "))
        };
        let depths = [1, 2, 4, 8, 16].map(at).join(", ");
        format!("{}: {depths}", sweep.scene)
    });
    let note = format!(
        "random 4 KB reads, 2 commands at the drive from outside, requests/s of {}: {}",
        POLICIES.join(" / "),
        lines.collect::<Vec<_>>().join("; ")
    );
    let alone = sweeps.iter().map(|sweep| {
        let setup = OtherSetup::several(format!("{} alone", sweep.drive.name), &sweep.figures());
        setup.shaped(ShapeVerdict::of(&sweep.checks()))
    });
    Finding::several(ID, Label::External, &sweeps[0].figures(), note)
        .shaped(ShapeVerdict::of(&checks))
        .beside(alone.collect::<Vec<_>>())
        .read_as("both drives of the paper; the figures are those of the Atlas 10K")
}

fn drawing(sweeps: &[DepthSweep]) -> Drawing {
    let panels = sweeps.iter().map(|sweep| Panel::Lines {
        title: format!("Throughput over depth, {}", sweep.drive.model.name()),
        x_label: "requests pending".to_owned(),
        y_label: "requests/s".to_owned(),
        curves: POLICIES
            .iter()
            .zip(&sweep.rates)
            .map(|(policy, rates)| Curve {
                name: (*policy).to_owned(),
                points: std::iter::zip(DEPTHS.map(f64::from), rates.iter().copied()).collect(),
            })
            .collect(),
    });
    Drawing {
        name: "figure-8",
        panels: panels.collect(),
    }
}

const SPTF: &str = "sptf";
const SW60: &str = "sptf-sw60";
const SSTF: &str = "sstf";
const DRIVE: &str = "drive";

/// The policies in the order of the paper's figure.
const POLICIES: [&str; 4] = [SPTF, SW60, SSTF, DRIVE];

/// The depths of the paper's figure.
const DEPTHS: [u32; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

/// The deepest queue of the paper's figure.
const DEEP: u32 = 16;

/// A shallow depth for comparison: two requests to choose from. A choice.
const SHALLOW: u32 = 4;

/// Largest distance of coinciding curves, in percent. A choice: about a line's width in the paper's
/// figure.
const COINCIDES: f64 = 5.0;

/// Requests in a run: throughput then varies by less than half a percent between seeds.
const REQUESTS: u64 = 20_000;
