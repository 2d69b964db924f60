//! Profiles of simulated drives, from timings alone.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use block::{Duration, Instant};
use drive::HostJitter;
use lab::Failure;
use lab::profiling::ProfilingObserver;
use lab::profiling::found::{self, FoundDrive};
use lab::profiling::rehearsal::{self, RehearsalNoise, RehearsalPath};
use lab::profiling::{check, report};
use profiler::{DriveIdentity, Findings, Offers};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::drives::DriveName;
use crate::interrupt::{self, Stop};
use crate::table::written;

/// The findings of ``profile``.
#[pyclass(frozen, get_all, module = "headtime")]
pub struct Profiled {
    /// A line of JSON for the drive, or for each of its actuators, as ``headtime profile --json`` prints it.
    json: String,
    /// The profile as TOML, the text of ``headtime profile -o``; None if too little was found.
    toml: Option<String>,
    /// The reason that there is no profile, or None.
    problem: Option<String>,
    /// The drawings of ``--svg-dir``: SVG by the name of the file.
    drawings: Vec<(String, String)>,
}

#[pymethods]
impl Profiled {
    /// Writes the profile, which ``Drive``, ``System`` and ``simulate`` take by its path (``.toml``).
    fn write(&self, path: std::path::PathBuf) -> PyResult<()> {
        match (&self.toml, &self.problem) {
            (Some(toml), _) => written(&path, toml.as_bytes()),
            (None, problem) => {
                let problem = problem.as_deref().unwrap_or("no profile was found");
                Err(PyValueError::new_err(problem.to_owned()))
            }
        }
    }

    fn _repr_svg_(&self) -> Option<&str> {
        self.drawings.first().map(|(_, drawing)| drawing.as_str())
    }

    fn __repr__(&self) -> String {
        format!("<headtime.Profiled {}>", self.json.trim_end())
    }
}

/// Finds the profile of a simulated drive from block numbers and completion times alone: ``headtime profile --drive``.
///
/// ``budget_s`` is the drive's time. ``seek_noise_us`` and ``electronics_noise_us`` are standard deviations of the
/// simulated drive, ``host_jitter_us`` the mean delay of its host. ``reads_only`` forbids cache control and writes.
/// ``check`` adds a comparison with the truth to the JSON.
///
/// ``progress(part, done, total)`` is called now and then with seconds of the drive's time.
#[pyfunction]
#[pyo3(signature = (
    drive, *, budget_s=600.0, seek_noise_us=60.0, electronics_noise_us=20.0, host_jitter_us=0.0, reads_only=false,
    seed=1, check=false, progress=None
))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn profile(
    py: Python<'_>,
    drive: DriveName<'_>,
    budget_s: f64,
    seek_noise_us: f64,
    electronics_noise_us: f64,
    host_jitter_us: f64,
    reads_only: bool,
    seed: u64,
    check: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Profiled> {
    let names = [drive.given()];
    if !(budget_s > 0.0 && budget_s <= LONGEST_S) {
        return Err(PyValueError::new_err(format!(
            "budget_s={budget_s}: expected seconds, up to a week"
        )));
    }
    let noise = RehearsalNoise {
        seek: micros("seek_noise_us", seek_noise_us)?,
        electronics: micros("electronics_noise_us", electronics_noise_us)?,
        seed,
    };
    let path = RehearsalPath {
        offers: match reads_only {
            true => Offers::Nothing,
            false => Offers::CacheControl,
        },
        jitter: HostJitter::exponential(micros("host_jitter_us", host_jitter_us)?),
    };
    let budget = Duration::from_nanos((budget_s * 1e9) as u64);
    let checking = match check {
        true => Checking::Truth,
        false => Checking::Nothing,
    };
    interrupt::run_showing(py, progress, |stop| {
        let observer = Observer::new(Arc::clone(stop), budget);
        let none = Findings::default();
        let founds = rehearsal::profiles(&names, noise, path, budget, &none, &observer)?;
        profiled(&founds, checking)
    })
}

/// Whether findings are compared with the truth.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checking {
    Nothing,
    Truth,
}

fn profiled(founds: &[FoundDrive], checking: Checking) -> Result<Profiled, Failure> {
    let (mut json, mut drawings) = (String::new(), Vec::new());
    for found in founds {
        json += &match (&found.truth, checking) {
            (Some(truth), Checking::Truth) => line(&check::check(found, truth)?)?,
            _ => line(&report::figures(found)?)?,
        };
        let folder = match founds.len() {
            1 => String::new(),
            _ => format!("{}/", found.name),
        };
        for (name, drawing) in report::drawings(found)? {
            drawings.push((format!("{folder}{name}"), drawing));
        }
    }
    let (toml, problem) = match found::file_text(founds) {
        Ok(text) => (Some(text), None),
        Err(problem) => (None, Some(problem.to_string())),
    };
    Ok(Profiled {
        json,
        toml,
        problem,
        drawings,
    })
}

fn line(figures: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(figures).map_err(Failure::failed)?;
    Ok(text + "\n")
}

/// Counts the seconds of the drive, and passes Ctrl-C on.
struct Observer {
    stop: Arc<Stop>,
    flag: Arc<AtomicBool>,
}

impl Observer {
    fn new(stop: Arc<Stop>, budget: Duration) -> Self {
        stop.show("profiling", 0, Some(budget.as_nanos() / NANOS));
        let flag = stop.flag();
        Observer { stop, flag }
    }
}

impl ProfilingObserver for Observer {
    fn show(&self, at: Instant, _device: &DriveIdentity, _findings: &Findings) {
        self.stop.reach(at.as_nanos() / NANOS);
    }

    fn stop(&self) -> Option<Arc<AtomicBool>> {
        Some(Arc::clone(&self.flag))
    }
}

fn micros(word: &str, micros: f64) -> PyResult<Duration> {
    match (0.0..=MOST_NOISE_US).contains(&micros) {
        true => Ok(Duration::from_nanos((micros * 1e3).round() as u64)),
        false => Err(PyValueError::new_err(format!(
            "{word}={micros}: expected a number from 0 to {MOST_NOISE_US}"
        ))),
    }
}

/// Limit of noise: that of `headtime profile`.
const MOST_NOISE_US: f64 = 10_000.0;

/// Longest budget, a week: that of `headtime profile`.
const LONGEST_S: f64 = 7.0 * 86_400.0;

/// Nanoseconds of a second.
const NANOS: u64 = 1_000_000_000;
