//! A running service: guaranteed streams, and background tasks over declared sets.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use headtime_client::{
    Error, FilePiece, Places, StreamMode, StreamRefused, StreamUpdate, TaskOrder, TaskPieces,
    TaskSink, TaskSteer, Terms, default_socket,
};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use serde::Serialize;

create_exception!(
    headtime,
    Refused,
    PyException,
    "The service refuses a stream or a task. ``largest_rate`` (bytes a second) and ``least_memory`` (bytes) would be \
     granted now, or are None."
);

/// A client of a running service. Its streams end with ``close``, with the ``with`` block, or with the process.
///
/// ``socket`` is the control socket; by default that of this user's service.
#[pyclass(frozen, module = "headtime")]
pub struct Client {
    client: Mutex<Option<headtime_client::Client>>,
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (socket=None))]
    fn new(py: Python<'_>, socket: Option<PathBuf>) -> PyResult<Self> {
        let socket = socket.unwrap_or_else(default_socket);
        let client = py.detach(|| headtime_client::Client::connect(&socket));
        Ok(Client {
            client: Mutex::new(Some(client.map_err(|error| raised(py, error))?)),
        })
    }

    /// Attaches a stream to a file that is open (an object with ``fileno``) or named by its path. The file is on a
    /// file system over a volume of the service.
    ///
    /// ``rate`` has bytes a second, ``buffer`` the bytes that are read or written at once, at most. ``mode`` is
    /// "play", "record" or "record-sync"; ``memory`` limits the service's memory; ``export`` names the volume where
    /// the kernel does not know it.
    #[pyo3(signature = (file, rate, buffer, *, mode="play", name="python", memory=None, start=0, export=None, priority=None))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn attach(
        &self,
        py: Python<'_>,
        file: &Bound<'_, PyAny>,
        rate: u64,
        buffer: u64,
        mode: &str,
        name: &str,
        memory: Option<u64>,
        start: u64,
        export: Option<String>,
        priority: Option<u8>,
    ) -> PyResult<Stream> {
        let path: PathBuf = match file.hasattr("fileno")? {
            true => format!("/proc/self/fd/{}", file.call_method0("fileno")?).into(),
            false => file.extract()?,
        };
        let terms = Terms {
            name: name.to_owned(),
            mode: mode_of(mode)?,
            memory,
            start,
            export,
            priority,
            ..Terms::play(rate, buffer)
        };
        let stream = self.with(py, |client| {
            let file = File::open(&path)?;
            client.attach_file(&file, &terms)
        })?;
        Ok(Stream::new(stream))
    }

    /// Attaches a stream to bytes of an export. ``pieces`` has the offset in the file, the offset in the volume and
    /// the length of each, in bytes. The other arguments are those of ``attach``.
    #[pyo3(signature = (export, pieces, rate, buffer, *, mode="play", name="python", memory=None, start=0, priority=None))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn attach_pieces(
        &self,
        py: Python<'_>,
        export: &str,
        pieces: Vec<(u64, u64, u64)>,
        rate: u64,
        buffer: u64,
        mode: &str,
        name: &str,
        memory: Option<u64>,
        start: u64,
        priority: Option<u8>,
    ) -> PyResult<Stream> {
        let ends = pieces
            .iter()
            .map(|(offset, _, length)| offset.saturating_add(*length));
        let places = Places {
            length: ends.max().unwrap_or(0),
            pieces: pieces
                .iter()
                .map(|&(offset, at, length)| FilePiece(offset, at, length))
                .collect(),
        };
        let terms = Terms {
            name: name.to_owned(),
            mode: mode_of(mode)?,
            memory,
            start,
            priority,
            ..Terms::play(rate, buffer)
        };
        let stream = self.with(py, |client| client.attach_places(export, places, &terms))?;
        Ok(Stream::new(stream))
    }

    /// The streams of the service that this user may see: a dict each, with the keys of ``headtime streams --json``.
    fn streams(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let streams = self.with(py, headtime_client::Client::streams)?;
        object(py, &streams)
    }

    /// Begins to read pieces of a volume in gaps and idle time, and returns the number of the task, which goes on
    /// without this client. ``pieces`` has the first byte and the length of each, in multiples of the drive's
    /// blocks. ``any`` of them will do. ``pace_bytes_s`` is the most bytes a second that it takes. ``command``
    /// receives the bytes, or a file does: the pieces one behind the other ``into`` it, up to a multiple of 8 bytes,
    /// and then a bit for each block that has come. Without either they have a checksum.
    #[pyo3(signature = (
        volume, pieces, *, any=None, priority=0, deadline_s=None, pace_bytes_s=None, command=None, into=None
    ))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn begin_task(
        &self,
        py: Python<'_>,
        volume: String,
        pieces: Vec<(u64, u64)>,
        any: Option<u64>,
        priority: u8,
        deadline_s: Option<u64>,
        pace_bytes_s: Option<u64>,
        command: Option<Vec<String>>,
        into: Option<PathBuf>,
    ) -> PyResult<u64> {
        let sink = match (command, into) {
            (None, None) => TaskSink::Checksum,
            (Some(command), None) => TaskSink::Command(command),
            (None, Some(file)) => TaskSink::Buffer(file),
            (Some(_), Some(_)) => {
                return Err(PyValueError::new_err(
                    "command and into: expected one of them",
                ));
            }
        };
        let order = TaskOrder {
            volume,
            set: TaskPieces { pieces, any },
            priority,
            deadline_s,
            pace_bytes_s,
            sink,
        };
        self.with(py, |client| client.begin_task(&order))
    }

    /// The tasks of the service: a dict each, with ``id``, ``state``, ``asked_bytes``, ``done_bytes`` and more.
    fn tasks(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let tasks = self.with(py, headtime_client::Client::tasks)?;
        object(py, &tasks)
    }

    /// Changes a task: "suspend", "resume", "abort", "hasten", or "promote" with its new ``priority``.
    #[pyo3(signature = (task, action, *, priority=0))]
    fn steer_task(&self, py: Python<'_>, task: u64, action: &str, priority: u8) -> PyResult<()> {
        let action = match action {
            "suspend" => TaskSteer::Suspend,
            "resume" => TaskSteer::Resume,
            "abort" => TaskSteer::Abort,
            "hasten" => TaskSteer::Hasten,
            "promote" => TaskSteer::Promote { priority },
            other => {
                return Err(PyValueError::new_err(format!(
                    "{other:?}: expected suspend, resume, abort, hasten or promote"
                )));
            }
        };
        self.with(py, |client| client.steer_task(task, action))
    }

    /// Ends the connection, and all its streams.
    fn close(&self) {
        let client = self.held().take();
        if let Some(client) = client {
            client.hang_up();
        }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close();
    }
}

