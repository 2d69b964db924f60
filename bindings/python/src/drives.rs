//! A drive.

use std::sync::Arc;

use block::Lba;
use drive::{Profile, catalog};
use lab::named;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::interrupt::raised;

/// A drive: the name of a shipped one, or the path of a profile (``.toml``).
///
/// >>> headtime.Drive("modern-20tb").rpm
/// 7200.0
#[pyclass(frozen, module = "headtime")]
pub struct Drive {
    /// The name or path.
    pub given: String,
    profile: Arc<Profile>,
}

#[pymethods]
impl Drive {
    #[new]
    fn new(name: String) -> PyResult<Self> {
        let profile = named::drive(&name).map_err(raised)?;
        Ok(Drive {
            given: name,
            profile: Arc::new(profile),
        })
    }

    /// The names of the shipped drives.
    #[staticmethod]
    fn names() -> Vec<&'static str> {
        catalog::ALL.iter().map(|entry| entry.name).collect()
    }

    /// The name.
    #[getter]
    fn name(&self) -> &str {
        &self.profile.name
    }

    /// Vendor and model.
    #[getter]
    fn model(&self) -> &str {
        &self.profile.model
    }

    /// Capacity in blocks.
    #[getter]
    fn blocks(&self) -> u64 {
        self.profile.geometry.sectors().0
    }

    /// Bytes of a block.
    #[getter]
    fn block_bytes(&self) -> u32 {
        self.profile.block_bytes
    }

    /// Capacity in bytes.
    #[getter]
    fn capacity_bytes(&self) -> u64 {
        self.profile.capacity_bytes()
    }

    /// Revolutions per minute.
    #[getter]
    fn rpm(&self) -> f64 {
        60e9 / self.profile.spindle.period().as_nanos() as f64
    }

    /// Cylinder, head and sector of a block.
    fn locate(&self, block: u64) -> PyResult<(u32, u32, u32)> {
        let place = self.profile.geometry.locate(Lba(block));
        let place = place.ok_or_else(|| {
            let last = self.blocks() - 1;
            PyIndexError::new_err(format!("block {block}: expected 0 to {last}"))
        })?;
        Ok((place.cylinder, place.head, place.sector))
    }

    fn __repr__(&self) -> String {
        format!("headtime.Drive({:?})", self.given)
    }
}

/// The name or path of a drive: a `Drive`, or the name itself.
#[derive(FromPyObject)]
pub enum DriveName<'py> {
    /// A drive.
    Drive(Bound<'py, Drive>),
    /// Its name.
    Name(String),
}

impl DriveName<'_> {
    /// The name or path.
    pub fn given(&self) -> String {
        match self {
            DriveName::Drive(drive) => drive.get().given.clone(),
            DriveName::Name(name) => name.clone(),
        }
    }
}
