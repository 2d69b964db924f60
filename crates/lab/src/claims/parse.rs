//! From the text of a claims file to a paper.

use std::collections::BTreeSet;

use super::{Claim, Figure, Paper, Theirs};
use simulator::workload::SpecError;
use simulator::workload::section::{self, Origin, Section};

impl Paper {
    /// The paper that `text` describes; `file` is its name in complaints.
    ///
    /// # Errors
    /// If it is not TOML, a key is missing, unknown, or has a value that makes no sense.
    pub fn parse(file: &str, text: &str) -> Result<Paper, SpecError> {
        let mut origin = Origin::new(file);
        let document = section::parse(&origin, text)?;
        let mut root = Section::root(text, document.as_table());
        let mut word = |root: &mut Section<'_>, key, what| root.text(&mut origin, key, None, what);
        let name = word(&mut root, "paper", "the name of the paper")?;
        let title = word(&mut root, "title", "the title of the paper")?;
        let authors = word(&mut root, "authors", "whose it is")?;
        let venue = word(&mut root, "venue", "where and when it appeared")?;
        let from = word(&mut root, "origin", "how its figures came here")?;
        let mut claims = Vec::new();
        let mut ids = BTreeSet::new();
        for section in root.tables(&mut origin, "claim")? {
            let claim = read_claim(&mut origin, section)?;
            if !ids.insert(claim.id.clone()) {
                let problem = format!("\"{}\" is there twice: expected each once", claim.id);
                return Err(origin.complain("claim.id", problem));
            }
            claims.push(claim);
        }
        root.finish(&origin)?;
        Ok(Paper {
            name,
            title,
            authors,
            venue,
            origin: from,
            claims,
        })
    }
}

fn read_claim(origin: &mut Origin, mut from: Section<'_>) -> Result<Claim, SpecError> {
    from.begin(origin);
    let id = from.text(origin, "id", None, "the name of the claim")?;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    if id.is_empty() || !id.chars().all(is_name) {
        let problem = format!("\"{id}\": expected lower-case letters, digits, hyphens and dots");
        return Err(origin.complain("claim.id", problem));
    }
    let place = from.text(origin, "where", None, "the place in the paper")?;
    let text = from.text(origin, "text", None, "what was measured")?;
    let shape = from.text(origin, "shape", Some(String::new()), "the check of a shape")?;
    let shape = (!shape.is_empty()).then_some(shape);
    let figures = match (from.has("figures"), &shape) {
        (false, Some(_)) => Vec::new(),
        _ => read_figures(origin, &mut from)?,
    };
    from.finish(origin)?;
    Ok(Claim {
        id,
        place,
        text,
        figures,
        shape,
    })
}

fn read_figures(origin: &mut Origin, from: &mut Section<'_>) -> Result<Vec<Figure>, SpecError> {
    let expected = "a list such as [{ value = 33, unit = \"%\" }]";
    let mut figures: Vec<Figure> = Vec::new();
    let sections = from.list(origin, "figures", expected)?;
    if sections.is_empty() {
        return Err(origin.complain("claim.figures", format!("empty: expected {expected}")));
    }
    let alone = sections.len() == 1;
    for mut section in sections {
        section.begin(origin);
        let name = match alone && !section.has("name") {
            true => None,
            false => Some(section.text(origin, "name", None, "what tells it from the others")?),
        };
        if figures.iter().any(|other| other.name == name) {
            let problem = "the name of another figure, too: expected each once";
            return Err(origin.complain("claim.figures.name", problem));
        }
        let theirs = read_theirs(origin, &mut section)?;
        let unit = section.text(origin, "unit", None, "a unit, such as \"%\"")?;
        section.finish(origin)?;
        figures.push(Figure { name, unit, theirs });
    }
    Ok(figures)
}

fn read_theirs(origin: &mut Origin, from: &mut Section<'_>) -> Result<Theirs, SpecError> {
    let kinds = ["value", "low", "at_least", "at_most"];
    let mut there = kinds.into_iter().filter(|key| from.has(key));
    let kind = there.next();
    if there.next().is_some() {
        let problem = format!("more than one of {}: expected one", kinds.join(", "));
        return Err(origin.complain("claim.figures", problem));
    }
    let mut number = |key| {
        let number = from.number(origin, key, None, NUMBER)?;
        match number.is_finite() {
            true => Ok(number),
            false => {
                let problem = format!("{number}: expected {NUMBER}");
                Err(origin.complain(&format!("claim.figures.{key}"), problem))
            }
        }
    };
    match kind {
        Some("at_least") => number("at_least").map(Theirs::AtLeast),
        Some("at_most") => number("at_most").map(Theirs::AtMost),
        Some("low") => {
            let (low, high) = (number("low")?, number("high")?);
            if low > high {
                let problem = format!("{low}: expected at most high, {high}");
                return Err(origin.complain("claim.figures.low", problem));
            }
            Ok(Theirs::Range(low, high))
        }
        _ => {
            let value = number("value")?;
            match (from.has("better"), from.has("within")) {
                (true, _) => read_cell(origin, from, value),
                (false, true) => read_distance(origin, from, value),
                (false, false) => Ok(Theirs::Exact(value)),
            }
        }
    }
}

/// A cell of a table, which says which way is better.
fn read_cell(origin: &mut Origin, from: &mut Section<'_>, value: f64) -> Result<Theirs, SpecError> {
    let expected = "\"lower\" or \"higher\"";
    match from.text(origin, "better", None, expected)?.as_str() {
        "lower" => Ok(Theirs::Lower(value)),
        "higher" => Ok(Theirs::Higher(value)),
        other => {
            let problem = format!("\"{other}\": expected {expected}");
            Err(origin.complain("claim.figures.better", problem))
        }
    }
}

/// A number with what its goal allows.
fn read_distance(
    origin: &mut Origin,
    from: &mut Section<'_>,
    value: f64,
) -> Result<Theirs, SpecError> {
    let expected = "how far ours may be from the value, more than 0";
    let within = from.number(origin, "within", None, expected)?;
    match within > 0.0 && within.is_finite() {
        true => Ok(Theirs::Within(value, within)),
        false => {
            let problem = format!("{within}: expected {expected}");
            Err(origin.complain("claim.figures.within", problem))
        }
    }
}

/// What a figure has to be.
const NUMBER: &str = "a number (of value, low and high, at_least, or at_most)";
