//! The judgement of a drive's model by its trace: a row of `headtime validate`.

use std::sync::Arc;

use block::Duration;
use drive::Profile;
use serde::Serialize;

use super::clock::{self, COHERENT};
use super::score::{Score, median_error};
use super::{ReplayClock, Sample, replay};

/// The figures of one drive, in milliseconds. `null` means not applicable.
#[derive(Clone, Debug, Serialize)]
pub struct Judgement {
    /// The drive.
    pub drive: String,
    /// Whether the profile has fitted constants. Those of shipped drives come from the first halves
    /// of their own traces.
    pub fitted: bool,
    /// All requests of the trace.
    #[serde(flatten)]
    pub whole: DemeritFigures,
    /// The second half, which `headtime fit` does not see.
    pub held_out: DemeritFigures,
    /// The agreement of the trace's clock with the platter, 0 to 1.
    pub phase_concentration: f64,
}

/// Our figures beside DiskSim's, for the same requests.
#[derive(Clone, Debug, Serialize)]
pub struct DemeritFigures {
    /// The number of requests.
    pub requests: usize,
    /// The demerit of our model.
    pub demerit_ms: f64,
    /// The demerit of our model, reads only.
    pub demerit_read_ms: f64,
    /// The demerit of our model, writes only.
    pub demerit_write_ms: f64,
    /// The demerit of DiskSim.
    pub disksim_demerit_ms: Option<f64>,
    /// The demerit of DiskSim, reads only.
    pub disksim_demerit_read_ms: Option<f64>,
    /// The demerit of DiskSim, writes only.
    pub disksim_demerit_write_ms: Option<f64>,
    /// The mean measured service time.
    pub measured_mean_ms: f64,
    /// The mean service time of our model.
    pub simulated_mean_ms: f64,
    /// The median of |simulated - measured| over requests, if the clock is coherent.
    pub median_error_ms: Option<f64>,
    /// The same median of DiskSim's results, if they exist.
    pub disksim_median_error_ms: Option<f64>,
}

/// A judgement, and its service times for a plot.
#[derive(Clone, Debug)]
pub struct JudgedModel {
    /// The figures.
    pub judgement: Judgement,
    /// Our service times under the model's own clock, in the order of the trace.
    pub simulated: Vec<Duration>,
}

/// Judges a profile by a trace.
///
/// Distributions come from a replay under the model's own clock, as DiskSim's do. Per-request
/// errors come from a replay under the measured clock with tracking. The second half is part of the
/// same replays, so that the drive is warm at its beginning, as the real one was.
pub fn judge(profile: &Profile, samples: &[Sample], disksim: Option<&[Duration]>) -> JudgedModel {
    let shared = Arc::new(profile.clone());
    let own = replay(&shared, samples, ReplayClock::Own);
    let simulated: Vec<Duration> = own.iter().map(|replayed| replayed.service).collect();
    let tracked = replay(&shared, samples, ReplayClock::Tracked);
    let request_times: Vec<Duration> = tracked.iter().map(|replayed| replayed.service).collect();
    let figures = |from: usize| {
        let (samples, tracked) = (&samples[from..], &tracked[from..]);
        let phase = clock::phase(&profile.spindle, samples, tracked);
        let ours = Score::of(samples, &simulated[from..]);
        let disksim = disksim.map(|times| &times[from..]);
        let theirs = disksim.map(|times| Score::of(samples, times));
        DemeritFigures {
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
    JudgedModel {
        judgement,
        simulated,
    }
}

/// Rounds to a nanosecond: further digits are noise of the sums.
fn rounded(millis: f64) -> f64 {
    (millis * 1e6).round() / 1e6
}
