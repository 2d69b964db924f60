//! A system: a drive, its scheduling policy and the caches above it.

use pyo3::prelude::*;

use crate::drives::{Drive, DriveName};

/// A drive, the policy of its scheduler, and caches above it, from the one that clients reach.
///
/// A cache is written as for ``headtime simulate --cache``: ``"64 MiB,arc,linux-6"``. ``link`` is what a reply
/// between caches costs: ``"none"`` or ``"lan"``.
#[pyclass(frozen, module = "headtime")]
pub struct System {
    /// The drive's name or path.
    pub drive: String,
    /// The policies.
    pub policy: Vec<String>,
    /// The caches.
    pub caches: Vec<String>,
    /// The link between them.
    pub link: String,
    /// The commands at the drive.
    pub depth: Option<u32>,
}

#[pymethods]
impl System {
    #[new]
    #[pyo3(signature = (drive=None, *, policy=None, caches=Vec::new(), link="none".to_owned(), depth=None))]
    fn new(
        drive: Option<DriveName<'_>>,
        policy: Option<Names>,
        caches: Vec<String>,
        link: String,
        depth: Option<u32>,
    ) -> Self {
        System {
            drive: drive.map_or_else(|| DRIVE.to_owned(), |drive| drive.given()),
            policy: policy.map_or_else(|| vec![POLICY.to_owned()], Names::all),
            caches,
            link,
            depth,
        }
    }

    /// The drive.
    #[getter]
    fn drive(&self) -> &str {
        &self.drive
    }

    /// The policies of the scheduler.
    #[getter]
    fn policy(&self) -> Vec<String> {
        self.policy.clone()
    }

    /// The caches, from the one that clients reach.
    #[getter]
    fn caches(&self) -> Vec<String> {
        self.caches.clone()
    }

    fn __repr__(&self) -> String {
        format!(
            "headtime.System({:?}, policy={:?}, caches={:?}, link={:?})",
            self.drive, self.policy, self.caches, self.link
        )
    }
}

/// The drive and the policy of `headtime simulate --cache` without flags.
pub const DRIVE: &str = "modern-20tb";
/// See [`DRIVE`].
pub const POLICY: &str = "sptf";

/// What is simulated: a system, a drive, or a drive's name.
#[derive(FromPyObject)]
pub enum Simulated<'py> {
    /// A system.
    System(Bound<'py, System>),
    /// A drive.
    Drive(Bound<'py, Drive>),
    /// A drive's name or path.
    Name(String),
}

/// A name, or several.
#[derive(FromPyObject)]
pub enum Names {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl Names {
    /// All of them.
    pub fn all(self) -> Vec<String> {
        match self {
            Names::One(name) => vec![name],
            Names::Several(names) => names,
        }
    }
}
