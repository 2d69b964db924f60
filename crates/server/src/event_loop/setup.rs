//! What a loop may have besides an engine and a back end: set before its first turn.

use std::io;

use super::EventLoop;
use crate::cache_setting::CacheSetting;
use crate::capture::Recorder;
use crate::cpu_latency::LatencyInGaps;
use crate::volume::streams::Settings;

impl EventLoop {
    /// Records the engine's inputs. It is called before the first one.
    #[must_use]
    pub fn with_capture(mut self, recorder: Recorder) -> Self {
        self.disk = self.disk.with_capture(recorder);
        self
    }

    /// Sets the limits of streams.
    #[must_use]
    pub fn with_streams(mut self, settings: Settings) -> Self {
        self.volumes.streams.set(settings);
        self
    }

    /// Sets how late a CPU may wake up while gaps are filled, in microseconds.
    #[must_use]
    pub fn with_cpu_latency(mut self, micros: Option<u32>) -> Self {
        self.latency = LatencyInGaps::at_most(micros);
        self
    }

    /// Adds caches to volumes: setting, offset and length of each.
    ///
    /// # Errors
    /// If one does not fit the drive, or there is no memory for it.
    pub fn with_caches(mut self, all: &[(CacheSetting, u64, u64)]) -> io::Result<Self> {
        let exports = &self.volumes.operations.exports;
        self.volumes.caches.add(&self.disk, exports, all)?;
        Ok(self)
    }
}
