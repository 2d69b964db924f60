//! The control plane: status, commands and reload of the service, for other programs.
//!
//! ```text
//!   headtime ctl --JSON lines--> unix socket --.
//!   browser, curl, Prometheus --> HTTP --------+--> dyn Service
//!   systemd <--READY, STATUS, WATCHDOG-- notify
//! ```
//!
//! The control plane runs on one dedicated thread. Event loops of drives never wait for it.

mod client;
mod desk;
mod history;
mod http;
mod learning;
mod lease;
pub mod metrics;
pub mod notify;
mod page;
mod plane;
pub mod protocol;
mod rights;
mod socket;
mod unique_keys;

pub use crate::status::LearningReport;
pub use client::{AskError, Conversation, ask};
pub use desk::Bounds;
pub use learning::{Learn, MOST_GRANTED_PPM};
pub use lease::Lease;
pub use plane::{GRACE, Listeners, Plane, listen, listen_http};
pub use protocol::{
    BeginCheckpoint, BegunCheckpoint, BitmapChange, ListedExport, ScrubBlocks, ScrubOrder,
};

use headtime_client::wire;
use serde::{Deserialize, Serialize};

use crate::checkpoint::marks::BitmapStatus;
use crate::checkpoint::moment::CheckpointStatus;
pub use crate::checksums::report::ScrubReport;
use crate::status::Status;
use crate::tasks::Steer;
pub use crate::tasks::scan::{PieceSet, Scan, ScanState, Sink, TaskLifetime};
use crate::volume::Release;
use crate::volume::streams::StreamEvents;
use crate::why::{Query, Slow};

/// The part of the service that the control plane uses. Calls may block, on threads that may.
pub trait Service: Send + Sync + 'static {
    /// The current status of the service.
    fn status(&self) -> Status;

    /// Begins to read a volume in free time. The answer is the number of the task.
    ///
    /// # Errors
    /// The reason, and what was expected.
    fn scan(&self, order: Scan) -> Result<u64, String>;

    /// All exports.
    fn exports(&self) -> Vec<ListedExport>;

    /// Makes a checkpoint of a volume. The call returns after its moment.
    ///
    /// # Errors
    /// The reason, and what was expected.
    fn begin_checkpoint(&self, order: &BeginCheckpoint) -> Result<BegunCheckpoint, String>;

    /// Ends the checkpoint of a volume.
    ///
    /// # Errors
    /// If there is none, or it is lost and was to be the base of the next backup.
    fn release_checkpoint(&self, volume: &str, release: Release) -> Result<(), String>;

    /// All checkpoints.
    fn checkpoints(&self) -> Vec<CheckpointStatus>;

    /// All dirty bitmaps.
    fn bitmaps(&self) -> Vec<BitmapStatus>;

    /// Adds or removes a dirty bitmap.
    ///
    /// # Errors
    /// The reason, and what was expected.
    fn change_bitmap(&self, volume: &str, name: &str, change: BitmapChange) -> Result<(), String>;

    /// Begins to verify a volume's checksums.
    ///
    /// # Errors
    /// The reason, and what was expected.
    fn scrub(&self, order: &ScrubOrder) -> Result<(), String>;

    /// The scrubs since the service began, by volume.
    fn scrubs(&self) -> Vec<ScrubReport>;

    /// Suspends, resumes, aborts or promotes a task.
    ///
    /// # Errors
    /// If no active task has this number.
    fn steer(&self, task: u64, action: Steer) -> Result<(), String>;

    /// Sets the impact budget of a drive: the share by which background tasks may lengthen foreground
    /// requests, in parts per million.
    ///
    /// # Errors
    /// If there is no such drive, or the drive has no impact budget.
    fn set_impact(&self, drive: &str, impact_ppm: u32) -> Result<(), String>;

    /// Begins to profile a drive behind its load.
    ///
    /// # Errors
    /// If there is no such drive, or it has a belief, or is being profiled.
    fn learn(&self, order: &Learn) -> Result<(), String>;

    /// The findings about a drive that is profiled behind its load.
    ///
    /// # Errors
    /// If there is no such drive, or it was not profiled.
    fn learned(&self, drive: &str) -> Result<LearningReport, String>;

    /// Ends the profiling of a drive. What was found stays.
    ///
    /// # Errors
    /// If there is no such drive.
    fn stop_learning(&self, drive: &str) -> Result<(), String>;

    /// Follows what was found about a drive, from now on and without a restart.
    ///
    /// # Errors
    /// If nothing usable was found, or the drive has a belief: then nothing changes.
    fn follow(&self, drive: &str) -> Result<(), String>;

    /// The account of slow requests, the slowest first.
    ///
    /// # Errors
    /// If no request matches: what the user can do.
    fn why(&self, query: &Query) -> Result<Vec<Slow>, String>;

    /// Grants a stream to a user, or refuses it. `events` gets the events of the stream.
    ///
    /// # Errors
    /// The reason, and what would be granted instead.
    fn attach(
        &self,
        user: u32,
        attach: wire::Attach,
        events: StreamEvents,
    ) -> Result<wire::Granted, wire::StreamRefused>;

    /// Moves a stream's playout point.
    ///
    /// # Errors
    /// If there is no such stream.
    fn position(&self, position: wire::Position) -> Result<(), String>;

    /// Replaces the places of a stream's file, which has grown or moved.
    ///
    /// # Errors
    /// If there is no such stream, or the places are not in its volume.
    fn refresh(&self, refresh: wire::Refresh) -> Result<wire::FileChange, wire::StreamRefused>;

    /// Closes a stream. The call does not wait for the drive.
    ///
    /// # Errors
    /// If there is no such stream.
    fn close(&self, stream: u64) -> Result<(), String>;

    /// All streams of all drives.
    fn streams(&self) -> Vec<wire::Listed>;

    /// Reads the configuration file again, and applies the changes that drop no client.
    ///
    /// # Errors
    /// The first error of the new configuration, which then changes nothing.
    fn reload(&self) -> Result<Changes, String>;

    /// Refuses new clients, finishes and flushes pending operations, and stops. Before that it waits for file systems on
    /// loop devices over its files, which are returned: `/dev/loop0 (mounted on /srv)`.
    fn drain(&self) -> Vec<String>;

    /// Stops now, as after SIGTERM: finishes pending operations, and does not wait for clients.
    fn stop(&self);
}

/// The effect of a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// The changes that are in force, a sentence each.
    pub applied: Vec<String>,
    /// The changes that need a restart, a sentence each.
    pub after_restart: Vec<String>,
}
