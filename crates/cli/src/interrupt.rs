//! Signals that end a command in order: a measurement that turns the drive's switches back, a scan that says what it has
//! read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::output::Exit;

/// A signal that asks for the end.
#[derive(Debug)]
pub struct StopSignal {
    is_asked: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl StopSignal {
    /// Notes signals from now on. A second one ends the program at once.
    ///
    /// # Errors
    /// If the system refuses a handler.
    pub fn on_signals() -> Result<Self, Exit> {
        let stop = StopSignal {
            is_asked: Arc::default(),
            signal: Arc::default(),
        };
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            let end = SIGNALLED + signal;
            flag::register_conditional_shutdown(signal, end, Arc::clone(&stop.is_asked))
                .and_then(|_| flag::register_usize(signal, Arc::clone(&stop.signal), end as usize))
                .and_then(|_| flag::register(signal, Arc::clone(&stop.is_asked)))
                .map_err(Exit::failed)?;
        }
        Ok(stop)
    }

    /// Whether a signal has come.
    pub fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }

    /// The exit code of a program that a signal has ended.
    pub fn exit_code(&self) -> u8 {
        self.signal.load(Ordering::Relaxed) as u8
    }
}

/// The flag that the first signal sets. A second one ends the program at once: the next run turns the
/// switches back then.
///
/// # Errors
/// If the system refuses a handler.
pub fn stop_flag() -> Result<Arc<AtomicBool>, Exit> {
    StopSignal::on_signals().map(|stop| stop.is_asked)
}

/// The exit code of a program that a signal has ended is higher by the number of the signal, as in shells.
pub const SIGNALLED: i32 = 128;
