//! `headtime paper`: what papers claim, measured again, theirs beside ours.
//!
//! ```text
//!   claims/freeblock.toml --- claim ---.
//!                                       >-- judged --> table | JSON
//!   a measurement of ALL --- finding --'
//!            '------------- drawings ----------------> --svg-dir
//! ```
//!
//! A measurement is a file here and a line in [`ALL`]: which claims it answers, and how.

mod abiss;
mod abiss_beyond;
mod beyond;
mod cpu;
mod depth;
mod finding;
mod free;
mod head_times;
mod latency_share;
mod pfc;
mod pfc_beyond;
mod prediction;
mod report;
mod scene;
mod serving;
mod trial;
mod virtual_io;
mod virtual_io_beyond;
mod way;

use std::fs;
use std::path::PathBuf;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::claims::{self, Paper};
use lab::plot::{self, Panel};

use crate::output::{Failure, NewFile, print, unknown};
use finding::{Finding, Judged};

/// How to call it.
#[derive(Debug, Args)]
#[command(after_help = examples())]
pub struct Arguments {
    /// The paper
    #[arg(value_name = "PAPER")]
    paper: String,
    /// Only these claims, or those that begin so: fb.latency-share
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// With a tenth of the requests, and only the start of scans: for a look, not for a result
    #[arg(long, conflicts_with = "requests")]
    quick: bool,
    /// With so many requests in each run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(LEAST_REQUESTS..))]
    requests: Option<u64>,
    /// PFC's ambiguities, read in another way: a1=rm,a4=veto
    #[arg(
        long,
        value_name = "KEY=WORD,..",
        default_value = "",
        hide_default_value = true
    )]
    readings: String,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
    /// Draw the paper's figures, a file for each
    #[arg(long, value_name = "FOLDER")]
    svg_dir: Option<PathBuf>,
}

/// Some of a paper's claims, and how they are measured.
pub struct Measurement {
    /// What it is called while it runs.
    what: &'static str,
    /// The claims that it answers.
    claims: &'static [&'static str],
    /// Measures.
    run: fn(&Bench) -> Result<Found, Failure>,
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
    virtual_io::MEASUREMENT,
    virtual_io_beyond::MEASUREMENT,
    virtual_io_beyond::modern::MEASUREMENT,
    abiss::MEASUREMENT,
    abiss_beyond::MEASUREMENT,
    abiss_beyond::greedy::MEASUREMENT,
];

/// What a measurement comes back with.
#[derive(Debug, Default)]
pub struct Found {
    findings: Vec<Finding>,
    drawings: Vec<Drawing>,
    /// What stands under the findings where they are printed for people.
    tables: Vec<String>,
}

/// A figure of the paper, drawn with our values.
#[derive(Debug)]
pub struct Drawing {
    /// The file's name, without its ending.
    name: &'static str,
    panels: Vec<Panel>,
}

/// Where measurements are made: how long they may take, and who watches.
pub struct Bench {
    extent: Extent,
    /// How PFC's ambiguities are read, where not as usual.
    readings: String,
    bar: ProgressBar,
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// As much as the figures need.
    Full,
    /// A tenth of it.
    Quick,
    /// So many requests in each run.
    Requests(u64),
}

/// Runs the command.
///
/// # Errors
/// If there is no such paper or claim, or the output cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let paper = paper(&arguments.paper)?;
    let wanted = wanted(&paper, &arguments.ids)?;
    let extent = arguments.extent();
    if let Some(folder) = &arguments.svg_dir {
        // What cannot be written to is better known before than after.
        let made = fs::create_dir_all(folder);
        made.map_err(|error| Failure::input(format!("{}: {error}", folder.display())))?;
    }
    if !arguments.readings.is_empty() && paper.name != "pfc" {
        let name = &paper.name;
        let problem = format!("--readings: {name} has no ambiguities; expected paper pfc");
        return Err(Failure::input(problem));
    }
    let bench = Bench::new(extent, &arguments.readings);
    let (mut findings, mut drawings, mut tables) = (Vec::new(), Vec::new(), Vec::new());
    for measurement in ALL {
        if measurement.claims.iter().any(|id| wanted.contains(id)) {
            bench.bar.set_message(measurement.what);
            let found = (measurement.run)(&bench)?;
            findings.extend(found.findings);
            drawings.extend(found.drawings);
            tables.extend(found.tables);
        }
    }
    bench.bar.finish_and_clear();
    let judged = findings
        .into_iter()
        .filter(|finding| wanted.contains(&finding.id))
        .map(|finding| judge(&paper, finding))
        .collect::<Result<Vec<_>, _>>()?;
    if let Some(folder) = &arguments.svg_dir {
        for drawing in &drawings {
            let file = NewFile::begin(&folder.join(format!("{}.svg", drawing.name)))?;
            file.write(&plot::page(&drawing.panels))?;
        }
    }
    match arguments.json {
        true => print(&report::json(&judged, extent)?),
        false => print(&report::table(&paper, &judged, &tables, extent)),
    }
}

