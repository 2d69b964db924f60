//! One drive's model held against its trace: the row that `headtime validate` prints.

use std::sync::Arc;

use block::Duration;
use drive::Profile;
use serde::Serialize;

use super::clock::{self, COHERENT};
use super::score::{Score, median_error};
use super::{Clock, Sample, replay};

/// The figures of one drive, in milliseconds. A field that is `null` has no meaning here.
#[derive(Clone, Debug, Serialize)]
pub struct Judgement {
    /// The drive.
    pub drive: String,
    /// Whether its profile has fitted constants. Those of the shipped drives come from the first
    /// halves of their own traces.
    pub fitted: bool,
    /// All requests of the trace.
    #[serde(flatten)]
    pub whole: Figures,
    /// The second half alone: what `headtime fit` fits to this trace it fits to the first.
    pub held_out: Figures,
    /// How well the clock of the whole trace agrees with the platter: 0 to 1.
    pub phase_concentration: f64,
}

/// Ours beside DiskSim's, for the same requests.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Requests.
    pub requests: usize,
    /// Demerit of ours.
    pub demerit_ms: f64,
    /// Of the reads alone.
    pub demerit_read_ms: f64,
    /// Of the writes alone.
    pub demerit_write_ms: f64,
    /// Demerit of DiskSim's results.
    pub disksim_demerit_ms: Option<f64>,
    /// Of the reads alone.
    pub disksim_demerit_read_ms: Option<f64>,
    /// Of the writes alone.
    pub disksim_demerit_write_ms: Option<f64>,
    /// Mean measured service time.
    pub measured_mean_ms: f64,
    /// Mean of ours.
    pub simulated_mean_ms: f64,
    /// Median of |simulated - measured| per request, where the clock is coherent.
    pub median_error_ms: Option<f64>,
    /// The same of DiskSim's results, wherever there are some.
    pub disksim_median_error_ms: Option<f64>,
}

/// The judgement, and the service times behind it for a plot.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The figures.
    pub judgement: Judgement,
    /// Ours, under the model's own clock, in the order of the trace.
    pub simulated: Vec<Duration>,
}

/// Judges a profile on a trace.
///
/// Distributions come from a replay under the model's own clock, as DiskSim's do; per-request
/// errors from one under the measured clock that tracks the platter. The second half is a part of
/// the same replays: the drive is warm when it begins, as the real one was.
pub fn judge(profile: &Profile, samples: &[Sample], disksim: Option<&[Duration]>) -> Judged {
    let shared = Arc::new(profile.clone());
    let own = replay(&shared, samples, Clock::Own);
    let simulated: Vec<Duration> = own.iter().map(|replayed| replayed.service).collect();
    let tracked = replay(&shared, samples, Clock::Tracked);
    let request_times: Vec<Duration> = tracked.iter().map(|replayed| replayed.service).collect();
    let figures = |from: usize| {
        let (samples, tracked) = (&samples[from..], &tracked[from..]);
        let phase = clock::phase(&profile.spindle, samples, tracked);
        let ours = Score::of(samples, &simulated[from..]);
        let disksim = disksim.map(|times| &times[from..]);
        let theirs = disksim.map(|times| Score::of(samples, times));
        Figures {
            requests: ours.requests,
            demerit_ms: rounded(ours.demerit),
            demerit_read_ms: rounded(ours.demerit_read),
            demerit_write_ms: rounded(ours.demerit_write),
            disksim_demerit_ms: theirs.map(|score| rounded(score.demerit)),
            disksim_demerit_read_ms: theirs.map(|score| rounded(score.demerit_read)),
            disksim_demerit_write_ms: theirs.map(|score| rounded(score.demerit_write)),
            measured_mean_ms: rounded(ours.measured_mean),
            simulated_mean_ms: rounded(ours.simulated_mean),
            median_error_ms: (phase.concentration >= COHERENT)
                .then(|| median_error(samples, &request_times[from..]).map(rounded))
                .flatten(),
            disksim_median_error_ms: disksim
                .and_then(|times| median_error(samples, times).map(rounded)),
        }
    };
    let phase = clock::phase(&profile.spindle, samples, &tracked);
    let judgement = Judgement {
        drive: profile.name.clone(),
        fitted: profile.is_fitted(),
        whole: figures(0),
        held_out: figures(samples.len() / 2),
        phase_concentration: rounded(phase.concentration),
    };
    Judged {
        judgement,
        simulated,
    }
}

/// To a nanosecond: more digits would be noise of the sums.
fn rounded(millis: f64) -> f64 {
    (millis * 1e6).round() / 1e6
}
