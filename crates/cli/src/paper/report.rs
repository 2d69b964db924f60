//! Findings as text for people, and as JSON.

use std::fmt::Write as _;

use lab::claims::{Claim, Paper, Theirs};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Extent;
use super::finding::{Judged, Measured, rounded, written};
use crate::output::Failure;

/// A finding, as JSON has it.
#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    mode: Option<&'static str>,
    theirs: Value,
    ours: Value,
    unit: String,
    holds: bool,
    note: String,
}

/// The findings as an array.
///
/// # Errors
/// If they cannot be written as JSON.
pub fn json(judged: &[Judged<'_>], extent: Extent) -> Result<String, Failure> {
    let rows: Vec<Row<'_>> = judged
        .iter()
        .map(
            |Judged {
                 claim,
                 finding,
                 holds,
             }| Row {
                id: &claim.id,
                mode: finding.mode.map(|mode| mode.name()),
                theirs: theirs(claim),
                ours: ours(&finding.ours),
                unit: claim.unit(),
                holds: *holds,
                note: note(&finding.note, claim, extent),
            },
        )
        .collect();
    let mut text = serde_json::to_string_pretty(&rows).map_err(Failure::failed)?;
    text.push('\n');
    Ok(text)
}

/// A number, or an object of numbers.
fn theirs(claim: &Claim) -> Value {
    let mut all = Map::new();
    for figure in &claim.figures {
        let name = figure.name.as_deref();
        let end = |end: &str| name.map_or(end.to_owned(), |name| format!("{name}_{end}"));
        match (figure.theirs, name) {
            (Theirs::Range(low, high), _) => {
                all.insert(end("low"), json!(low));
                all.insert(end("high"), json!(high));
            }
            (
                Theirs::Exact(value)
                | Theirs::AtLeast(value)
                | Theirs::AtMost(value)
                | Theirs::Within(value, _)
                | Theirs::Lower(value)
                | Theirs::Higher(value),
                name,
            ) => match name {
                None => return json!(value),
                Some(name) => {
                    all.insert(name.to_owned(), json!(value));
                }
            },
        }
    }
    Value::Object(all)
}

fn ours(measured: &[Measured]) -> Value {
    let mut all = Map::new();
    for figure in measured {
        match &figure.name {
            None => return json!(rounded(figure.value)),
            Some(name) => all.insert(name.clone(), json!(rounded(figure.value))),
        };
    }
    Value::Object(all)
}

fn note(note: &str, claim: &Claim, extent: Extent) -> String {
    let check = claim
        .shape
        .as_ref()
        .map(|check| format!("holds if {check}"));
    let parts = [extent.remark(), check, Some(note.to_owned())];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// The findings as a table: a line for every figure, and under them how they came about; then what was
/// tabulated besides.
pub fn table(paper: &Paper, judged: &[Judged<'_>], tables: &[String], extent: Extent) -> String {
    let Paper {
        title,
        authors,
        venue,
        ..
    } = paper;
    let mut text = format!("{title}\n{authors}, {venue}\n");
    if let Some(remark) = extent.remark() {
        let _ = writeln!(text, "{remark}");
    }
    for Judged {
        claim,
        finding,
        holds,
    } in judged
    {
        let mode = finding.mode.map_or("", |mode| mode.name());
        let verdict = if *holds { "holds" } else { "DOES NOT HOLD" };
        let _ = writeln!(text, "\n{}  {mode}  {verdict}", claim.id);
        text.push_str(&wrapped(&format!("{}: {}", claim.place, claim.text)));
        let _ = writeln!(text, "  {:40}{:>12}{:>12}", "", "theirs", "ours");
        for figure in &finding.ours {
            let claimed = claim.figure(figure.name.as_deref());
            let unit = claimed.map_or("", |claimed| claimed.unit.as_str());
            let name = figure.name.as_deref().unwrap_or("");
            let theirs = claimed.map_or("-".to_owned(), |claimed| written(claimed.theirs));
            let ours = rounded(figure.value);
            let is_off = claimed.is_some_and(|claimed| !claimed.theirs.agrees(ours));
            // What a check is about is judged by it, and one figure by the verdict above.
            let is_told = is_off && claim.shape.is_none() && claim.figures.len() > 1;
            let off = if is_told { "  off" } else { "" };
            let _ = writeln!(text, "  {name:40}{theirs:>12}{ours:>12} {unit}{off}");
        }
        text.push_str(&wrapped(&note(&finding.note, claim, Extent::Full)));
    }
    let good = judged.iter().filter(|judged| judged.holds).count();
    let _ = writeln!(text, "\n{good} of {} hold", judged.len());
    for table in tables {
        let _ = write!(text, "\n{table}");
    }
    text
}

/// Text in lines that fit a terminal, two blanks in front of each.
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

/// The width of a line. A choice: that of our texts.
const LINE: usize = 110;
