//! The share of head time that is rotational latency (section 2.1), from which free blocks are
//! made.
//!
//! Head time is all time with a pending request: from one completion to the next, as the paper
//! defines it. Latency is neither seek nor transfer. With zero-latency access it includes the part
//! of the revolution in which unrequested sectors pass.
//!
//! ```text
//!    completion                                                            completion
//!       |  seek  | waits | the end of the request | waits | its beginning |
//! ```

use std::io;

use block::{Duration, Finished};
use drive::Profile;
use rayon::prelude::*;
use simulator::run::Watch;
use simulator::workload::{Overrides, Placement, Workload};

use super::atlas::{JUDGED, PaperDrive, TRUTHS};
use super::finding::Finding;
use super::grounds::OtherSetup;
use super::scene::{PaperScene, PolicyRunSpec, load};
use super::{Measurement, MeasurementOutcome, PaperBench};
use crate::{Failure, Label};

/// The measurement.
pub const MEASUREMENT: Measurement = Measurement {
    what: "latency shares",
    claims: &[SMALL, LARGE, LOCAL, SEEKS, SPTF],
    run,
};

const SMALL: &str = "fb.latency-share.random-small";
const LARGE: &str = "fb.latency-share.256k";
const LOCAL: &str = "fb.latency-share.local";
const SEEKS: &str = "fb.latency-share.seek-reducing";
const SPTF: &str = "fb.latency-share.sptf";

/// A run for a claim, under a policy and at a depth.
struct LatencyShareCase {
    id: &'static str,
    policy: &'static str,
    depth: u32,
    load: Workload,
    drive: PaperDrive,
    /// The difference from the judged run; none if it is judged.
    setup: Option<String>,
}

fn run(bench: &PaperBench) -> Result<MeasurementOutcome, Failure> {
    let cases = cases()?;
    bench.expect(cases.len());
    let shares = cases
        .par_iter()
        .map(|case| {
            let scene = PaperScene::in_firmware(case.drive.model)?;
            let asked = PolicyRunSpec {
                load: &case.load,
                policy: case.policy,
                requests: bench.requests(REQUESTS),
            };
            let mut waits = Waits {
                drive: scene.belief(),
                sum: Duration::ZERO,
            };
            let report = scene.run(&asked, &mut waits)?;
            bench.done();
            let busy_ms = report.span_ms * (1.0 - report.head.idle);
            Ok(waits.sum.as_millis_f64() / busy_ms * 100.0)
        })
        .collect::<Result<Vec<f64>, Failure>>()?;
    let measured: Vec<(&LatencyShareCase, f64)> = cases.iter().zip(shares).collect();
    let scene = PaperScene::in_firmware(JUDGED.model)?;
    let findings = MEASUREMENT
        .claims
        .iter()
        .map(|id| finding(id, &scene, &measured))
        .collect();
    Ok(MeasurementOutcome::figures(findings))
}

fn cases() -> Result<Vec<LatencyShareCase>, Failure> {
    let mut cases = Vec::new();
    let others = |drive: PaperDrive| (drive != JUDGED).then(|| drive.name.to_owned());
    for drive in [JUDGED].into_iter().chain(TRUTHS) {
        for (id, name) in [
            (SMALL, SMALL_LOAD),
            (LARGE, "random-256k"),
            (LOCAL, "local-small"),
        ] {
            cases.push(LatencyShareCase {
                id,
                policy: "fcfs",
                depth: FCFS_DEPTH,
                load: never_idle(name, FCFS_DEPTH)?,
                drive,
                setup: others(drive),
            });
        }
        for (id, policy) in [(SEEKS, "c-look"), (SEEKS, "sstf"), (SPTF, "sptf")] {
            cases.push(LatencyShareCase {
                id,
                policy,
                depth: JUDGED_DEPTH,
                load: never_idle(SMALL_LOAD, JUDGED_DEPTH)?,
                drive,
                setup: others(drive),
            });
        }
    }
    let mut tight = never_idle("local-small", FCFS_DEPTH)?;
    if let Placement::Local { group_bytes, .. } = &mut tight.placement {
        *group_bytes = TIGHT_GROUP;
    }
    cases.push(LatencyShareCase {
        id: LOCAL,
        policy: "fcfs",
        depth: FCFS_DEPTH,
        setup: Some(tight.placement.to_string()),
        load: tight,
        drive: JUDGED,
    });
    for (id, policy) in [(SEEKS, "c-look"), (SEEKS, "sstf"), (SPTF, "sptf")] {
        for depth in DEPTHS {
            cases.push(LatencyShareCase {
                id,
                policy,
                depth,
                load: never_idle(SMALL_LOAD, depth)?,
                drive: JUDGED,
                setup: Some(format!("depth {depth}")),
            });
            for drive in TRUTHS {
                cases.push(LatencyShareCase {
                    id,
                    policy,
                    depth,
                    load: never_idle(SMALL_LOAD, depth)?,
                    drive,
                    setup: Some(format!("{}, depth {depth}", drive.name)),
                });
            }
        }
    }
    Ok(cases)
}

