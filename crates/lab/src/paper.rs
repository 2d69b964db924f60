//! Measures the claims of papers again, and compares.
//!
//! ```text
//!   claims/freeblock.toml --- claim ---.
//!                                       >-- judged --> Results
//!   a measurement of ALL --- finding --'
//!            '------------- drawings ----------------> --svg-dir
//! ```
//!
//! A measurement is a file here and a line in `ALL`. It names its claims.

mod abiss;
mod abiss_beyond;
mod atlas;
mod beyond;
mod cpu;
mod delivery;
mod depth;
mod figure;
mod finding;
mod free;
mod grounds;
mod head_times;
mod latency_share;
mod pfc;
mod pfc_beyond;
mod prediction;
mod report;
mod scene;
mod serving;
mod table;
mod trial;
mod virtual_io;
mod virtual_io_beyond;

use crate::claims::{self, Paper};
use crate::plot::Panel;
use crate::{Failure, Progress};

pub use finding::{Finding, JudgedFinding, MeasuredFigure, ShapeVerdict, rounded, written};
pub use grounds::{ClaimVerdict, Grounds, OtherSetup};
pub use report::{FindingRow, note};
pub use table::Table;

/// The selection of claims, and the settings of their measurement.
#[derive(Clone, Debug)]
pub struct PaperSettings {
    /// The paper's name.
    pub paper: String,
    /// Only these claims, or those with these prefixes; all if empty.
    pub ids: Vec<String>,
    /// The effort.
    pub effort: Effort,
    /// Other readings of PFC's ambiguities: a1=rm,a4=veto.
    pub readings: String,
    /// Another seed of the calibrated loads of PFC.
    pub seed: Option<u64>,
}

/// The selected claims of a paper.
#[derive(Clone, Debug)]
pub struct Selection {
    paper: Paper,
    wanted: Vec<&'static str>,
    effort: Effort,
    readings: String,
    seed: u64,
}

/// The claims of a paper and our findings.
#[derive(Debug)]
pub struct Results {
    /// The paper.
    pub paper: Paper,
    /// The findings with their verdicts.
    pub judged: Vec<JudgedFinding>,
    /// The paper's figures with our values.
    pub drawings: Vec<Drawing>,
    /// Further tables.
    pub tables: Vec<Table>,
    /// The effort.
    pub effort: Effort,
}

/// A measurement of some of a paper's claims.
pub struct Measurement {
    /// The name in the progress.
    what: &'static str,
    /// The identifiers of its claims.
    claims: &'static [&'static str],
    /// Runs the measurement.
    run: fn(&PaperBench<'_>) -> Result<MeasurementOutcome, Failure>,
}

/// The measurements, in the order of their papers' claims.
const ALL: &[Measurement] = &[
    latency_share::MEASUREMENT,
    prediction::MEASUREMENT,
    depth::MEASUREMENT,
    cpu::MEASUREMENT,
    free::MEASUREMENT,
    beyond::MEASUREMENT,
    pfc::MEASUREMENT,
    pfc_beyond::MEASUREMENT,
    pfc_beyond::free_blocks::IN_FIRMWARE,
    pfc_beyond::free_blocks::EXTERNAL,
    virtual_io::example::MEASUREMENT,
    virtual_io::chunks::MEASUREMENT,
    virtual_io::ide::THROUGHPUT,
    virtual_io::ide::UTILISATION,
    virtual_io::MEASUREMENT,
    virtual_io_beyond::MEASUREMENT,
    virtual_io_beyond::modern::MEASUREMENT,
    abiss::MEASUREMENT,
    abiss_beyond::MEASUREMENT,
    abiss_beyond::greedy::MEASUREMENT,
];

/// The outcome of a measurement.
#[derive(Debug, Default)]
pub struct MeasurementOutcome {
    findings: Vec<Finding>,
    drawings: Vec<Drawing>,
    tables: Vec<Table>,
}

/// A figure of the paper, drawn with our values.
#[derive(Debug)]
pub struct Drawing {
    /// The file's name, without extension.
    pub name: &'static str,
    /// What is drawn.
    pub panels: Vec<Panel>,
}

/// The conditions of a measurement: effort, readings, seed, progress.
pub struct PaperBench<'a> {
    effort: Effort,
    /// Other readings of PFC's ambiguities.
    readings: &'a str,
    /// Seed of the calibrated loads of PFC.
    seed: u64,
    progress: &'a dyn Progress,
}

/// The effort of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// The requests that the figures need.
    Full,
    /// A tenth of the requests.
    Quick,
    /// A fixed number of requests in each run.
    Requests(u64),
}

impl Selection {
    /// Selects claims.
    ///
    /// # Errors
    /// If there is no such paper or claim, or the paper has no ambiguities for `readings` or no loads for `seed`.
    pub fn new(settings: &PaperSettings) -> Result<Selection, Failure> {
        let paper = paper(&settings.paper)?;
        let wanted = wanted(&paper, &settings.ids)?;
        if !settings.readings.is_empty() && paper.name != "pfc" {
            let name = &paper.name;
            let problem = format!("--readings: {name} has no ambiguities; expected paper pfc");
            return Err(Failure::input(problem));
        }
        if settings.seed.is_some() && !paper.name.starts_with("pfc") {
            let name = &paper.name;
            let problem =
                format!("--seed: {name} has seeds of its own; expected paper pfc or pfc-beyond");
            return Err(Failure::input(problem));
        }
        Ok(Selection {
            paper,
            wanted,
            effort: settings.effort,
            readings: settings.readings.clone(),
            seed: settings.seed.unwrap_or(pfc::loads::SEED),
        })
    }

