//! The claims of papers as data, for comparison with our figures.
//!
//! A claim has figures, each with a unit and a rule for ours. Or it has a shape: an ordering or a
//! trend, with a check. A claim with both is judged by its check, and shows its figures.
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

/// A paper and its claims.
#[derive(Clone, Debug, PartialEq)]
pub struct Paper {
    /// The name for users.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The authors.
    pub authors: String,
    /// The venue and the year.
    pub venue: String,
    /// The origin of the file's figures.
    pub origin: String,
    /// The claims in the order of the file; at least one.
    pub claims: Vec<Claim>,
}

/// One claim of a paper.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The identifier, which never changes.
    pub id: String,
    /// The section, table or figure of the paper.
    pub place: String,
    /// The measured quantity.
    pub text: String,
    /// The figures. Each of several has a name.
    pub figures: Vec<Figure>,
    /// The check of the shape. A claim without figures has one.
    pub shape: Option<String>,
}

/// One number or range of a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The name among the claim's figures.
    pub name: Option<String>,
    /// Its unit.
    pub unit: String,
    /// The published value, and the rule for ours.
    pub theirs: Theirs,
}

/// A published value, and the rule by which ours agrees with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Theirs {
    /// A number from the paper.
    Exact(f64),
    /// A range, with both ends.
    Range(f64, f64),
    /// A lower bound: more is better.
    AtLeast(f64),
    /// An upper bound: less is better.
    AtMost(f64),
    /// A number, and the permitted difference of ours.
    Within(f64, f64),
    /// A cell of a table. Lower is better.
    Lower(f64),
    /// A cell of a table. Higher is better.
    Higher(f64),
}

/// The built-in claims of a paper.
#[derive(Clone, Copy, Debug)]
pub struct BuiltInClaims {
    /// The name for users.
    pub name: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

/// The papers: one file each in `claims/`, one line each here.
pub const ALL: &[BuiltInClaims] = &[
    BuiltInClaims {
        name: "freeblock",
        text: include_str!("../../../claims/freeblock.toml"),
    },
    BuiltInClaims {
        name: "freeblock-beyond",
        text: include_str!("../../../claims/freeblock-beyond.toml"),
    },
    BuiltInClaims {
        name: "pfc",
        text: include_str!("../../../claims/pfc.toml"),
    },
    BuiltInClaims {
        name: "pfc-beyond",
        text: include_str!("../../../claims/pfc-beyond.toml"),
    },
    BuiltInClaims {
        name: "virtual-io",
        text: include_str!("../../../claims/virtual-io.toml"),
    },
    BuiltInClaims {
        name: "virtual-io-beyond",
        text: include_str!("../../../claims/virtual-io-beyond.toml"),
    },
    BuiltInClaims {
        name: "abiss",
        text: include_str!("../../../claims/abiss.toml"),
    },
    BuiltInClaims {
        name: "abiss-beyond",
        text: include_str!("../../../claims/abiss-beyond.toml"),
    },
];

/// Permitted relative difference from a number or from the nearer end of a range. It was fixed for
/// all papers before any measurement.
pub const TOLERANCE: f64 = 0.15;

/// Permitted relative loss against a cell of a table: fixed in issue 6 before any measurement.
/// Tables have dozens of cells, and theirs are single runs.
pub const LEEWAY: f64 = 0.2;

impl BuiltInClaims {
    /// Parses the paper's claims.
    ///
    /// # Errors
    /// Never for a paper of [`ALL`]: a test reads them all.
    pub fn paper(&self) -> Result<Paper, DocumentError> {
        Paper::parse(&format!("claims/{}.toml", self.name), self.text)
    }
}

impl Paper {
    /// The claim with this identifier.
    pub fn claim(&self, id: &str) -> Option<&Claim> {
        self.claims.iter().find(|claim| claim.id == id)
    }
}

impl Claim {
    /// The units of its figures, without repetition.
    pub fn unit(&self) -> String {
        let mut units: Vec<&str> = Vec::new();
        for figure in &self.figures {
            if !units.contains(&figure.unit.as_str()) {
                units.push(&figure.unit);
            }
        }
        units.join(", ")
    }

    /// The figure with this name; the only figure has none.
    pub fn figure(&self, name: Option<&str>) -> Option<&Figure> {
        self.figures
            .iter()
            .find(|figure| figure.name.as_deref() == name)
    }
}

impl Theirs {
    /// Whether our value agrees with it.
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