impl Client {
    fn held(&self) -> std::sync::MutexGuard<'_, Option<headtime_client::Client>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the service, while other threads of Python run.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&headtime_client::Client) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let asked = py.detach(|| self.held().as_ref().map(ask));
        match asked {
            None => Err(PyValueError::new_err("the client is closed")),
            Some(answer) => answer.map_err(|error| raised(py, error)),
        }
    }
}

/// A granted stream. It ends with ``close``, with the ``with`` block, or with its client.
#[pyclass(frozen, module = "headtime")]
pub struct Stream {
    stream: Mutex<Option<headtime_client::Stream>>,
    granted: headtime_client::Granted,
}

impl Stream {
    fn new(stream: headtime_client::Stream) -> Self {
        Stream {
            granted: stream.granted(),
            stream: Mutex::new(Some(stream)),
        }
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&headtime_client::Stream) -> T + Send,
    ) -> PyResult<T> {
        let asked = py.detach(|| {
            let held = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
            held.as_ref().map(ask)
        });
        asked.ok_or_else(|| PyValueError::new_err("the stream is closed"))
    }
}

#[pymethods]
impl Stream {
    /// The number of the stream, which the service never uses again.
    #[getter]
    fn number(&self) -> u64 {
        self.granted.stream
    }

    /// Bytes of memory that the service holds for it.
    #[getter]
    fn memory(&self) -> u64 {
        self.granted.memory
    }

    /// Bytes of a batch.
    #[getter]
    fn batch(&self) -> u64 {
        self.granted.batch
    }

    /// Tells the service the playout point, in bytes of the file. It does not wait.
    fn position(&self, py: Python<'_>, offset: u64) -> PyResult<()> {
        let told = self.with(py, |stream| stream.position(offset))?;
        told.map_err(|error| raised(py, error))
    }

    /// The next event, or None if there is none within ``timeout_s`` seconds: a word such as "serving", or a dict of
    /// a word and its particulars, such as ``{"late": {"us": 300}}``.
    #[pyo3(signature = (timeout_s=0.0))]
    fn wait_event(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<Py<PyAny>>> {
        let timeout = Duration::try_from_secs_f64(timeout_s)
            .map_err(|error| PyValueError::new_err(format!("timeout_s={timeout_s}: {error}")))?;
        let mut left = timeout;
        loop {
            let part = left.min(LOOK);
            let event: Option<StreamUpdate> = self.with(py, |stream| stream.wait_event(part))?;
            left -= part;
            py.check_signals()?;
            match event {
                Some(event) => return object(py, &event).map(Some),
                None if left.is_zero() => return Ok(None),
                None => {}
            }
        }
    }

    /// Ends the stream. The service still writes recorded data that it holds.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let held = self.stream.lock();
        let stream = held.unwrap_or_else(PoisonError::into_inner).take();
        let closed = py.detach(|| stream.map_or(Ok(()), headtime_client::Stream::close));
        closed.map_err(|error| raised(py, error))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _exception: &Bound<'_, pyo3::types::PyTuple>,
    ) -> PyResult<()> {
        self.close(py)
    }
}

fn mode_of(word: &str) -> PyResult<StreamMode> {
    let modes = [StreamMode::Play, StreamMode::Record, StreamMode::RecordSync];
    let found = modes.into_iter().find(|mode| mode.name() == word);
    found.ok_or_else(|| {
        PyValueError::new_err(format!(
            "mode {word:?}: expected \"play\", \"record\" or \"record-sync\""
        ))
    })
}

/// Lists, dicts and words of Python.
fn object(py: Python<'_>, value: &impl Serialize) -> PyResult<Py<PyAny>> {
    let text = serde_json::to_string(value)
        .map_err(|error| PyTypeError::new_err(format!("the service's answer: {error}")))?;
    Ok(py.import("json")?.call_method1("loads", (text,))?.unbind())
}

/// The exception of an error.
fn raised(py: Python<'_>, error: Error) -> PyErr {
    match error {
        Error::Refused(StreamRefused {
            reason,
            largest_rate,
            least_memory,
        }) => {
            let refused = Refused::new_err(reason);
            let value = refused.value(py);
            let set = value
                .setattr("largest_rate", largest_rate)
                .and_then(|()| value.setattr("least_memory", least_memory));
            set.map_or_else(|problem| problem, |()| refused)
        }
        other => PyOSError::new_err(other.to_string()),
    }
}

/// Time between two looks for signals while an event is awaited. A choice: below what a person notices.
const LOOK: Duration = Duration::from_millis(50);