    /// Measures the selected claims.
    ///
    /// # Errors
    /// If a measurement fails.
    pub fn measure(self, progress: &dyn Progress) -> Result<Results, Failure> {
        let bench = PaperBench {
            effort: self.effort,
            readings: &self.readings,
            seed: self.seed,
            progress,
        };
        let mut all = MeasurementOutcome::default();
        for measurement in ALL {
            if measurement.claims.iter().any(|id| self.wanted.contains(id)) {
                progress.begin(measurement.what);
                let found = (measurement.run)(&bench)?;
                all.findings.extend(found.findings);
                all.drawings.extend(found.drawings);
                all.tables.extend(found.tables);
            }
        }
        let judged = all
            .findings
            .into_iter()
            .filter(|finding| self.wanted.contains(&finding.id))
            .map(|finding| judge(&self.paper, finding))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Results {
            paper: self.paper,
            judged,
            drawings: all.drawings,
            tables: all.tables,
            effort: self.effort,
        })
    }
}

impl Results {
    /// The findings as a table.
    pub fn rows(&self) -> Vec<FindingRow<'_>> {
        self.judged
            .iter()
            .map(|judged| FindingRow::new(judged, self.effort))
            .collect()
    }
}

/// The identifiers of all measured claims.
pub fn measured_claims() -> impl Iterator<Item = &'static str> {
    ALL.iter()
        .flat_map(|measurement| measurement.claims)
        .copied()
}

impl PaperBench<'_> {
    /// The requests of a run that has `full` requests at full effort.
    fn requests(&self, full: u64) -> u64 {
        match self.effort {
            Effort::Full => full,
            Effort::Quick => (full / 10).max(LEAST_REQUESTS),
            Effort::Requests(requests) => requests,
        }
    }

    /// Announces runs to the progress.
    fn expect(&self, runs: usize) {
        self.progress.expect(runs as u64);
    }

    /// Reports a finished run to the progress.
    fn done(&self) {
        self.progress.advance(1);
    }
}

impl MeasurementOutcome {
    /// Findings without a drawing.
    fn figures(findings: Vec<Finding>) -> Self {
        MeasurementOutcome {
            findings,
            ..MeasurementOutcome::default()
        }
    }
}

impl Effort {
    /// The remark on restricted figures.
    pub fn remark(self) -> Option<String> {
        match self {
            Effort::Full => None,
            Effort::Quick => Some("quick: a tenth of the requests".to_owned()),
            Effort::Requests(requests) => Some(format!("{requests} requests in each run")),
        }
    }
}

fn paper(name: &str) -> Result<Paper, Failure> {
    let built_in = claims::ALL
        .iter()
        .find(|paper| paper.name == name)
        .ok_or_else(|| {
            let names: Vec<&str> = claims::ALL.iter().map(|paper| paper.name).collect();
            Failure::unknown("paper", name, &names)
        })?;
    built_in.paper().map_err(Failure::failed)
}

/// The identifiers of the selected claims: all measured ones of the paper if none is named.
fn wanted(paper: &Paper, ids: &[String]) -> Result<Vec<&'static str>, Failure> {
    let measured = || ALL.iter().flat_map(|measurement| measurement.claims);
    let of_paper: Vec<&'static str> = measured()
        .copied()
        .filter(|id| paper.claim(id).is_some())
        .collect();
    if ids.is_empty() {
        return Ok(of_paper);
    }
    let mut wanted = Vec::new();
    for asked in ids {
        let is_meant = |id: &&&str| {
            let rest = id.strip_prefix(asked.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let before = wanted.len();
        wanted.extend(of_paper.iter().filter(is_meant).copied());
        if wanted.len() == before {
            return Err(Failure::unknown("measured claim", asked, &of_paper));
        }
    }
    Ok(wanted)
}

fn judge(paper: &Paper, finding: Finding) -> Result<JudgedFinding, Failure> {
    let claim = paper.claim(finding.id);
    let claim = claim.ok_or_else(|| {
        let (id, paper) = (finding.id, &paper.name);
        Failure::failed(format!("{id} was measured, which is no claim of {paper}"))
    })?;
    finding.judge(claim)
}

/// Fewest requests of a run. A choice.
pub const LEAST_REQUESTS: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measured_claim_is_one_of_a_paper_and_is_measured_once() {
        let papers: Vec<Paper> = claims::ALL
            .iter()
            .map(|built_in| built_in.paper().expect("a good file"))
            .collect();
        let mut seen = Vec::new();
        for id in ALL.iter().flat_map(|measurement| measurement.claims) {
            assert!(papers.iter().any(|paper| paper.claim(id).is_some()), "{id}");
            assert!(!seen.contains(id), "{id} is measured twice");
            seen.push(*id);
        }
    }

    #[test]
    fn every_claim_of_a_paper_is_measured() {
        let measured: Vec<&str> = ALL.iter().flat_map(|one| one.claims).copied().collect();
        for built_in in claims::ALL {
            for claim in built_in.paper().expect("a good file").claims {
                assert!(measured.contains(&claim.id.as_str()), "{}", claim.id);
            }
        }
    }

    #[test]
    fn a_claim_is_asked_for_by_its_id_or_by_how_it_begins() {
        let paper = paper("freeblock").expect("built in");
        let asked = |ids: &[&str]| {
            let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
            wanted(&paper, &ids).map(|found| found.len())
        };
        let all = asked(&[]).expect("all");
        assert_eq!(asked(&["fb"]).ok(), Some(all));
        assert_eq!(asked(&["fb.latency-share"]).ok(), Some(5));
        assert_eq!(asked(&["fb.latency-share.sptf", "fb.sptf"]).ok(), Some(2));
        for wrong in ["fb.latency", "fb.", "", "fb.latency-share.sptf.x"] {
            assert!(asked(&[wrong]).is_err(), "{wrong}");
        }
    }
}
