//! Simulations.

use std::io;
use std::sync::Arc;

use block::Finished;
use lab::cached_drive::CachedSettings;
use lab::comparison::figures::{Comparison, PolicyRun, panels};
use lab::comparison::load::LoadSettings;
use lab::comparison::truth::{OnOff, TruthSettings};
use lab::comparison::{ComparisonSettings, ComparisonSetup, OwnPolicy};
use lab::experiment::{RunRow, runs};
use lab::plot;
use lab::requests_table::requests;
use lab::{Failure, Progress};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use simulator::replay::AddressFit;
use simulator::requests_file::RequestLine;
use simulator::run::Watch;

use crate::interrupt::{self, Stop};
use crate::policy::PythonPolicy;
use crate::results::{Measured, Results, json};
use crate::system::{Names, POLICY, Simulated};
use crate::traces::TraceFile;

/// Policies: names, or an object with a method `select`.
#[derive(FromPyObject)]
pub enum Policies<'py> {
    /// Names.
    Names(Names),
    /// An object.
    Own(Bound<'py, PyAny>),
}

/// Runs a load or a trace on a drive under one policy or several, in virtual time: ``headtime simulate``.
///
/// ``system`` is a ``System``, a ``Drive`` or a drive's name. ``policy`` is a name, a list of names, or an object with
/// ``select(view) -> number``; such a policy is slow. ``requests`` and ``seconds`` (virtual) bound the run.
/// ``keep_requests`` keeps the account of each request as a table, in memory: 200 bytes each.
/// ``progress(part, done, total)`` is called now and then with the number of requests.
///
/// The other arguments are those of the command line: ``workload`` or ``trace``, ``seed``, ``tasks``, ``think_ms``,
/// ``size_kib``, ``rate`` (a second), ``read_fraction`` (0 to 1), ``device``, ``closed``, ``scale_time``, ``fit``
/// ("wrap" or "scale"), ``write_cache``, ``seek_noise_us``.
///
/// The result's table has a row for each policy, or for each cache of the system. Times end in ``_ms``.
#[pyfunction]
#[pyo3(signature = (system, *, policy=None, requests=None, seconds=None, keep_requests=false, progress=None, **load))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn simulate(
    py: Python<'_>,
    system: Simulated<'_>,
    policy: Option<Policies<'_>>,
    requests: Option<u64>,
    seconds: Option<f64>,
    keep_requests: bool,
    progress: Option<Py<PyAny>>,
    load: Option<&Bound<'_, PyDict>>,
) -> PyResult<Results> {
    let parts = SystemParts::of(&system);
    let Words { load, truth } = Words::of(load)?;
    let (policies, own) = match policy {
        None => (parts.policy, None),
        Some(Policies::Names(names)) => (names.all(), None),
        Some(Policies::Own(own)) => (vec![POLICY.to_owned()], Some(Own::new(&own)?)),
    };
    if parts.caches.is_empty() {
        let settings = ComparisonSettings {
            drive: parts.drive,
            load,
            truth,
            policies,
            depth: parts.depth,
            requests,
            seconds,
            ..ComparisonSettings::default()
        };
        let keeping = Keeping::of(keep_requests);
        return interrupt::run_showing(py, progress, |stop| {
            compared(&settings, own, keeping, stop)
        })?
        .shown(py);
    }
    let [policy] = &policies[..] else {
        return Err(PyValueError::new_err(
            "caches with several policies: expected one",
        ));
    };
    let is_more = truth != TruthSettings::default() || seconds.is_some() || keep_requests;
    if own.is_some() || is_more || parts.depth.is_some() {
        return Err(PyValueError::new_err(
            "caches with a policy in Python, depth, seconds, keep_requests, write_cache or seek_noise_us: \
             expected none",
        ));
    }
    let settings = CachedSettings {
        drive: parts.drive,
        profile: None,
        load,
        caches: parts.caches,
        link: parts.link,
        policy: policy.clone(),
        requests,
    };
    interrupt::run_showing(py, progress, |stop| cached(&settings, stop))?.shown(py)
}

/// The load and the truth, in words of the command line.
#[derive(Default)]
struct Words {
    load: LoadSettings,
    truth: TruthSettings,
}

impl Words {
    fn of(words: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut to = Words::default();
        for (word, value) in words.into_iter().flatten() {
            let word: String = word.extract()?;
            if !value.is_none() {
                to.set(&word, &value).map_err(|problem| {
                    let kind = problem.is_instance_of::<PyTypeError>(value.py());
                    match (kind, value.repr()) {
                        (true, Ok(value)) => {
                            PyTypeError::new_err(format!("{word}={value}: {problem}"))
                        }
                        _ => problem,
                    }
                })?;
            }
        }
        Ok(to)
    }

    fn set(&mut self, word: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let Words { load, truth } = self;
        match word {
            "workload" => load.workload = Some(value.extract()?),
            "trace" => {
                let (path, format, skip_bad) = value.extract::<TraceFile<'_>>()?.given();
                (load.trace, load.skip_bad) = (Some(path), skip_bad);
                load.format = load.format.take().or(format);
            }
            "format" => load.format = Some(value.extract()?),
            "seed" => load.seed = Some(value.extract()?),
            "tasks" => load.tasks = Some(value.extract()?),
            "think_ms" => load.think_ms = Some(value.extract()?),
            "size_kib" => load.size_kib = Some(value.extract()?),
            "rate" => load.rate = Some(value.extract()?),
            "read_fraction" => load.read_fraction = Some(value.extract()?),
            "device" => load.device = Some(value.extract()?),
            "closed" => load.closed = Some(value.extract()?),
            "scale_time" => load.scale_time = Some(value.extract()?),
            "fit" => load.fit = Some(address_fit(&value.extract::<String>()?)?),
            "seek_noise_us" => truth.seek_noise_us = Some(value.extract()?),
            "write_cache" => {
                truth.write_cache = Some(match value.extract()? {
                    true => OnOff::On,
                    false => OnOff::Off,
                });
            }
            other => {
                let problem = format!("simulate() got an unexpected keyword argument '{other}'");
                return Err(PyTypeError::new_err(problem));
            }
        }
        Ok(())
    }
}

