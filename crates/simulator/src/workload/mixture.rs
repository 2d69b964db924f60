//! Concurrent loads, combined into one source of requests.
//!
//! ```toml
//! name = "urgent-beside-bulk"
//! [[part]]
//! name = "urgent"
//! class = "foreground"
//! [part.arrivals]               # and size and placement, as of a load that is alone
//! model = "open"
//! per_second = 10
//! [[part]]
//! name = "bulk"
//! ...
//! ```
//!
//! Each part has random streams of its own, so its requests do not depend on the other parts.

use std::collections::BTreeSet;
use std::fmt;

use block::{Finished, Instant};
use document::{Document, DocumentError};
use serde::Serialize;

use super::dice::Dice;
use super::origins::COMMAND_LINE;
use super::parse::Heading;
use super::{BuiltInWorkload, LARGEST_COUNT, Overrides, Synthetic, Workload, built_in};
use crate::load::{Arrival, Load, LoadError, LoadPart};

/// A combination of concurrent loads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mixture {
    /// The name of the mixture.
    pub name: String,
    /// A description in one sentence.
    #[serde(skip)]
    pub summary: String,
    /// The default seed; the seeds of the parts are derived from it.
    pub seed: u64,
    /// The loads, at least one, with distinct names.
    pub parts: Vec<Workload>,
}

/// The content of a load file.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadDescription {
    /// A single load.
    Alone(Box<Workload>),
    /// Several concurrent loads.
    Mixture(Mixture),
}

/// A mixture on a drive.
#[derive(Clone, Debug)]
pub struct MixedLoad {
    parts: Vec<MixtureSource>,
}

#[derive(Clone, Debug)]
struct MixtureSource {
    name: String,
    load: Synthetic,
    /// The next independent arrival, if it was read before its turn.
    ahead: Option<Arrival>,
    /// No independent arrivals are left.
    is_over: bool,
}

/// The built-in mixtures: one file each in `workloads/`, one line each here.
pub const MIXTURES: &[BuiltInWorkload] = &[built_in(
    "urgent-beside-bulk",
    include_str!("../../../../workloads/urgent-beside-bulk.toml"),
)];

impl BuiltInWorkload {
    /// The built-in mixture of this name, if there is one.
    pub fn find_mixture(name: &str) -> Option<&'static BuiltInWorkload> {
        MIXTURES.iter().find(|mixture| mixture.name == name)
    }

    /// Parses the file.
    ///
    /// # Errors
    /// Never for a built-in file: tests parse them all.
    pub fn described(&self) -> Result<LoadDescription, DocumentError> {
        LoadDescription::parse(&format!("workloads/{}.toml", self.name), self.text)
    }
}

impl LoadDescription {
    /// Parses `text`: a mixture if it has parts. `file` is the name for errors.
    ///
    /// # Errors
    /// If it is not TOML, a key is missing, unknown, or has a value that makes no sense.
    pub fn parse(file: &str, text: &str) -> Result<LoadDescription, DocumentError> {
        match Document::parse(file, text)?.root().has("part") {
            false => Workload::parse(file, text).map(|load| LoadDescription::Alone(Box::new(load))),
            true => Mixture::parse(file, text).map(LoadDescription::Mixture),
        }
    }
}

impl Mixture {
    /// Parses a mixture; `file` is the name for errors.
    ///
    /// # Errors
    /// If it is not TOML, a key is missing, unknown, or has a value that makes no sense.
    pub fn parse(file: &str, text: &str) -> Result<Mixture, DocumentError> {
        let document = Document::parse(file, text)?;
        let root = document.root();
        root.only(&["name", "summary", "seed", "part"])?;
        let Heading {
            name,
            summary,
            seed,
        } = Heading::read(&root)?;
        let expected = "tables [[part]]";
        let field = root.need("part", expected)?;
        let sections = field.sections(expected)?;
        if sections.len() > MOST_PARTS {
            let problem = format!("{} parts: expected at most {MOST_PARTS}", sections.len());
            return Err(field.error(problem));
        }
        let mut names = BTreeSet::new();
        let mut parts = Vec::new();
        for section in sections {
            section.only(&[
                "name",
                "class",
                "read_fraction",
                "arrivals",
                "size",
                "placement",
            ])?;
            let name = section.text("name", "a name that no other part has")?;
            if !names.insert(name) {
                let problem = format!("\"{name}\" is there twice: expected each once");
                let name = section.get("name").map(|name| name.error(&problem));
                return Err(name.unwrap_or_else(|| section.error(&problem)));
            }
            let heading = Heading {
                name: name.to_owned(),
                summary: String::new(),
                seed: 0,
            };
            parts.push(Workload::read(&section, heading)?);
        }
        let mixture = Mixture {
            name,
            summary,
            seed,
            parts,
        };
        Ok(mixture.seeded())
    }

