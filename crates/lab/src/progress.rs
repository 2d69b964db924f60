//! How a long measurement tells its caller how far it is.

/// Follows a long measurement; its methods come from several threads.
pub trait Progress: Sync {
    /// The measurement begins a part of this name.
    fn begin(&self, part: &str) {
        let _ = part;
    }

    /// The measurement has so many more units to do.
    fn expect(&self, units: u64) {
        let _ = units;
    }

    /// The measurement has done so many units.
    fn advance(&self, units: u64) {
        let _ = units;
    }

    /// The measurement has something to say that is no result.
    fn remark(&self, text: &str) {
        let _ = text;
    }
}

/// Ignores all.
impl Progress for () {}
