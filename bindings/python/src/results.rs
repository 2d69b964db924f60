//! The results of a measurement: tables, and the command line's JSON and plot.

use std::path::PathBuf;

use lab::table;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use serde::Serialize;

use crate::table::{Table, written};

/// The results of ``simulate``, ``cache_curve`` or ``validate``. A notebook shows them as a plot.
///
/// polars, pandas and pyarrow take them as ``table``: ``polars.DataFrame(results)``.
#[pyclass(frozen, module = "headtime")]
pub struct Results {
    table: Py<Table>,
    requests: Option<Py<Table>>,
    json: String,
    svg: Option<String>,
}

/// The same before it has a place in Python.
pub struct Measured {
    /// The table.
    pub table: table::ColumnTable,
    /// The table of requests.
    pub requests: Option<table::ColumnTable>,
    /// What `--json` prints.
    pub json: String,
    /// What `--svg` draws.
    pub svg: Option<String>,
}

impl Measured {
    /// Moves the results to Python.
    ///
    /// # Errors
    /// If Python has no memory.
    pub fn shown(self, py: Python<'_>) -> PyResult<Results> {
        let requests = self
            .requests
            .map(|requests| Py::new(py, Table::new(requests)));
        Ok(Results {
            table: Py::new(py, Table::new(self.table))?,
            requests: requests.transpose()?,
            json: self.json,
            svg: self.svg,
        })
    }
}

#[pymethods]
impl Results {
    /// The table: a row for each policy, cache, size or drive.
    #[getter]
    fn table(&self, py: Python<'_>) -> Py<Table> {
        self.table.clone_ref(py)
    }

    /// The table of requests, if ``simulate`` was asked for it.
    #[getter]
    fn requests(&self, py: Python<'_>) -> Option<Py<Table>> {
        self.requests.as_ref().map(|table| table.clone_ref(py))
    }

    /// The JSON that the command line prints with ``--json``, byte for byte.
    fn json(&self) -> &str {
        &self.json
    }

    /// The plot that the command line draws with ``--svg``, or None.
    fn svg(&self) -> Option<&str> {
        self.svg.as_deref()
    }

    /// Writes ``table`` to a file that ends in .parquet or .arrow, or the plot to one that ends in .svg.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        match (&self.svg, path.extension().and_then(|end| end.to_str())) {
            (Some(svg), Some("svg")) => written(&path, svg.as_bytes()),
            _ => self.table.call_method1(py, "write", (path,)).map(drop),
        }
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let stream = self
            .table
            .bind(py)
            .call_method1("__arrow_c_stream__", (requested_schema,))?;
        Ok(stream.cast_into::<PyCapsule>()?)
    }

    fn _repr_svg_(&self) -> Option<&str> {
        self.svg.as_deref()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let table: String = self.table.bind(py).repr()?.extract()?;
        Ok(format!("<headtime.Results of {table}>"))
    }
}

/// A result as the command line prints it.
///
/// # Errors
/// If it cannot be serialised.
pub fn json(result: &impl Serialize) -> Result<String, lab::Failure> {
    let text = serde_json::to_string_pretty(result).map_err(lab::Failure::failed)?;
    Ok(text + "\n")
}
