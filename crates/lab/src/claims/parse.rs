//! From the text of a claims file to a paper.

use std::collections::BTreeSet;

use document::{Document, DocumentError, Section};

use super::{Claim, Figure, Paper, Theirs};

impl Paper {
    /// The paper that `text` describes; `file` is its name in errors.
    ///
    /// # Errors
    /// If it is not TOML, a key is missing, unknown, or has a value that makes no sense.
    pub fn parse(file: &str, text: &str) -> Result<Paper, DocumentError> {
        let document = Document::parse(file, text)?;
        let root = document.root();
        root.only(&["paper", "title", "authors", "venue", "origin", "claim"])?;
        let word = |key, expected| root.text(key, expected).map(str::to_owned);
        let paper = Paper {
            name: word("paper", "the name of the paper")?,
            title: word("title", "the title of the paper")?,
            authors: word("authors", "the names of the authors")?,
            venue: word("venue", "where and when it appeared")?,
            origin: word("origin", "how its figures came here")?,
            claims: Vec::new(),
        };
        let expected = "tables [[claim]]";
        let mut claims = Vec::new();
        let mut ids = BTreeSet::new();
        for section in root.need("claim", expected)?.sections(expected)? {
            let claim = read_claim(&section)?;
            if !ids.insert(claim.id.clone()) {
                let problem = format!("\"{}\" is there twice: expected each once", claim.id);
                return Err(at(&section, "id", &problem));
            }
            claims.push(claim);
        }
        Ok(Paper { claims, ..paper })
    }
}

/// An error about the value of a key.
fn at(section: &Section<'_>, key: &str, problem: &str) -> DocumentError {
    match section.get(key) {
        Some(field) => field.error(problem),
        None => section.error(problem),
    }
}

fn read_claim(from: &Section<'_>) -> Result<Claim, DocumentError> {
    from.only(&["id", "where", "text", "shape", "figures"])?;
    let id = from.text("id", "the name of the claim")?;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    if id.is_empty() || !id.chars().all(is_name) {
        let problem = format!("\"{id}\": expected lower-case letters, digits, hyphens and dots");
        return Err(at(from, "id", &problem));
    }
    let shape = match from.has("shape") {
        true => from.text("shape", "the check of a shape")?,
        false => "",
    };
    let shape = (!shape.is_empty()).then(|| shape.to_owned());
    Ok(Claim {
        id: id.to_owned(),
        place: from.text("where", "the place in the paper")?.to_owned(),
        text: from.text("text", "the measurement")?.to_owned(),
        figures: match shape.is_some() && !from.has("figures") {
            true => Vec::new(),
            false => read_figures(from)?,
        },
        shape,
    })
}

fn read_figures(claim: &Section<'_>) -> Result<Vec<Figure>, DocumentError> {
    let expected = "a list such as [{ value = 33, unit = \"%\" }]";
    let field = claim.need("figures", expected)?;
    let sections = field.sections(expected)?;
    if sections.is_empty() {
        return Err(field.error(format!("empty: expected {expected}")));
    }
    let alone = sections.len() == 1;
    let mut figures: Vec<Figure> = Vec::new();
    for section in &sections {
        let name = match alone && !section.has("name") {
            true => None,
            false => Some(
                section
                    .text("name", "a name that no other figure has")?
                    .to_owned(),
            ),
        };
        if figures.iter().any(|other| other.name == name) {
            let problem = "the name of another figure, too: expected each once";
            return Err(at(section, "name", problem));
        }
        let theirs = read_theirs(section)?;
        let unit = section.text("unit", "a unit, such as \"%\"")?.to_owned();
        figures.push(Figure { name, unit, theirs });
    }
    Ok(figures)
}

fn read_theirs(from: &Section<'_>) -> Result<Theirs, DocumentError> {
    from.only(&[
        "name", "unit", "value", "low", "high", "at_least", "at_most", "better", "within",
    ])?;
    let kinds = ["value", "low", "at_least", "at_most"];
    let mut there = kinds.into_iter().filter(|key| from.has(key));
    let kind = there.next();
    if there.next().is_some() {
        let problem = format!("more than one of {}: expected one", kinds.join(", "));
        return Err(from.error(problem));
    }
    let only = |keys: &[&str]| from.only(&[&["name", "unit"], keys].concat());
    let number = |key| from.number(key, NUMBER);
    match kind {
        Some("at_least") => {
            only(&["at_least"])?;
            number("at_least").map(Theirs::AtLeast)
        }
        Some("at_most") => {
            only(&["at_most"])?;
            number("at_most").map(Theirs::AtMost)
        }
        Some("low") => {
            only(&["low", "high"])?;
            let (low, high) = (number("low")?, number("high")?);
            if low > high {
                let problem = format!("{low}: expected at most high, {high}");
                return Err(at(from, "low", &problem));
            }
            Ok(Theirs::Range(low, high))
        }
        _ => {
            let value = number("value")?;
            match (from.get("better"), from.get("within")) {
                (Some(better), _) => {
                    only(&["value", "better"])?;
                    match better.as_text() {
                        Some("lower") => Ok(Theirs::Lower(value)),
                        Some("higher") => Ok(Theirs::Higher(value)),
                        _ => Err(better.mismatch("\"lower\" or \"higher\"")),
                    }
                }
                (None, Some(within)) => {
                    only(&["value", "within"])?;
                    let expected = "how far ours may be from the value, more than 0";
                    let within = within.number(f64::MIN_POSITIVE..=f64::MAX, expected)?;
                    Ok(Theirs::Within(value, within))
                }
                (None, None) => {
                    only(&["value"])?;
                    Ok(Theirs::Exact(value))
                }
            }
        }
    }
}

/// The values of a figure.
const NUMBER: &str = "a number (of value, low and high, at_least, or at_most)";