impl Arguments {
    fn extent(&self) -> Extent {
        match (self.requests, self.quick) {
            (Some(requests), _) => Extent::Requests(requests),
            (None, true) => Extent::Quick,
            (None, false) => Extent::Full,
        }
    }
}

impl Bench {
    fn new(extent: Extent, readings: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(10));
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos} of {len} runs  {msg}") {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        Bench {
            extent,
            readings: readings.to_owned(),
            bar,
        }
    }

    /// How many requests there are in a run that has so many when nobody is in a hurry.
    fn requests(&self, full: u64) -> u64 {
        match self.extent {
            Extent::Full => full,
            Extent::Quick => (full / 10).max(LEAST_REQUESTS),
            Extent::Requests(requests) => requests,
        }
    }

    /// So many runs are to come.
    fn expect(&self, runs: usize) {
        self.bar.inc_length(runs as u64);
    }

    /// One of them is over.
    fn done(&self) {
        self.bar.inc(1);
    }
}

impl Found {
    /// Figures without a drawing.
    fn figures(findings: Vec<Finding>) -> Self {
        Found {
            findings,
            ..Found::default()
        }
    }
}

impl Extent {
    /// What a reader of quick figures has to be told.
    fn remark(self) -> Option<String> {
        match self {
            Extent::Full => None,
            Extent::Quick => Some("quick: a tenth of the requests".to_owned()),
            Extent::Requests(requests) => Some(format!("{requests} requests in each run")),
        }
    }
}

fn paper(name: &str) -> Result<Paper, Failure> {
    let built_in = claims::ALL
        .iter()
        .find(|paper| paper.name == name)
        .ok_or_else(|| {
            let names: Vec<&str> = claims::ALL.iter().map(|paper| paper.name).collect();
            unknown("paper", name, &names)
        })?;
    built_in.paper().map_err(Failure::failed)
}

/// The ids of the claims that are asked for and measured: all of the paper's if none is named.
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
            return Err(unknown("measured claim", asked, &of_paper));
        }
    }
    Ok(wanted)
}

fn judge(paper: &Paper, finding: Finding) -> Result<Judged<'_>, Failure> {
    let claim = paper.claim(finding.id);
    let claim = claim.ok_or_else(|| {
        let (id, paper) = (finding.id, &paper.name);
        Failure::failed(format!("{id} was measured, which is no claim of {paper}"))
    })?;
    finding.judge(claim)
}

/// What stands under the help.
fn examples() -> String {
    let mut text = String::from(
        "Examples:
  headtime paper freeblock
  headtime paper freeblock fb.latency-share --quick
  headtime paper freeblock fb.prediction --svg-dir out/freeblock --json
  headtime paper freeblock-beyond
  headtime paper pfc --readings a1=rm --svg-dir out/pfc
  headtime paper pfc-beyond --quick
  headtime paper virtual-io vio.table1 --svg-dir out/virtual-io
  headtime paper abiss abiss.background --svg-dir out/abiss

Papers:\n",
    );
    for built_in in claims::ALL {
        if let Ok(paper) = built_in.paper() {
            let Paper {
                title,
                authors,
                venue,
                ..
            } = paper;
            text.push_str(&format!(
                "  {}: {authors}: {title}. {venue}\n",
                built_in.name
            ));
        }
    }
    text.push_str("\nClaims that are measured:\n");
    for id in ALL.iter().flat_map(|measurement| measurement.claims) {
        text.push_str(&format!("  {id}\n"));
    }
    text.push_str(
        "\nA number holds within 15 %, a table's cell within 20 % or if it is better (abiss: within 1 MB/s), a bound\n\
         if it is met or beaten, a shape by its check.\n\
         In-firmware (belief = truth) and external are rows of their own.",
    );
    text
}

/// Fewer say nothing at all. A choice.
const LEAST_REQUESTS: u64 = 100;

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
