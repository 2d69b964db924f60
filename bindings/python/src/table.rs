//! A table, for everything that takes Arrow's C streams.

use std::fs;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatchIterator;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use lab::table::{self, Cells, TableFormat};
use pyo3::exceptions::{PyKeyError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use crate::interrupt::raised;

/// A table of results. polars, pandas and pyarrow take it without a copy:
/// ``polars.DataFrame(table)``, ``pyarrow.table(table)``.
///
/// The columns, their types and their versions are in docs/reference/file-formats.md, "Results as tables".
#[pyclass(frozen, module = "headtime")]
pub struct Table {
    table: table::ColumnTable,
    batch: RecordBatch,
}

impl Table {
    /// Wraps a table.
    pub fn new(table: table::ColumnTable) -> Self {
        let batch = table.batch();
        Table { table, batch }
    }
}

#[pymethods]
impl Table {
    /// The name of the table: runs, levels, requests, miss_ratios, judgements or trace.
    #[getter]
    fn name(&self) -> &'static str {
        self.table.name
    }

    /// The version of its columns.
    #[getter]
    fn version(&self) -> u32 {
        self.table.version
    }

    /// The number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        let columns = self.table.columns.iter();
        columns.map(|column| column.name.as_str()).collect()
    }

    /// The description of each column, with its unit.
    #[getter]
    fn descriptions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let descriptions = PyDict::new(py);
        for column in &self.table.columns {
            descriptions.set_item(&column.name, &column.what)?;
        }
        Ok(descriptions)
    }

    /// The cells of a column as a list of length ``num_rows``; None is null.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let mut columns = self.table.columns.iter();
        let Some(column) = columns.find(|column| column.name == name) else {
            let names = self.column_names().join(", ");
            let problem = format!("no column {name}: expected one of {names}");
            return Err(PyKeyError::new_err(problem));
        };
        match &column.cells {
            Cells::Text(cells) => PyList::new(py, cells.iter().map(Option::as_deref)),
            Cells::Count(cells) => PyList::new(py, cells),
            Cells::Number(cells) => PyList::new(py, cells),
        }
    }

    /// The columns as lists, by name.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for name in self.column_names() {
            columns.set_item(name, self.column(py, name)?)?;
        }
        Ok(columns)
    }

    /// Writes a file that ends in .parquet or .arrow: the bytes of ``headtime ... --out FILE``.
    fn write(&self, path: PathBuf) -> PyResult<()> {
        let format = TableFormat::named("path", &path).map_err(raised)?;
        let bytes = self.table.write(format, Vec::new()).map_err(raised)?;
        written(&path, &bytes)
    }

    /// Arrow's C stream of one batch. ``requested_schema`` is not followed, as the interface permits.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let batches: Box<dyn RecordBatchReader + Send> = Box::new(batches);
        PyCapsule::new_with_value(
            py,
            FFI_ArrowArrayStream::new(batches),
            c"arrow_array_stream",
        )
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __repr__(&self) -> String {
        format!(
            "<headtime.Table {} version {}: {} rows, {} columns>",
            self.table.name,
            self.table.version,
            self.batch.num_rows(),
            self.table.columns.len()
        )
    }
}

/// Writes a file.
///
/// # Errors
/// `OSError` with the name.
pub fn written(path: &Path, bytes: &[u8]) -> PyResult<()> {
    fs::write(path, bytes)
        .map_err(|error| PyOSError::new_err(format!("{}: {error}", path.display())))
}
