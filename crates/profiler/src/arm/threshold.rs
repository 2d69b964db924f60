//! A time that yes-or-no answers surround: the least lead at which a sector is still taken.
//!
//! ```text
//!   passes of the sector      |<------ a revolution ------>|
//!                          missed        threshold       made
//! ```
//!
//! Every answer says between which two passes of a sector the head was ready. The first one
//! leaves a revolution, halving leaves a fraction of a millisecond, and then the answers are weighed
//! against each other: the chance that the head is ready is normal around the threshold (probit),
//! which leads on both sides of it tell, mean and deviation.

/// Between which passes of a sector the head was ready, in nanoseconds after the command was
/// given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answer {
    /// The last pass that the head missed.
    pub missed: f64,
    /// The pass that it took, a revolution later.
    pub made: f64,
}

/// What is found, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub mean: f64,
    pub deviation: f64,
}

/// The search for one threshold.
#[derive(Clone, Debug)]
pub(crate) struct Threshold {
    period: f64,
    answers: Vec<Answer>,
    /// Where it is by the answers so far, noise apart.
    bracket: Option<(f64, f64)>,
    /// Answers in a row that contradict the bracket.
    odd: u32,
    weights: Option<Weights>,
    /// Answers that were weighed one by one.
    weighed: u32,
    restarts: u32,
}

/// What became of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Counted,
    /// It fits nothing that is believed.
    Odd,
}

/// The bracket is halved until it is this share of a revolution. A choice: some 100 us, which is
/// what seeks scatter by.
const NARROW: f64 = 1.0 / 64.0;

/// How much farther than the bracket the threshold may be, as a share of a revolution, because
/// halving may have gone wrong by noise. A choice.
const BEYOND: f64 = 1.0 / 16.0;

/// Thresholds that are weighed.
const MEANS: usize = 96;

/// Deviations that are weighed, in nanoseconds. From none to what no drive has.
const DEVIATIONS: [f64; 6] = [8e3, 16e3, 32e3, 64e3, 128e3, 256e3];

/// The share of answers that may say anything: retries, stalls, settling twice. A choice.
const LAPSES: f64 = 0.02;

/// How far from the threshold it is asked, in deviations: little is lost for the mean, and the
/// deviation is told. A choice.
const ASIDE: f64 = 0.6;

/// Odd answers in a row after which the search begins again.
const ODD: u32 = 3;

/// How often it begins again.
const RESTARTS: u32 = 2;

impl Threshold {
    /// A search on a platter with this period, in nanoseconds; `near` is where it may be: a guess
    /// and how far that may be off.
    pub fn new(period: f64, near: Option<(f64, f64)>) -> Self {
        let bracket = near
            .filter(|&(_, off)| 2.0 * off < period)
            .map(|(guess, off)| (guess - off, guess + off));
        Threshold {
            period,
            answers: Vec::new(),
            bracket,
            odd: 0,
            weights: None,
            weighed: 0,
            restarts: 0,
        }
    }

    /// The lead to try next, in nanoseconds: the next sector passes so long after the command is
    /// given.
    pub fn lead(&mut self) -> f64 {
        let Some((low, high)) = self.bracket else {
            return self.period / 2.0;
        };
        if high - low > self.period * NARROW && self.weights.is_none() {
            return f64::midpoint(low, high);
        }
        let estimate = self.estimate((low, high));
        let side = if self.weighed.is_multiple_of(2) {
            ASIDE
        } else {
            -ASIDE
        };
        estimate.mean + side * estimate.deviation
    }

