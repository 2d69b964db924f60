//! The report: figures, gains and their confidence.

use serde::Serialize;

use super::{Above, CachesBench, SimulatedDisk};
use crate::bench::rig::median;

/// The figures of one run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CacheFigures {
    /// The mean response time, in ms.
    pub mean_ms: f64,
    /// The hit ratio of the lower level.
    pub lower_hits_percent: f64,
    /// Megabytes that the lower level prefetched.
    pub lower_ahead_mb: f64,
    /// Megabytes that bypassed the lower level's cache.
    pub lower_bypassed_mb: f64,
    /// Megabytes that the lower level's coordinator requested as standing background reads.
    pub lower_wished_mb: f64,
    /// Megabytes of these that free blocks delivered.
    pub lower_granted_mb: f64,
    /// Megabytes of the page cache that the readers had at the end, where it is the upper level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper_mb: Option<f64>,
}

/// The runs of one coordinator, or of the baseline.
#[derive(Clone, Debug)]
pub struct CoordinatorRuns {
    coordinator: String,
    simulated: CacheFigures,
    /// The live runs in order.
    pub rounds: Vec<CacheFigures>,
}

impl CoordinatorRuns {
    /// Creates the runs of a coordinator that was simulated only.
    pub fn new(coordinator: &str, simulated: CacheFigures) -> Self {
        CoordinatorRuns {
            coordinator: coordinator.to_owned(),
            simulated,
            rounds: Vec::new(),
        }
    }
}

/// The report of one coordinator.
#[derive(Clone, Debug, Serialize)]
pub struct CoordinatorFigures {
    /// The coordinator.
    pub coordinator: String,
    /// Its figures in the simulator.
    pub simulated: CacheFigures,
    /// The reduction of the simulated mean response by the coordinator.
    pub simulated_gain_percent: Option<f64>,
    /// Its figures live.
    pub live: Option<LiveFigures>,
}

/// The live figures of one coordinator.
#[derive(Clone, Debug, Serialize)]
pub struct LiveFigures {
    /// The median round.
    #[serde(flatten)]
    pub middle: CacheFigures,
    /// The mean response of each round, in order.
    pub rounds_ms: Vec<f64>,
    /// The gain over the baseline.
    pub gain: Option<LiveGain>,
}

/// The reduction of the mean response by the coordinator, round by round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveGain {
    /// The mean gain of the rounds.
    pub percent: f64,
    /// Half the width of the 95 % confidence interval, from two rounds on.
    pub uncertainty_percent: Option<f64>,
    /// The agreement with the simulated gain.
    pub verdict: Verdict,
}

/// The agreement of a live gain with the simulated one: the same sign, and at least half of the
/// size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The gains agree.
    Holds,
    /// The gains disagree.
    Misses,
    /// The confidence interval contains both cases.
    TooWide,
    /// One round has no confidence interval.
    OneRound,
    /// The simulated gain is zero.
    NothingSimulated,
}

/// Required share of the simulated gain.
pub const GOAL: f64 = 0.5;

/// A smaller simulated gain, in percent, counts as zero: it is printed as 0.0.
const NOTHING: f64 = 0.05;

impl LiveGain {
    /// The gain of rounds over the baseline's rounds of the same turns.
    fn of(without: &[CacheFigures], with: &[CacheFigures], simulated: f64) -> LiveGain {
        let pairs = without.iter().zip(with);
        let each: Vec<f64> = pairs
            .map(|(without, with)| percent(without.mean_ms, with.mean_ms))
            .collect();
        let (percent, uncertainty_percent) = mean_and_uncertainty(&each);
        // In the direction of the simulated gain.
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

/// The mean, and half the width of the 95 % confidence interval if there are two values at least.
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

/// Student's t, 97.5 %, for 1 to 20 degrees of freedom (any table). More degrees use the last
/// value, which is slightly too large.
const STUDENT: [f64; 20] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
];

/// All coordinators, and their settings.
#[derive(Clone, Debug, Serialize)]
pub struct CachesReport {
    simulated_disk: SimulatedDisk,
    above: Above,
    policy: String,
    readmore: &'static str,
    prefetch: String,
    drive: String,
    /// The coordinators; the first is the baseline.
    pub cases: Vec<CoordinatorFigures>,
}

impl CachesReport {
    pub(super) fn new(settings: &CachesBench, cases: Vec<CoordinatorFigures>) -> Self {
        CachesReport {
            simulated_disk: settings.simulated_disk,
            above: settings.above,
            policy: settings.policy().to_owned(),
            readmore: settings.readmore.name(),
            prefetch: settings.prefetch.clone(),
            drive: settings.drive.clone(),
            cases,
        }
    }
}

/// Compares the coordinators with the first case.
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
        let compared = compare(vec![
            case(10.0, &[20.0, 30.0, 40.0]),
            case(8.0, &[18.0, 27.0, 36.0]),
        ]);
        assert_eq!(compared[0].simulated_gain_percent, None);
        assert_eq!(
            compared[1].simulated_gain_percent.map(f64::round),
            Some(20.0)
        );
        let live = compared[1].live.as_ref().expect("it was run");
        assert_eq!(live.middle.mean_ms, 27.0);
        let gain = live.gain.as_ref().expect("it is compared");
        assert!((gain.percent - 10.0).abs() < 1e-9, "{gain:?}");
        assert!(gain.uncertainty_percent < Some(1e-9), "{gain:?}");
        assert_eq!(gain.verdict, Verdict::Holds, "just half");
        let first = compared[0].live.as_ref().expect("it was run");
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