/// What a system, a drive or a name says.
struct SystemParts {
    drive: String,
    policy: Vec<String>,
    caches: Vec<String>,
    link: String,
    depth: Option<u32>,
}

impl SystemParts {
    fn of(system: &Simulated<'_>) -> Self {
        let alone = |drive: String| SystemParts {
            drive,
            policy: vec![POLICY.to_owned()],
            caches: Vec::new(),
            link: "none".to_owned(),
            depth: None,
        };
        match system {
            Simulated::Name(name) => alone(name.clone()),
            Simulated::Drive(drive) => alone(drive.get().given.clone()),
            Simulated::System(system) => {
                let system = system.get();
                SystemParts {
                    drive: system.drive.clone(),
                    policy: system.policy.clone(),
                    caches: system.caches.clone(),
                    link: system.link.clone(),
                    depth: system.depth,
                }
            }
        }
    }
}

/// A policy in Python.
struct Own {
    name: String,
    policy: Py<PyAny>,
}

impl Own {
    fn new(policy: &Bound<'_, PyAny>) -> PyResult<Self> {
        let name = policy.get_type().name()?.to_string();
        match policy.hasattr("select")? {
            true => Ok(Own {
                name,
                policy: policy.clone().unbind(),
            }),
            false => Err(PyValueError::new_err(format!(
                "a policy of type {name}: expected a name, a list of names, or an object with select(view)"
            ))),
        }
    }
}

/// Whether the accounts of requests are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeping {
    Totals,
    Requests,
}

impl Keeping {
    fn of(keep_requests: bool) -> Self {
        match keep_requests {
            true => Keeping::Requests,
            false => Keeping::Totals,
        }
    }
}

/// Ends a run when it is to stop, and keeps requests.
struct Watcher<'a> {
    stop: &'a Stop,
    keeping: Keeping,
    lines: Vec<RequestLine>,
}

impl Watch for Watcher<'_> {
    fn finished(&mut self, finished: &Finished) -> io::Result<()> {
        if self.stop.is_set() {
            return Err(io::Error::other("interrupted"));
        }
        self.stop.advance(1);
        if self.keeping == Keeping::Requests {
            self.lines.push(RequestLine::from(finished));
        }
        Ok(())
    }
}

/// Runs the load under each policy.
fn compared(
    settings: &ComparisonSettings,
    own: Option<Own>,
    keeping: Keeping,
    stop: &Arc<Stop>,
) -> Result<Measured, Failure> {
    let setup = settings.setup()?;
    if keeping == Keeping::Requests && setup.policies.len() > 1 {
        return Err(Failure::input(
            "keep_requests keeps one table: expected one policy",
        ));
    }
    let all = setup
        .requests
        .map(|requests| requests * setup.policies.len() as u64);
    stop.show("simulated", 0, all);
    let mut watcher = Watcher {
        stop,
        keeping,
        lines: Vec::new(),
    };
    let ran = match &own {
        Some(own) => vec![run_own(&setup, own, &mut watcher, stop)?],
        None => {
            let each = setup.policies.iter();
            each.map(|&policy| setup.run(policy, &mut watcher))
                .collect::<Result<Vec<_>, _>>()?
        }
    };
    let rows = ran
        .iter()
        .map(|run| RunRow::simulated(settings, &setup, run));
    Ok(Measured {
        json: json(&Comparison::new(&setup, &ran))?,
        svg: Some(plot::page(&panels(&setup, &ran))),
        table: runs(&rows.collect::<Vec<_>>()),
        requests: (keeping == Keeping::Requests).then(|| requests(&watcher.lines)),
    })
}

fn run_own(
    setup: &ComparisonSetup,
    own: &Own,
    watcher: &mut Watcher<'_>,
    stop: &Arc<Stop>,
) -> Result<PolicyRun, Failure> {
    let make = || {
        let policy = Python::attach(|py| own.policy.clone_ref(py));
        Box::new(PythonPolicy::new(policy, Arc::clone(stop))) as Box<dyn scheduler::Policy>
    };
    let policy = OwnPolicy {
        name: &own.name,
        make: &make,
    };
    setup.run_own(&policy, watcher)
}

/// Runs a trace on caches.
fn cached(settings: &CachedSettings, stop: &Arc<Stop>) -> Result<Measured, Failure> {
    let figures = settings.run(&**stop)?;
    Ok(Measured {
        json: json(&figures)?,
        svg: None,
        table: figures.table(),
        requests: None,
    })
}

fn address_fit(word: &str) -> PyResult<AddressFit> {
    match word {
        "wrap" => Ok(AddressFit::Wrap),
        "scale" => Ok(AddressFit::Scale),
        _ => Err(PyValueError::new_err(format!(
            "fit {word:?}: expected \"wrap\" or \"scale\""
        ))),
    }
}
