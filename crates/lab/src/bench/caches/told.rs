//! What came out: figures, gains and how far they are to be trusted.

use serde::Serialize;

use super::{CachesBench, SimulatedDisk};
use crate::bench::rig::median;

/// One run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CacheFigures {
    /// The mean response time.
    pub mean_ms: f64,
    /// Of what the lower level was asked for, what it had.
    pub lower_hits_percent: f64,
    /// What the lower level fetched ahead, and let past its cache.
    pub lower_ahead_mb: f64,
    /// What the lower level let past its cache.
    pub lower_bypassed_mb: f64,
    /// What its coordinator wished, and what of that free blocks have brought.
    pub lower_wished_mb: f64,
    /// What of that free blocks have brought.
    pub lower_granted_mb: f64,
}

/// One coordinator, or none.
#[derive(Clone, Debug)]
pub struct CoordinatorRuns {
    coordinator: String,
    simulated: CacheFigures,
    /// LiveFigures, one after the other.
    pub rounds: Vec<CacheFigures>,
}

impl CoordinatorRuns {
    /// A coordinator that was simulated and not yet run live.
    pub fn new(coordinator: &str, simulated: CacheFigures) -> Self {
        CoordinatorRuns {
            coordinator: coordinator.to_owned(),
            simulated,
            rounds: Vec::new(),
        }
    }
}

/// What is said of one coordinator.
#[derive(Clone, Debug, Serialize)]
pub struct CoordinatorFigures {
    /// The coordinator.
    pub coordinator: String,
    /// Its figures in the simulator.
    pub simulated: CacheFigures,
    /// By how much shorter the mean response is than without.
    pub simulated_gain_percent: Option<f64>,
    /// Its figures live.
    pub live: Option<LiveFigures>,
}

/// The live figures of one coordinator.
#[derive(Clone, Debug, Serialize)]
pub struct LiveFigures {
    /// The round in the middle.
    #[serde(flatten)]
    pub middle: CacheFigures,
    /// The mean response of each round, in their order.
    pub rounds_ms: Vec<f64>,
    /// The gain over none.
    pub gain: Option<LiveGain>,
}

/// By how much shorter the mean response is than without, round by round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveGain {
    /// The mean gain of the rounds.
    pub percent: f64,
    /// So far from that may it be, if there was more than one round (95 %).
    pub uncertainty_percent: Option<f64>,
    /// Whether it agrees with the simulated gain.
    pub verdict: Verdict,
}

/// Whether the live gain has the simulator's sign, and at least half of its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It has.
    Holds,
    /// It has not.
    Misses,
    /// Rounds spread over both.
    TooWide,
    /// How far rounds spread is not known.
    OneRound,
    /// The simulator says that it is the same with and without.
    NothingSimulated,
}

/// Half of the simulated gain is what is wanted live.
pub const GOAL: f64 = 0.5;

/// A simulated gain of less, in percent, is none: it is printed as 0.0.
const NOTHING: f64 = 0.05;

impl LiveGain {
    /// Of rounds, against those without in whose turn they were.
    fn of(without: &[CacheFigures], with: &[CacheFigures], simulated: f64) -> LiveGain {
        let pairs = without.iter().zip(with);
        let each: Vec<f64> = pairs
            .map(|(without, with)| percent(without.mean_ms, with.mean_ms))
            .collect();
        let (percent, uncertainty_percent) = mean_and_uncertainty(&each);
        // In the simulator's direction.
        let (gain, least) = (percent * simulated.signum(), GOAL * simulated.abs());
        let verdict = match uncertainty_percent {
            _ if simulated.abs() < NOTHING => Verdict::NothingSimulated,
            None => Verdict::OneRound,
            Some(uncertainty) if gain - uncertainty >= least => Verdict::Holds,
            Some(uncertainty) if gain + uncertainty < least => Verdict::Misses,
            Some(_) => Verdict::TooWide,
        };
        LiveGain {
            percent,
            uncertainty_percent,
            verdict,
        }
    }
}

fn percent(without: f64, with: f64) -> f64 {
    (1.0 - with / without) * 100.0
}

/// The mean, and half the width of the interval in which it is with 95 %, if there are two values at least.
fn mean_and_uncertainty(values: &[f64]) -> (f64, Option<f64>) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let Some(freedom) = values.len().checked_sub(2) else {
        return (mean, None);
    };
    let squares = values.iter().map(|value| (value - mean).powi(2));
    let variance = squares.sum::<f64>() / (count - 1.0);
    let last = STUDENT[STUDENT.len() - 1];
    let t = STUDENT.get(freedom).copied().unwrap_or(last);
    (mean, Some(t * (variance / count).sqrt()))
}

/// Student's t, 97.5 %, for 1 to 20 degrees of freedom (any table of it). For more of them it is smaller: they
/// get the last one.
const STUDENT: [f64; 20] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
];

