//! Guaranteed rates (ABISS): streams beside a greedy reader, as in the paper's machine, under its
//! kernel's elevators, and with our guarantees.

use super::finding::{Finding, MeasuredFigure, ShapeVerdict};
use super::grounds::{Grounds, OtherSetup};
use super::{Effort, Measurement, MeasurementOutcome, PaperBench};
use crate::{Failure, Label};
use run::{AbissRun, AbissRuns, CompetingLoad, FileLayout, Machine, Scheme};
use segments::SEGMENTS;
use simulator::playing::PlayingReport;

mod bursts;
mod drawn;
mod order;
pub mod run;
mod segments;

/// The measurement.
pub const MEASUREMENT: Measurement = Measurement {
    what: "streams beside a greedy reader",
    claims: &[
        SERVICE,
        REAL_TIME,
        OUTLIER,
        BEST_EFFORT,
        BACKGROUND,
        ORDER,
        FITTED,
    ],
    run,
};

const SERVICE: &str = "abiss.service";
const REAL_TIME: &str = "abiss.delay.realtime";
const OUTLIER: &str = "abiss.delay.outlier";
const BEST_EFFORT: &str = "abiss.delay.best-effort";
const BACKGROUND: &str = "abiss.background";
const ORDER: &str = "abiss.background.order";
const FITTED: &str = "abiss.background.fitted";

/// A row of Table 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AbissRow {
    /// Real time, with a batch of this many pages.
    Batch(u64),
    /// Best effort under an elevator: the paper's name and ours.
    Elevator(&'static str, &'static str),
}

fn run(bench: &PaperBench) -> Result<MeasurementOutcome, Failure> {
    let mut runs = Vec::new();
    for (row, streams) in cells() {
        runs.push(row.run(Machine::Paper, streams));
        runs.extend(SEGMENTS.map(|segments| row.run(Machine::Segments(segments), streams)));
    }
    runs.extend(guaranteed());
    runs.extend(bursts::runs());
    runs.extend(STREAMS.map(|streams| SLICED.run(Machine::Paper, streams)));
    let paper = AbissPaper {
        runs: &AbissRuns::of(bench, runs)?,
        effort: bench.effort,
    };
    Ok(MeasurementOutcome {
        findings: vec![
            paper.service()?,
            paper.real_time()?,
            paper.outlier()?,
            paper.best_effort()?,
            paper.table()?,
            paper.order()?,
            paper.fitted()?,
        ],
        drawings: drawn::all(&paper)?,
        tables: vec![paper.by_segments()?, paper.burst_table()?],
    })
}

/// The cells of Table 1, row by row.
fn cells() -> impl Iterator<Item = (AbissRow, usize)> {
    let rows = ROWS.into_iter();
    rows.flat_map(|row| STREAMS.map(|streams| (row, streams)))
}

/// The runs with our guarantees, for the rows that have a batch.
fn guaranteed() -> impl Iterator<Item = AbissRun> {
    let pairs = PAGES
        .into_iter()
        .flat_map(|pages| STREAMS.map(|streams| (pages, streams)));
    pairs.map(|(pages, streams)| ours(pages, streams))
}

/// Our guarantees in the paper's machine, with rounds as long as the paper's batch.
pub fn ours(pages: u64, streams: usize) -> AbissRun {
    AbissRun {
        machine: Machine::Paper,
        streams,
        scheme: Scheme::ours_as_theirs(pages),
        policy: "fcfs",
        layout: FileLayout::Adjacent,
        others: CompetingLoad::Reader(READ_AHEAD_KB),
    }
}

impl AbissRow {
    fn run(self, machine: Machine, streams: usize) -> AbissRun {
        let (scheme, policy) = match self {
            AbissRow::Batch(pages) => (Scheme::Theirs(pages), "fcfs"),
            AbissRow::Elevator(_, policy) => (Scheme::Plain, policy),
        };
        AbissRun {
            machine,
            streams,
            scheme,
            policy,
            layout: FileLayout::Adjacent,
            others: CompetingLoad::Reader(READ_AHEAD_KB),
        }
    }

    fn name(self) -> String {
        match self {
            AbissRow::Batch(pages) => format!("abiss_rt_{pages}_pages"),
            AbissRow::Elevator(name, _) => name.to_owned(),
        }
    }
}

/// The name of a cell in the claims.
fn cell(row: AbissRow, streams: usize) -> String {
    format!(
        "{}_{streams}_stream{}",
        row.name(),
        if streams > 1 { "s" } else { "" }
    )
}

/// The runs of all findings.
struct AbissPaper<'a> {
    runs: &'a AbissRuns,
    effort: Effort,
}

