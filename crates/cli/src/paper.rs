//! `headtime paper`: measures papers' claims again, and prints their figures beside ours.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use clap::Args;
use lab::claims::{self, Paper};
use lab::paper::{
    ClaimVerdict, Effort, JudgedFinding, LEAST_REQUESTS, MeasuredFigure, PaperSettings, Results,
    Selection, Table, measured_claims, note, rounded, written,
};
use lab::plot;

use crate::bar::Bar;
use crate::output::{Exit, json, print, write_beside};

/// The arguments of `headtime paper`.
#[derive(Debug, Args)]
#[command(after_help = examples())]
pub struct PaperArgs {
    /// The paper
    #[arg(value_name = "PAPER")]
    paper: String,
    /// Only these claims, or those with this prefix: fb.latency-share
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Use a tenth of the requests, and only the start of scans: for a first look
    #[arg(long, conflicts_with = "requests")]
    quick: bool,
    /// Number of requests in each run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(LEAST_REQUESTS..))]
    requests: Option<u64>,
    /// Other readings of PFC's ambiguities: a1=rm,a4=veto
    #[arg(
        long,
        value_name = "KEY=WORD,..",
        default_value = "",
        hide_default_value = true
    )]
    readings: String,
    /// Another seed of PFC's calibrated loads; the results have 2
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
    /// Draw the paper's figures into this folder: an SVG and a PNG for each
    #[arg(long, value_name = "FOLDER")]
    svg_dir: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// If there is no such paper or claim, or the output cannot be written.
pub fn run(arguments: &PaperArgs) -> Result<(), Exit> {
    let selection = Selection::new(&arguments.settings())?;
    if let Some(folder) = &arguments.svg_dir {
        // A folder that cannot be created is an error before the measurement.
        let made = fs::create_dir_all(folder);
        made.map_err(|error| Exit::input(format!("{}: {error}", folder.display())))?;
    }
    let bar = Bar::new("{bar:40} {pos} of {len} runs  {msg}");
    let results = selection.measure(&bar)?;
    bar.finish();
    if let Some(folder) = &arguments.svg_dir {
        for drawing in &results.drawings {
            write_beside(folder, drawing.name, &plot::page(&drawing.panels))?;
        }
    }
    match arguments.json {
        true => print(&json(&results.rows())?),
        false => print(&text(&results)),
    }
}

impl PaperArgs {
    fn settings(&self) -> PaperSettings {
        PaperSettings {
            paper: self.paper.clone(),
            ids: self.ids.clone(),
            effort: match (self.requests, self.quick) {
                (Some(requests), _) => Effort::Requests(requests),
                (None, true) => Effort::Quick,
                (None, false) => Effort::Full,
            },
            readings: self.readings.clone(),
            seed: self.seed,
        }
    }
}

