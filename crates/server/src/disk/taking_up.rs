//! A belief that is taken up in service: an engine that follows it takes the place of the present one.
//!
//! ```text
//!   take_up --> the engine has no room: new operations wait
//!           --> all that it holds ends --> replaced, clients go on
//! ```
//!
//! Nothing is aborted, and no client is disconnected. Operations wait as long as the requests before them take.

use std::sync::mpsc;

use block::Instant;
use engine::Engine;

use super::Disk;

/// Makes the engine on the loop's thread, at the time at which it begins.
pub type MakeEngine = Box<dyn FnOnce(Instant) -> Engine + Send>;

/// An engine that takes the place of the present one.
pub(crate) struct NextEngine {
    make: MakeEngine,
    taken: mpsc::Sender<()>,
}

impl Disk {
    /// Lets the engine of a belief take the place of the present one as soon as that holds nothing. `taken`
    /// is told then.
    ///
    /// # Errors
    /// If the engine follows a belief, another one is being taken up, or the drive is being profiled.
    pub(crate) fn take_up(
        &mut self,
        make: MakeEngine,
        taken: mpsc::Sender<()>,
    ) -> Result<(), &'static str> {
        if self.engine.tallies().is_some() {
            return Err("it has a belief that it follows");
        }
        if self.next.is_some() {
            return Err("a belief is being taken up");
        }
        if self.engine.is_mirrored() {
            return Err("it is a mirror: expected the beliefs of its legs in its configuration");
        }
        let learning = self.learning.as_ref();
        if learning.is_some_and(|learning| learning.is_active(self.now)) {
            return Err("it is being profiled: expected the end of that");
        }
        self.next = Some(NextEngine { make, taken });
        self.engine.leave();
        Ok(())
    }

    /// Goes on with the present engine. The answer is whether another one was still to take its place.
    pub(crate) fn keep_engine(&mut self) -> bool {
        self.engine.stay();
        self.next.take().is_some()
    }

    /// Replaces the engine, if that is due and it holds nothing. The answer is whether it was.
    pub(crate) fn replace_engine(&mut self) -> bool {
        if self.next.is_none() || !self.engine.is_idle() {
            return false;
        }
        let Some(NextEngine { make, taken }) = self.next.take() else {
            return false;
        };
        self.engine.replace(make(self.now));
        self.shape.rotational = true;
        // What it has found is in the belief.
        self.learning = None;
        // Who asked may have given up.
        let _ = taken.send(());
        true
    }
}