impl AbissPaper<'_> {
    fn of(&self, run: AbissRun) -> Result<&PlayingReport, Failure> {
        self.runs.get(&run)
    }

    fn note(&self, machine: Machine, more: &str) -> String {
        note(self.effort, machine, more)
    }

    /// The longest read of these runs, in milliseconds.
    fn longest(&self, runs: impl IntoIterator<Item = AbissRun>) -> Result<f64, Failure> {
        let mut longest = 0.0f64;
        for run in runs {
            longest = longest.max(self.of(run)?.longest().as_millis_f64());
        }
        Ok(longest)
    }

    /// Buffered reads never wait for the disk.
    fn service(&self) -> Result<Finding, Failure> {
        let mut counted = Vec::new();
        let mut waited = 0;
        let theirs = PAGES.map(AbissRow::Batch);
        let theirs = theirs.map(|row| STREAMS.map(|streams| row.run(Machine::Paper, streams)));
        let sides = [
            (
                "their_way",
                theirs.into_iter().flatten().collect::<Vec<_>>(),
            ),
            ("ours", guaranteed().collect()),
        ];
        for (name, runs) in sides {
            let (mut reads, mut waits) = (0, 0);
            for run in runs {
                let report = self.of(run)?;
                reads += report.count();
                waits += report.waited() + report.late as usize;
            }
            counted.push((format!("{name}_reads"), reads as f64));
            counted.push((format!("{name}_waited"), waits as f64));
            waited += waits;
        }
        let more = "the runs of Table 1: batches of 10 to 160 pages, 1 and 4 streams; ours: rounds as long as these \
                    last, or longer if the seeks need it";
        let finding = figures(SERVICE, counted, self.note(Machine::Paper, more));
        Ok(finding.shaped(ShapeVerdict::of(&[waited == 0])))
    }

    fn real_time(&self) -> Result<Finding, Failure> {
        let theirs = AbissRow::Batch(FIGURE_18).run(Machine::Paper, 4);
        let ours = ours(FIGURE_18, 4);
        let named = vec![
            ("their_way_ms".to_owned(), self.longest([theirs])?),
            ("ours_ms".to_owned(), self.longest([ours])?),
        ];
        let (theirs, ours) = (self.of(theirs)?, self.of(ours)?);
        let more = format!(
            "all of it is the copy of 64 kB; waited for the disk: {} of {} reads, ours {} of {}; our batch: \
             {} pages",
            theirs.waited(),
            theirs.count(),
            ours.waited(),
            ours.count(),
            ours.batch / simulator::playing::PAGE,
        );
        Ok(figures(REAL_TIME, named, self.note(Machine::Paper, &more)))
    }

    fn outlier(&self) -> Result<Finding, Failure> {
        let theirs = PAGES.into_iter().flat_map(|pages| {
            STREAMS.map(|streams| AbissRow::Batch(pages).run(Machine::Paper, streams))
        });
        let named = vec![
            ("their_way_ms".to_owned(), self.longest(theirs)?),
            ("ours_ms".to_owned(), self.longest(guaranteed())?),
        ];
        Ok(figures(
            OUTLIER,
            named,
            self.note(Machine::Paper, "all batches, 1 and 4 streams"),
        ))
    }

    /// Unbuffered reads wait for the disk. The paper's second needs bursts of written pages, and an elevator that does not
    /// prefer reads.
    fn best_effort(&self) -> Result<Finding, Failure> {
        let buffered = self.longest([
            AbissRow::Batch(FIGURE_18).run(Machine::Paper, 4),
            ours(FIGURE_18, 4),
        ])?;
        let mut named = Vec::new();
        let (mut checks, mut late_checks) = (Vec::new(), Vec::new());
        let (mut behind, mut late) = (Vec::new(), Vec::new());
        let mut longest = 0.0f64;
        for row in ROWS {
            let AbissRow::Elevator(name, _) = row else {
                continue;
            };
            let report = self.of(row.run(Machine::Paper, 4))?;
            let wait = report.longest_wait().as_millis_f64();
            named.push((format!("{name}_ms"), wait));
            longest = longest.max(wait);
            checks.push(wait >= LEAST_WAIT && wait > buffered);
            let lateness = report.behind().as_millis_f64();
            late.push((format!("{name}_ms"), lateness));
            late_checks.push(lateness >= LEAST_WAIT && lateness > buffered);
            behind.push(format!(
                "{name} {:.1} and {:.0} ms",
                report.longest().as_millis_f64(),
                report.behind().as_millis_f64()
            ));
        }
        let more = format!(
            "longest wait for the disk of one read; longest read with its copy, and how far a player fell behind \
             its rate at most, because one that waits calls late for its next bytes: {}; the longest read with \
             a buffer: {buffered:.2} ms",
            behind.join(", ")
        );
        let finding = figures(BEST_EFFORT, named, self.note(Machine::Paper, &more));
        let late: Vec<(&str, f64)> = late.iter().map(|(name, ms)| (name.as_str(), *ms)).collect();
        let behind = OtherSetup::several("a delay is how far a player fell behind its rate", &late);
        let mut finding = finding
            .shaped(ShapeVerdict::of(&checks))
            .beside([behind.shaped(ShapeVerdict::of(&late_checks))])
            .beside([self.sliced_wait(buffered)?])
            .beside(self.beside_bursts()?)
            .read_as("a delay is the longest wait for the disk of one read");
        finding.grounds.bound = Some(format!(
            "not reproduced with one background reader, the paper's load: no read waits longer than {longest:.0} ms; {}",
            self.said_of_bursts()?
        ));
        Ok(finding)
    }

    /// The longest wait beside the reader under cfq with the slices that it had later, with the claim's check.
    fn sliced_wait(&self, buffered: f64) -> Result<OtherSetup, Failure> {
        let report = self.of(SLICED.run(Machine::Paper, 4))?;
        let wait = report.longest_wait().as_millis_f64();
        let holds = wait >= LEAST_WAIT && wait > buffered;
        let setup = OtherSetup::several(SLICES, &[("cfq_ms", wait)]);
        Ok(setup.shaped(ShapeVerdict::of(&[holds])))
    }

    /// Table 1.
    fn table(&self) -> Result<Finding, Failure> {
        let more = "single runs; elevators: noop is first come, first served, and so is theirs within one \
                    priority; the others are those of `headtime simulate`, and each stream and the background reader are \
                    an owner; cfq is cfq-like with turns of one request, as it was before 2.6.13; 8 segments";
        let cells: Vec<_> = cells().collect();
        let ours = self.cells(&cells, Machine::Paper)?;
        let finding = figures(BACKGROUND, ours, self.note(Machine::Paper, more));
        let mut setups = Vec::new();
        for segments in SEGMENTS {
            setups.push(self.with_segments(segments, &cells)?);
        }
        Ok(finding.beside(setups).beside([self.sliced()?]))
    }

    /// The table with the slices that cfq had later.
    fn sliced(&self) -> Result<OtherSetup, Failure> {
        let sliced = |(row, streams): (AbissRow, usize)| match row.name() == SLICED.name() {
            true => (SLICED, streams),
            false => (row, streams),
        };
        let cells: Vec<_> = cells().map(sliced).collect();
        let ours = self.cells(&cells, Machine::Paper)?;
        let named: Vec<(&str, f64)> = ours.iter().map(|(name, of)| (name.as_str(), *of)).collect();
        Ok(OtherSetup::several(SLICES, &named))
    }

    /// The rate left to the background reader in a cell.
    fn left(&self, machine: Machine, row: AbissRow, streams: usize) -> Result<f64, Failure> {
        Ok(self.of(row.run(machine, streams))?.background_rate())
    }
}

