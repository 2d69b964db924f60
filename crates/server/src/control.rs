//! Looking at the service and telling it what to do, from outside.
//!
//! ```text
//!   headtime ctl --JSON lines--> unix socket --.
//!   browser, curl, Prometheus --> HTTP --------+--> dyn Service
//!   systemd <--READY, STATUS, WATCHDOG-- notify
//! ```
//!
//! All of it runs on one thread of its own; the event loops of drives never wait for it.

mod client;
mod desk;
mod http;
mod lease;
pub mod metrics;
pub mod notify;
mod page;
mod plane;
pub mod protocol;
mod socket;

pub use client::{AskError, ask};
pub use desk::Bounds;
pub use lease::Lease;
pub use plane::{Listeners, Plane, listen, listen_http};

use std::path::PathBuf;

use headtime_client::wire;
use serde::{Deserialize, Serialize};

use crate::status::Status;
use crate::tasks::Steer;
use crate::volume::streams::StreamEvents;
use crate::why::{Query, Slow};

/// What the control plane asks of the service. Calls may take a while, and come from threads on
/// which they may.
pub trait Service: Send + Sync + 'static {
    /// How it is.
    fn status(&self) -> Status;

    /// Begins to read a volume in free time; answers the task's number.
    ///
    /// # Errors
    /// Why not, and what was expected.
    fn scan(&self, order: Scan) -> Result<u64, String>;

    /// Does something to a task.
    ///
    /// # Errors
    /// If there is no such task under way.
    fn steer(&self, task: u64, action: Steer) -> Result<(), String>;

    /// Background tasks on a drive may lengthen foreground requests by so much from now on, in parts
    /// per million.
    ///
    /// # Errors
    /// If there is no such drive, or none that keeps to a budget.
    fn set_impact(&self, drive: &str, impact_ppm: u32) -> Result<(), String>;

    /// Where the time of slow requests went, the slowest first.
    ///
    /// # Errors
    /// If there is none of those that were asked for: what to do.
    fn why(&self, query: &Query) -> Result<Vec<Slow>, String>;

    /// Grants a stream to a user, or says why not. What happens to it is told to the events.
    ///
    /// # Errors
    /// Why not, and what would be granted.
    fn attach(
        &self,
        user: u32,
        attach: wire::Attach,
        events: StreamEvents,
    ) -> Result<wire::Granted, wire::Refused>;

    /// A stream's playout point has moved.
    ///
    /// # Errors
    /// If there is no such stream.
    fn position(&self, position: wire::Position) -> Result<(), String>;

    /// A stream's file has grown, or lies elsewhere.
    ///
    /// # Errors
    /// If there is no such stream, or the places are not in its volume.
    fn refresh(&self, refresh: wire::Refresh) -> Result<wire::Change, wire::Refused>;

    /// A stream is over. This waits for nobody.
    ///
    /// # Errors
    /// If there is no such stream.
    fn close(&self, stream: u64) -> Result<(), String>;

    /// All streams.
    fn streams(&self) -> Vec<wire::Listed>;

    /// Reads the configuration again, and takes over what can be without dropping a client.
    ///
    /// # Errors
    /// What is wrong with the new one, which then changes nothing.
    fn reload(&self) -> Result<Changes, String>;

    /// Lets nobody new in, ends what was begun, makes it durable, and stops.
    fn drain(&self);

    /// Stops now, as after SIGTERM: what was begun is ended, clients are not waited for.
    fn stop(&self);
}

/// Reading every block of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scan {
    /// Which volume.
    pub volume: String,
    /// 0 is looked for first.
    #[serde(default)]
    pub priority: u8,
    /// In how many seconds it should be done.
    #[serde(default)]
    pub deadline_s: Option<u64>,
    /// What is done with what was read.
    #[serde(default)]
    pub sink: Sink,
    /// Where it is written how far it is, to go on with after a stop or a crash.
    #[serde(default)]
    pub state: Option<ScanState>,
}

/// Where it is written how far a scan is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScanState {
    /// A file, by its whole path. The service's user writes it, so that it is only taken from the
    /// control socket. If it is there, the scan goes on from it.
    pub file: PathBuf,
    /// After how many seconds it is written again, at the earliest; 0: whenever something was dealt
    /// with.
    pub every_s: u64,
}

/// What is done with the blocks of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sink {
    /// A checksum of each chunk.
    #[default]
    Checksum,
    /// A program and its arguments. It runs as the service's user, so that it is only taken from the
    /// control socket.
    Command(Vec<String>),
}

/// What a reload did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// What is in force now, each in a sentence.
    pub applied: Vec<String>,
    /// What is in force after a restart, each in a sentence.
    pub after_restart: Vec<String>,
}
