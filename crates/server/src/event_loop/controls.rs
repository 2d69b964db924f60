//! The background tasks and streams of a loop, for the control plane.

use headtime_client::wire;

use crate::disk::Disk;
use crate::status;
use crate::tasks::{Steer, TaskRequest, Tasks};
use crate::volume::Volumes;
use crate::volume::streams::StreamRequest;

/// The background tasks of a loop.
pub struct TaskControl<'a> {
    pub(super) tasks: &'a mut Tasks,
    pub(super) disk: &'a mut Disk,
}

impl TaskControl<'_> {
    /// All tasks, the oldest first.
    pub fn list(&mut self) -> Vec<status::Task> {
        self.tasks.listed(self.disk)
    }

    /// Checks whether the drive can have tasks.
    ///
    /// # Errors
    /// Why not, and what was expected.
    pub fn check(&self) -> Result<(), String> {
        self.disk.check_background()
    }

    /// Begins a task.
    ///
    /// # Errors
    /// Why not, and what was expected.
    pub fn begin(&mut self, scan: TaskRequest) -> Result<(), String> {
        self.tasks.begin(self.disk, scan)
    }

    /// Suspends, resumes, aborts or promotes a task.
    ///
    /// # Errors
    /// If no task of this number is active.
    pub fn steer(&mut self, number: u64, steer: Steer) -> Result<(), String> {
        self.tasks.steer(self.disk, number, steer)
    }

    /// Aborts a task whose sink has ended.
    pub fn sink_gone(&mut self, number: u64) {
        self.tasks.sink_gone(self.disk, number);
    }

    /// Resumes a task whose sink has caught up.
    pub fn caught_up(&mut self, number: u64) {
        self.tasks.caught_up(self.disk, number);
    }
}

/// The guaranteed streams of a loop.
pub struct StreamControl<'a> {
    pub(super) volumes: &'a mut Volumes,
    pub(super) disk: &'a mut Disk,
}

impl StreamControl<'_> {
    /// All streams, without the name of the drive.
    pub fn list(&self) -> Vec<wire::Listed> {
        self.volumes.streams.listed(self.disk)
    }

    /// Grants a stream, or refuses it.
    ///
    /// # Errors
    /// The reason, and what would be granted instead.
    pub fn attach(&mut self, request: StreamRequest) -> Result<wire::Granted, wire::StreamRefused> {
        self.volumes.attach(self.disk, request)
    }

    /// Moves a stream's playout point. A stream that is gone ignores it.
    pub fn position(&mut self, position: &wire::Position) {
        self.volumes.streams.position(self.disk, position);
        self.volumes.poll_streams(self.disk);
    }

    /// Replaces the places of a stream's file, which has grown or moved.
    ///
    /// # Errors
    /// If there is no such stream, or the places are not in its volume.
    pub fn refresh(
        &mut self,
        refresh: &wire::Refresh,
    ) -> Result<wire::FileChange, wire::StreamRefused> {
        let exports = &self.volumes.operations.exports;
        let change = self.volumes.streams.refresh(self.disk, exports, refresh)?;
        self.volumes.poll_streams(self.disk);
        Ok(change)
    }

    /// Closes a stream. A recording's buffer is still written.
    pub fn close(&mut self, number: u64) {
        self.volumes.streams.close(self.disk, number);
        self.volumes.poll_streams(self.disk);
    }
}
