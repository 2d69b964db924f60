//! `headtime demo --simulated`: what there is to see in virtual time, in a few seconds.
//!
//! The drive is one whose model is checked against its measured service times. The built-in load
//! keeps 32 requests waiting, so that there is something to choose from: three policies serve the
//! same requests, and the difference is theirs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lab::comparison::figures::panels;
use lab::comparison::load::{LoadSettings, Source};
use lab::comparison::scan::ScanSettings;
use lab::comparison::truth::{OnOff, Truth, TruthSettings};
use lab::comparison::{Settings, Setup};
use lab::{lent, named, plot};
use scheduler::ordering::Phases;
use simulator::replay::{Devices, Fit, Pace, Plan};
use simulator::run::PastEnd;
use simulator::trace::OnBad;
use simulator::workload::{BuiltIn, Overrides};

use crate::output::{Exit, NewFile, print};
use crate::simulate;
use crate::simulate::progress::RunBar;

/// Runs the comparison, and writes its plots.
///
/// # Errors
/// If the plots cannot be written.
pub fn run(svg: &Path) -> Result<(), Exit> {
    let file = NewFile::begin(svg)?;
    let mut plots = shown(&built_in()?)?;
    print(&format!(
        "\nA drive that is never idle, {SCANNED_DRIVE} with ten requests always pending: the first \
         {SCANNED_PERCENT} % of a scan\nare read in rotational gaps. Seeks are less steady than the \
         scheduler believes.\n\n"
    ))?;
    plots.extend(shown(&scan()?)?);
    match trace() {
        Ok(path) => {
            print(&format!(
                "\nThe same with a real trace, {WHAT}: device {DEVICE} of\n{}, whose addresses fit \
                 {TRACE_DRIVE} as they are.\nIts times are multiplied by {FACTOR} (--scale-time), \
                 so that requests wait for each other.\n\n",
                path.display()
            ))?;
            plots.extend(shown(&replay(path)?)?);
        }
        Err(why) => print(&format!(
            "\nThe part with a real trace was skipped: {why}.\n"
        ))?,
    }
    file.write(&plot::page(&plots))?;
    print(&format!("\nPlots: {}\n", svg.display()))
}

/// Runs and prints a comparison; answers its plots.
fn shown(setup: &Setup) -> Result<Vec<plot::Panel>, Exit> {
    let mut runs = Vec::new();
    for &policy in &setup.policies {
        let mut progress = RunBar::new(&policy.name(), setup);
        runs.push(setup.run(policy, &mut progress)?);
        progress.finish()?;
    }
    print(&simulate::report(setup, &runs))?;
    Ok(panels(setup, &runs))
}

/// The paper's OLTP, with 32 tasks that do not think.
fn built_in() -> Result<Setup, Exit> {
    let oltp = BuiltIn::find("oltp").ok_or_else(|| Exit::failed("no built-in load"))?;
    let flags = Overrides {
        tasks: Some(32),
        think_ms: Some(0.0),
        ..Overrides::default()
    };
    let load = oltp
        .workload()
        .and_then(|load| load.with(&flags))
        .map_err(Exit::failed)?;
    setup(DRIVE, Source::Synthetic(load), Some(REQUESTS))
}

/// OLTP that is never idle, with a scan in its gaps.
fn scan() -> Result<Setup, Exit> {
    let arguments = Settings {
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
    Ok(arguments.setup()?)
}

fn replay(path: PathBuf) -> Result<Setup, Exit> {
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

fn setup(drive: &str, source: Source, requests: Option<u64>) -> Result<Setup, Exit> {
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

/// The lent trace, or why there is none.
fn trace() -> Result<PathBuf, String> {
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
const SCANNED_DRIVE: &str = "quantum-atlas-10k";

/// A few per cent of it, read in a second. A choice.
const SCANNED_PERCENT: u32 = 5;

/// How much longer or shorter seeks are. A choice: the middle of what `experiments/` sweeps.
const SEEK_NOISE_US: f64 = 60.0;

/// Ultra2 SCSI, which the drive had; its profile has the slow bus on which it was measured.
const BUS_MB_S: f64 = 80.0;

/// Another one, large enough for the trace.
const TRACE_DRIVE: &str = "seagate-cheetah-15k5";

/// Enough for the 99th percentiles to stand still in the first digits. A choice.
const REQUESTS: u64 = 100_000;

/// The trace in the folder of lent traces.
const TRACE: &str = "websearch1_first24783.csv.zst";

/// What it is, from the README of the lent traces.
const WHAT: &str = "a web search engine's (SPC WebSearch1)";

/// One of its six devices.
const DEVICE: &str = "0";

/// At the trace's own 139 requests a second the drive is half idle, and there is nothing to choose
/// from; at twice as many it is nearly as fast as first come, first served can be.
const FACTOR: f64 = 0.5;
