//! How much of a head's time goes by waiting for sectors (section 2.1): what free blocks can be
//! made of.
//!
//! The head's time is all time in which a request is there: from one completion to the next, the
//! paper's own definition.

use rayon::prelude::*;
use simulator::ledger::Report;
use simulator::workload::Workload;

use super::finding::{Finding, Mode};
use super::scene::{Asked, HeadSwitch, Model, Scene, never_idle};
use super::{Bench, Found, Measurement};
use crate::output::Failure;

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

/// One run: which claim it is for, under which policy, at which depth.
struct Case {
    id: &'static str,
    policy: &'static str,
    depth: u32,
    load: Workload,
}

fn run(bench: &Bench) -> Result<Found, Failure> {
    let scene = Scene::in_firmware(Model::Atlas10k(HeadSwitch::Paper))?;
    let cases = cases()?;
    bench.expect(cases.len());
    let shares = cases
        .par_iter()
        .map(|case| {
            let asked = Asked {
                load: &case.load,
                policy: case.policy,
                requests: bench.requests(REQUESTS),
            };
            let report = scene.run(&asked)?;
            bench.done();
            Ok(share_of_rotation(&report) * 100.0)
        })
        .collect::<Result<Vec<f64>, Failure>>()?;
    let measured: Vec<(&Case, f64)> = cases.iter().zip(shares).collect();
    let findings = MEASUREMENT
        .claims
        .iter()
        .map(|id| finding(id, &scene, &measured))
        .collect();
    Ok(Found::figures(findings))
}

fn cases() -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    let loads = [
        (SMALL, SMALL_SIZE, ANYWHERE),
        (LARGE, LARGE_SIZE, ANYWHERE),
        (LOCAL, SMALL_SIZE, IN_GROUP),
    ];
    for (id, size, placement) in loads {
        cases.push(Case {
            id,
            policy: "fcfs",
            depth: FCFS_DEPTH,
            load: never_idle(FCFS_DEPTH, size, placement)?,
        });
    }
    for (id, policy) in [(SEEKS, "c-look"), (SEEKS, "sstf"), (SPTF, "sptf")] {
        for depth in DEPTHS {
            cases.push(Case {
                id,
                policy,
                depth,
                load: never_idle(depth, SMALL_SIZE, ANYWHERE)?,
            });
        }
    }
    Ok(cases)
}

fn finding(id: &'static str, scene: &Scene, measured: &[(&Case, f64)]) -> Finding {
    let of_claim = measured.iter().filter(|(case, _)| case.id == id);
    let judged = of_claim
        .clone()
        .filter(|(case, _)| case.depth == JUDGED_DEPTH || case.policy == "fcfs");
    // Where two policies are claimed to be alike, the one that is further away counts.
    let value = judged
        .map(|(_, share)| *share)
        .max_by(|a, b| (a - HALF).abs().total_cmp(&(b - HALF).abs()))
        .unwrap_or(f64::NAN);
    let all: Vec<String> = of_claim
        .map(|(case, share)| format!("{} at depth {}: {share:.1} %", case.policy, case.depth))
        .collect();
    let load = match measured.iter().find(|(case, _)| case.id == id) {
        Some((case, _)) => case.load.to_string(),
        None => String::new(),
    };
    let note = format!("{}; {load}; {scene}", all.join(", "));
    Finding::one(id, Mode::InFirmware, value, note)
}

/// Of the time in which a request was there.
fn share_of_rotation(report: &Report) -> f64 {
    report.head.rotation / (1.0 - report.head.idle)
}

/// What is claimed of C-LOOK and SSTF alike, in percent.
const HALF: f64 = 50.0;

/// Requests in a run: the shares then vary by a tenth of a percent from seed to seed.
const REQUESTS: u64 = 50_000;

/// One in service and one at the drive: first come, first served has no use for more.
const FCFS_DEPTH: u32 = 2;

/// The paper does not say how many requests were there to choose from. Its OLTP has ten.
const DEPTHS: [u32; 3] = [10, 20, 30];

/// The depth at which C-LOOK and SSTF have the paper's half: a choice.
const JUDGED_DEPTH: u32 = 20;

/// The mean size of the paper's OLTP.
const SMALL_SIZE: &str = "kind = \"fixed\"\nkib = 8";

/// Lumb et al., FAST 2002, 2.1.
const LARGE_SIZE: &str = "kind = \"fixed\"\nkib = 256";

const ANYWHERE: &str = "kind = \"uniform\"";

/// Lumb et al., FAST 2002, 2.1: 70 %. That a group has 16 MiB is a choice: the 16 cylinders of the
/// first fast file system (McKusick et al., ACM TOCS 2(3), 1984), outside on an Atlas 10K.
const IN_GROUP: &str = "kind = \"local\"\nshare = 0.7\ngroup_kib = 16384";
