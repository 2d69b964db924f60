//! The lease of a client's streams and tasks: its connection to the control socket. When the connection ends,
//! its streams end, and those of its tasks that are to end with it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use headtime_client::wire::StreamNotice;
use tokio::sync::mpsc::Receiver;

use super::protocol::{Answer, Ask};
use super::rights::UserRights;
use super::{Scan, Service};
use crate::tasks::Steer;
use crate::tasks::scan::TaskLifetime;
use crate::volume::streams::StreamEvents;

/// The streams and tasks of one connection.
pub struct Lease {
    service: Arc<dyn Service>,
    /// The user id of the client.
    user: u32,
    rights: UserRights,
    events: StreamEvents,
    streams: Mutex<Vec<u64>>,
    /// Tasks that end with the connection.
    tasks: Mutex<Vec<u64>>,
}

/// The largest number of streams of one connection. A choice: more than any drive serves.
const STREAMS: usize = 1024;

impl Lease {
    /// A lease without streams.
    pub(super) fn new(
        service: Arc<dyn Service>,
        user: u32,
        rights: UserRights,
    ) -> (Lease, Receiver<StreamNotice>) {
        let (events, told) = StreamEvents::new();
        let lease = Lease {
            service,
            user,
            rights,
            events,
            streams: Mutex::default(),
            tasks: Mutex::default(),
        };
        (lease, told)
    }

    /// Checks that the client may ask this.
    ///
    /// # Errors
    /// If it may not, and what was expected.
    pub(super) fn check(&self, ask: &Ask) -> Result<(), String> {
        self.rights.check(ask)
    }

    /// Whether the connection has no streams and no tasks.
    pub(super) fn is_empty(&self) -> bool {
        self.held().is_empty() && locked(&self.tasks).is_empty()
    }

    /// Begins a scan.
    ///
    /// # Errors
    /// The service's.
    pub(super) fn scan(&self, service: &dyn Service, order: Scan) -> Result<u64, String> {
        let lifetime = order.lifetime;
        let task = service.scan(order)?;
        if lifetime == TaskLifetime::Connection {
            locked(&self.tasks).push(task);
        }
        Ok(task)
    }

    /// Executes a request about streams.
    pub(super) fn answer(&self, service: &dyn Service, ask: Ask) -> Answer {
        let outcome = match ask {
            Ask::Attach(attach) => {
                // Held over the call: the stream must be known before the lease can end.
                let mut held = self.held();
                if held.len() >= STREAMS {
                    return Answer::refusal(format!(
                        "{STREAMS} streams of one connection: expected another connection"
                    ));
                }
                match service.attach(self.user, attach, self.events.clone()) {
                    Ok(granted) => {
                        held.push(granted.stream);
                        serde_json::to_value(granted)
                    }
                    Err(refused) => return Answer::refused(refused),
                }
            }
            Ask::Position(position) => {
                let done = self
                    .own(position.stream)
                    .and_then(|()| service.position(position));
                match done {
                    Ok(()) => Ok(true.into()),
                    Err(problem) => return Answer::refusal(problem),
                }
            }
            Ask::Refresh(refresh) => match self.own(refresh.stream) {
                Ok(()) => match service.refresh(refresh) {
                    Ok(change) => serde_json::to_value(change),
                    Err(refused) => return Answer::refused(refused),
                },
                Err(problem) => return Answer::refusal(problem),
            },
            Ask::Close(close) => {
                let done = self.own(close.stream).and_then(|()| {
                    self.held().retain(|&stream| stream != close.stream);
                    service.close(close.stream)
                });
                match done {
                    Ok(()) => Ok(true.into()),
                    Err(problem) => return Answer::refusal(problem),
                }
            }
            Ask::Streams => {
                let mut streams = service.streams();
                streams.retain(|stream| self.rights.sees(self.user, stream));
                serde_json::to_value(streams)
            }
            _ => return Answer::refusal("not about a stream: expected attach"),
        };
        match outcome {
            Ok(outcome) => Answer::done(outcome),
            Err(error) => Answer::refusal(error.to_string()),
        }
    }

    /// Checks that a stream belongs to this client.
    fn own(&self, stream: u64) -> Result<(), String> {
        match self.held().contains(&stream) {
            true => Ok(()),
            false => Err(format!("no stream {stream} is of this connection")),
        }
    }

    fn held(&self) -> MutexGuard<'_, Vec<u64>> {
        locked(&self.streams)
    }
}

fn locked(numbers: &Mutex<Vec<u64>>) -> MutexGuard<'_, Vec<u64>> {
    numbers.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Lease {
    fn drop(&mut self) {
        for stream in std::mem::take(&mut *self.held()) {
            // One that has ended already is no matter.
            let _ = self.service.close(stream);
        }
        for task in std::mem::take(&mut *locked(&self.tasks)) {
            let _ = self.service.steer(task, Steer::Abort);
        }
    }
}
