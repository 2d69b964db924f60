//! A scheduling policy that is written in Python, to try an idea: thousands of times slower than one in Rust.

use std::collections::BTreeMap;
use std::sync::Arc;

use block::Direction;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use scheduler::policy::{Choice, EligibleRequest, PieceId, Policy, Sight, View};

use crate::interrupt::Stop;

/// A pending request, as a policy in Python sees it.
#[pyclass(frozen, get_all, module = "headtime")]
pub struct Pending {
    /// Its number; ``select`` returns it.
    number: u64,
    /// Whether it reads.
    is_read: bool,
    /// First block of the drive.
    lbn: u64,
    /// Length in blocks.
    blocks: u64,
    /// Arrival in nanoseconds of virtual time.
    arrived_ns: u64,
    /// Cylinder of the first block.
    cylinder: u32,
    /// Nanoseconds of seek, head switch and settling from the head's position.
    seek_ns: u64,
    /// Nanoseconds of rotational latency after the seek.
    rotation_ns: u64,
}

/// The situation in which a policy in Python chooses.
#[pyclass(frozen, get_all, module = "headtime")]
pub struct PolicyView {
    /// Nanoseconds of virtual time.
    now_ns: u64,
    /// Cylinder of the head when the drive starts the command.
    cylinder: u32,
    /// Pending requests, oldest first; at least one.
    requests: Vec<Py<Pending>>,
}

/// The policy for the scheduler. After an exception it serves the oldest request, until the run has ended.
pub struct PythonPolicy {
    own: Py<PyAny>,
    pending: BTreeMap<u64, EligibleRequest>,
    stop: Arc<Stop>,
}

impl PythonPolicy {
    /// A policy whose ``select`` is that of `own`.
    pub fn new(own: Py<PyAny>, stop: Arc<Stop>) -> Self {
        PythonPolicy {
            own,
            pending: BTreeMap::new(),
            stop,
        }
    }

    fn chosen(&self, py: Python<'_>, view: &View) -> PyResult<u64> {
        let requests = self.pending.values().map(|pending| {
            let (target, direction) = (&pending.target, pending.direction);
            let way = view
                .belief
                .positioning(view.head, view.ready, target, direction);
            Py::new(
                py,
                Pending {
                    number: pending.order,
                    is_read: direction == Direction::Read,
                    lbn: pending.extent.start().0,
                    blocks: pending.extent.length().0,
                    arrived_ns: pending.submitted.as_nanos(),
                    cylinder: target.position.cylinder,
                    seek_ns: way.seek.as_nanos(),
                    rotation_ns: way.rotation.as_nanos(),
                },
            )
        });
        let seen = PolicyView {
            now_ns: view.now.as_nanos(),
            cylinder: view.head.cylinder,
            requests: requests.collect::<PyResult<_>>()?,
        };
        let own = self.own.bind(py);
        let answer = own.call_method1("select", (seen,))?;
        let number = answer
            .extract::<u64>()
            .ok()
            .filter(|number| self.pending.contains_key(number));
        number.ok_or_else(|| {
            let name = own.get_type().name().map(|name| name.to_string());
            let name = name.unwrap_or_default();
            let numbers: Vec<u64> = self.pending.keys().copied().take(SHOWN).collect();
            PyValueError::new_err(format!(
                "{name}.select returned {answer}, which is not pending: expected the number of one of \
                 view.requests, such as {numbers:?}"
            ))
        })
    }
}

impl Policy for PythonPolicy {
    fn sight(&self) -> Sight {
        Sight::Head
    }

    fn add(&mut self, pending: &EligibleRequest) {
        self.pending.insert(pending.order, *pending);
    }

    fn withdraw(&mut self, pending: &EligibleRequest) {
        self.pending.remove(&pending.order);
    }

    fn select(&mut self, view: &View) -> Choice {
        let Some((&oldest, _)) = self.pending.first_key_value() else {
            return Choice::Nothing;
        };
        let chosen = match self.stop.is_set() {
            true => oldest,
            false => Python::attach(|py| {
                self.chosen(py, view).unwrap_or_else(|exception| {
                    self.stop.with(exception);
                    oldest
                })
            }),
        };
        let ticket: Option<PieceId> = self.pending.remove(&chosen).map(|pending| pending.ticket);
        ticket.map_or(Choice::Nothing, Choice::Serve)
    }
}

/// Numbers in an error. A choice.
const SHOWN: usize = 4;
