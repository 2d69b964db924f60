//! The truths of the tests.

use block::Duration;
use drive::{Imperfections, Profile, catalog};

/// The noise of a healthy drive, which is the default truth.
pub fn noisy() -> Imperfections {
    Imperfections {
        seek_noise: Duration::from_micros(60),
        overhead_noise: Duration::from_micros(20),
        ..Imperfections::default()
    }
}

/// The profile of a shipped drive.
pub fn shipped(name: &str) -> Profile {
    let entry = catalog::find(name).expect("a shipped drive");
    entry.profile().expect("a valid profile")
}
