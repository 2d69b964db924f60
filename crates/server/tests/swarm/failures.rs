//! What a client knows of failures of the drive. A failure is told by a flush that fails.
//!
//! ```text
//!   write --- failure --- flush: failed --- flush: well
//!                              told            promises nothing about that write
//! ```

/// What a client knows: numbers of failures since the begin of the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownFailures {
    /// Those before it came, and before the last flush that told it.
    told: usize,
    /// Those before the flush that told it before that.
    told_before: usize,
}

impl KnownFailures {
    /// A client that comes after so many failures.
    pub fn since(failed: usize) -> KnownFailures {
        KnownFailures {
            told: failed,
            told_before: 0,
        }
    }

    /// Flushes that end well promise what was written after these.
    pub fn told(self) -> usize {
        self.told
    }

    /// A flush that is submitted now may fail if there are more in the end. A cache and the drive may each tell of the
    /// same failures once.
    pub fn excused(self) -> usize {
        self.told_before
    }

    /// A flush has failed after so many.
    pub fn tell(&mut self, failed: usize) {
        self.told_before = self.told;
        self.told = failed;
    }
}