    /// The mixture with the values of flags.
    ///
    /// # Errors
    /// If a flag other than the seed is set, since the part would be ambiguous.
    pub fn with(mut self, flags: &Overrides) -> Result<Mixture, DocumentError> {
        if let Some(flag) = flags.of_one_load() {
            let name = &self.name;
            let problem = format!(
                "{name} has several parts, and which of them is meant? Expected the values of \
                 parts in a file"
            );
            return Err(DocumentError::new(COMMAND_LINE, None, flag, &problem));
        }
        self.seed = flags.seed.unwrap_or(self.seed);
        Ok(self.seeded())
    }

    /// The mixture with the derived seeds of its parts.
    fn seeded(mut self) -> Mixture {
        let mut seeds = Dice::new(self.seed, PARTS);
        for part in &mut self.parts {
            part.seed = seeds.any();
        }
        self
    }
}

impl fmt::Display for Mixture {
    /// What its parts are, with all their numbers, in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, part) in self.parts.iter().enumerate() {
            let before = if place == 0 { "" } else { " | " };
            write!(f, "{before}{}: {part}", part.name)?;
        }
        Ok(())
    }
}

impl MixedLoad {
    /// `mixture` on a drive of `capacity` blocks.
    ///
    /// # Errors
    /// If a part does not fit the drive.
    pub fn new(mixture: &Mixture, block_bytes: u32, capacity: u64) -> Result<Self, DocumentError> {
        let source = |(place, part): (u32, &Workload)| {
            let load = Synthetic::new(part, block_bytes, capacity)?;
            Ok(MixtureSource {
                name: part.name.clone(),
                load: load.after_tasks(place * LARGEST_COUNT),
                ahead: None,
                is_over: false,
            })
        };
        let parts = (0..).zip(&mixture.parts).map(source);
        Ok(MixedLoad {
            parts: parts.collect::<Result<_, DocumentError>>()?,
        })
    }

    fn source(&mut self, part: LoadPart) -> &mut Synthetic {
        &mut self.parts[usize::from(part.0)].load
    }
}

impl Load for MixedLoad {
    fn next_arrival(&mut self) -> Result<Option<Arrival>, LoadError> {
        for source in &mut self.parts {
            if source.ahead.is_none() && !source.is_over {
                source.ahead = source.load.next_arrival()?;
                source.is_over = source.ahead.is_none();
            }
        }
        let places = (0u16..).zip(&mut self.parts);
        let ahead = places.filter(|(_, source)| source.ahead.is_some());
        // Of those at the same time, the one of the part that stands first in the file.
        let first = ahead.min_by_key(|(_, source)| source.ahead.map(|arrival| arrival.at));
        Ok(first.and_then(|(place, source)| of(LoadPart(place), source.ahead.take())))
    }

    fn on_finished(
        &mut self,
        now: Instant,
        part: LoadPart,
        finished: &Finished,
    ) -> Result<Option<Arrival>, LoadError> {
        let next = self
            .source(part)
            .on_finished(now, LoadPart::ONLY, finished)?;
        Ok(of(part, next))
    }

    fn on_skipped(
        &mut self,
        now: Instant,
        arrival: &Arrival,
    ) -> Result<Option<Arrival>, LoadError> {
        let part = arrival.demand.part;
        let next = self.source(part).on_skipped(now, arrival)?;
        Ok(of(part, next))
    }

    fn parts(&self) -> Vec<String> {
        let names = self.parts.iter().map(|source| source.name.clone());
        names.collect()
    }
}

/// An arrival with this part.
fn of(part: LoadPart, arrival: Option<Arrival>) -> Option<Arrival> {
    let mut arrival = arrival?;
    arrival.demand.part = part;
    Some(arrival)
}

/// Maximum number of parts. A choice: each part has sums and a histogram of its own.
pub const MOST_PARTS: usize = 64;

/// The random stream of the parts' seeds.
const PARTS: u64 = 0x7061_7274;

#[cfg(test)]
mod tests;
