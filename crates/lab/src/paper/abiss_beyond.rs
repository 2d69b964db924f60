//! Guaranteed streams beyond the paper: its table with our guarantees, and batches that admission
//! chooses, with and without the host's limit.

use simulator::playing::{PAGE, PlayingReport};

use super::abiss::run::{
    AbissRun, AbissRuns, Buffered, CompetingLoad, FileLayout, Machine, Scheme,
};
use super::abiss::{PAGES, STREAMS, figures, note, ours};
use super::finding::Finding;
use super::grounds::OtherSetup;
use super::{Effort, Measurement, MeasurementOutcome, PaperBench};
use crate::Failure;

pub mod greedy;

/// The measurement.
pub const MEASUREMENT: Measurement = Measurement {
    what: "guarantees beside a greedy reader",
    claims: &[TABLE, LIMITED, ADJACENT, SPREAD, SPREAD_LARGE],
    run,
};

const TABLE: &str = "abiss-beyond.table1";
const LIMITED: &str = "abiss-beyond.host-limit";
const ADJACENT: &str = "abiss-beyond.adjacent";
const SPREAD: &str = "abiss-beyond.spread";
const SPREAD_LARGE: &str = "abiss-beyond.spread.large";

fn run(bench: &PaperBench) -> Result<MeasurementOutcome, Failure> {
    let cells = PAGES
        .into_iter()
        .flat_map(|pages| STREAMS.map(|streams| ours(pages, streams)));
    let mut runs: Vec<AbissRun> = cells.collect();
    for policy in POLICIES {
        for machine in [Machine::Paper, Machine::Unlimited] {
            runs.push(chosen(machine, FileLayout::Adjacent, policy, KB));
        }
    }
    runs.extend(spread(KB));
    runs.extend(spread(LARGE_KB));
    let beyond = AbissBeyond {
        runs: &AbissRuns::of(bench, runs)?,
        effort: bench.effort,
    };
    Ok(MeasurementOutcome::figures(vec![
        beyond.table()?,
        beyond.adjacent(LIMITED, Machine::Paper)?,
        beyond.adjacent(ADJACENT, Machine::Unlimited)?,
        beyond.spread_small()?,
        beyond.spread(SPREAD_LARGE, LARGE_KB)?,
    ]))
}

/// Four streams with buffers of `kb`, rounds chosen by admission, and 1 MiB of read-ahead.
fn chosen(machine: Machine, layout: FileLayout, policy: &'static str, kb: u64) -> AbissRun {
    AbissRun {
        machine,
        streams: 4,
        scheme: Scheme::Ours(Buffered { kb, pages: None }),
        policy,
        layout,
        others: CompetingLoad::Reader(1024),
    }
}

/// The runs with the background reader's file in each of the five places.
fn spread(kb: u64) -> [AbissRun; 5] {
    let at = |place| chosen(Machine::Unlimited, FileLayout::Spread(place), JUDGED, kb);
    [0, 1, 2, 3, 4].map(at)
}

/// The runs of all findings.
struct AbissBeyond<'a> {
    runs: &'a AbissRuns,
    effort: Effort,
}

impl AbissBeyond<'_> {
    /// The rows of Table 1 that have a batch.
    fn table(&self) -> Result<Finding, Failure> {
        let mut named = Vec::new();
        let mut batches = Vec::new();
        for pages in PAGES {
            for streams in STREAMS {
                let report = self.runs.get(&ours(pages, streams))?;
                let plural = if streams > 1 { "s" } else { "" };
                named.push((
                    format!("{pages}_pages_{streams}_stream{plural}"),
                    report.background_rate(),
                ));
                batches.push(format!("{}", report.batch / PAGE));
            }
        }
        let more = format!(
            "read-ahead 128 kB as in the paper; buffers of 564 kB, 1064 at 160 pages; our batches, in pages: {}; \
             shorter rounds than these would not hold the seeks of 4 streams",
            batches.join(", ")
        );
        Ok(figures(
            TABLE,
            named,
            note(self.effort, Machine::Paper, &more),
        ))
    }

    /// The files are adjacent.
    fn adjacent(&self, claim: &'static str, machine: Machine) -> Result<Finding, Failure> {
        let mut others = Vec::new();
        for policy in POLICIES.into_iter().filter(|&policy| policy != JUDGED) {
            let report = self
                .runs
                .get(&chosen(machine, FileLayout::Adjacent, policy, KB))?;
            others.push(format!("{policy} {}", described(report)));
        }
        let report = self
            .runs
            .get(&chosen(machine, FileLayout::Adjacent, JUDGED, KB))?;
        let more = format!(
            "4 streams, buffers of 564 kB, read-ahead 1 MiB; {JUDGED}: {}; among others under other elevators: {}",
            described(report),
            others.join("; ")
        );
        let named = both(report.background_rate(), [report]);
        Ok(figures(claim, named, note(self.effort, machine, &more)))
    }

    /// The files are spread over the disk: the mean over the background reader's places.
    fn spread(&self, claim: &'static str, kb: u64) -> Result<Finding, Failure> {
        let reports = spread(kb).map(|run| self.runs.get(&run));
        let reports = reports.into_iter().collect::<Result<Vec<_>, _>>()?;
        let sum: f64 = reports.iter().map(|report| report.background_rate()).sum();
        let mean = sum / reports.len() as f64;
        let said: Vec<String> = reports.iter().map(|report| described(report)).collect();
        let more = format!(
            "4 streams, buffers of {kb} kB, read-ahead 1 MiB; five files evenly from the first block to the \
             last; the mean over the background reader's place among them, from outside: {}",
            said.join("; ")
        );
        let named = both(mean, reports);
        let note = note(self.effort, Machine::Unlimited, &more);
        Ok(figures(claim, named, note))
    }

    /// The files are spread, with the smaller buffers: beside it the larger ones. Admission knows the slowest zone and the
    /// span of the files, not where each of them lies.
    fn spread_small(&self) -> Result<Finding, Failure> {
        let large = self.spread(SPREAD_LARGE, LARGE_KB)?;
        let named: Vec<(&str, f64)> = large
            .ours
            .iter()
            .filter_map(|figure| Some((figure.name.as_deref()?, figure.value)))
            .collect();
        let setup = OtherSetup::several(format!("buffers of {LARGE_KB} kB"), &named);
        let read_as =
            "admission knows the span of the files and the slowest zone, not where each file lies";
        let finding = self.spread(SPREAD, KB)?.beside([setup]);
        Ok(finding.read_as(read_as))
    }
}

/// The rate left to the reader, and the late batches of these runs.
fn both<'a>(rate: f64, reports: impl IntoIterator<Item = &'a PlayingReport>) -> Vec<(String, f64)> {
    let late = |report: &PlayingReport| report.waited() as u64 + report.late;
    let late: u64 = reports.into_iter().map(late).sum();
    vec![
        ("background_mb_s".to_owned(), rate),
        ("late".to_owned(), late as f64),
    ]
}

/// A run in words.
fn described(report: &PlayingReport) -> String {
    format!(
        "{:.2} MB/s, batches of {} pages, {} of {} reads waited",
        report.background_rate(),
        report.batch / PAGE,
        report.waited(),
        report.count(),
    )
}

/// The judged policy: a sequential reader's requests are served best in their order.
const JUDGED: &str = "fcfs";

/// The paper's buffers, in kB: the usual one, and that of its largest batch.
const KB: u64 = 564;
const LARGE_KB: u64 = 1064;

/// The shown policies.
const POLICIES: [&str; 3] = [JUDGED, "c-look", "sptf"];
