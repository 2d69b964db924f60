//! The background tasks, streams and checkpoints of a loop, for the control plane.

use std::sync::mpsc;

use headtime_client::wire;

use super::EventLoop;
use crate::checkpoint::marks::BitmapStatus;
use crate::checkpoint::moment::CheckpointStatus;
use crate::classify::Watch;
use crate::classify::priority::Rule;
use crate::clients::Clients;
use crate::disk::Disk;
use crate::disk::learning::{Learned, LearningGrant};
use crate::disk::taking_up::MakeEngine;
use crate::status;
use crate::tasks::sink::hooks::HookEvent;
use crate::tasks::{Steer, TaskRequest, Tasks};
use crate::volume::streams::StreamRequest;
use crate::volume::{CheckpointOrder, OpenBitmap, Opened, Release, Volumes};

/// The classified exports of a loop.
pub struct ClassControl<'a> {
    pub(super) volumes: &'a mut Volumes,
}

impl ClassControl<'_> {
    /// Classifies the requests of an export by these rules.
    pub fn classify(&mut self, export: String, rules: Vec<Rule>) {
        self.volumes.classify_export(export, rules);
    }

    /// Watches these devices over a classified export. The answer is what was watched before, which another
    /// thread closes.
    #[must_use]
    pub fn watch(&mut self, export: &str, watch: Watch) -> Watch {
        self.volumes.watch(export, watch)
    }
}

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

    /// Checks whether a task of this pace can end in time.
    ///
    /// # Errors
    /// The time at which it would end at the earliest, and what was expected.
    pub fn check_terms(&self, scan: &TaskRequest, pace_bytes_s: Option<u64>) -> Result<(), String> {
        Tasks::check_terms(self.disk, scan, pace_bytes_s)
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

    /// What a task has done whose sink has ended, or the problem; `None` if it was given up.
    pub(crate) fn end_of(&self, number: u64) -> Option<HookEvent> {
        self.tasks.end_of(self.disk, number)
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

/// The checkpoints of a loop.
pub struct CheckpointControl<'a> {
    pub(super) clients: &'a mut Clients,
    pub(super) volumes: &'a mut Volumes,
    pub(super) disk: &'a mut Disk,
}

impl CheckpointControl<'_> {
    /// All checkpoints.
    pub fn list(&self) -> Vec<CheckpointStatus> {
        self.volumes.checkpoints.statuses()
    }

    /// Orders a checkpoint. `opened` is called at its moment with the index of its export: what was acknowledged
    /// before this call is in it, and nothing that is submitted after the callback.
    pub fn begin(&mut self, order: CheckpointOrder, opened: Opened) {
        self.volumes.begin_checkpoint(order, opened);
    }

    /// Adds a dirty bitmap.
    ///
    /// # Errors
    /// If the system has no thread or eventfd for it.
    pub fn add_bitmap(&mut self, bitmap: OpenBitmap) -> std::io::Result<()> {
        self.volumes.add_bitmap(self.disk, bitmap)
    }

    /// Removes a dirty bitmap. Its file stays.
    ///
    /// # Errors
    /// If there is none, or a checkpoint uses it.
    pub fn remove_bitmap(&mut self, volume: &str, name: &str) -> Result<(), String> {
        self.volumes.remove_bitmap(volume, name)
    }

    /// All dirty bitmaps.
    pub fn bitmaps(&self) -> Vec<BitmapStatus> {
        self.volumes.checkpoints.bitmaps.statuses()
    }

    /// Ends the checkpoint of a volume, and drops the clients of its export.
    ///
    /// # Errors
    /// If there is none.
    pub fn release(&mut self, volume: &str, release: Release) -> Result<(), String> {
        let export = self.volumes.release_checkpoint(volume, release)?;
        self.clients.cut_export(self.volumes, self.disk, export);
        Ok(())
    }
}

/// What a drive learns of itself.
impl EventLoop {
    /// Profiles the drive, whose name is for messages, behind its load.
    ///
    /// # Errors
    /// Why not, and what was expected.
    pub fn learn(&mut self, name: &str, grant: &LearningGrant) -> Result<(), String> {
        self.disk.learn(name, grant)
    }

    /// The findings of the profiler behind the load.
    pub fn learned(&self) -> Option<Learned> {
        let learning = self.disk.learning()?;
        Some(learning.learned(self.disk.now))
    }

    /// Ends the profiling of the drive. What was found stays.
    pub fn stop_learning(&mut self) {
        self.disk.stop_learning();
    }

    /// Lets the engine of a belief take the place of the present one. New operations wait until all requests
    /// before them have ended; then `taken` is told.
    ///
    /// # Errors
    /// If the drive follows a belief, or is being profiled.
    pub fn take_up(
        &mut self,
        make: MakeEngine,
        taken: mpsc::Sender<()>,
    ) -> Result<(), &'static str> {
        self.disk.take_up(make, taken)
    }

    /// Goes on with the present engine. The answer is whether another one was still to take its place.
    pub fn keep_engine(&mut self) -> bool {
        self.disk.keep_engine()
    }
}
