//! A prefetcher that is written in Python, to try an idea: thousands of times slower than one in Rust.

use std::sync::Arc;

use block::Interval;
use cache::Residency;
use cache::prefetch::{Advice, Ahead, LookupResult, PrefetchWaiter, Prefetcher, Seen};
use lab::Failure;
use lab::cache_curve::OwnPrefetcher;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::interrupt::Stop;

/// A class in Python, and its name.
pub struct PythonPrefetcher {
    name: String,
    class: Py<PyType>,
    stop: Arc<Stop>,
}

/// An object of that class. After an exception it fetches nothing, until the run has ended.
struct PythonAhead {
    name: String,
    own: Py<PyAny>,
    hears_arrivals: bool,
    stop: Arc<Stop>,
}

/// A request as a prefetcher in Python sees it. Blocks have 4 KiB.
#[pyclass(frozen, get_all, module = "headtime")]
pub struct SeenRequest {
    /// The first block.
    first: u64,
    /// The number of blocks.
    blocks: u64,
    /// The file; of a trace without files the volume.
    file: u64,
    /// The last block of the file or volume.
    end: u64,
    /// Whether all blocks are in the cache.
    is_hit: bool,
}

impl PythonPrefetcher {
    /// A prefetcher whose caches have an object of `class` each.
    ///
    /// # Errors
    /// If the class lacks the method.
    pub fn new(class: &Bound<'_, PyType>, stop: Arc<Stop>) -> PyResult<Self> {
        let name = class.name()?.to_string();
        if !class.hasattr("request")? {
            let problem = format!("{name} has no method request: expected request(seen)");
            return Err(PyTypeError::new_err(problem));
        }
        Ok(PythonPrefetcher {
            name,
            class: class.clone().unbind(),
            stop,
        })
    }
}

impl OwnPrefetcher for PythonPrefetcher {
    fn name(&self) -> &str {
        &self.name
    }

    fn make(&self, blocks: u64) -> Result<Box<dyn Prefetcher>, Failure> {
        let made = Python::attach(|py| {
            let own = self.class.call1(py, (blocks,))?;
            let hears_arrivals = own.bind(py).hasattr("arrived")?;
            PyResult::Ok((own, hears_arrivals))
        });
        let (own, hears_arrivals) = made.map_err(|exception| {
            self.stop.with(exception);
            Failure::failed("interrupted")
        })?;
        Ok(Box::new(PythonAhead {
            name: self.name.clone(),
            own,
            hears_arrivals,
            stop: Arc::clone(&self.stop),
        }))
    }
}

impl PythonAhead {
    fn asked(&self, py: Python<'_>, seen: &Seen) -> PyResult<Vec<Interval>> {
        let request = SeenRequest {
            first: seen.blocks.first,
            blocks: seen.blocks.len(),
            file: seen.file,
            end: seen.within.last,
            is_hit: seen.found == LookupResult::All,
        };
        let answer = self.own.call_method1(py, "request", (request,))?;
        if answer.is_none(py) {
            return Ok(Vec::new());
        }
        let runs = answer.extract::<Vec<(u64, u64)>>(py).map_err(|_| {
            let (name, answer) = (&self.name, answer.bind(py));
            PyValueError::new_err(format!(
                "{name}.request returned {answer}: expected a list of pairs of first block and number of blocks, \
                 or None"
            ))
        })?;
        let runs = runs.into_iter().filter(|(_, blocks)| *blocks > 0);
        Ok(runs
            .map(|(first, blocks)| Interval::of(first, blocks))
            .collect())
    }
}

impl Prefetcher for PythonAhead {
    fn on_request(&mut self, seen: &Seen, _residency: &Residency, advice: &mut Advice) {
        if self.stop.is_set() {
            return;
        }
        match Python::attach(|py| self.asked(py, seen)) {
            Ok(runs) => advice.ahead.extend(runs.into_iter().map(|blocks| Ahead {
                blocks,
                mode: seen.mode(),
            })),
            Err(exception) => self.stop.with(exception),
        }
    }

    fn on_prefetch_complete(&mut self, blocks: Interval, _waiting: PrefetchWaiter) {
        if !self.hears_arrivals || self.stop.is_set() {
            return;
        }
        let told = Python::attach(|py| {
            self.own
                .call_method1(py, "arrived", (blocks.first, blocks.len()))
                .map(drop)
        });
        if let Err(exception) = told {
            self.stop.with(exception);
        }
    }
}
