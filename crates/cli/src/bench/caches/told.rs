//! What came out: figures, gains and how far they are to be trusted.

use std::fmt::Write as _;

use serde::Serialize;

use super::{Arguments, SimulatedDisk};
use crate::bench::rig::median;
use crate::output::Exit;

/// One run.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Figures {
    pub(super) mean_ms: f64,
    /// Of what the lower level was asked for, what it had.
    pub(super) lower_hits_percent: f64,
    /// What the lower level fetched ahead, and let past its cache.
    pub(super) lower_ahead_mb: f64,
    pub(super) lower_bypassed_mb: f64,
    /// What its coordinator wished, and what of that free blocks have brought.
    pub(super) lower_wished_mb: f64,
    pub(super) lower_granted_mb: f64,
}

/// One coordinator, or none.
#[derive(Clone, Debug)]
pub(super) struct Case {
    coordinator: String,
    simulated: Figures,
    /// Live, one after the other.
    pub(super) rounds: Vec<Figures>,
}

impl Case {
    pub(super) fn new(coordinator: &str, simulated: Figures) -> Self {
        Case {
            coordinator: coordinator.to_owned(),
            simulated,
            rounds: Vec::new(),
        }
    }
}

/// What is said of one coordinator.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Told {
    coordinator: String,
    simulated: Figures,
    /// By how much shorter the mean response is than without.
    simulated_gain_percent: Option<f64>,
    live: Option<Live>,
}

#[derive(Clone, Debug, Serialize)]
struct Live {
    /// The round in the middle.
    #[serde(flatten)]
    middle: Figures,
    /// The mean response of each round, in their order.
    rounds_ms: Vec<f64>,
    gain: Option<Gain>,
}

/// By how much shorter the mean response is than without, round by round.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Gain {
    percent: f64,
    /// So far from that may it be, if there was more than one round (95 %).
    uncertainty_percent: Option<f64>,
    verdict: Verdict,
}

/// Whether the live gain has the simulator's sign, and at least half of its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    Holds,
    Misses,
    /// Rounds spread over both.
    TooWide,
    /// How far rounds spread is not known.
    OneRound,
    /// The simulator says that it is the same with and without.
    NothingSimulated,
}

/// Half of the simulated gain is what is wanted live.
const GOAL: f64 = 0.5;

/// A simulated gain of less, in percent, is none: it is printed as 0.0.
const NOTHING: f64 = 0.05;

