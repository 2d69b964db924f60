//! A time that yes-or-no answers bracket: the smallest lead at which a sector is still reached.
//!
//! ```text
//!   passes of the sector      |<------ a revolution ------>|
//!                          missed        threshold       made
//! ```
//!
//! Every answer says between which two passes of a sector the head was ready. The first answer
//! leaves a revolution, and halving leaves a fraction of a millisecond. Then the answers are
//! weighed against each other. The probability that the head is ready is normal around the
//! threshold (probit); leads on both sides of it determine mean and deviation.

use block::Duration;

/// A duration and its variation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasuredTime {
    /// The mean.
    pub mean: Duration,
    /// The standard deviation of single times.
    pub deviation: Duration,
    /// Number of answers near the mean.
    pub samples: u32,
}

/// The two passes of a sector between which the head was ready, in nanoseconds after the submission
/// of the command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PassBracket {
    /// The last pass before the head was ready.
    pub missed: f64,
    /// The pass that the head used, a revolution later.
    pub made: f64,
}

impl PassBracket {
    /// Whether the head was ready at `time`, by this answer.
    pub fn holds(&self, time: f64) -> bool {
        self.missed < time && time <= self.made
    }
}

/// The result, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Estimate {
    mean: f64,
    deviation: f64,
}

/// The search for one threshold.
#[derive(Clone, Debug)]
pub(crate) struct Threshold {
    period: f64,
    answers: Vec<PassBracket>,
    /// Which ends of the bracket are still guesses.
    guessed: [Guessed; 2],
    /// The threshold's bracket by the answers so far, without noise.
    bracket: Option<(f64, f64)>,
    /// Number of consecutive answers that contradict the bracket.
    odd: u32,
    weights: Option<Weights>,
    /// Number of individually weighed answers.
    weighed: u32,
    restarts: u32,
    /// The last lead that was asked for.
    asked: f64,
}

/// Whether an end of the bracket is a guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guessed {
    Yes,
    No,
}

/// Whether an answer is consistent with the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerFit {
    /// The search counts the answer.
    Consistent,
    /// The answer contradicts the search.
    Odd,
}

/// Halving ends at this fraction of a revolution. A choice: some 100 us, the scatter of seeks.
const NARROW: f64 = 1.0 / 64.0;

/// Maximum distance of the threshold from the bracket, as a fraction of a revolution: noise may
/// have misled halving. A choice.
const BEYOND: f64 = 1.0 / 16.0;

/// Step beyond a wrong estimate, as a fraction of a revolution. A choice.
const FURTHER: f64 = 1.0 / 8.0;

/// Number of candidate thresholds.
const MEANS: usize = 96;

/// Candidate deviations in nanoseconds: from nearly none to more than any drive's, each some 1.4
/// times the previous one.
const DEVIATIONS: [f64; 11] = [
    8e3, 11e3, 16e3, 23e3, 32e3, 45e3, 64e3, 91e3, 128e3, 181e3, 256e3,
];

/// The probability of each of these deviations by many searches together: a single search has
/// little evidence, and overestimates it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scatter([f64; DEVIATIONS.len()]);

impl Default for Scatter {
    fn default() -> Self {
        Scatter([1.0 / DEVIATIONS.len() as f64; DEVIATIONS.len()])
    }
}

impl Scatter {
    /// Adds a completed search.
    pub fn add(&mut self, search: &Threshold) {
        let Some(weights) = &search.weights else {
            return;
        };
        let mut sum = 0.0;
        for (index, likely) in self.0.iter_mut().enumerate() {
            let of = weights.of.iter().skip(index).step_by(DEVIATIONS.len());
            *likely *= of.sum::<f64>();
            sum += *likely;
        }
        for likely in &mut self.0 {
            *likely /= sum;
        }
    }

    /// The mean, in nanoseconds.
    pub fn deviation(&self) -> f64 {
        let pairs = self.0.iter().zip(DEVIATIONS);
        pairs.map(|(likely, deviation)| likely * deviation).sum()
    }
}

/// The fraction of uninformative answers: retries, stalls, settling twice. A choice.
const LAPSES: f64 = 0.02;

/// Distance of test leads from the threshold, in deviations: this costs little for the mean, and
/// determines the deviation. A choice.
const ASIDE: f64 = 0.6;

/// Number of consecutive contradictions after which the search restarts.
const ODD: u32 = 3;

/// Maximum number of restarts.
const RESTARTS: u32 = 2;

