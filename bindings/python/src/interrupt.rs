//! Runs a measurement without the GIL, so that Ctrl-C ends it.
//!
//! ```text
//!   caller's thread   detached: wait -- signals? -- wait -- signals? --.
//!   worker's thread   measure, ask Stop now and then ------------------'-> result
//! ```

use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use lab::{Failure, Progress};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// The reason to end a measurement, once there is one.
#[derive(Debug, Default)]
pub struct Stop {
    is_set: AtomicBool,
    exception: Mutex<Option<PyErr>>,
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

    fn taken(&self) -> Option<PyErr> {
        let held = self.exception.lock();
        let mut held = held.unwrap_or_else(std::sync::PoisonError::into_inner);
        held.take()
    }
}

impl Progress for Stop {
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
            while !worker.is_finished() {
                thread::park_timeout(LOOK);
                if let Err(exception) = Python::attach(|py| py.check_signals()) {
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
