//! Validations of drive models.

use std::path::PathBuf;

use lab::validate::cases::{self, Constants, ValidationSettings};
use lab::validate::table::judgements;
use pyo3::prelude::*;
use simulator::trace::OnBad;

use crate::drives::DriveName;
use crate::interrupt;
use crate::results::{Measured, Results, json};

/// Compares drive models with service times of real drives: ``headtime validate``.
///
/// ``trace`` is a file in the ``validate`` format. The result's table has a row for each drive, times in
/// milliseconds.
#[pyfunction]
#[pyo3(signature = (drive=None, *, trace=None, skip_bad=false, published=false))]
pub fn validate(
    py: Python<'_>,
    drive: Option<DriveName<'_>>,
    trace: Option<PathBuf>,
    skip_bad: bool,
    published: bool,
) -> PyResult<Results> {
    let settings = ValidationSettings {
        drive: drive.map(|drive| drive.given()),
        trace,
        on_bad: match skip_bad {
            true => OnBad::Skip,
            false => OnBad::Refuse,
        },
        constants: match published {
            true => Constants::Published,
            false => Constants::Fitted,
        },
    };
    let measured = interrupt::run(py, |_| {
        let validation = cases::validate(&settings, &())?;
        Ok(Measured {
            json: json(&validation.judgements)?,
            svg: None,
            table: judgements(&validation.judgements),
            requests: None,
        })
    })?;
    measured.shown(py)
}
