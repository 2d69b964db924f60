//! Readings of PFC in combinations: all that the text allows, on seeds that chose nothing.
//!
//! [`super::sensitivity`] changes one reading at a time. Readings may need each other, so that here each of the
//! alternatives below stands with each of the others.

use simulator::caching::cases::{ALGORITHMS, CachingCase, Upper};

use super::loads::{NAMES, Which};
use super::served::{CachingRun, CachingRuns};
use super::{in_tracks, pfc};
use crate::Failure;
use crate::paper::{PaperBench, Table};

/// An ambiguity with two answers, each as settings of `pfc`; the first one is the default.
const CHOICES: [(&str, [&str; 2]); 6] = [
    ("a hit is any block / all", ["", "a8=all"]),
    ("readmore joined / own fetch", ["", "readmore=otherwise"]),
    ("in flight is cached / absent", ["", "a7=absent"]),
    ("readmore is demand / prefetch", ["", "a15=otherwise"]),
    ("L1's prefetches coordinated / pass", ["", "a18=passed"]),
    ("window after / with the last", ["", "a9=code"]),
];

/// The number of combinations.
const COMBINATIONS: usize = 1 << CHOICES.len();

/// The seeds of the table. Neither a generator nor a reading was chosen with them.
const SEEDS: [u64; 2] = [4, 5];

/// Divisor of each load's length. A choice, for time.
const PART: u64 = 16;

/// The table of all combinations, largest mean gain first.
///
/// # Errors
/// If a run is not possible.
pub(super) fn table(bench: &PaperBench) -> Result<Table, Failure> {
    let mut wanted = Vec::new();
    for (load, case) in cases() {
        wanted.push(CachingRun::new(load, case, "none"));
        for at in 0..COMBINATIONS {
            wanted.push(CachingRun::new(load, case, &coordinator(at)));
        }
    }
    let runs = CachingRuns::of(bench, PART, wanted)?;
    let mut rows = Vec::new();
    for at in 0..COMBINATIONS {
        rows.push((at, Gains::of(&runs, &coordinator(at))?));
    }
    let default = rows[0].1.mean(|_| true);
    rows.sort_by(|one, other| other.1.mean(|_| true).total_cmp(&one.1.mean(|_| true)));
    let mut columns: Vec<&str> = CHOICES.iter().map(|(what, _)| *what).collect();
    columns.extend(["improved", "mean gain %", "oltp", "websearch", "multi"]);
    let mut table = Table::new(
        format!(
            "Readings in combinations, {} cases (four algorithms, SARC in tracks; H with 200 % and L with 5 %; seeds 4 \
             and 5, which chose nothing), one part in {PART} of each load",
            cases().len()
        ),
        &columns,
    );
    for (at, gains) in &rows {
        let answer = |choice: usize| match at >> choice & 1 {
            0 => "first".to_owned(),
            _ => "second".to_owned(),
        };
        let mut row: Vec<String> = (0..CHOICES.len()).map(answer).collect();
        row.push(gains.improved().to_string());
        row.push(format!("{:.1}", gains.mean(|_| true)));
        for load in 0..NAMES.len() {
            let of_load = |which: Which| matches!(which, Which::Seeded(at, ..) if at == load);
            row.push(format!("{:.1}", gains.mean(of_load)));
        }
        table.rows.push(row);
    }
    let better = rows.iter().take_while(|(at, _)| *at != 0).count();
    table.summary = Some(format!(
        "The default is the first answer of all: {default:.1} %, place {} of {COMBINATIONS}. It was chosen by the text.",
        better + 1
    ));
    Ok(table)
}

/// The gains of a combination in all cases.
struct Gains(Vec<(Which, f64)>);

impl Gains {
    fn of(runs: &CachingRuns, coordinator: &str) -> Result<Gains, Failure> {
        let mut gains = Vec::new();
        for (load, case) in cases() {
            let run = CachingRun::new(load, case, coordinator);
            gains.push((load, runs.gain(&run)?));
        }
        Ok(Gains(gains))
    }

    fn improved(&self) -> usize {
        self.0.iter().filter(|(_, gain)| *gain > 0.0).count()
    }

    fn mean(&self, of: impl Fn(Which) -> bool) -> f64 {
        let some = self.0.iter().filter(|(load, _)| of(*load));
        let gains: Vec<f64> = some.map(|(_, gain)| *gain).collect();
        gains.iter().sum::<f64>() / gains.len().max(1) as f64
    }
}

/// The coordinator of a combination: each bit answers a choice.
fn coordinator(at: usize) -> String {
    let answers = CHOICES.iter().enumerate();
    let settings = answers.map(|(choice, (_, answers))| answers[at >> choice & 1]);
    let settings: Vec<&str> = settings.filter(|setting| !setting.is_empty()).collect();
    pfc(&settings.join(","), "")
}

fn cases() -> Vec<(Which, CachingCase)> {
    let mut all = Vec::new();
    for seed in SEEDS {
        for load in 0..NAMES.len() {
            for algorithm in ALGORITHMS {
                for (upper, percent) in [(Upper::High, 200), (Upper::Low, 5)] {
                    let case = CachingCase::homogeneous(algorithm, upper, percent);
                    all.push(in_tracks((Which::Seeded(load, seed, 1), case)));
                }
            }
        }
    }
    all
}