fn finding(id: &'static str, scene: &PaperScene, measured: &[(&LatencyShareCase, f64)]) -> Finding {
    let of_claim: Vec<&(&LatencyShareCase, f64)> =
        measured.iter().filter(|(case, _)| case.id == id).collect();
    // Where two policies are claimed to be alike, the one that is further away counts.
    let worst = |setup: &Option<String>| {
        let alike = of_claim.iter().filter(|(case, _)| case.setup == *setup);
        let shares = alike.map(|(_, share)| *share);
        let worst = shares.max_by(|a, b| (a - HALF).abs().total_cmp(&(b - HALF).abs()));
        worst.unwrap_or(f64::NAN)
    };
    let mut names: Vec<&Option<String>> = Vec::new();
    for (case, _) in &of_claim {
        if case.setup.is_some() && !names.contains(&&case.setup) {
            names.push(&case.setup);
        }
    }
    let setups = names.into_iter().map(|name| {
        let value = worst(name);
        OtherSetup::one(name.clone().unwrap_or_default(), value)
    });
    let judged = of_claim.iter().filter(|(case, _)| case.setup.is_none());
    let runs = judged.map(|(case, share)| {
        let LatencyShareCase { policy, depth, .. } = case;
        format!("{policy} at depth {depth}: {share:.1} %")
    });
    let runs: Vec<String> = runs.collect();
    let load = of_claim.first().map(|(case, _)| case.load.to_string());
    let note = format!(
        "{}; always outstanding: the depth, 2 at the drive; {}; {scene}",
        runs.join(", "),
        load.unwrap_or_default()
    );
    let reading = match id {
        LOCAL => "\"up to 60 %\" is the value that is reached",
        SEEKS => {
            "depth 10, that of the paper's OLTP, as section 2.1 states none; of C-LOOK and SSTF the one further away"
        }
        SPTF => "depth 10, that of the paper's OLTP, as section 2.1 states none",
        _ => "",
    };
    let finding = Finding::one(id, Label::InFirmware, worst(&None), note);
    finding.beside(setups.collect::<Vec<_>>()).read_as(reading)
}

/// A load with a constant number of outstanding requests.
fn never_idle(name: &str, depth: u32) -> Result<Workload, Failure> {
    let small = name != "random-256k";
    load(
        name,
        &Overrides {
            tasks: Some(depth),
            read_fraction: Some(READS),
            size_kib: small.then_some(SMALL_KIB),
            ..Overrides::default()
        },
    )
}

/// Adds up rotational latencies.
struct Waits<'a> {
    drive: &'a Profile,
    sum: Duration,
}

impl Watch for Waits<'_> {
    fn finished(&mut self, finished: &Finished) -> io::Result<()> {
        if let Some(account) = finished.account {
            let runs = self.drive.geometry.runs(finished.request.extent);
            let requested = runs.map(|run| self.drive.spindle.time_of(run.sweep)).sum();
            self.sum += account.rotation + account.transfer.saturating_sub(requested);
        }
        Ok(())
    }
}

/// Claimed share of C-LOOK and SSTF alike, in percent.
const HALF: f64 = 50.0;

/// Requests in a run: the shares then vary by a tenth of a percent between seeds.
const REQUESTS: u64 = 50_000;

/// Depth of FCFS: one command in service and one at the drive, as more would not matter.
const FCFS_DEPTH: u32 = 2;

/// Other depths.
const DEPTHS: [u32; 3] = [20, 30, 40];

/// Depth of the policies: the ten pending requests of the paper's OLTP. Section 2.1 states none.
const JUDGED_DEPTH: u32 = 10;

/// Size of small requests. The random requests of section 5.2 have 4 KB; section 2.1 has no figure.
const SMALL_KIB: f64 = 4.0;

/// A cylinder group smaller than a cylinder, beside the 16 MiB of the built-in load.
const TIGHT_GROUP: u64 = 512 << 10;

/// The built-in load of small requests anywhere.
const SMALL_LOAD: &str = "uniform-4k";

/// Two reads to one write, as in the paper's OLTP.
const READS: f64 = 0.6667;
