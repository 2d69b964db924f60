//! One connection to the service's control socket, for any number of streams.
//!
//! ```text
//!   request --line-->  [socket]  --answers in order--> reader thread --> waiting callers
//!                                --notices----------->               --> events of the streams
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::places::NotLocated;
use crate::private;
use crate::wire::{self, Attach, Granted, ServiceMessage, StreamRefused, StreamUpdate};

/// The reason that a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No service listens at the socket.
    #[error("{}: {error}: expected the control socket of a running service", path.display())]
    Unreachable {
        /// The path of the socket.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The service refused the stream.
    #[error("{0}")]
    Refused(StreamRefused),
    /// The file's bytes have no usable location.
    #[error("{0}")]
    NotLocated(#[from] NotLocated),
    /// The service's answer does not follow the protocol.
    #[error("the service was not understood: {0}")]
    Misunderstood(String),
    /// The connection is lost, and all its streams have ended.
    #[error("the service has gone: {0}")]
    Gone(String),
    /// Input or output failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The longest wait for an answer. A choice: a grant is a closed form, and the event loop never
/// takes that long.
const PATIENCE: Duration = Duration::from_secs(30);

/// The largest number of unread events per stream; beyond it the oldest are dropped. A choice.
const EVENTS: usize = 1024;

/// The connection, shared by the client and its streams.
#[derive(Debug)]
pub(crate) struct ServiceConnection {
    socket: Mutex<Sending>,
    received: Mutex<ReceivedEvents>,
    changed: Condvar,
}

#[derive(Debug)]
struct Sending {
    socket: UnixStream,
    /// The callers that wait for answers, in the order of their requests.
    waiting: VecDeque<Awaiting>,
}

#[derive(Debug)]
enum Awaiting {
    Caller(Sender<Result<Value, StreamRefused>>),
    /// The caller of `attach`: a granted stream may have events at once.
    Attaching(Sender<Result<Value, StreamRefused>>),
    /// No caller waits: a refusal becomes an event of this stream.
    Stream(u64),
}

#[derive(Debug, Default)]
struct ReceivedEvents {
    events: BTreeMap<u64, VecDeque<StreamUpdate>>,
    /// The open streams of this connection.
    open: Vec<u64>,
    /// The reason that the connection is lost.
    gone: Option<String>,
}

impl ServiceConnection {
    /// Connects, and starts the reader thread.
    ///
    /// # Errors
    /// If no service listens at the path, or one that [`private::connect`] refuses.
    pub(crate) fn open(path: &Path) -> Result<Arc<ServiceConnection>, Error> {
        let unreachable = |error| Error::Unreachable {
            path: path.to_owned(),
            error,
        };
        let socket = private::connect(path).map_err(unreachable)?;
        socket
            .set_write_timeout(Some(PATIENCE))
            .map_err(unreachable)?;
        let reader = socket.try_clone().map_err(unreachable)?;
        let connection = Arc::new(ServiceConnection {
            socket: Mutex::new(Sending {
                socket,
                waiting: VecDeque::new(),
            }),
            received: Mutex::default(),
            changed: Condvar::new(),
        });
        let theirs = Arc::downgrade(&connection);
        let thread = std::thread::Builder::new().name(String::from("headtime-client"));
        thread.spawn(move || {
            let mut reader = BufReader::new(reader);
            let mut bytes = Vec::new();
            let end = loop {
                bytes.clear();
                match reader.read_until(b'\n', &mut bytes) {
                    Ok(0) => break String::from("it closed the connection"),
                    Ok(_) => {}
                    Err(error) => break error.to_string(),
                }
                let Some(connection) = theirs.upgrade() else {
                    return;
                };
                match wire::parse(&bytes) {
                    Ok(message) => connection.receive(message),
                    Err(problem) => break problem,
                }
            };
            if let Some(connection) = theirs.upgrade() {
                connection.ended(end);
            }
        })?;
        Ok(connection)
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn ask<T: DeserializeOwned>(
        &self,
        ask: &str,
        fields: &impl Serialize,
    ) -> Result<T, Error> {
        let (tell, told) = mpsc::channel();
        self.send(&wire::request(ask, fields), Awaiting::Caller(tell))?;
        self.answer(&told)
    }

    pub(crate) fn attach(&self, attach: &Attach) -> Result<Granted, Error> {
        let (tell, told) = mpsc::channel();
        self.send(&wire::request("attach", attach), Awaiting::Attaching(tell))?;
        self.answer(&told)
    }

    fn answer<T: DeserializeOwned>(
        &self,
        told: &Receiver<Result<Value, StreamRefused>>,
    ) -> Result<T, Error> {
        let answer = told.recv_timeout(PATIENCE).map_err(|_| {
            let why = locked(&self.received).gone.clone();
            Error::Gone(why.unwrap_or_else(|| String::from("it does not answer")))
        })?;
        let outcome = answer.map_err(Error::Refused)?;
        serde_json::from_value(outcome).map_err(|error| Error::Misunderstood(error.to_string()))
    }

    /// Sends a request without waiting for its answer.
    pub(crate) fn tell(
        &self,
        ask: &str,
        fields: &impl Serialize,
        stream: u64,
    ) -> Result<(), Error> {
        self.send(&wire::request(ask, fields), Awaiting::Stream(stream))
    }

    fn send(&self, text: &str, waiting: Awaiting) -> Result<(), Error> {
        if let Some(why) = &locked(&self.received).gone {
            return Err(Error::Gone(why.clone()));
        }
        let mut sending = locked(&self.socket);
        sending.waiting.push_back(waiting);
        let written = sending.socket.write_all(text.as_bytes());
        written.map_err(|error| {
            // Half a line may have been sent: the service could parse nothing after it.
            let _ = sending.socket.shutdown(Shutdown::Both);
            Error::Gone(error.to_string())
        })
    }

    fn receive(&self, message: ServiceMessage) {
        let answer = match message {
            ServiceMessage::Notice(told) => return self.note(told.stream, told.event),
            ServiceMessage::Done(outcome) => Ok(outcome),
            ServiceMessage::Refused(refused) => Err(refused),
        };
        let waiting = locked(&self.socket).waiting.pop_front();
        match (waiting, answer) {
            // The caller may have stopped waiting.
            (Some(Awaiting::Caller(tell)), answer) => drop(tell.send(answer)),
            (Some(Awaiting::Attaching(tell)), answer) => {
                let stream = answer
                    .as_ref()
                    .ok()
                    .and_then(|granted| granted["stream"].as_u64());
                locked(&self.received).open.extend(stream);
                drop(tell.send(answer));
            }
            (Some(Awaiting::Stream(stream)), Err(refused)) => self.note(
                stream,
                StreamUpdate::Ended {
                    reason: refused.reason,
                },
            ),
            (Some(Awaiting::Stream(_)), Ok(_)) => {}
            // An answer without a request refuses the whole connection.
            (None, Err(refused)) => self.ended(refused.reason),
            (None, Ok(_)) => {}
        }
    }

    fn note(&self, stream: u64, event: StreamUpdate) {
        let mut received = locked(&self.received);
        if !received.open.contains(&stream) {
            return;
        }
        let events = received.events.entry(stream).or_default();
        if events.len() >= EVENTS {
            events.pop_front();
        }
        events.push_back(event);
        self.changed.notify_all();
    }

    fn ended(&self, why: String) {
        let mut received = locked(&self.received);
        for stream in std::mem::take(&mut received.open) {
            let reason = format!("the service has gone: {why}");
            let events = received.events.entry(stream).or_default();
            events.push_back(StreamUpdate::Ended { reason });
        }
        received.gone.get_or_insert(why);
        drop(received);
        self.changed.notify_all();
        // The waiting callers' channels close, which wakes them.
        locked(&self.socket).waiting.clear();
    }

    pub(crate) fn knows(&self, stream: u64) -> bool {
        locked(&self.received).open.contains(&stream)
    }

    pub(crate) fn forget(&self, stream: u64) {
        let mut received = locked(&self.received);
        received.open.retain(|&open| open != stream);
        received.events.remove(&stream);
    }

    pub(crate) fn next_event(&self, stream: u64) -> Option<StreamUpdate> {
        locked(&self.received).events.get_mut(&stream)?.pop_front()
    }

    pub(crate) fn wait_event(&self, stream: u64, at_most: Duration) -> Option<StreamUpdate> {
        let until = Instant::now() + at_most;
        let mut received = locked(&self.received);
        loop {
            let event = received
                .events
                .get_mut(&stream)
                .and_then(VecDeque::pop_front);
            let left = until.saturating_duration_since(Instant::now());
            if event.is_some() || left.is_zero() {
                return event;
            }
            let woken = self.changed.wait_timeout(received, left);
            received = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(crate) fn hang_up(&self) {
        let _ = locked(&self.socket).socket.shutdown(Shutdown::Both);
    }
}

impl Drop for ServiceConnection {
    fn drop(&mut self) {
        self.hang_up();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