impl Gain {
    /// Of rounds, against those without in whose turn they were.
    fn of(without: &[Figures], with: &[Figures], simulated: f64) -> Gain {
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
        Gain {
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

/// What the coordinators gain, against the first case.
pub(super) fn compare(cases: Vec<Case>) -> Vec<Told> {
    let first = cases.first().cloned();
    let cases = cases.into_iter().enumerate();
    cases
        .map(|(place, case)| {
            let without = first.as_ref().filter(|_| place > 0);
            let simulated_gain =
                without.map(|without| percent(without.simulated.mean_ms, case.simulated.mean_ms));
            let gain = without
                .zip(simulated_gain)
                .map(|(without, gain)| Gain::of(&without.rounds, &case.rounds, gain));
            let rounds_ms: Vec<f64> = case.rounds.iter().map(|round| round.mean_ms).collect();
            let middle = median(rounds_ms.clone());
            let mut rounds = case.rounds.into_iter();
            let middle = rounds.find(|round| round.mean_ms == middle);
            Told {
                coordinator: case.coordinator,
                simulated: case.simulated,
                simulated_gain_percent: simulated_gain,
                live: middle.map(|middle| Live {
                    middle,
                    rounds_ms,
                    gain,
                }),
            }
        })
        .collect()
}

/// All of it, for programs.
pub(super) fn json(arguments: &Arguments, told: &[Told]) -> Result<String, Exit> {
    #[derive(Serialize)]
    struct All<'a> {
        simulated_disk: SimulatedDisk,
        policy: &'a str,
        readmore: &'a str,
        prefetch: &'a str,
        drive: &'a str,
        cases: &'a [Told],
    }
    let all = All {
        simulated_disk: arguments.simulated_disk,
        policy: arguments.policy(),
        readmore: arguments.readmore.name(),
        prefetch: &arguments.prefetch,
        drive: &arguments.drive,
        cases: told,
    };
    Ok(serde_json::to_string_pretty(&all).map_err(Exit::failed)? + "\n")
}

/// All of it, for people.
pub(super) fn table(arguments: &Arguments, told: &[Told]) -> String {
    let (upper, lower) = arguments.sizes();
    let policy = arguments.policy();
    let disk = match arguments.simulated_disk {
        SimulatedDisk::Engine => {
            format!("{policy}, in the simulator, too: our engine, belief = truth (in-firmware)")
        }
        SimulatedDisk::Elevator => {
            format!("{policy}; the simulator has a one-way elevator; one command at a time")
        }
    };
    let mut text = format!(
        "{} at both levels, L1 {upper} blocks for each reader, L2 {lower}, readmore {}\n\
         {}, {disk}\ntimes are the drive's\n\n\
         {:<14} {:>10} {:>12} {:>17} {:>13} {:>10} {:>9} {:>12} {:>10} {:>11}\n",
        arguments.prefetch,
        arguments.readmore.name(),
        arguments.drive,
        "coordinator",
        "",
        "response ms",
        "rounds",
        "gain %",
        "L2 hits %",
        "ahead MB",
        "bypassed MB",
        "wished MB",
        "granted MB"
    );
    for told in told {
        let gain = told.simulated_gain_percent;
        let gain = gain.map_or_else(String::new, |gain| format!("{gain:.1}"));
        line(
            &mut text,
            (&told.coordinator, "simulated"),
            &told.simulated,
            ("", &gain),
        );
        if let Some(live) = &told.live {
            let gain = live.gain.as_ref().map_or_else(String::new, Gain::shown);
            line(
                &mut text,
                ("", "live"),
                &live.middle,
                (&spread(live), &gain),
            );
        }
    }
    for told in told {
        if let Some(verdict) = verdict(told) {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{}: {verdict}", told.coordinator);
        }
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn line(text: &mut String, (name, what): (&str, &str), of: &Figures, (rounds, gain): (&str, &str)) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{name:<14} {what:>10} {:>12.3} {rounds:>17} {gain:>13} {:>10.1} {:>9.1} {:>12.1} {:>10.1} {:>11.1}",
        of.mean_ms,
        of.lower_hits_percent,
        of.lower_ahead_mb,
        of.lower_bypassed_mb,
        of.lower_wished_mb,
        of.lower_granted_mb
    );
}

/// The fastest and the slowest round.
fn spread(live: &Live) -> String {
    let fastest = live.rounds_ms.iter().copied().fold(f64::MAX, f64::min);
    let slowest = live.rounds_ms.iter().copied().fold(f64::MIN, f64::max);
    format!("{fastest:.3}-{slowest:.3}")
}

impl Gain {
    fn shown(&self) -> String {
        match self.uncertainty_percent {
            Some(uncertainty) => format!("{:.1} +- {uncertainty:.1}", self.percent),
            None => format!("{:.1}", self.percent),
        }
    }
}

/// What is to be held of a live gain.
fn verdict(told: &Told) -> Option<String> {
    let simulated = told.simulated_gain_percent?;
    let live = told.live.as_ref()?;
    let gain = live.gain.as_ref()?;
    let said = match gain.verdict {
        Verdict::Holds => "holds: it has the simulator's sign, and at least half of its size",
        Verdict::Misses => "misses: it has less than half of the size, or another sign",
        Verdict::TooWide => "the spread of rounds is too wide to tell",
        Verdict::NothingSimulated => {
            return Some(format!(
                "live gain {} %, simulated none: there is no sign to compare it with",
                gain.shown()
            ));
        }
        Verdict::OneRound => "one round does not tell: expected --rounds 3 or more",
    };
    Some(format!(
        "live gain {} %, simulated {simulated:.1}, so {:.2} of it (goal: {GOAL} or more): {said}",
        gain.shown(),
        gain.percent / simulated
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(mean_ms: f64) -> Figures {
        Figures {
            mean_ms,
            ..Figures::default()
        }
    }

    fn case(simulated: f64, live: &[f64]) -> Case {
        Case {
            rounds: live.iter().map(|&ms| figures(ms)).collect(),
            ..Case::new("x", figures(simulated))
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
        assert_eq!(spread(live), "18.000-36.000");
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
            let with: Vec<Figures> = with.iter().map(|&ms| figures(ms)).collect();
            Gain::of(&without, &with, simulated).verdict
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
