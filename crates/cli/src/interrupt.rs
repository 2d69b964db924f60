//! Signals that end a measurement: it stops, and turns the drive's switches back.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::output::Exit;

/// The flag that the first signal sets. A second one ends the program at once: the next run turns the
/// switches back then.
///
/// # Errors
/// If the system refuses a handler.
pub fn stop_flag() -> Result<Arc<AtomicBool>, Exit> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))
            .map_err(Exit::failed)?;
        flag::register(signal, Arc::clone(&stop)).map_err(Exit::failed)?;
    }
    Ok(stop)
}
