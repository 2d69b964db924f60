//! The demonstration in virtual time: setups whose comparison takes a few seconds.
//!
//! The drive is one whose model is checked against its measured service times. The built-in load
//! keeps 32 requests waiting, so that there is something to choose from: three policies serve the
//! same requests, and the difference is theirs.

use std::path::PathBuf;
use std::sync::Arc;

use crate::comparison::load::{LoadSettings, Source};
use crate::comparison::scan::ScanSettings;
use crate::comparison::truth::{OnOff, Truth, TruthSettings};
use crate::comparison::{Settings, Setup};
use scheduler::ordering::Phases;
use simulator::replay::{Devices, Fit, Pace, Plan};
use simulator::run::PastEnd;
use simulator::trace::OnBad;
use simulator::workload::{BuiltIn, Overrides};

use crate::{Failure, lent, named};

/// The paper's OLTP, with 32 tasks that do not think.
///
/// # Errors
/// If the built-in load or drive is not there.
pub fn three_policies() -> Result<Setup, Failure> {
    let oltp = BuiltIn::find("oltp").ok_or_else(|| Failure::failed("no built-in load"))?;
    let flags = Overrides {
        tasks: Some(32),
        think_ms: Some(0.0),
        ..Overrides::default()
    };
    let load = oltp
        .workload()
        .and_then(|load| load.with(&flags))
        .map_err(Failure::failed)?;
    setup(DRIVE, Source::Synthetic(Box::new(load)), Some(REQUESTS))
}

/// OLTP that is never idle, with a scan in its gaps.
///
/// # Errors
/// If the built-in load or drive is not there.
pub fn scanned() -> Result<Setup, Failure> {
    let settings = Settings {
        drive: SCANNED_DRIVE.to_owned(),
        policies: vec!["sptf-sw60".to_owned()],
        load: LoadSettings {
            workload: Some("oltp".to_owned()),
            think_ms: Some(0.0),
            ..LoadSettings::default()
        },
        truth: TruthSettings {
            seek_noise_us: Some(SEEK_NOISE_US),
            write_cache: Some(OnOff::Off),
            bus_mb_s: Some(BUS_MB_S),
            ..TruthSettings::default()
        },
        scan: ScanSettings {
            scan: Some("all".to_owned()),
            scan_until: Some(SCANNED_PERCENT),
            ..ScanSettings::default()
        },
        ..Settings::default()
    };
    settings.setup()
}

/// A lent trace on a drive, under three policies.
///
/// # Errors
/// If the drive is not there.
pub fn replayed(path: PathBuf) -> Result<Setup, Failure> {
    let plan = Plan {
        path,
        format: None,
        on_bad: OnBad::Refuse,
        devices: Devices::Named(DEVICE.to_owned()),
        pace: Pace::Timed { factor: FACTOR },
        fit: Fit::AsTheyAre,
    };
    setup(TRACE_DRIVE, Source::Trace(plan), None)
}

fn setup(drive: &str, source: Source, requests: Option<u64>) -> Result<Setup, Failure> {
    let policies = ["fcfs", "c-look", "sptf"].map(named::policy);
    Ok(Setup {
        belief: None,
        drive: Arc::new(named::drive(drive)?),
        truth: Truth::default(),
        source,
        policies: policies.into_iter().collect::<Result<_, _>>()?,
        phases: Phases::Mixed,
        depth: None,
        requests,
        until: None,
        past_end: PastEnd::Stop,
        scan: None,
        preemption: None,
        slowest: 0,
    })
}

/// The lent trace.
///
/// # Errors
/// In words, if there is none.
pub fn trace() -> Result<PathBuf, String> {
    let path = lent::folder().join("traces").join(TRACE);
    match path.is_file() {
        true => Ok(path),
        false => Err(format!(
            "there is no {} (HEADTIME_SHARED names the folder of the lent files)",
            path.display()
        )),
    }
}

/// A drive whose model is validated against 10,000 measured requests.
const DRIVE: &str = "seagate-cheetah-9lp";

/// The drive of the paper on free blocks (Lumb, Schindler, Ganger, FAST 2002).
pub const SCANNED_DRIVE: &str = "quantum-atlas-10k";

/// A few per cent of it, read in a second. A choice.
pub const SCANNED_PERCENT: u32 = 5;

/// How much longer or shorter seeks are. A choice: the middle of what `experiments/` sweeps.
const SEEK_NOISE_US: f64 = 60.0;

/// Ultra2 SCSI, which the drive had; its profile has the slow bus on which it was measured.
const BUS_MB_S: f64 = 80.0;

/// Another one, large enough for the trace.
pub const TRACE_DRIVE: &str = "seagate-cheetah-15k5";

/// Enough for the 99th percentiles to stand still in the first digits. A choice.
const REQUESTS: u64 = 100_000;

/// The trace in the folder of lent traces.
const TRACE: &str = "websearch1_first24783.csv.zst";

/// What it is, from the README of the lent traces.
pub const WHAT: &str = "a web search engine's (SPC WebSearch1)";

/// One of its six devices.
pub const DEVICE: &str = "0";

/// At the trace's own 139 requests a second the drive is half idle, and there is nothing to choose
/// from; at twice as many it is nearly as fast as first come, first served can be.
pub const FACTOR: f64 = 0.5;