impl Threshold {
    /// A search on a platter with this period in nanoseconds; `near` is an estimate and its
    /// possible error.
    pub fn new(period: f64, near: Option<(f64, f64)>) -> Self {
        let bracket = near
            .filter(|&(_, off)| 2.0 * off < period)
            .map(|(guess, off)| (guess - off, guess + off));
        Threshold {
            period,
            answers: Vec::new(),
            guessed: match bracket {
                Some((low, high)) if high - low > period * NARROW => [Guessed::Yes; 2],
                _ => [Guessed::No; 2],
            },
            bracket,
            odd: 0,
            weights: None,
            weighed: 0,
            restarts: 0,
            asked: 0.0,
        }
    }

    /// The next lead to try, in nanoseconds: the time from the submission of the command to the
    /// next pass of the sector.
    pub fn lead(&mut self) -> f64 {
        self.asked = self.next_lead();
        self.asked
    }

    fn next_lead(&mut self) -> f64 {
        let Some((low, high)) = self.bracket else {
            return self.period / 2.0;
        };
        if high - low > self.period * NARROW && self.weights.is_none() {
            return f64::midpoint(low, high);
        }
        match self.guessed {
            [Guessed::Yes, _] => return low,
            [_, Guessed::Yes] => return high,
            _ => (),
        }
        let estimate = self.estimate((low, high));
        let side = if self.weighed.is_multiple_of(2) {
            ASIDE
        } else {
            -ASIDE
        };
        estimate.mean + side * estimate.deviation
    }

    /// Adds an answer.
    pub fn take(&mut self, answer: PassBracket) -> AnswerFit {
        let Some((low, high)) = self.bracket else {
            self.bracket = Some((answer.missed, answer.made));
            self.answers.push(answer);
            return AnswerFit::Consistent;
        };
        let margin = self.period * BEYOND;
        if answer.made < low - margin || answer.missed > high + margin {
            self.odd += 1;
            if self.odd >= ODD {
                self.restart();
            }
            return AnswerFit::Odd;
        }
        self.odd = 0;
        self.answers.push(answer);
        if let Some(weights) = &mut self.weights {
            weights.weigh(answer);
            self.weighed += 1;
            if self.weighed >= 6 && weights.at_the_edge() {
                self.restart();
                return AnswerFit::Odd;
            }
        } else {
            self.halve(answer, (low, high));
        }
        AnswerFit::Consistent
    }

    /// Narrows the bracket, or moves an end that was estimated wrongly.
    fn halve(&mut self, answer: PassBracket, (low, high): (f64, f64)) {
        // A nanosecond for rounding.
        let (missed, made) = (answer.missed + 1.0, answer.made - 1.0);
        let further = self.period * FURTHER;
        // A host gives commands a little later than asked for, and the leads are shorter: the answer to
        // a question at an end comes from inside of it.
        let late = self.period * NARROW;
        let is_beyond = self.asked >= high && missed >= high - late;
        if missed >= low || (self.asked <= low && missed >= low - late) {
            self.guessed[0] = Guessed::No;
        }
        if made <= high {
            self.guessed[1] = Guessed::No;
        }
        let (down, up) = (low.max(answer.missed), high.min(answer.made));
        self.bracket = if made <= low {
            self.guessed[0] = Guessed::Yes;
            Some((low - further, low))
        } else if missed >= high || is_beyond {
            self.guessed[1] = Guessed::Yes;
            Some((high.min(missed), high + further))
        } else {
            Some((down, up))
        };
    }

    /// Number of answers near the threshold.
    pub fn weighed(&self) -> u32 {
        self.weighed
    }

    /// Whether the search restarted too often.
    pub fn is_hopeless(&self) -> bool {
        self.restarts > RESTARTS
    }

