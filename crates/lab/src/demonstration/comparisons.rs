//! The demonstration in virtual time: setups that run in a few seconds.
//!
//! The drive's model is validated against measured service times. The built-in load keeps 32
//! requests outstanding. Three policies serve the same requests, so that differences are the
//! policies'.

use std::path::PathBuf;
use std::sync::Arc;

use crate::comparison::load::{LoadSettings, LoadSource};
use crate::comparison::scan::ScanSettings;
use crate::comparison::truth::{OnOff, Truth, TruthSettings};
use crate::comparison::{ComparisonSettings, ComparisonSetup};
use scheduler::ordering::Phases;
use simulator::replay::{AddressFit, DeviceChoice, ReplayPace, ReplayPlan};
use simulator::run::PastEnd;
use simulator::trace::{OnBad, TraceForm};
use simulator::workload::{BuiltInWorkload, Overrides};

use crate::{Failure, lent, named};

/// The paper's OLTP, with 32 tasks that do not think.
///
/// # Errors
/// If the built-in load or drive does not exist.
pub fn three_policies() -> Result<ComparisonSetup, Failure> {
    let oltp = BuiltInWorkload::find("oltp").ok_or_else(|| Failure::failed("no built-in load"))?;
    let flags = Overrides {
        tasks: Some(32),
        think_ms: Some(0.0),
        ..Overrides::default()
    };
    let load = oltp
        .workload()
        .and_then(|load| load.with(&flags))
        .map_err(Failure::failed)?;
    setup(DRIVE, LoadSource::Synthetic(Box::new(load)), Some(REQUESTS))
}

/// OLTP that is never idle, with a scan in its gaps.
///
/// # Errors
/// If the built-in load or drive does not exist.
pub fn scanned() -> Result<ComparisonSetup, Failure> {
    let settings = ComparisonSettings {
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
        ..ComparisonSettings::default()
    };
    settings.setup()
}

/// A lent trace on a drive, under three policies.
///
/// # Errors
/// If the drive does not exist.
pub fn replayed(path: PathBuf) -> Result<ComparisonSetup, Failure> {
    let plan = ReplayPlan {
        path,
        form: TraceForm::default(),
        on_bad: OnBad::Refuse,
        devices: DeviceChoice::Named(DEVICE.to_owned()),
        pace: ReplayPace::Timed { factor: FACTOR },
        fit: AddressFit::AsTheyAre,
    };
    setup(TRACE_DRIVE, LoadSource::Trace(plan), None)
}

fn setup(
    drive: &str,
    source: LoadSource,
    requests: Option<u64>,
) -> Result<ComparisonSetup, Failure> {
    let policies = ["fcfs", "c-look", "sptf"].map(named::policy);
    Ok(ComparisonSetup {
        belief: None,
        drive: Arc::new(named::drive(drive)?),
        truth: Truth::default(),
        source,
        policies: policies.into_iter().collect::<Result<_, _>>()?,
        phases: Phases::Mixed,
        grace: None,
        depth: None,
        requests,
        until: None,
        past_end: PastEnd::Stop,
        scan: None,
        preemption: None,
        slowest: 0,
        mirror: None,
        streams: None,
    })
}

/// The path of the lent trace.
///
/// # Errors
/// A message, if the trace does not exist.
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

/// Progress at which the scan ends: a second of computing. A choice.
pub const SCANNED_PERCENT: u32 = 5;

/// Standard deviation of seek times. A choice: the middle of the sweeps in `experiments/`.
const SEEK_NOISE_US: f64 = 60.0;

/// Bandwidth of Ultra2 SCSI, the drive's bus. The profile has the slow bus of its measurement.
const BUS_MB_S: f64 = 80.0;

/// The drive of the trace, which is large enough.
pub const TRACE_DRIVE: &str = "seagate-cheetah-15k5";

/// Requests of a run: the 99th percentiles then vary in the last digits only. A choice.
const REQUESTS: u64 = 100_000;

/// The trace in the folder of lent traces.
const TRACE: &str = "websearch1_first24783.csv.zst";

/// Description of the trace, from the README of the lent traces.
pub const WHAT: &str = "a web search engine's (SPC WebSearch1)";

/// The trace's device, one of six.
pub const DEVICE: &str = "0";

/// Factor of the trace's times. At its own 139 requests per second the drive is half idle, and a
/// policy has no choice. At twice the rate the drive is nearly as fast as FCFS permits.
pub const FACTOR: f64 = 0.5;
