//! Findings as rows of a typed table.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Effort;
use super::finding::{JudgedFinding, MeasuredFigure, rounded};
use super::grounds::ClaimVerdict;
use crate::claims::{Claim, Theirs};

/// A finding beside its claim, as a row of the JSON.
#[derive(Debug, Serialize)]
pub struct FindingRow<'a> {
    id: &'a str,
    mode: Option<&'static str>,
    theirs: Value,
    ours: Value,
    unit: String,
    verdict: &'static str,
    holds: bool,
    reading: &'a str,
    reason: Option<&'a str>,
    setups: Vec<SetupRow<'a>>,
    note: String,
}

/// The same figures in another setup.
#[derive(Debug, Serialize)]
struct SetupRow<'a> {
    setup: &'a str,
    ours: Value,
    holds: bool,
}

impl<'a> FindingRow<'a> {
    /// The row of a judged finding.
    pub fn new(judged: &'a JudgedFinding, effort: Effort) -> Self {
        let JudgedFinding {
            claim,
            finding,
            verdict,
            reading,
            reason,
            setups,
        } = judged;
        let others = finding.grounds.setups.iter().zip(setups);
        FindingRow {
            id: &claim.id,
            mode: finding.mode.map(|mode| mode.name()),
            theirs: theirs(claim),
            ours: ours(&finding.ours),
            unit: claim.unit(),
            verdict: verdict.name(),
            holds: *verdict == ClaimVerdict::Holds,
            reading,
            reason: reason.as_deref(),
            setups: others
                .map(|(setup, verdict)| SetupRow {
                    setup: &setup.name,
                    ours: ours(&setup.ours),
                    holds: *verdict == ClaimVerdict::Holds,
                })
                .collect(),
            note: note(&finding.note, claim, effort),
        }
    }
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

fn ours(measured: &[MeasuredFigure]) -> Value {
    let mut all = Map::new();
    for figure in measured {
        match &figure.name {
            None => return json!(rounded(figure.value)),
            Some(name) => all.insert(name.clone(), json!(rounded(figure.value))),
        };
    }
    Value::Object(all)
}

/// The note of a finding: effort, the shape's check, the circumstances.
pub fn note(note: &str, claim: &Claim, effort: Effort) -> String {
    let check = claim
        .shape
        .as_ref()
        .map(|check| format!("holds if {check}"));
    let parts = [effort.remark(), check, Some(note.to_owned())];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}
