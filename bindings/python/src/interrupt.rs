//! Runs a measurement without the GIL, so that Ctrl-C ends it and its progress is shown.
//!
//! ```text
//!   caller's thread   detached: wait -- signals? progress(..) -- wait -- signals? progress(..) --.
//!   worker's thread   measure, ask Stop now and then, count -------------------------------------'-> result
//! ```

use std::panic;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use lab::{Failure, Progress};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// The reason to end a measurement, once there is one, and the measurement's progress.
#[derive(Debug, Default)]
pub struct Stop {
    is_set: Arc<AtomicBool>,
    exception: Mutex<Option<PyErr>>,
    part: Mutex<String>,
    done: AtomicU64,
    /// 0: it is not known.
    expected: AtomicU64,
}

impl Stop {
    /// Whether the measurement is to end.
    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }

    /// Ends the measurement with an exception. The first one counts.
    pub fn with(&self, exception: PyErr) {
        let held = self.exception.lock();
        let mut held = held.unwrap_or_else(std::sync::PoisonError::into_inner);
        held.get_or_insert(exception);
        self.is_set.store(true, Ordering::Relaxed);
    }

    /// The flag of [`Stop::is_set`].
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_set)
    }

    /// A part of the measurement begins, which has done so many units, of so many if it is known.
    pub fn show(&self, part: &str, done: u64, expected: Option<u64>) {
        self.expected
            .store(expected.unwrap_or(0), Ordering::Relaxed);
        self.reach(done);
        self.begin(part);
    }

    /// So many units are done.
    pub fn reach(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
    }

    /// What a callable for progress is called with.
    fn shown(&self) -> Told {
        let part = self.part.lock();
        let part = part.unwrap_or_else(std::sync::PoisonError::into_inner);
        let expected = self.expected.load(Ordering::Relaxed);
        let done = self.done.load(Ordering::Relaxed);
        (part.clone(), done, (expected > 0).then_some(expected))
    }

    fn taken(&self) -> Option<PyErr> {
        let held = self.exception.lock();
        let mut held = held.unwrap_or_else(std::sync::PoisonError::into_inner);
        held.take()
    }
}

impl Progress for Stop {
    fn begin(&self, part: &str) {
        let held = self.part.lock();
        let mut held = held.unwrap_or_else(std::sync::PoisonError::into_inner);
        part.clone_into(&mut held);
    }

    fn expect(&self, units: u64) {
        self.expected.fetch_add(units, Ordering::Relaxed);
    }

    fn advance(&self, units: u64) {
        self.done.fetch_add(units, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.is_set()
    }
}

/// Runs `measure` on a thread of its own.
///
/// # Errors
/// The exception of a signal or of Python code that the measurement called; else its failure: `ValueError` for
/// invalid input.
pub fn run<T: Send>(
    py: Python<'_>,
    measure: impl FnOnce(&Arc<Stop>) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    run_showing(py, None, measure)
}

/// The same, with a callable `progress(part, done, total)` that is called when something was done.
///
/// # Errors
/// As [`run`]; the exception of the callable.
pub fn run_showing<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    measure: impl FnOnce(&Arc<Stop>) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let stop = Arc::<Stop>::default();
    let measured = py.detach(|| {
        thread::scope(|scope| {
            let caller = thread::current();
            let stop = &stop;
            let worker = thread::Builder::new().stack_size(STACK);
            let worker = worker.spawn_scoped(scope, move || {
                let measured = measure(stop);
                caller.unpark();
                measured
            });
            let worker = worker.map_err(Failure::failed)?;
            let mut last = None;
            while !worker.is_finished() {
                thread::park_timeout(LOOK);
                let looked = Python::attach(|py| {
                    py.check_signals()?;
                    told(py, progress.as_ref(), stop, &mut last)
                });
                if let Err(exception) = looked {
                    stop.with(exception);
                }
            }
            worker
                .join()
                .unwrap_or_else(|panic| panic::resume_unwind(panic))
        })
    });
    match (stop.taken(), measured) {
        (Some(exception), _) => Err(exception),
        (None, Ok(measured)) => Ok(measured),
        (None, Err(failure)) => Err(raised(failure)),
    }
}

/// The progress of a measurement as it was told last.
type Told = (String, u64, Option<u64>);

/// Tells the progress, if a part has begun and it is another one than the last time.
fn told(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    stop: &Stop,
    last: &mut Option<Told>,
) -> PyResult<()> {
    let Some(progress) = progress.filter(|_| !stop.is_set()) else {
        return Ok(());
    };
    let now = stop.shown();
    if !now.0.is_empty() && last.as_ref() != Some(&now) {
        progress.call1(py, now.clone())?;
        *last = Some(now);
    }
    Ok(())
}

/// The exception of a failure.
pub fn raised(failure: Failure) -> PyErr {
    match failure {
        Failure::Input(problem) => PyValueError::new_err(problem),
        Failure::Failed(problem) => PyRuntimeError::new_err(problem),
    }
}

/// Time between two looks for signals. A choice: below what a person notices.
const LOOK: Duration = Duration::from_millis(50);

/// Stack of the worker, in bytes: that of a main thread on Linux.
const STACK: usize = 8 << 20;
