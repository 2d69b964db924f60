//! Miss-ratio curves.

use std::path::PathBuf;
use std::sync::Arc;

use lab::amount::amount;
use lab::cache_curve::{
    BLOCK_BYTES, CurveSettings, OwnAlgorithms, OwnPrefetcher, OwnReplacement, Sampling,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::interrupt::{self, Stop, raised};
use crate::prefetcher::PythonPrefetcher;
use crate::replacement::PythonReplacement;
use crate::results::{Measured, Results, json};
use crate::traces::TraceFile;

/// A replacement or prefetcher: a name, or a class.
#[derive(FromPyObject)]
pub enum Algorithm<'py> {
    /// A name.
    Name(String),
    /// A class.
    Class(Bound<'py, PyType>),
}

/// One of them, or several.
#[derive(FromPyObject)]
pub enum Algorithms<'py> {
    /// One.
    One(Algorithm<'py>),
    /// Several.
    Several(Vec<Algorithm<'py>>),
}

impl Algorithms<'_> {
    /// The names and the classes.
    fn divided(given: Option<Self>) -> (Vec<String>, Vec<Py<PyType>>) {
        let given = match given {
            None => Vec::new(),
            Some(Algorithms::One(one)) => vec![one],
            Some(Algorithms::Several(several)) => several,
        };
        let (mut names, mut classes) = (Vec::new(), Vec::new());
        for algorithm in given {
            match algorithm {
                Algorithm::Name(name) => names.push(name),
                Algorithm::Class(class) => classes.push(class.unbind()),
            }
        }
        (names, classes)
    }
}

/// A size: bytes, or words such as "64MiB".
#[derive(FromPyObject)]
pub enum CacheSize {
    /// Bytes.
    Bytes(u64),
    /// Words.
    Words(String),
}

/// Miss-ratio curves of a trace: ``headtime cache``.
///
/// ``replacement`` has names (default: all), or classes with ``__init__(blocks)``, ``hit(block)``,
/// ``insert(block)`` and ``evict() -> block``; those are slow. ``prefetch`` has names of prefetchers, or classes with
/// ``__init__(blocks)`` and ``request(seen)``, which returns pairs of first block and number of blocks to fetch, or
/// None; ``arrived(first, blocks)`` is optional. ``size`` has bytes or words such as ``"64MiB"``
/// (default: the footprint and halves of it). ``sample`` is a share of the blocks, 0 to 1. ``columns`` describes a
/// CSV of objects in libCacheSim's words. ``progress(part, done, total)`` is called now and then.
///
/// The result's table has a row for each replacement and size: ``blocks`` of 4 KiB, ``bytes``, ``miss_ratio`` 0 to 1.
#[pyfunction]
#[pyo3(signature = (trace, *, replacement=None, size=Vec::new(), sample=None, prefetch=None, format=None, columns=None, skip_bad=false, progress=None))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn cache_curve(
    py: Python<'_>,
    trace: TraceFile<'_>,
    replacement: Option<Algorithms<'_>>,
    size: Vec<CacheSize>,
    sample: Option<f64>,
    prefetch: Option<Algorithms<'_>>,
    format: Option<String>,
    columns: Option<String>,
    skip_bad: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Results> {
    let (path, detected, skips): (PathBuf, _, _) = trace.given();
    let (names, replacements) = Algorithms::divided(replacement);
    let (prefetch, prefetchers) = Algorithms::divided(prefetch);
    let settings = CurveSettings {
        trace: path,
        format: format.or(detected),
        columns,
        skip_bad: skip_bad || skips,
        replacement: names,
        prefetch,
        sizes: size.into_iter().map(blocks).collect::<PyResult<_>>()?,
        sampling: match sample {
            None => Sampling::WHOLE,
            Some(share) => Sampling::of(share).map_err(raised)?,
        },
    };
    let measured = interrupt::run_showing(py, progress, |stop| {
        let own = Python::attach(|py| own(py, &replacements, &prefetchers, stop));
        let own = own.map_err(|exception| {
            stop.with(exception);
            lab::Failure::failed("interrupted")
        })?;
        let curves = settings.run_beside(&own, &**stop)?;
        Ok(Measured {
            json: json(&curves)?,
            svg: Some(curves.svg()),
            table: curves.table(),
            requests: None,
        })
    })?;
    measured.shown(py)
}

/// The classes as algorithms.
fn own(
    py: Python<'_>,
    replacements: &[Py<PyType>],
    prefetchers: &[Py<PyType>],
    stop: &Arc<Stop>,
) -> PyResult<OwnAlgorithms> {
    let replacements = replacements.iter().map(|class| {
        let own = PythonReplacement::new(class.bind(py), Arc::clone(stop))?;
        Ok(Box::new(own) as Box<dyn OwnReplacement>)
    });
    let prefetchers = prefetchers.iter().map(|class| {
        let own = PythonPrefetcher::new(class.bind(py), Arc::clone(stop))?;
        Ok(Box::new(own) as Box<dyn OwnPrefetcher>)
    });
    Ok(OwnAlgorithms {
        replacements: replacements.collect::<PyResult<_>>()?,
        prefetchers: prefetchers.collect::<PyResult<_>>()?,
    })
}

fn blocks(size: CacheSize) -> PyResult<u64> {
    let bytes = match size {
        CacheSize::Bytes(bytes) => bytes,
        CacheSize::Words(words) => amount(&words).map_err(PyValueError::new_err)?,
    };
    match bytes / BLOCK_BYTES {
        0 => Err(PyValueError::new_err(format!(
            "size {bytes}: expected at least {BLOCK_BYTES} bytes"
        ))),
        blocks => Ok(blocks),
    }
}