/// The text below the help, made from the tables.
fn examples() -> String {
    let mut text = String::from(
        "Examples:
  headtime paper freeblock
  headtime paper freeblock fb.latency-share --quick
  headtime paper freeblock fb.prediction --svg-dir out/freeblock --json
  headtime paper freeblock-beyond
  headtime paper pfc --readings a1=rm --svg-dir out/pfc
  headtime paper pfc-beyond --quick
  headtime paper pfc-beyond --seed 6
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
    for id in measured_claims() {
        text.push_str(&format!("  {id}\n"));
    }
    text.push_str(
        "\nA number holds within 15 %, a table's cell within 20 % or if it is better (abiss: within 1 MB/s), a bound\n\
         if it is met or beaten, a shape by its check.\n\
         In-firmware (belief = truth) and external are rows of their own.",
    );
    text
}

/// The findings as text: a line for each figure, then the circumstances; further tables at the end.
fn text(results: &Results) -> String {
    let Paper {
        title,
        authors,
        venue,
        ..
    } = &results.paper;
    let mut text = format!("{title}\n{authors}, {venue}\n");
    if let Some(remark) = results.effort.remark() {
        let _ = writeln!(text, "{remark}");
    }
    for judged in &results.judged {
        text.push_str(&finding(judged));
    }
    let judged = &results.judged;
    let _ = writeln!(
        text,
        "\n{} of {} hold",
        count(judged, ClaimVerdict::Holds),
        judged.len()
    );
    let _ = writeln!(
        text,
        "{} differ, {} are not comparable",
        count(judged, ClaimVerdict::Differs),
        count(judged, ClaimVerdict::NotComparable)
    );
    for table in &results.tables {
        text.push('\n');
        text.push_str(&markdown(table));
    }
    text
}

fn count(all: &[JudgedFinding], verdict: ClaimVerdict) -> usize {
    let with = all.iter().filter(|judged| judged.verdict == verdict);
    with.count()
}

/// A finding: verdict, figures, other setups, reading, reason, circumstances.
fn finding(judged: &JudgedFinding) -> String {
    let JudgedFinding { claim, finding, .. } = judged;
    let mode = finding.mode.map_or("", |mode| mode.name());
    let verdict = match judged.verdict {
        ClaimVerdict::Holds => "holds",
        ClaimVerdict::Differs => "DIFFERS",
        ClaimVerdict::NotComparable => "NOT COMPARABLE",
    };
    let mut text = format!("\n{}  {mode}  {verdict}\n", claim.id);
    text.push_str(&wrapped(&format!("{}: {}", claim.place, claim.text)));
    let _ = writeln!(text, "  {:40}{:>12}{:>12}", "", "theirs", "ours");
    for figure in &finding.ours {
        let claimed = claim.figure(figure.name.as_deref());
        let unit = claimed.map_or("", |claimed| claimed.unit.as_str());
        let name = figure.name.as_deref().unwrap_or("");
        let theirs = claimed.map_or("-".to_owned(), |claimed| written(claimed.theirs));
        let ours = rounded(figure.value);
        let is_off = claimed.is_some_and(|claimed| !claimed.theirs.agrees(ours));
        // A shape is judged by its check, and a single figure by the verdict above.
        let is_told = is_off && claim.shape.is_none() && claim.figures.len() > 1;
        let off = if is_told { "  off" } else { "" };
        let _ = writeln!(text, "  {name:40}{theirs:>12}{ours:>12} {unit}{off}");
    }
    for (setup, verdict) in finding.grounds.setups.iter().zip(&judged.setups) {
        let figures: Vec<String> = setup.ours.iter().map(named).collect();
        let line = format!(
            "{}: {} ({})",
            verdict.name(),
            setup.name,
            figures.join(", ")
        );
        text.push_str(&wrapped(&line));
    }
    text.push_str(&wrapped(&format!("Reading: {}", judged.reading)));
    if let Some(reason) = &judged.reason {
        text.push_str(&wrapped(&format!("Reason: {reason}")));
    }
    text.push_str(&wrapped(&note(&finding.note, claim, Effort::Full)));
    text
}

fn named(figure: &MeasuredFigure) -> String {
    let value = rounded(figure.value);
    match &figure.name {
        None => format!("{value}"),
        Some(name) => format!("{name} {value}"),
    }
}

/// A table as Markdown.
fn markdown(table: &Table) -> String {
    let row = |cells: &[&str]| {
        let cells = cells.iter().map(|cell| match cell.is_empty() {
            true => " |".to_owned(),
            false => format!(" {cell} |"),
        });
        format!("|{}\n", cells.collect::<String>())
    };
    let mut text = format!("{}\n\n{}|", table.title, row(&table.columns));
    for place in 0..table.columns.len() {
        text.push_str(match place < table.words {
            true => "---|",
            false => "--:|",
        });
    }
    text.push('\n');
    for cells in &table.rows {
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        text.push_str(&row(&cells));
    }
    if let Some(summary) = &table.summary {
        let _ = write!(text, "\n{summary}\n");
    }
    text
}

/// Wraps a text for a terminal, indented by two blanks.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut line = String::from(" ");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > LINE {
            lines.push_str(&line);
            lines.push('\n');
            line = String::from(" ");
        }
        line.push(' ');
        line.push_str(word);
    }
    lines + &line + "\n"
}

/// The width of a line. A choice.
const LINE: usize = 110;