    /// Takes an answer into account.
    pub fn take(&mut self, answer: Answer) -> Taken {
        let Some((low, high)) = self.bracket else {
            self.bracket = Some((answer.missed, answer.made));
            self.answers.push(answer);
            return Taken::Counted;
        };
        let margin = self.period * BEYOND;
        if answer.made < low - margin || answer.missed > high + margin {
            self.odd += 1;
            if self.odd >= ODD {
                self.restart();
            }
            return Taken::Odd;
        }
        self.odd = 0;
        self.answers.push(answer);
        if let Some(weights) = &mut self.weights {
            weights.weigh(answer);
            self.weighed += 1;
            if self.weighed >= 6 && weights.at_the_edge() {
                self.restart();
                return Taken::Odd;
            }
        } else {
            let (low, high) = (low.max(answer.missed), high.min(answer.made));
            self.bracket = Some((low.min(high), high.max(low)));
        }
        Taken::Counted
    }

    /// Answers near the threshold.
    pub fn weighed(&self) -> u32 {
        self.weighed
    }

    /// Whether it began again too often.
    pub fn is_hopeless(&self) -> bool {
        self.restarts > RESTARTS
    }

    /// The mean and the deviation by all answers, if the search has come so far.
    pub fn found(&self) -> Option<Estimate> {
        self.weights.as_ref().map(Weights::estimate)
    }

    fn restart(&mut self) {
        *self = Threshold {
            restarts: self.restarts + 1,
            ..Threshold::new(self.period, None)
        };
    }

    fn estimate(&mut self, (low, high): (f64, f64)) -> Estimate {
        let margin = self.period * BEYOND;
        let answers = &self.answers;
        let weights = self.weights.get_or_insert_with(|| {
            let mut weights = Weights::even(low - margin, high + margin);
            for &answer in answers {
                weights.weigh(answer);
            }
            weights
        });
        weights.estimate()
    }
}

/// How likely each pair of a threshold and a deviation is.
#[derive(Clone, Debug)]
struct Weights {
    low: f64,
    step: f64,
    /// By threshold, then by deviation; they add up to 1.
    of: Vec<f64>,
}

impl Weights {
    fn even(low: f64, high: f64) -> Self {
        let pairs = MEANS * DEVIATIONS.len();
        Weights {
            low,
            step: (high - low) / (MEANS - 1) as f64,
            of: vec![1.0 / pairs as f64; pairs],
        }
    }

    fn pair(&self, index: usize) -> (f64, f64) {
        let mean = self.low + self.step * (index / DEVIATIONS.len()) as f64;
        (mean, DEVIATIONS[index % DEVIATIONS.len()])
    }

    fn weigh(&mut self, answer: Answer) {
        let mut sum = 0.0;
        for index in 0..self.of.len() {
            let (mean, deviation) = self.pair(index);
            let by = |at: f64| normal((at - mean) / deviation);
            let chance = by(answer.made) - by(answer.missed);
            self.of[index] *= LAPSES / 2.0 + (1.0 - LAPSES) * chance;
            sum += self.of[index];
        }
        for weight in &mut self.of {
            *weight /= sum;
        }
    }

    fn estimate(&self) -> Estimate {
        let mut estimate = Estimate {
            mean: 0.0,
            deviation: 0.0,
        };
        for (index, weight) in self.of.iter().enumerate() {
            let (mean, deviation) = self.pair(index);
            estimate.mean += weight * mean;
            estimate.deviation += weight * deviation;
        }
        estimate
    }

    /// Whether the threshold seems to be at an end of what is weighed, or beyond.
    fn at_the_edge(&self) -> bool {
        let at = (self.estimate().mean - self.low) / self.step;
        let edge = MEANS as f64 / 32.0;
        at < edge || at > MEANS as f64 - 1.0 - edge
    }
}

/// The chance that a normal deviate is below `x`, to 0.00025 (Abramowitz and Stegun 26.2.18).
fn normal(x: f64) -> f64 {
    let a = x.abs();
    let series = 1.0 + a * (0.196_854 + a * (0.115_194 + a * (0.000_344 + a * 0.019_527)));
    let squared = series * series;
    let above = 0.5 / (squared * squared);
    if x < 0.0 { above } else { 1.0 - above }
}
