//! Miss-ratio curves.

use std::path::PathBuf;
use std::sync::Arc;

use lab::amount::amount;
use lab::cache_curve::{BLOCK_BYTES, CurveSettings, OwnReplacement, Sampling};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::interrupt::{self, raised};
use crate::replacement::PythonReplacement;
use crate::results::{Measured, Results, json};
use crate::system::Names;
use crate::traces::TraceFile;

/// A replacement: a name, or a class.
#[derive(FromPyObject)]
pub enum Replacement<'py> {
    /// A name.
    Name(String),
    /// A class.
    Class(Bound<'py, PyType>),
}

/// One of them, or several.
#[derive(FromPyObject)]
pub enum Replacements<'py> {
    /// One.
    One(Replacement<'py>),
    /// Several.
    Several(Vec<Replacement<'py>>),
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
/// ``insert(block)`` and ``evict() -> block``; those are slow. ``size`` has bytes or words such as ``"64MiB"``
/// (default: the footprint and halves of it). ``sample`` is a share of the blocks, 0 to 1. ``columns`` describes a
/// CSV of objects in libCacheSim's words.
///
/// The result's table has a row for each replacement and size: ``blocks`` of 4 KiB, ``bytes``, ``miss_ratio`` 0 to 1.
#[pyfunction]
#[pyo3(signature = (trace, *, replacement=None, size=Vec::new(), sample=None, prefetch=None, format=None, columns=None, skip_bad=false))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn cache_curve(
    py: Python<'_>,
    trace: TraceFile<'_>,
    replacement: Option<Replacements<'_>>,
    size: Vec<CacheSize>,
    sample: Option<f64>,
    prefetch: Option<Names>,
    format: Option<String>,
    columns: Option<String>,
    skip_bad: bool,
) -> PyResult<Results> {
    let (path, detected, skips): (PathBuf, _, _) = trace.given();
    let (mut names, mut classes) = (Vec::new(), Vec::new());
    let replacements = match replacement {
        None => Vec::new(),
        Some(Replacements::One(one)) => vec![one],
        Some(Replacements::Several(several)) => several,
    };
    for replacement in replacements {
        match replacement {
            Replacement::Name(name) => names.push(name),
            Replacement::Class(class) => classes.push(class),
        }
    }
    let settings = CurveSettings {
        trace: path,
        format: format.or(detected),
        columns,
        skip_bad: skip_bad || skips,
        replacement: names,
        prefetch: prefetch.map_or_else(Vec::new, Names::all),
        sizes: size.into_iter().map(blocks).collect::<PyResult<_>>()?,
        sampling: match sample {
            None => Sampling::WHOLE,
            Some(share) => Sampling::of(share).map_err(raised)?,
        },
    };
    let classes: Vec<_> = classes.into_iter().map(Bound::unbind).collect();
    let measured = interrupt::run(py, |stop| {
        let own = Python::attach(|py| {
            let own = classes.iter().map(|class| {
                let own = PythonReplacement::new(class.bind(py), Arc::clone(stop))?;
                Ok(Box::new(own) as Box<dyn OwnReplacement>)
            });
            own.collect::<PyResult<Vec<_>>>()
        });
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
