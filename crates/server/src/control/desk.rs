//! What the socket and HTTP share: their bounds, and the calls of the service.

use std::sync::Arc;
use std::time::Duration;

use headtime_client::wire;
use rustix::process::geteuid;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::protocol::{Answer, Ask, BegunDrain, DriveTasks};
use super::rights::UserRights;
use super::{Lease, Scan, Service};
use crate::config::{Actions, MemberRights};
use crate::tasks::scan::TaskLifetime;

/// What clients of the control plane may take up, and what they may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Connections of each listener. One more is told so and closed.
    pub connections: usize,
    /// How long a line or the head of a request may take to come, and an answer to be taken.
    pub patience: Duration,
    /// How long a connection may be silent between requests.
    pub idle: Duration,
    /// What may be done over HTTP.
    pub http_actions: Actions,
    /// What users other than root and the service's own may ask at the socket.
    pub members: MemberRights,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            // Choices: more than the browsers, scripts, players and recorders of one machine; as
            // nginx's client_header_timeout, and its keepalive_timeout.
            connections: 256,
            patience: Duration::from_secs(60),
            idle: Duration::from_secs(75),
            http_actions: Actions::Refused,
            members: MemberRights::default(),
        }
    }
}

/// Without descriptors accepting fails at once, again and again. A choice.
pub(super) const BREATH: Duration = Duration::from_millis(100);

/// What every connection has at hand.
#[derive(Clone)]
pub(super) struct Desk {
    pub(super) service: Arc<dyn Service>,
    pub(super) bounds: Bounds,
    pub(super) ended: watch::Receiver<()>,
}

impl Desk {
    /// Asks the service, on a thread on which that may take a while.
    pub(super) async fn answer(&self, ask: Ask) -> Answer {
        self.answer_with(None, ask).await
    }

    /// The same for a client that may have streams.
    pub(super) async fn answer_with(&self, lease: Option<Arc<Lease>>, ask: Ask) -> Answer {
        if let Some(Err(problem)) = lease.as_ref().map(|lease| lease.check(&ask)) {
            return Answer::refusal(problem);
        }
        let service = Arc::clone(&self.service);
        let call = tokio::task::spawn_blocking(move || answer(&*service, lease.as_deref(), ask));
        call.await
            .unwrap_or_else(|_| Answer::refusal("the service could not answer: its log says why"))
    }

    /// What a client's streams hang on: they end when it is dropped. What they are told comes out of
    /// the receiver.
    pub(super) fn lease(&self, user: u32) -> (Arc<Lease>, mpsc::Receiver<wire::StreamNotice>) {
        let rights = UserRights::of(user, geteuid().as_raw(), self.bounds.members);
        let (lease, told) = Lease::new(Arc::clone(&self.service), user, rights);
        (Arc::new(lease), told)
    }

    /// How the service is.
    pub(super) async fn status(&self) -> Option<crate::status::Status> {
        let service = Arc::clone(&self.service);
        tokio::task::spawn_blocking(move || service.status())
            .await
            .ok()
    }
}

