//! Progress reports of long measurements.

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

    /// The measurement has a remark that is not part of the result.
    fn remark(&self, text: &str) {
        let _ = text;
    }
}

/// Ignores everything.
impl Progress for () {}