/// All coordinators, and what they were run with.
#[derive(Clone, Debug, Serialize)]
pub struct CachesReport {
    simulated_disk: SimulatedDisk,
    policy: String,
    readmore: &'static str,
    prefetch: String,
    drive: String,
    /// The coordinators; the first is none.
    pub cases: Vec<CoordinatorFigures>,
}

impl CachesReport {
    pub(super) fn new(settings: &CachesBench, cases: Vec<CoordinatorFigures>) -> Self {
        CachesReport {
            simulated_disk: settings.simulated_disk,
            policy: settings.policy().to_owned(),
            readmore: settings.readmore.name(),
            prefetch: settings.prefetch.clone(),
            drive: settings.drive.clone(),
            cases,
        }
    }
}

/// What the coordinators gain, against the first case.
pub fn compare(cases: Vec<CoordinatorRuns>) -> Vec<CoordinatorFigures> {
    let first = cases.first().cloned();
    let cases = cases.into_iter().enumerate();
    cases
        .map(|(place, case)| {
            let without = first.as_ref().filter(|_| place > 0);
            let simulated_gain =
                without.map(|without| percent(without.simulated.mean_ms, case.simulated.mean_ms));
            let gain = without
                .zip(simulated_gain)
                .map(|(without, gain)| LiveGain::of(&without.rounds, &case.rounds, gain));
            let rounds_ms: Vec<f64> = case.rounds.iter().map(|round| round.mean_ms).collect();
            let middle = median(rounds_ms.clone());
            let mut rounds = case.rounds.into_iter();
            let middle = rounds.find(|round| round.mean_ms == middle);
            CoordinatorFigures {
                coordinator: case.coordinator,
                simulated: case.simulated,
                simulated_gain_percent: simulated_gain,
                live: middle.map(|middle| LiveFigures {
                    middle,
                    rounds_ms,
                    gain,
                }),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(mean_ms: f64) -> CacheFigures {
        CacheFigures {
            mean_ms,
            ..CacheFigures::default()
        }
    }

    fn case(simulated: f64, live: &[f64]) -> CoordinatorRuns {
        CoordinatorRuns {
            rounds: live.iter().map(|&ms| figures(ms)).collect(),
            ..CoordinatorRuns::new("x", figures(simulated))
        }
    }

    #[test]
    fn gains_are_against_the_first_round_by_round() {
        // The machine becomes slower: the gain does not.
        let told = compare(vec![
            case(10.0, &[20.0, 30.0, 40.0]),
            case(8.0, &[18.0, 27.0, 36.0]),
        ]);
        assert_eq!(told[0].simulated_gain_percent, None);
        assert_eq!(told[1].simulated_gain_percent.map(f64::round), Some(20.0));
        let live = told[1].live.as_ref().expect("it was run");
        assert_eq!(live.middle.mean_ms, 27.0);
        let gain = live.gain.as_ref().expect("it is compared");
        assert!((gain.percent - 10.0).abs() < 1e-9, "{gain:?}");
        assert!(gain.uncertainty_percent < Some(1e-9), "{gain:?}");
        assert_eq!(gain.verdict, Verdict::Holds, "just half");
        let first = told[0].live.as_ref().expect("it was run");
        assert_eq!(first.gain, None);
    }

    #[test]
    fn an_uncertainty_is_students() {
        // Mean 2, standard deviation 1, of three: 4.303 / sqrt(3).
        let (mean, uncertainty) = mean_and_uncertainty(&[1.0, 2.0, 3.0]);
        assert_eq!(mean, 2.0);
        let uncertainty = uncertainty.expect("three of them");
        assert!((uncertainty - 2.484).abs() < 1e-3, "{uncertainty}");
        assert_eq!(mean_and_uncertainty(&[7.0]), (7.0, None));
    }

    #[test]
    fn a_verdict_is_only_given_where_rounds_agree() {
        let of = |with: &[f64], simulated| {
            let without = vec![figures(100.0); with.len()];
            let with: Vec<CacheFigures> = with.iter().map(|&ms| figures(ms)).collect();
            LiveGain::of(&without, &with, simulated).verdict
        };
        assert_eq!(of(&[95.0, 95.1, 94.9], 5.0), Verdict::Holds);
        assert_eq!(of(&[98.0, 98.1, 97.9], 5.0), Verdict::Misses);
        assert_eq!(of(&[103.0, 103.1, 102.9], 5.0), Verdict::Misses);
        assert_eq!(of(&[95.0, 100.0, 91.0], 5.0), Verdict::TooWide);
        assert_eq!(of(&[95.0], 5.0), Verdict::OneRound);
        assert_eq!(of(&[95.0, 95.1], 0.04), Verdict::NothingSimulated);
        // What is slower in the simulator is slower live, too.
        assert_eq!(of(&[103.0, 103.1, 102.9], -5.0), Verdict::Holds);
        assert_eq!(of(&[97.0, 97.1, 96.9], -5.0), Verdict::Misses);
    }
}
