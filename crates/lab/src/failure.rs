//! The errors of measurements: a message, and its category.

use std::fmt;

/// The error of a measurement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The settings or a file are invalid.
    #[error("{0}")]
    Input(String),
    /// The settings are valid, and something else failed.
    #[error("{0}")]
    Failed(String),
}

impl Failure {
    /// An error of the settings or a file.
    pub fn input(problem: impl fmt::Display) -> Self {
        Failure::Input(problem.to_string())
    }

    /// Any other error.
    pub fn failed(problem: impl fmt::Display) -> Self {
        Failure::Failed(problem.to_string())
    }

    /// The error of an unknown name, with the most similar known name or the whole list.
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

/// Smallest similarity of a mistyped name. A choice: more than half of the letters, so that "foo" is not taken for
/// "look".
const SIMILAR: f64 = 0.6;

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
        for (name, known) in [("zzz", "fcfs"), ("foo", "look")] {
            let Failure::Input(problem) = Failure::unknown("policy", name, &[known]) else {
                panic!("a wrong name is wrong input");
            };
            assert!(!problem.contains("mean"), "{problem}");
        }
    }
}