/// Does what is asked. It may take a while. Streams are those of the lease.
fn answer(service: &dyn Service, lease: Option<&Lease>, ask: Ask) -> Answer {
    let outcome = match ask {
        Ask::Attach(_) | Ask::Position(_) | Ask::Refresh(_) | Ask::Close(_) | Ask::Streams => {
            return match lease {
                Some(lease) => lease.answer(service, ask),
                None => Answer::refusal(
                    "a stream has a user, and lasts as long as its connection: expected the control socket",
                ),
            };
        }
        Ask::Status => serde_json::to_value(service.status()),
        Ask::Tasks => serde_json::to_value(tasks(service)),
        Ask::Exports => serde_json::to_value(service.exports()),
        Ask::Scan(order) => match scan(service, lease, order) {
            Ok(task) => Ok(serde_json::json!({ "task": task })),
            Err(problem) => return Answer::refusal(problem),
        },
        Ask::Scrub(order) => match service.scrub(&order) {
            Ok(()) => Ok(Value::Null),
            Err(problem) => return Answer::refusal(problem),
        },
        Ask::BeginCheckpoint(_)
        | Ask::ReleaseCheckpoint { .. }
        | Ask::Checkpoints
        | Ask::ChangeBitmap { .. }
        | Ask::Bitmaps => match backups(service, ask) {
            Ok(outcome) => outcome,
            Err(problem) => return Answer::refusal(problem),
        },
        Ask::Scrubs => serde_json::to_value(service.scrubs()),
        Ask::Steer { task, action } => match service.steer(task, action) {
            Ok(()) => Ok(Value::Null),
            Err(problem) => return Answer::refusal(problem),
        },
        Ask::Impact { drive, impact_ppm } => match service.set_impact(&drive, impact_ppm) {
            Ok(()) => Ok(Value::Null),
            Err(problem) => return Answer::refusal(problem),
        },
        Ask::Learn(_) | Ask::Learned { .. } | Ask::StopLearning { .. } | Ask::Follow { .. } => {
            match learning(service, ask) {
                Ok(outcome) => outcome,
                Err(problem) => return Answer::refusal(problem),
            }
        }
        Ask::Why(query) => match service.why(&query) {
            Ok(slow) => serde_json::to_value(slow),
            Err(problem) => return Answer::refusal(problem),
        },
        Ask::Reload => match service.reload() {
            Ok(changes) => serde_json::to_value(changes),
            Err(problem) => return Answer::refusal(problem),
        },
        Ask::Drain => serde_json::to_value(BegunDrain {
            waits_for: service.drain(),
        }),
        Ask::Stop => {
            service.stop();
            Ok(Value::Null)
        }
    };
    match outcome {
        // Null would be no `ok` at all.
        Ok(Value::Null) => Answer::done(Value::Bool(true)),
        Ok(outcome) => Answer::done(outcome),
        Err(error) => Answer::refusal(error.to_string()),
    }
}

/// Begins a scan, and returns the number of its task.
///
/// # Errors
/// The service's, or there is no connection with which it could end.
fn scan(service: &dyn Service, lease: Option<&Lease>, order: Scan) -> Result<u64, String> {
    match (lease, order.lifetime) {
        (Some(lease), _) => lease.scan(service, order),
        (None, TaskLifetime::Detached) => service.scan(order),
        (None, TaskLifetime::Connection) => {
            Err("a scan that ends with its connection: expected the control socket".to_owned())
        }
    }
}

/// Does what is asked about profiling behind a load.
///
/// # Errors
/// The service's.
fn learning(service: &dyn Service, ask: Ask) -> Result<serde_json::Result<Value>, String> {
    match ask {
        Ask::Learned { drive } => return Ok(serde_json::to_value(service.learned(&drive)?)),
        Ask::Learn(order) => service.learn(&order)?,
        Ask::StopLearning { drive } => service.stop_learning(&drive)?,
        Ask::Follow { drive } => service.follow(&drive)?,
        _ => return Err("not about profiling: expected learn".to_owned()),
    }
    Ok(Ok(Value::Null))
}

/// Does what is asked about checkpoints and dirty bitmaps.
///
/// # Errors
/// The service's.
fn backups(service: &dyn Service, ask: Ask) -> Result<serde_json::Result<Value>, String> {
    Ok(match ask {
        Ask::BeginCheckpoint(order) => serde_json::to_value(service.begin_checkpoint(&order)?),
        Ask::ReleaseCheckpoint { volume, release } => {
            service.release_checkpoint(&volume, release)?;
            Ok(Value::Null)
        }
        Ask::ChangeBitmap {
            volume,
            name,
            change,
        } => {
            service.change_bitmap(&volume, &name, change)?;
            Ok(Value::Null)
        }
        Ask::Checkpoints => serde_json::to_value(service.checkpoints()),
        _ => serde_json::to_value(service.bitmaps()),
    })
}

fn tasks(service: &dyn Service) -> Vec<DriveTasks> {
    let drives = service.status().drives.into_iter();
    let tasks = drives.map(|drive| DriveTasks {
        drive: drive.name,
        tasks: drive.tasks,
    });
    tasks.collect()
}
