//! A replacement policy that is written in Python, to try an idea: thousands of times slower than one in Rust.

use std::sync::Arc;

use lab::Failure;
use lab::cache_curve::{OwnReplacement, Resident};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::interrupt::Stop;

/// A class in Python, and its name.
pub struct PythonReplacement {
    name: String,
    class: Py<PyType>,
    stop: Arc<Stop>,
}

/// An object of that class.
struct PythonResident {
    name: String,
    own: Py<PyAny>,
    stop: Arc<Stop>,
}

impl PythonReplacement {
    /// A replacement whose caches are objects of `class`.
    ///
    /// # Errors
    /// If the class lacks a method.
    pub fn new(class: &Bound<'_, PyType>, stop: Arc<Stop>) -> PyResult<Self> {
        let name = class.name()?.to_string();
        for method in ["hit", "insert", "evict"] {
            if !class.hasattr(method)? {
                let problem =
                    format!("{name} has no method {method}: expected hit, insert and evict");
                return Err(PyTypeError::new_err(problem));
            }
        }
        Ok(PythonReplacement {
            name,
            class: class.clone().unbind(),
            stop,
        })
    }
}

impl OwnReplacement for PythonReplacement {
    fn name(&self) -> &str {
        &self.name
    }

    fn make(&self, blocks: u64) -> Result<Box<dyn Resident>, Failure> {
        let own = Python::attach(|py| self.class.call1(py, (blocks,)));
        Ok(Box::new(PythonResident {
            name: self.name.clone(),
            own: own.map_err(|exception| ended(&self.stop, exception))?,
            stop: Arc::clone(&self.stop),
        }))
    }
}

impl Resident for PythonResident {
    fn hit(&mut self, block: u64) -> Result<(), Failure> {
        let called = Python::attach(|py| self.own.call_method1(py, "hit", (block,)).map(drop));
        called.map_err(|exception| ended(&self.stop, exception))
    }

    fn insert(&mut self, block: u64) -> Result<(), Failure> {
        let called = Python::attach(|py| self.own.call_method1(py, "insert", (block,)).map(drop));
        called.map_err(|exception| ended(&self.stop, exception))
    }

    fn evict(&mut self) -> Result<u64, Failure> {
        let answer = Python::attach(|py| {
            let answer = self.own.bind(py).call_method0("evict")?;
            Ok(answer.extract::<u64>().map_err(|_| answer.to_string()))
        });
        let answer = answer.map_err(|exception| ended(&self.stop, exception))?;
        answer.map_err(|answer| {
            let name = &self.name;
            Failure::input(format!(
                "{name}.evict returned {answer}: expected a block of the cache"
            ))
        })
    }
}

fn ended(stop: &Stop, exception: PyErr) -> Failure {
    stop.with(exception);
    Failure::failed("interrupted")
}
