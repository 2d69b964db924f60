//! Experiments in shards, for workers anywhere.

use lab::experiment::{self, Experiment, ExperimentPlan, Shard, ShardResults};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::interrupt::{self, raised};
use crate::results::{Measured, Results, json};

/// Runs shard ``number`` of ``of`` (from 1) of an experiment's text: the text of ``--shard``'s file. ``file`` is the
/// name in errors. ``progress(part, done, total)`` is called now and then.
#[pyfunction]
#[pyo3(signature = (file, text, number, of, *, threads=None, progress=None))]
pub fn run_shard(
    py: Python<'_>,
    file: String,
    text: String,
    number: u64,
    of: u64,
    threads: Option<u16>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let shard: Shard = format!("{number}/{of}")
        .parse()
        .map_err(PyValueError::new_err)?;
    interrupt::run_showing(py, progress, |stop| {
        let experiment = Experiment::parse(&file, &text).map_err(lab::Failure::input)?;
        let plan = ExperimentPlan::new(experiment)?;
        plan.measure_shard((&file, &text), shard, threads, &**stop)?
            .text()
    })
}

/// Merges the texts of all shards, in any order: the results of ``headtime experiment``.
#[pyfunction]
pub fn merge_shards(py: Python<'_>, texts: Vec<String>) -> PyResult<Results> {
    let parsed = texts.iter().zip(1..).map(|(text, number)| {
        let name = format!("shard {number} of the list");
        let shard = ShardResults::parse(&name, text)?;
        Ok((name, shard))
    });
    let shards = parsed
        .collect::<Result<Vec<_>, lab::Failure>>()
        .map_err(raised)?;
    let measured = interrupt::run(py, |_| {
        let results = experiment::merged(&shards)?;
        Ok(Measured {
            json: json(&results)?,
            svg: Some(lab::plot::page(&results.panels())),
            table: results.table(),
            requests: None,
        })
    })?;
    measured.shown(py)
}
