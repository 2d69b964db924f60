//! Progress reports of long measurements.

use crate::Failure;

/// An observer of a long measurement. Several threads call its methods.
pub trait Progress: Sync {
    /// A part of the measurement starts.
    fn begin(&self, part: &str) {
        let _ = part;
    }

    /// The measurement has this many more units to do.
    fn expect(&self, units: u64) {
        let _ = units;
    }

    /// The measurement has done this many units.
    fn advance(&self, units: u64) {
        let _ = units;
    }

    /// Whether the measurement is to end early, with any error.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// The measurement has a remark that is not part of the result.
    fn remark(&self, text: &str) {
        let _ = text;
    }
}

impl dyn Progress + '_ {
    /// The error of a cancelled measurement.
    ///
    /// # Errors
    /// If it was cancelled.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self.is_cancelled() {
            true => Err(Failure::failed("interrupted")),
            false => Ok(()),
        }
    }
}

/// Ignores everything.
impl Progress for () {}
