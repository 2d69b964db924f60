//! Signals of `headtime serve`: SIGINT and SIGTERM end the service, SIGHUP reloads its configuration.
//!
//! | SIGTERM | while it starts | while it serves |
//! |---|---|---|
//! | the first | the end after the start, or after [`WAIT`] | the end when operations in flight have ended |
//! | the second | as the first | the end after [`WAIT`] |

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use server::control::Service as _;
use server::service::Running;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing::{error, info};

use crate::interrupt::SIGNALLED;
use crate::output::Exit;

/// The service, once it has started.
#[derive(Clone, Default)]
pub(super) struct Stage(Arc<(Mutex<Option<Arc<Running>>>, Condvar)>);

/// The time for a start that is under way, and for operations in flight after a second signal. A choice: a disk's
/// queue of commands takes less, and what takes longer is a server that is gone or a disk that hangs.
const WAIT: Duration = Duration::from_secs(2);

/// The exit code of a service that could not write all that it has acknowledged.
const FAILED: i32 = 1;

impl Stage {
    /// Handles signals from now on.
    ///
    /// # Errors
    /// If the system refuses handlers, or has no more threads.
    pub(super) fn listen_to_signals() -> Result<Self, Exit> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(Exit::failed)?;
        let stage = Stage::default();
        let told = stage.clone();
        let listening = thread::Builder::new().name("signals".into());
        listening
            .spawn(move || {
                let mut is_ending = false;
                for signal in signals.forever() {
                    match (signal, is_ending) {
                        (SIGHUP, _) => told.reload(),
                        (_, false) => told.drain(signal),
                        (_, true) => told.give_up(),
                    }
                    is_ending |= signal != SIGHUP;
                }
            })
            .map_err(Exit::failed)?;
        Ok(stage)
    }

    /// The service has started.
    pub(super) fn is_set(&self, running: &Arc<Running>) {
        let (service, started) = &*self.0;
        *service.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(running));
        started.notify_all();
    }

    /// The service. Without one this waits up to `patience` for it.
    fn service(&self, patience: Duration) -> Option<Arc<Running>> {
        let (service, started) = &*self.0;
        let service = service.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = started.wait_timeout_while(service, patience, |service| service.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    fn reload(&self) {
        match self.service(Duration::ZERO).map(|service| service.reload()) {
            None => info!("a signal to read the configuration again: it is read already"),
            Some(Ok(changes)) => info!(?changes, "the configuration was read again"),
            Some(Err(problem)) => error!(problem, "the configuration stays as it was"),
        }
    }

    /// Ends the service when all operations in flight have ended, or a start that takes too long.
    fn drain(&self, signal: i32) {
        let seconds = WAIT.as_secs();
        if self.service(Duration::ZERO).is_none() {
            info!("a signal ends the service while it starts, within {seconds} s");
        }
        let Some(service) = self.service(WAIT) else {
            error!("the start had no end within {seconds} s and is given up; no client was served");
            std::process::exit(SIGNALLED + signal);
        };
        info!(
            "a signal ends the service when its operations have ended; a second one within {seconds} s"
        );
        service.drain();
    }

    /// Ends the program after [`WAIT`], unless the service ends before.
    fn give_up(&self) {
        thread::sleep(WAIT);
        error!(
            "a second signal: operations had no end within {} s and are given up; what was not flushed may be lost, \
             and cache switches of disks are put back at the next start",
            WAIT.as_secs()
        );
        if let Some(service) = self.service(Duration::ZERO) {
            service.kill_programs();
        }
        std::process::exit(FAILED);
    }
}
