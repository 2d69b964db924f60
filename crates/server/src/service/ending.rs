//! The end of the service, from the outside to the inside.
//!
//! ```text
//!   no new clients --> file systems on loop devices are unmounted --> no mount, no device --> operations, drives --> scans
//!                      (not by `ctl stop`)
//! ```

use std::sync::PoisonError;
use std::thread;
use std::time::{Duration, Instant};

use tracing::{info, warn};

use super::{Running, ServeError, SinkThread, locked};
use crate::front_end::fuse;
use crate::status::ServiceState;
use crate::tasks::sink;

/// The pause between two looks whether the threads of scans have ended, or file systems are unmounted. A choice.
const BREATH: Duration = Duration::from_millis(20);

impl Running {
    /// Waits until the service is to end. It ends front ends first, then pending operations, then drives.
    ///
    /// # Errors
    /// If a drive's event loop has failed, or its acknowledged data could not be written: the first of them.
    pub fn wait(&self) -> Result<(), ServeError> {
        let mut state = locked(&self.state);
        while *state == ServiceState::Serving {
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        self.close_doors();
        let mut ended = Ok(());
        for drive in &self.drives {
            let name = drive.name().to_owned();
            let stopped = drive.stop();
            ended = ended.and(stopped.map_err(|error| ServeError::Ended { name, error }));
        }
        // Scans save the blocks that their programs have acknowledged.
        locked(&self.sinks).iter().for_each(SinkThread::cut);
        let until = Instant::now() + sink::PATIENCE;
        // The lock is free meanwhile: a second signal may want it.
        while !locked(&self.sinks).iter().all(SinkThread::has_ended) && Instant::now() < until {
            thread::sleep(BREATH);
        }
        locked(&self.sinks).iter().for_each(SinkThread::leave);
        info!("all drives have stopped");
        ended
    }

    /// Ends the programs of scans at once: for a service that does not end in order.
    pub fn kill_programs(&self) {
        locked(&self.sinks).iter().for_each(SinkThread::kill);
    }

    /// Loop devices over our files that a file system or another device uses: `/dev/loop0 (mounted on /srv)`.
    pub(super) fn mounted_loops(&self) -> Vec<String> {
        let doors = locked(&self.doors);
        doors
            .mounts
            .iter()
            .flat_map(fuse::Mount::mounted_loops)
            .collect()
    }

    /// Ends the front ends.
    fn close_doors(&self) {
        let mut doors = locked(&self.doors);
        let closed = (doors.watch.take(), std::mem::take(&mut doors.listeners));
        drop(doors);
        drop(closed);
        self.wait_for_file_systems();
        let doors = std::mem::take(&mut *locked(&self.doors));
        drop(doors.mounts);
        for folder in doors.mount_folders.iter().rev() {
            // One that is in use, or has files now, stays.
            let _ = std::fs::remove_dir(folder);
        }
        doors.devices.stop();
    }

    /// Waits while file systems on loop devices over our files are mounted, until `ctl stop`. The kernel has acknowledged
    /// writes to their programs that it has not sent yet.
    fn wait_for_file_systems(&self) {
        let mut told = Vec::new();
        loop {
            let now = self.mounted_loops();
            if now.is_empty() || *locked(&self.state) != ServiceState::Draining {
                return;
            }
            if now != told {
                warn!(
                    devices = now.join(", "),
                    "waits, because they are in use: expected `umount`, which writes what is in the page cache; \
                     `headtime ctl stop` or a second signal ends the service without it"
                );
                told = now;
            }
            thread::sleep(BREATH);
        }
    }
}
