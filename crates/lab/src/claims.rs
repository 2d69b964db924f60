//! What papers measured, as data, so that ours can stand beside theirs.
//!
//! A claim has figures, each with a unit and what is expected of ours; or a shape, which is an
//! ordering or a trend together with the check by which we say that it holds. A claim that has
//! both is judged by its check, and its figures are there to look at.
//!
//! ```toml
//! [[claim]]
//! id = "fb.policy.sptf-sw60"
//! where = "section 5.3"
//! text = "free bandwidth beside SSTF's, and foreground throughput lost beside SPTF's"
//! figures = [
//!   { name = "free_bandwidth_share_of_sstf_percent", at_least = 80, unit = "%" },
//!   { name = "foreground_loss_percent", low = 5, high = 6, unit = "%" },
//! ]
//! ```

mod parse;

use document::DocumentError;

/// A paper and what it claims.
#[derive(Clone, Debug, PartialEq)]
pub struct Paper {
    /// How users name it.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Whose it is.
    pub authors: String,
    /// Where and when it appeared.
    pub venue: String,
    /// How its figures came into the file.
    pub origin: String,
    /// What it claims, in the order of its file; at least one.
    pub claims: Vec<Claim>,
}

/// One thing that a paper claims.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Names it, and never changes.
    pub id: String,
    /// Where in the paper.
    pub place: String,
    /// What was measured.
    pub text: String,
    /// Its figures. If there are several, each has a name.
    pub figures: Vec<Figure>,
    /// The check of its shape; without figures there is one.
    pub shape: Option<String>,
}

/// One number or range of a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Tells it from the claim's other figures.
    pub name: Option<String>,
    /// Its unit.
    pub unit: String,
    /// What they found.
    pub theirs: Theirs,
}

/// What they found, and by that what is expected of ours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Theirs {
    /// A number that was read off.
    Exact(f64),
    /// From the first to the second.
    Range(f64, f64),
    /// A lower bound: more is better.
    AtLeast(f64),
    /// An upper bound: less is better.
    AtMost(f64),
    /// A number, and how far ours may be from it either way: what its goal says.
    Within(f64, f64),
    /// A cell of a table, of which less is better.
    Lower(f64),
    /// A cell of a table, of which more is better.
    Higher(f64),
}

/// A paper whose claims are built in.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// How users name it.
    pub name: &'static str,
    /// Its file's text.
    pub text: &'static str,
}

/// The papers: one file each in `claims/`, one line each here.
pub const ALL: &[BuiltIn] = &[
    BuiltIn {
        name: "freeblock",
        text: include_str!("../../../claims/freeblock.toml"),
    },
    BuiltIn {
        name: "freeblock-beyond",
        text: include_str!("../../../claims/freeblock-beyond.toml"),
    },
    BuiltIn {
        name: "pfc",
        text: include_str!("../../../claims/pfc.toml"),
    },
    BuiltIn {
        name: "pfc-beyond",
        text: include_str!("../../../claims/pfc-beyond.toml"),
    },
    BuiltIn {
        name: "virtual-io",
        text: include_str!("../../../claims/virtual-io.toml"),
    },
    BuiltIn {
        name: "virtual-io-beyond",
        text: include_str!("../../../claims/virtual-io-beyond.toml"),
    },
    BuiltIn {
        name: "abiss",
        text: include_str!("../../../claims/abiss.toml"),
    },
    BuiltIn {
        name: "abiss-beyond",
        text: include_str!("../../../claims/abiss-beyond.toml"),
    },
];

/// How far ours may be from a number that was read off, or from the nearer end of a range, in
/// proportion to it: the tolerance that was agreed on for all papers before anything was measured.
pub const TOLERANCE: f64 = 0.15;

/// How much worse ours may be than a cell of a table: issue 6, before anything was measured. Tables
/// have cells by the dozen, and theirs are single runs.
pub const LEEWAY: f64 = 0.2;

impl BuiltIn {
    /// The paper.
    ///
    /// # Errors
    /// Never for a paper of [`ALL`]: a test reads them all.
    pub fn paper(&self) -> Result<Paper, DocumentError> {
        Paper::parse(&format!("claims/{}.toml", self.name), self.text)
    }
}

impl Paper {
    /// The claim of this id.
    pub fn claim(&self, id: &str) -> Option<&Claim> {
        self.claims.iter().find(|claim| claim.id == id)
    }
}

impl Claim {
    /// The units of its figures, each once.
    pub fn unit(&self) -> String {
        let mut units: Vec<&str> = Vec::new();
        for figure in &self.figures {
            if !units.contains(&figure.unit.as_str()) {
                units.push(&figure.unit);
            }
        }
        units.join(", ")
    }

    /// The figure of this name; the only one has none.
    pub fn figure(&self, name: Option<&str>) -> Option<&Figure> {
        self.figures
            .iter()
            .find(|figure| figure.name.as_deref() == name)
    }
}

impl Theirs {
    /// Whether what we measured agrees with it.
    pub fn agrees(self, ours: f64) -> bool {
        match self {
            Theirs::Exact(value) => (ours - value).abs() <= value.abs() * TOLERANCE,
            Theirs::Within(value, off) => (ours - value).abs() <= off,
            Theirs::Range(low, high) => {
                ours >= low - low.abs() * TOLERANCE && ours <= high + high.abs() * TOLERANCE
            }
            Theirs::AtLeast(bound) => ours >= bound,
            Theirs::AtMost(bound) => ours <= bound,
            Theirs::Lower(cell) => ours <= cell * (1.0 + LEEWAY),
            Theirs::Higher(cell) => ours >= cell * (1.0 - LEEWAY),
        }
    }
}

#[cfg(test)]
mod tests;