    /// Mean and deviation by all answers, once the search has come so far.
    pub fn spread(&self) -> Option<MeasuredTime> {
        let found = self.weights.as_ref()?.estimate();
        let nanos = |time: f64| Duration::from_nanos(time.max(0.0).round() as u64);
        Some(MeasuredTime {
            mean: nanos(found.mean),
            deviation: nanos(found.deviation),
            samples: self.weighed,
        })
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

/// The probability of each pair of a threshold and a deviation.
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

    fn weigh(&mut self, answer: PassBracket) {
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

    /// Whether the threshold seems to be at or beyond the end of the candidates.
    fn at_the_edge(&self) -> bool {
        let at = (self.estimate().mean - self.low) / self.step;
        let edge = MEANS as f64 / 32.0;
        at < edge || at > MEANS as f64 - 1.0 - edge
    }
}

/// The cumulative normal distribution, to 0.00025 (Abramowitz and Stegun 26.2.18).
fn normal(x: f64) -> f64 {
    let a = x.abs();
    let series = 1.0 + a * (0.196_854 + a * (0.115_194 + a * (0.000_344 + a * 0.019_527)));
    let squared = series * series;
    let above = 0.5 / (squared * squared);
    if x < 0.0 { above } else { 1.0 - above }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: f64 = 6e6;

    /// A drive's dice: nearly normal, with unit variance.
    struct Dice(u64);

    impl Dice {
        fn uniform(&mut self) -> f64 {
            // Knuth's linear congruential generator (MMIX).
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }

        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
        }
    }

    /// What a drive answers whose head is ready after `ready`, to a sector at `lead`.
    fn answer(ready: f64, lead: f64) -> PassBracket {
        let made = lead + ((ready - lead) / PERIOD).ceil() * PERIOD;
        PassBracket {
            missed: made - PERIOD,
            made,
        }
    }

    /// Searches for `mean`; every `lapse`th answer is that of a stalled drive. Answers the error of
    /// the mean, and the search.
    fn searched(
        (mean, deviation): (f64, f64),
        near: Option<(f64, f64)>,
        lapse: u32,
        dice: &mut Dice,
    ) -> (f64, Threshold) {
        let mut search = Threshold::new(PERIOD, near);
        for count in 1..200 {
            let lead = search.lead();
            let stalled = if count % lapse == 0 { 3e6 } else { 0.0 };
            search.take(answer(mean + stalled + deviation * dice.normal(), lead));
            if search.weighed() >= 16 {
                break;
            }
        }
        let found = search.spread().expect("it came near").mean;
        (found.as_nanos() as f64 - mean, search)
    }

    #[test]
    fn means_are_found_without_bias_however_many_revolutions_away() {
        let mut dice = Dice(1);
        let (mut sum, mut squares) = (0.0, 0.0);
        for count in 0..400 {
            let mean = 2e5 + 5e4 * f64::from(count);
            let (error, _) = searched((mean, 60e3), None, u32::MAX, &mut dice);
            sum += error;
            squares += error * error;
        }
        // 60 us * 1.25 / 4 are 19 us; asking aside of the mean and halving wrongly cost some.
        let deviation = (squares / 400.0_f64).sqrt();
        assert!(deviation < 27e3, "{deviation}");
        assert!(sum.abs() / 400.0 < 4e3, "{}", sum / 400.0);
    }

    #[test]
    fn what_does_not_scatter_is_found_exactly() {
        let mut dice = Dice(2);
        for count in 0..50 {
            let mean = 1e6 + 123_457.0 * f64::from(count);
            let (error, search) = searched((mean, 0.0), None, u32::MAX, &mut dice);
            assert!(error.abs() < 8e3, "{mean}: {error}");
            let deviation = search.spread().expect("found").deviation;
            assert!(deviation < Duration::from_micros(30), "{deviation:?}");
        }
    }

    #[test]
    fn wrong_guesses_and_stalls_cost_answers_and_not_the_result() {
        let mut dice = Dice(3);
        let mut far = 0;
        for count in 0..100 {
            let mean = 3e6 + 5e4 * f64::from(count);
            let guess = Some((mean + 1.1e6, 0.2e6));
            let (error, _) = searched((mean, 60e3), guess, 15, &mut dice);
            far += u32::from(error.abs() > 100e3);
        }
        assert!(far <= 2, "{far} of 100");
    }

    /// Behind NBD commands came 40 us later than asked for: a search asked for the end of its guess for
    /// ever, and never had an answer from there.
    #[test]
    fn leads_that_are_shorter_than_asked_for_end_a_search_too() {
        let mut dice = Dice(7);
        for count in 0..200 {
            let mean = 2e6 + 1e4 * f64::from(count);
            let mut search = Threshold::new(PERIOD, Some((2e6, 0.75e6)));
            for _ in 0..60 {
                let lead = search.lead() - 40e3;
                search.take(answer(mean + 60e3 * dice.normal(), lead));
                if search.weighed() >= 16 {
                    break;
                }
            }
            assert!(search.weighed() >= 16, "{mean}: {search:?}");
            let found = search.spread().expect("found").mean;
            let error = found.as_nanos() as f64 - mean;
            assert!(error.abs() < 120e3, "{mean}: {error}");
        }
    }

    #[test]
    fn searches_together_tell_how_seeks_scatter() {
        for (seed, deviation) in [(4, 20e3), (5, 60e3), (6, 120e3)] {
            let mut dice = Dice(seed);
            let mut scatter = Scatter::default();
            for _ in 0..60 {
                let (_, search) = searched((2.1e6, deviation), None, u32::MAX, &mut dice);
                scatter.add(&search);
            }
            let found = scatter.deviation();
            assert!((found / deviation - 1.0).abs() < 0.25, "{found}");
        }
    }

    #[test]
    fn contradictions_are_hopeless_in_the_end() {
        let mut search = Threshold::new(PERIOD, None);
        for count in 0..60 {
            let lead = search.lead();
            search.take(answer(f64::from(count % 7) * 1e7, lead));
        }
        assert!(search.is_hopeless());
    }
}
