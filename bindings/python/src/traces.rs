//! A trace of block requests.

use std::path::PathBuf;

use block::Direction;
use lab::table::Column;
use lab::{Failure, table};
use pyo3::prelude::*;
use simulator::trace::{Format, OnBad, TraceReader};

use crate::interrupt::{self, Stop, raised};
use crate::table::Table;

/// A trace of block requests in a format of ``headtime trace``, plain or compressed with zstd.
///
/// The file is opened at once, so that a wrong one is an error here.
#[pyclass(frozen, module = "headtime")]
pub struct Trace {
    /// The file.
    pub path: PathBuf,
    /// The name of the format.
    pub format: &'static str,
    /// Whether bad lines are skipped.
    pub skip_bad: bool,
}

#[pymethods]
impl Trace {
    #[new]
    #[pyo3(signature = (path, *, format=None, skip_bad=false))]
    fn new(path: PathBuf, format: Option<&str>, skip_bad: bool) -> PyResult<Self> {
        let format = match format {
            None => None,
            Some(name) => Some(Format::named(name).ok_or_else(|| {
                let names: Vec<&str> = simulator::trace::ALL.iter().map(|f| f.name).collect();
                raised(Failure::unknown("trace format", name, &names))
            })?),
        };
        let reader = TraceReader::open(&path, format, OnBad::Refuse);
        let reader = reader.map_err(|error| raised(Failure::input(error)))?;
        Ok(Trace {
            format: reader.format().name,
            path,
            skip_bad,
        })
    }

    /// The file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// The name of the format.
    #[getter]
    fn format(&self) -> &'static str {
        self.format
    }

    /// The requests as a table: ``at_ns`` since the begin, ``device``, ``direction``, ``offset`` and ``length``
    /// in bytes.
    fn table(&self, py: Python<'_>) -> PyResult<Table> {
        interrupt::run(py, |stop| self.read(stop)).map(Table::new)
    }

    fn __repr__(&self) -> String {
        format!("headtime.Trace({:?}, format={:?})", self.path, self.format)
    }
}

impl Trace {
    fn read(&self, stop: &Stop) -> Result<table::ColumnTable, Failure> {
        let on_bad = match self.skip_bad {
            true => OnBad::Skip,
            false => OnBad::Refuse,
        };
        let reader = TraceReader::open(&self.path, Format::named(self.format), on_bad);
        let mut reader = reader.map_err(Failure::input)?;
        let mut records = Vec::new();
        for record in reader.by_ref() {
            if stop.is_set() {
                return Err(Failure::failed("interrupted"));
            }
            records.push(record.map_err(Failure::input)?);
        }
        let at = records.iter().map(|record| Some(record.at.as_nanos()));
        let devices = reader.devices();
        let device = records
            .iter()
            .map(|record| Some(devices.name(record.device).to_owned()));
        let direction = records.iter().map(|record| {
            Some(match record.direction {
                Direction::Read => "read",
                Direction::Write => "write",
            })
        });
        let offset = records.iter().map(|record| Some(record.bytes.offset()));
        let length = records.iter().map(|record| Some(record.bytes.length()));
        Ok(table::ColumnTable {
            name: "trace",
            version: 1,
            columns: vec![
                Column::count("at_ns", "arrival since the begin of the trace", at),
                Column::text("device", "the device", device),
                Column::text("direction", "read or write", direction),
                Column::count("offset", "first byte of the device", offset),
                Column::count("length", "bytes", length),
            ],
        })
    }
}

/// A trace: a `Trace`, or the path of one.
#[derive(FromPyObject)]
pub enum TraceFile<'py> {
    /// A trace.
    Trace(Bound<'py, Trace>),
    /// Its path.
    Path(PathBuf),
}

impl TraceFile<'_> {
    /// The path, the format if it is known, and whether bad lines are skipped.
    pub fn given(&self) -> (PathBuf, Option<String>, bool) {
        match self {
            TraceFile::Trace(trace) => {
                let trace = trace.get();
                let format = Some(trace.format.to_owned());
                (trace.path.clone(), format, trace.skip_bad)
            }
            TraceFile::Path(path) => (path.clone(), None, false),
        }
    }
}
