//! Greedy tasks beside streams: random reads and writes of 128 KiB, always outstanding.

use simulator::playing::{PAGE, PlayingReport};

use crate::Failure;
use crate::paper::abiss::run::{
    AbissRun, AbissRuns, Buffered, CompetingLoad, FileLayout, Machine, Scheme,
};
use crate::paper::abiss::{figures, note};
use crate::paper::finding::Finding;
use crate::paper::{Effort, Measurement, MeasurementOutcome, PaperBench};

/// The measurement.
pub const MEASUREMENT: Measurement = Measurement {
    what: "guarantees beside greedy tasks",
    claims: &[TRAVELSTAR, MODERN],
    run,
};

const TRAVELSTAR: &str = "abiss-beyond.greedy.travelstar";
const MODERN: &str = "abiss-beyond.greedy.20tb";

/// Streams that nearly fill a disk.
#[derive(Clone, Copy)]
struct Crowd {
    claim: &'static str,
    machine: Machine,
    streams: usize,
    kb: u64,
    layout: FileLayout,
}

fn run(bench: &PaperBench) -> Result<MeasurementOutcome, Failure> {
    let all = CROWDS.into_iter().flat_map(|crowd| {
        let with = TASKS.into_iter().flat_map(move |tasks| {
            let one = move |pages| crowd.with(tasks, pages);
            ROUNDS.into_iter().map(one).chain([crowd.without(tasks)])
        });
        with.collect::<Vec<_>>()
    });
    let runs = AbissRuns::of(bench, all)?;
    let findings = CROWDS
        .into_iter()
        .map(|crowd| crowd.finding(&runs, bench.effort));
    Ok(MeasurementOutcome::figures(
        findings.collect::<Result<_, _>>()?,
    ))
}

impl Crowd {
    fn with(self, tasks: usize, pages: Option<u64>) -> AbissRun {
        AbissRun {
            machine: self.machine,
            streams: self.streams,
            scheme: Scheme::Ours(Buffered { kb: self.kb, pages }),
            policy: "sptf",
            layout: self.layout,
            others: CompetingLoad::Tasks(tasks),
        }
    }

    fn without(self, tasks: usize) -> AbissRun {
        AbissRun {
            streams: 0,
            scheme: Scheme::Plain,
            ..self.with(tasks, None)
        }
    }

    fn finding(self, runs: &AbissRuns, effort: Effort) -> Result<Finding, Failure> {
        let (mut waited, mut late) = (0, 0);
        let mut said = Vec::new();
        for tasks in TASKS {
            let without = runs.get(&self.without(tasks))?;
            let mut p99 = Vec::new();
            for pages in ROUNDS {
                let report = runs.get(&self.with(tasks, pages))?;
                waited += report.waited();
                late += report.late;
                p99.push(format!(
                    "{} (batch {})",
                    p99_ms(report)?,
                    report.batch / PAGE
                ));
            }
            said.push(format!(
                "{tasks} task(s): {} without streams, {}",
                p99_ms(without)?,
                p99.join(", ")
            ));
        }
        let more = format!(
            "{} streams of 1 MB/s with {} kB each, {}; tasks: 128 KiB, half of them writes, anywhere, sptf; \
             p99 of their requests in ms, then with streams, by rounds of 10, 40, 160 pages or the seeks' \
             least, and as admission has them (with streams every write is on the medium when it ends): {}",
            self.streams,
            self.kb,
            match self.layout {
                FileLayout::Adjacent => "one after the other from the first block",
                FileLayout::Spread(_) => "evenly over the disk",
            },
            said.join("; ")
        );
        let named = vec![
            ("waited".to_owned(), waited as f64),
            ("late".to_owned(), late as f64),
        ];
        Ok(figures(
            self.claim,
            named,
            note(effort, self.machine, &more),
        ))
    }
}

fn p99_ms(report: &PlayingReport) -> Result<String, Failure> {
    let p99 = report.tasks_permille(990);
    let p99 = p99.ok_or_else(|| Failure::failed("a run without greedy tasks"))?;
    Ok(format!("{:.0}", p99.as_millis_f64()))
}

/// The streams of both drives.
const CROWDS: [Crowd; 2] = [
    Crowd {
        claim: TRAVELSTAR,
        machine: Machine::Written,
        streams: 4,
        kb: 1064,
        layout: FileLayout::Adjacent,
    },
    Crowd {
        claim: MODERN,
        machine: Machine::Modern,
        streams: 32,
        kb: 4096,
        layout: FileLayout::Spread(32),
    },
];

/// Numbers of greedy tasks: the bounds of issue 7, and values between them.
const TASKS: [usize; 4] = [1, 4, 16, 64];

/// Lengths of rounds, in pages of a stream's batch.
const ROUNDS: [Option<u64>; 4] = [Some(10), Some(40), Some(160), None];
