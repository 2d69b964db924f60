//! Fits unpublished constants to measured times.
//!
//! Published layouts mostly have zero for the angle at which a zone starts, and overheads come from
//! other requests than the trace's. Both are constants of one drive. They are fitted on the first
//! half of its trace and validated on the second:
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

use crate::validate::clock::{self, ClockPhase};
use crate::validate::{ReplayClock, Sample, replay};

/// A profile with fitted constants, and the clock's phase.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The profile with its `fitted` part.
    pub profile: Profile,
    /// The phase of the first half, after the fit.
    pub phase: ClockPhase,
    /// The number of turned zones and patterns.
    pub angles: usize,
    /// The number of replays of the first half in the search.
    pub replays: usize,
}

/// The half for the fit, and the held-out half.
pub fn halves(samples: &[Sample]) -> (&[Sample], &[Sample]) {
    samples.split_at(samples.len() / 2)
}

/// Fits `published` to the first half of `samples`. `tick` is called after each replay.
pub fn fit(published: &Profile, samples: &[Sample], mut tick: impl FnMut()) -> Fit {
    let (train, _) = halves(samples);
    let mut profile = published.clone();
    let mut replays = 0;
    let mut count = || {
        replays += 1;
        tick();
    };
    // Angles depend on overheads a little (classification of hits, delays by the bus), and
    // overheads on angles. Two rounds settle both.
    for _ in 0..2 {
        electronics::fit_rules(&mut profile, train, &mut count);
        angles::fit(&mut profile, train, &mut count);
        electronics::fit_times(&mut profile, published, train, &mut count);
    }
    let shared = Arc::new(profile.clone());
    let replayed = replay(&shared, train, ReplayClock::Tracked);
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
