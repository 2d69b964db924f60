//! Whether a trace's clock is in phase with the platter, and where the platter stood.
//!
//! If the model's angles are right, a request that the medium served ends, on the real drive, a
//! whole number of revolutions before or after the model says. So the residual
//! (measured - simulated) modulo a revolution is the same for all of them: the phase in which
//! the trace began. Its scatter says how well clock, layout and model agree.

use block::{BufferHit, Instant};
use drive::{Angle, Spindle};

use super::{Replayed, Sample};

/// The residual phases of a replay under the measured clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// The mean residual.
    pub angle: Angle,
    /// The length of the mean vector: 1 if all agree, near 0 if there is no phase.
    pub concentration: f64,
}

/// Above this concentration a clock counts as coherent with the rotation. A trace without phase
/// shows 1/sqrt(n), about 0.02 for 2,500 requests; a standard deviation of a sixth of a
/// revolution, at which single requests can no longer be predicted, shows 0.58.
pub const COHERENT: f64 = 0.5;

/// What is left of one request: measured less simulated completion, modulo a revolution.
pub fn residual(spindle: &Spindle, sample: &Sample, replayed: &Replayed) -> Angle {
    let measured = sample.issued + sample.service;
    spindle.angle_at(measured) - spindle.angle_at(replayed.completed)
}

/// Whether the model thinks that the medium alone decided when the request ended.
pub fn is_medium(replayed: &Replayed) -> bool {
    replayed.account.hit == BufferHit::Miss && !replayed.account.transfer.is_zero()
}

/// The mean residual of the requests that the medium served.
pub fn phase(spindle: &Spindle, samples: &[Sample], replayed: &[Replayed]) -> Phase {
    mean_angle(
        samples
            .iter()
            .zip(replayed)
            .filter(|(_, replayed)| is_medium(replayed))
            .map(|(sample, replayed)| residual(spindle, sample, replayed)),
    )
}

/// The direction and length of the mean vector.
pub fn mean_angle(angles: impl Iterator<Item = Angle>) -> Phase {
    let (mut x, mut y, mut n) = (0.0, 0.0, 0.0);
    for angle in angles {
        let radians = angle.revolutions() * std::f64::consts::TAU;
        x += radians.cos();
        y += radians.sin();
        n += 1.0;
    }
    let turns = f64::atan2(y, x) / std::f64::consts::TAU;
    Phase {
        angle: Angle::from_revolutions(turns).unwrap_or_default(),
        concentration: if n > 0.0 { f64::hypot(x, y) / n } else { 0.0 },
    }
}

/// The spindle with the phase in which the trace began: what came late by `residual` came when
/// the platter was that much behind.
pub fn with_phase(spindle: Spindle, residual: Angle) -> Spindle {
    spindle.with_phase(spindle.angle_at(Instant::ZERO) - residual)
}

/// Follows a platter that does not turn quite evenly: the mean phase of the latest completions
/// that the medium decided, each counting less the longer it is ago (head tracking as in Yu et
/// al. 2000: only what has happened is used).
#[derive(Clone, Debug)]
pub struct Tracker {
    spindle: Spindle,
    x: f64,
    y: f64,
}

/// How much of the mean each completion replaces: the last dozen decide. A choice.
const GAIN: f64 = 1.0 / 12.0;

impl Tracker {
    /// A tracker that knows nothing yet.
    pub fn new(spindle: Spindle) -> Self {
        Tracker {
            spindle,
            x: 0.0,
            y: 0.0,
        }
    }

    /// Learns from a completion; answers the phase from now on if it says something.
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
