//! An experiment in shards: parts of its runs on any machines, merged to the results of the whole.
//!
//! ```text
//!   plan: run 0 1 2 3 4 5 6   --shard 1/3: 0 3 6    --> shard-00001-of-00003.jsonl --.
//!                             --shard 2/3: 1 4      --> shard-00002-of-00003.jsonl --+--> merged: the same bytes
//!                             --shard 3/3: 2 5      --> shard-00003-of-00003.jsonl --'    in any order
//! ```
//!
//! A file has lines of JSON: a head with the experiment's text, then a line for each run. Measures are the bits of
//! their floats as whole numbers, so that nothing is rounded.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::measure::{MEASURES, RunMeasures};
use super::plan::ExperimentPlan;
use super::results::Results;
use super::{Experiment, MOST_RUNS};
use crate::{Failure, Progress};

/// A part of an experiment's runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Its number, from 1.
    pub number: u64,
    /// The number of shards.
    pub of: u64,
}

/// The measures of a shard.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardResults {
    head: ShardHead,
    runs: Vec<ShardRun>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShardHead {
    version: u32,
    /// The name of the experiment's file.
    file: String,
    /// Its text.
    text: String,
    /// The names of the measures.
    measures: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShardRun {
    /// The place in the plan.
    run: u64,
    /// The bits of each measure.
    measures: Vec<Option<u64>>,
}

/// The version of the files.
const VERSION: u32 = 1;

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parsed = text.split_once('/').and_then(|(number, of)| {
            let shard = Shard {
                number: number.parse().ok()?,
                of: of.parse().ok()?,
            };
            let is_one =
                (1..=MOST_RUNS).contains(&shard.of) && (1..=shard.of).contains(&shard.number);
            is_one.then_some(shard)
        });
        parsed.ok_or_else(|| format!("expected I/N such as 3/16, 1 to N, N at most {MOST_RUNS}"))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl Shard {
    /// The name of its file.
    pub fn file_name(self) -> String {
        format!("shard-{:05}-of-{:05}.jsonl", self.number, self.of)
    }

    /// The places of its runs in the plan.
    fn runs(self, all: usize) -> Vec<usize> {
        let all = 0..all as u64;
        let runs = all.filter(|run| run % self.of == self.number - 1);
        runs.map(|run| run as usize).collect()
    }
}

impl ExperimentPlan {
    /// Measures the runs of a shard of the experiment in `file` with this text.
    ///
    /// # Errors
    /// As [`ExperimentPlan::measure`].
    pub fn measure_shard(
        &self,
        (file, text): (&str, &str),
        shard: Shard,
        threads: Option<u16>,
        progress: &dyn Progress,
    ) -> Result<ShardResults, Failure> {
        let places = shard.runs(self.runs.len());
        let measured = self.measure_runs(&places, threads, progress)?;
        let runs = places.iter().zip(measured).map(|(&place, measures)| {
            let bits = (0..MEASURES.len()).map(|at| measures.figure(at).map(f64::to_bits));
            ShardRun {
                run: place as u64,
                measures: bits.collect(),
            }
        });
        Ok(ShardResults {
            head: ShardHead {
                version: VERSION,
                file: file.to_owned(),
                text: text.to_owned(),
                measures: names(),
            },
            runs: runs.collect(),
        })
    }
}

fn names() -> Vec<String> {
    MEASURES
        .iter()
        .map(|measure| measure.name.to_owned())
        .collect()
}

impl ShardResults {
    /// The text of the file.
    ///
    /// # Errors
    /// If it cannot be serialised.
    pub fn text(&self) -> Result<String, Failure> {
        let mut text = serde_json::to_string(&self.head).map_err(Failure::failed)?;
        for run in &self.runs {
            text.push('\n');
            text += &serde_json::to_string(run).map_err(Failure::failed)?;
        }
        Ok(text + "\n")
    }

    /// Parses a file; `file` is the name in errors.
    ///
    /// # Errors
    /// If a line is not what a shard has.
    pub fn parse(file: &str, text: &str) -> Result<ShardResults, Failure> {
        let wrong = |line: usize, problem: String| {
            let problem = problem.replace('\n', " ");
            Failure::input(format!("{file}:{line}: {problem}"))
        };
        let mut lines = text.lines().zip(1..);
        let (first, _) = lines
            .next()
            .ok_or_else(|| wrong(1, "empty: expected the head of a shard".to_owned()))?;
        let head: ShardHead = serde_json::from_str(first)
            .map_err(|error| wrong(1, format!("{error}: expected the head of a shard")))?;
        if head.version != VERSION || head.measures != names() {
            let problem = "of another version of Headtime: expected shards of this one";
            return Err(wrong(1, problem.to_owned()));
        }
        let runs = lines.map(|(line, number)| {
            let run: ShardRun = serde_json::from_str(line)
                .map_err(|error| wrong(number, format!("{error}: expected a run")))?;
            match run.measures.len() == MEASURES.len() {
                true => Ok(run),
                false => {
                    let (found, expected) = (run.measures.len(), MEASURES.len());
                    Err(wrong(
                        number,
                        format!("{found} measures: expected {expected}"),
                    ))
                }
            }
        });
        Ok(ShardResults {
            head,
            runs: runs.collect::<Result<_, _>>()?,
        })
    }
}

/// The results of the whole experiment, from its shards in any order. Runs may be there more than once.
///
/// # Errors
/// If there are no shards, they are of different experiments, runs differ, or some are missing.
pub fn merged(shards: &[(String, ShardResults)]) -> Result<Results, Failure> {
    let Some((first, ShardResults { head, .. })) = shards.first() else {
        return Err(Failure::input("no shards: expected files shard-*.jsonl"));
    };
    if let Some((other, _)) = shards
        .iter()
        .find(|(_, shard)| shard.head.text != head.text)
    {
        let problem = format!("{other}: of another experiment than {first}: expected one");
        return Err(Failure::input(problem));
    }
    let experiment = Experiment::parse(&head.file, &head.text).map_err(Failure::input)?;
    let plan = ExperimentPlan::new(experiment)?;
    let mut found: Vec<Option<&ShardRun>> = vec![None; plan.runs.len()];
    for (file, shard) in shards {
        for run in &shard.runs {
            let all = found.len();
            let place = usize::try_from(run.run)
                .ok()
                .and_then(|run| found.get_mut(run));
            let place = place.ok_or_else(|| {
                Failure::input(format!("{file}: run {}: expected less than {all}", run.run))
            })?;
            if place.is_some_and(|other| other.measures != run.measures) {
                return Err(Failure::input(format!(
                    "{file}: run {} has other measures than in another shard: expected the same",
                    run.run
                )));
            }
            *place = Some(run);
        }
    }
    let missing = found.iter().filter(|run| run.is_none()).count();
    if let Some(place) = found.iter().position(Option::is_none) {
        return Err(Failure::input(format!(
            "{missing} of {} runs are missing, the first is run {place}: expected all shards",
            found.len()
        )));
    }
    let measures = found.into_iter().flatten().map(|run| {
        let bits = run.measures.iter();
        RunMeasures::of(bits.map(|bits| bits.map(f64::from_bits)).collect())
    });
    let measures = measures.collect();
    Ok(Results::new(plan, measures))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "name = \"e\"\nsummary = \"s\"\ndrive = \"quantum-atlas-10k\"\nworkload = \"oltp\"\n\
                        requests = 60\nrepeat = 2\n[sweep]\npolicy = [\"fcfs\", \"sptf\"]\n\
                        depth = [1, 2]\n[figure]\nx = \"depth\"\ny = [\"mean_ms\"]\n";

    fn plan() -> ExperimentPlan {
        let experiment = Experiment::parse("e.toml", TEXT).expect("good text");
        ExperimentPlan::new(experiment).expect("a good plan")
    }

    fn json(results: &Results) -> String {
        serde_json::to_string(results).expect("JSON")
    }

    #[test]
    fn shards_in_any_order_merge_to_the_same_bytes() {
        let whole = json(&plan().measure(Some(1), &()).expect("it runs"));
        for of in [1, 3, 8, 16] {
            let mut shards: Vec<(String, ShardResults)> = (1..=of)
                .map(|number| {
                    let shard = Shard { number, of };
                    let plan = plan();
                    let measured = plan.measure_shard(("e.toml", TEXT), shard, Some(1), &());
                    let text = measured.expect("it runs").text().expect("JSON");
                    let name = shard.file_name();
                    let parsed = ShardResults::parse(&name, &text).expect("what was written");
                    (name, parsed)
                })
                .collect();
            shards.rotate_left(of as usize / 2);
            shards.reverse();
            assert_eq!(json(&merged(&shards).expect("all shards")), whole, "{of}");
            let last = shards.pop().expect("a shard");
            if of == 3 {
                let said = merged(&shards).err().expect("one is missing").to_string();
                assert!(
                    said.contains("of 8 runs are missing, the first is run"),
                    "{said}"
                );
                let mut other = last.1.clone();
                other.runs[0].measures[0] = Some(0);
                let differ = [last.clone(), (last.0, other)];
                let said = merged(&differ).err().expect("they differ").to_string();
                assert!(said.contains("other measures"), "{said}");
            }
        }
        assert!(merged(&[]).is_err());
    }

    #[test]
    fn a_shard_is_a_number_of_so_many() {
        assert_eq!("3/16".parse(), Ok(Shard { number: 3, of: 16 }));
        for bad in ["0/4", "5/4", "1", "1/0", "a/b", "1/10001", ""] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_refused_in_one_line(text in "[ -~\n]{0,200}") {
            if let Err(error) = ShardResults::parse("s.jsonl", &text) {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }
}
