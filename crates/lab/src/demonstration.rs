//! The live demonstration of the service.
//!
//! ```text
//!   emulated drive <-- service <--unix socket-- OLTP, ten requests pending   (a thread, an NBD client)
//!                         ^
//!   first half: the load alone;  second half: the same load beside a free scan
//! ```
//!
//! Everything runs in one process and a temporary folder. The load uses a real socket.

pub mod comparisons;
pub(crate) mod load;
mod report;
mod service;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use server::control::{Scan, Service as _};
use server::tasks::Steer;
use simulator::workload::{BuiltInWorkload, Overrides, Workload};

use crate::{Failure, Progress};
use load::{LoadCounts, NbdLoad};

pub use load::{LoadStretch, Until};
pub use report::{DemoFigures, DemoForeground, DemoScan, ScanImpact, panels};
pub use service::{DRIVE, Demonstration};

/// The OLTP load of the paper, never idle.
///
/// # Errors
/// If the load is not built in.
pub fn workload() -> Result<Workload, Failure> {
    let oltp = BuiltInWorkload::find("oltp").ok_or_else(|| Failure::failed("no built-in load"))?;
    let never_idle = Overrides {
        tasks: Some(PENDING),
        think_ms: Some(0.0),
        ..Overrides::default()
    };
    let load = oltp.workload().and_then(|load| load.with(&never_idle));
    load.map_err(Failure::failed)
}

impl Demonstration {
    /// Starts a scan of the whole disk.
    ///
    /// # Errors
    /// If the service refuses the scan.
    pub fn scan(&self) -> Result<u64, Failure> {
        let scan = Scan::whole(service::VOLUME);
        self.service.scan(scan).map_err(Failure::failed)
    }

    /// Suspends a scan. A finished scan is no task any more, and nothing happens.
    pub fn suspend(&self, task: u64) {
        let _ = self.service.steer(task, Steer::Suspend);
    }

    /// Resumes a suspended scan.
    pub fn resume(&self, task: u64) {
        let _ = self.service.steer(task, Steer::Resume);
    }

    /// Runs one stretch of the load, from its first request on. The progress counts requests or
    /// seconds.
    ///
    /// # Errors
    /// If the load fails, or `stop` is set before its end.
    pub fn stretch(
        &self,
        workload: &Workload,
        until: Until,
        stop: &Arc<AtomicBool>,
        progress: &dyn Progress,
    ) -> Result<LoadStretch, Failure> {
        let load = NbdLoad {
            socket: self.socket.clone(),
            workload: workload.clone(),
            block_bytes: self.block_bytes,
            blocks: self.blocks,
            pending: PENDING as usize,
            until,
            scale: self.scale,
            stop: Arc::clone(stop),
            counts: Arc::new(LoadCounts::default()),
        };
        let counts = Arc::clone(&load.counts);
        let (runs, ended) = channel::<()>();
        let running = thread::Builder::new()
            .name("load".into())
            .spawn(move || {
                let _runs = runs;
                load.run()
            })
            .map_err(Failure::failed)?;
        let began = Instant::now();
        let mut shown = 0;
        // The channel carries nothing: it ends with the thread.
        while ended.recv_timeout(LOOK_AGAIN) == Err(RecvTimeoutError::Timeout) {
            let requests = counts.requests.load(Ordering::Relaxed);
            let done = match until {
                Until::Requests(_) => requests,
                _ => began.elapsed().as_secs(),
            };
            progress.advance(done - shown);
            shown = done;
            progress.begin(&self.state(requests, began.elapsed()));
        }
        let stretch = running
            .join()
            .map_err(|_| Failure::failed("the load's thread has failed"))??;
        match (stop.load(Ordering::Relaxed), until) {
            (true, Until::Requests(_) | Until::Passed(_)) => Err(Failure::failed("interrupted")),
            _ => Ok(stretch),
        }
    }

    fn state(&self, done: u64, passed: Duration) -> String {
        let rate = done as f64 / passed.as_secs_f64().max(1e-3) * self.scale;
        let status = self.service.status();
        let mut tasks = status.drives.iter().flat_map(|drive| &drive.tasks);
        let scan = tasks.next().map_or_else(String::new, |task| {
            format!(", scan at {:.2} MB/s", task.mb_per_s)
        });
        format!("{rate:.0} requests/s{scan}")
    }
}

/// Outstanding requests, which fit the figures of the paper on free blocks
/// (../shared/specs/scheduling.md, 7).
pub const PENDING: u32 = 10;

/// Requests of the warm-up. A choice: about a second of the drive, in which the platter's phase is
/// found.
pub const WARM_UP: u64 = 100;

/// Interval of progress reports. A choice.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
