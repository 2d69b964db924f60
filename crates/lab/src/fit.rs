//! Constants that nobody published, fitted to measured times.
//!
//! Published layouts mostly have zero for the angle at which a zone starts, and overheads were
//! extracted with other requests than those of the trace. Both are constants of one drive. They
//! are fitted on the first half of its trace and judged on the second:
//!
//! 1. *angles*: where the trace's clock is in phase with the platter, the phase of each zone (or
//!    of each track pattern) is read off the requests that the medium served;
//! 2. *electronics*: overheads and bus times, by coordinate descent on the demerit of the first
//!    half and, in phase, on its per-request errors.

pub mod angles;
pub mod document;
pub mod electronics;
pub mod refit;

use std::sync::Arc;

use drive::Profile;

use crate::validate::clock::{self, Phase};
use crate::validate::{Clock, Sample, replay};

/// A profile whose constants were fitted, and what was learnt about the clock.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The profile with its `fitted` part.
    pub profile: Profile,
    /// The phase of the first half, after the fit.
    pub phase: Phase,
    /// How many zones and patterns were turned.
    pub angles: usize,
    /// Replays of the first half that the search took.
    pub replays: usize,
}

/// The half that constants are fitted on, and the half that judges them.
pub fn halves(samples: &[Sample]) -> (&[Sample], &[Sample]) {
    samples.split_at(samples.len() / 2)
}

/// Fits `published` to the first half of `samples`; `tick` is called after each replay.
pub fn fit(published: &Profile, samples: &[Sample], mut tick: impl FnMut()) -> Fit {
    let (train, _) = halves(samples);
    let mut profile = published.clone();
    let mut replays = 0;
    let mut count = || {
        replays += 1;
        tick();
    };
    // Angles depend on overheads a little (where a miss is told from a hit, and how the bus
    // delays the end), and overheads on angles: two rounds settle both.
    for _ in 0..2 {
        electronics::fit_rules(&mut profile, train, &mut count);
        angles::fit(&mut profile, train, &mut count);
        electronics::fit_times(&mut profile, published, train, &mut count);
    }
    let shared = Arc::new(profile.clone());
    let replayed = replay(&shared, train, Clock::Tracked);
    let phase = clock::phase(&profile.spindle, train, &replayed);
    Fit {
        angles: profile.geometry.turns().len(),
        profile,
        phase,
        replays,
    }
}

#[cfg(test)]
pub(crate) mod tests;
