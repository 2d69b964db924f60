//! The phase of a trace's clock relative to the platter.
//!
//! If the model's angles are right, a request that the medium served ends on the real drive a whole
//! number of revolutions before or after the model's completion. The residual (measured -
//! simulated) modulo a revolution is then the same for all such requests: the phase at the
//! beginning of the trace. Its scatter measures the agreement of clock, layout and model.

use block::{BufferHit, Instant};
use drive::{Angle, Spindle};

use super::{Replayed, Sample};

/// The residual phases of a replay under the measured clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockPhase {
    /// The mean residual.
    pub angle: Angle,
    /// The length of the mean vector: 1 if all agree, near 0 if there is no phase.
    pub concentration: f64,
}

/// Concentration above which a clock is coherent with the rotation. A trace without phase has
/// 1/sqrt(n), about 0.02 for 2,500 requests. A standard deviation of a sixth of a revolution, which
/// is too much to predict single requests, has 0.58.
pub const COHERENT: f64 = 0.5;

/// The residual of one request: measured less simulated completion, modulo a revolution.
pub fn residual(spindle: &Spindle, sample: &Sample, replayed: &Replayed) -> Angle {
    let measured = sample.issued + sample.service;
    spindle.angle_at(measured) - spindle.angle_at(replayed.completed)
}

/// Whether the medium alone determined the completion, according to the model.
pub fn is_medium(replayed: &Replayed) -> bool {
    replayed.account.hit == BufferHit::Miss && !replayed.account.transfer.is_zero()
}

/// The mean residual of the requests that the medium served.
pub fn phase(spindle: &Spindle, samples: &[Sample], replayed: &[Replayed]) -> ClockPhase {
    mean_angle(
        samples
            .iter()
            .zip(replayed)
            .filter(|(_, replayed)| is_medium(replayed))
            .map(|(sample, replayed)| residual(spindle, sample, replayed)),
    )
}

/// The direction and the length of the mean vector.
pub fn mean_angle(angles: impl Iterator<Item = Angle>) -> ClockPhase {
    let (mut x, mut y, mut n) = (0.0, 0.0, 0.0);
    for angle in angles {
        let radians = angle.revolutions() * std::f64::consts::TAU;
        x += radians.cos();
        y += radians.sin();
        n += 1.0;
    }
    let turns = f64::atan2(y, x) / std::f64::consts::TAU;
    ClockPhase {
        angle: Angle::from_revolutions(turns).unwrap_or_default(),
        concentration: if n > 0.0 { f64::hypot(x, y) / n } else { 0.0 },
    }
}

/// The spindle with the phase at the beginning of the trace: a completion is late by `residual` if
/// the platter was behind by it.
pub fn with_phase(spindle: Spindle, residual: Angle) -> Spindle {
    spindle.with_phase(spindle.angle_at(Instant::ZERO) - residual)
}

/// Tracks a platter with a slightly varying period. The phase is the mean of the latest completions
/// that the medium determined, with decreasing weights (head tracking as in Yu et al. 2000: only
/// past completions count).
#[derive(Clone, Debug)]
pub struct Tracker {
    spindle: Spindle,
    x: f64,
    y: f64,
}

/// Weight of each completion in the mean: the last dozen dominate. A choice.
const GAIN: f64 = 1.0 / 12.0;

impl Tracker {
    /// A tracker without observations.
    pub fn new(spindle: Spindle) -> Self {
        Tracker {
            spindle,
            x: 0.0,
            y: 0.0,
        }
    }

    /// Observes a completion; returns the new phase if it is informative.
    pub fn follow(&mut self, sample: &Sample, replayed: Option<&Replayed>) -> Option<Angle> {
        let replayed = replayed.filter(|replayed| is_medium(replayed))?;
        let phase = self.spindle.phase() - residual(&self.spindle, sample, replayed);
        let radians = phase.revolutions() * std::f64::consts::TAU;
        self.x += GAIN * (radians.cos() - self.x);
        self.y += GAIN * (radians.sin() - self.y);
        let turns = f64::atan2(self.y, self.x) / std::f64::consts::TAU;
        let phase = Angle::from_revolutions(turns)?;
        self.spindle = self.spindle.with_phase(phase);
        Some(phase)
    }
}

#[cfg(test)]
mod tests;