/// A finding of named figures.
pub fn figures(id: &'static str, named: Vec<(String, f64)>, note: String) -> Finding {
    let ours = named.into_iter().map(|(name, value)| MeasuredFigure {
        name: Some(name),
        value,
    });
    Finding {
        grounds: Grounds::default(),
        id,
        mode: Some(Label::InFirmware),
        ours: ours.collect(),
        shape: None,
        note,
    }
}

/// The note of a finding: effort, machine, circumstances.
pub fn note(effort: Effort, machine: Machine, more: &str) -> String {
    let remark = match effort {
        Effort::Full => "",
        Effort::Quick | Effort::Requests(_) => "SHORT RUNS; ",
    };
    format!("{remark}{machine}; {more}")
}

/// ABISS, Table 1: batches in pages, numbers of streams.
pub const PAGES: [u64; 5] = [10, 20, 40, 80, 160];
pub const STREAMS: [usize; 2] = [1, 4];

/// The rows in the paper's order.
const ROWS: [AbissRow; 10] = [
    AbissRow::Batch(10),
    AbissRow::Batch(20),
    AbissRow::Batch(40),
    AbissRow::Batch(80),
    AbissRow::Batch(160),
    AbissRow::Elevator("abiss_be", "fcfs"),
    AbissRow::Elevator("anticipatory", "anticipatory"),
    AbissRow::Elevator("deadline", "deadline"),
    AbissRow::Elevator("cfq", "cfq-like1"),
    AbissRow::Elevator("noop", "fcfs"),
];

/// CFQ with slices of 100 ms, in which the disk idles: Linux 2.6.13 and later, of August 2005. The paper is of 2004, when CFQ took
/// requests of all processes in turns, as cfq-like does with turns of 1 ms.
const SLICED: AbissRow = AbissRow::Elevator("cfq", "cfq-like");

/// The batch of Figure 18 (ABISS), in pages.
const FIGURE_18: u64 = 20;

/// The setup of cfq with slices.
const SLICES: &str = "cfq with slices of 100 ms, as from Linux 2.6.13 on";

/// Shortest of the longest waits at best effort, in milliseconds: 15 % below the paper's 1,000.
const LEAST_WAIT: f64 = 850.0;

/// Read-ahead of the background reader, in kB (`specs/streams.md`).
const READ_AHEAD_KB: u64 = 128;
