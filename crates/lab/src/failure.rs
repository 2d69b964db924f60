//! Why a measurement has no result: one message, and whose fault it is.

use std::fmt;

/// Why a measurement has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The settings or a file are wrong.
    #[error("{0}")]
    Input(String),
    /// The settings are good, and something else failed.
    #[error("{0}")]
    Failed(String),
}

impl Failure {
    /// The settings or a file are wrong.
    pub fn input(problem: impl fmt::Display) -> Self {
        Failure::Input(problem.to_string())
    }

    /// Something else failed.
    pub fn failed(problem: impl fmt::Display) -> Self {
        Failure::Failed(problem.to_string())
    }

    /// A name that is in no table, with the most similar one of the table, or all of it.
    pub fn unknown(what: &str, name: &str, known: &[&str]) -> Self {
        let near = known
            .iter()
            .map(|candidate| {
                (
                    strsim::normalized_damerau_levenshtein(name, candidate),
                    candidate,
                )
            })
            .filter(|(likeness, _)| *likeness >= SIMILAR)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let suggestion = match near {
            Some((_, near)) => format!("; did you mean \"{near}\"?"),
            None => String::new(),
        };
        let all = known.join(", ");
        Failure::input(format!(
            "no {what} is called \"{name}\": expected one of {all}{suggestion}"
        ))
    }
}

/// How alike two names are that may be the same one mistyped. A choice: one wrong letter in two.
const SIMILAR: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similar_name_is_suggested() {
        let Failure::Input(problem) = Failure::unknown("policy", "c-lok", &["fcfs", "c-look"])
        else {
            panic!("a wrong name is wrong input");
        };
        assert_eq!(
            problem,
            "no policy is called \"c-lok\": expected one of fcfs, c-look; did you mean \"c-look\"?"
        );
        let Failure::Input(problem) = Failure::unknown("policy", "zzz", &["fcfs"]) else {
            panic!("a wrong name is wrong input");
        };
        assert!(!problem.contains("mean"));
    }
}
