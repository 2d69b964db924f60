//! What we measured beside what a paper claims, and whether the two agree.

use crate::claims::{Claim, Theirs};

use crate::{Failure, Label};

/// What a measurement found of one claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Of which claim.
    pub id: &'static str,
    /// In which mode, if a scheduler had to know anything of the drive.
    pub mode: Option<Label>,
    /// The figures, under the names that the claim has for its own.
    pub ours: Vec<MeasuredFigure>,
    /// Of a claim that has a shape: what its check said.
    pub shape: Option<ShapeVerdict>,
    /// Under which circumstances.
    pub note: String,
}

/// One figure of ours.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredFigure {
    /// Its name; a claim's only figure has none.
    pub name: Option<String>,
    /// How much.
    pub value: f64,
}

/// What the check of a shape said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeVerdict {
    /// It holds.
    Holds,
    /// It does not.
    Fails,
}

/// A finding beside its claim.
#[derive(Clone, Debug)]
pub struct JudgedFinding {
    /// The paper's claim.
    pub claim: Claim,
    /// What we found.
    pub finding: Finding,
    /// Whether the two agree.
    pub holds: bool,
}

impl ShapeVerdict {
    /// Holds if all of these do.
    pub fn of(checks: &[bool]) -> ShapeVerdict {
        match checks.iter().all(|&good| good) {
            true => ShapeVerdict::Holds,
            false => ShapeVerdict::Fails,
        }
    }
}

impl Finding {
    /// Of a claim with one figure.
    pub fn one(id: &'static str, mode: Label, value: f64, note: String) -> Finding {
        Finding {
            id,
            mode: Some(mode),
            ours: vec![MeasuredFigure { name: None, value }],
            shape: None,
            note,
        }
    }

    /// Of a claim with several figures.
    pub fn several(id: &'static str, mode: Label, ours: &[(&str, f64)], note: String) -> Finding {
        let figure = |&(name, value): &(&str, f64)| MeasuredFigure {
            name: Some(name.to_owned()),
            value,
        };
        Finding {
            id,
            mode: Some(mode),
            ours: ours.iter().map(figure).collect(),
            shape: None,
            note,
        }
    }

    /// Of a claim whose shape was checked.
    pub fn shaped(self, shape: ShapeVerdict) -> Finding {
        Finding {
            shape: Some(shape),
            ..self
        }
    }

    /// Holds it against its claim.
    ///
    /// # Errors
    /// If it is not about what the claim is about: a figure is missing, too many, or there is no
    /// shape where one is claimed.
    pub fn judge(self, claim: &Claim) -> Result<JudgedFinding, Failure> {
        let holds = match (self.shape, &claim.shape) {
            (Some(shape), Some(_)) => shape == ShapeVerdict::Holds,
            (None, None) => self.agrees(claim)?,
            (Some(_), None) | (None, Some(_)) => return Err(self.astray()),
        };
        Ok(JudgedFinding {
            claim: claim.clone(),
            finding: self,
            holds,
        })
    }

    /// Whether every figure of the claim agrees with ours of the same name.
    fn agrees(&self, claim: &Claim) -> Result<bool, Failure> {
        if self.ours.len() != claim.figures.len() {
            return Err(self.astray());
        }
        let mut holds = true;
        for ours in &self.ours {
            let figure = claim
                .figure(ours.name.as_deref())
                .ok_or_else(|| self.astray())?;
            holds &= figure.theirs.agrees(rounded(ours.value));
        }
        Ok(holds)
    }

    fn astray(&self) -> Failure {
        let id = self.id;
        Failure::failed(format!(
            "{id}: measured something else than what is claimed"
        ))
    }
}

/// A figure to four digits, which is more than any of theirs has: what is shown is what is judged.
pub fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let step = 10f64.powf(3.0 - value.abs().log10().floor());
    (value * step).round() / step
}

/// What they found, as a reader writes it.
pub fn written(theirs: Theirs) -> String {
    match theirs {
        Theirs::Exact(value) | Theirs::Lower(value) | Theirs::Higher(value) => format!("{value}"),
        Theirs::Within(value, _) => format!("{value}"),
        Theirs::Range(low, high) => format!("{low} to {high}"),
        Theirs::AtLeast(bound) => format!(">= {bound}"),
        Theirs::AtMost(bound) => format!("<= {bound}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::claims::Paper;

    use super::*;

    const CLAIMS: &str = "paper = \"p\"\ntitle = \"t\"\nauthors = \"a\"\nvenue = \"v\"\norigin = \"o\"\n\
        [[claim]]\nid = \"p.one\"\nwhere = \"1\"\ntext = \"x\"\n\
        figures = [{ value = 10, unit = \"%\" }]\n\
        [[claim]]\nid = \"p.two\"\nwhere = \"1\"\ntext = \"x\"\n\
        figures = [{ name = \"a\", at_least = 3, unit = \"x\" }, { name = \"b\", at_most = 2, unit = \"%\" }]\n\
        [[claim]]\nid = \"p.shape\"\nwhere = \"1\"\ntext = \"x\"\nshape = \"upwards\"\n";

    fn holds(finding: Finding) -> Option<bool> {
        let paper = Paper::parse("p.toml", CLAIMS).expect("good claims");
        let claim = paper.claim(finding.id).expect("one of them");
        finding.judge(claim).ok().map(|judged| judged.holds)
    }

    fn one(value: f64) -> Finding {
        Finding::one("p.one", Label::External, value, String::new())
    }

    fn two(ours: &[(&'static str, f64)]) -> Finding {
        Finding::several("p.two", Label::External, ours, String::new())
    }

    #[test]
    fn each_figure_has_to_agree() {
        assert_eq!(holds(one(11.4)), Some(true));
        assert_eq!(holds(one(11.6)), Some(false));
        assert_eq!(holds(two(&[("a", 3.0), ("b", 2.0)])), Some(true));
        assert_eq!(holds(two(&[("a", 2.9), ("b", 2.0)])), Some(false));
        assert_eq!(holds(two(&[("b", 2.1), ("a", 3.0)])), Some(false));
    }

    #[test]
    fn a_shape_is_judged_by_its_check() {
        let shape = |shape| Finding {
            id: "p.shape",
            ..two(&[("whatever", 1.0)]).shaped(shape)
        };
        assert_eq!(holds(shape(ShapeVerdict::of(&[true, true]))), Some(true));
        assert_eq!(holds(shape(ShapeVerdict::of(&[true, false]))), Some(false));
    }

    #[test]
    fn other_figures_than_those_of_the_claim_are_no_answer() {
        assert_eq!(holds(two(&[("a", 3.0)])), None);
        assert_eq!(holds(two(&[("a", 3.0), ("c", 2.0)])), None);
        assert_eq!(holds(one(10.0).shaped(ShapeVerdict::Holds)), None);
        let unchecked = Finding {
            id: "p.shape",
            ..one(10.0)
        };
        assert_eq!(holds(unchecked), None);
    }

    #[test]
    fn figures_have_four_digits() {
        for (value, shown) in [
            (0.0, 0.0),
            (97.456_78, 97.46),
            (0.012_345_6, 0.012_35),
            (-12_345.6, -12_350.0),
        ] {
            assert!((rounded(value) - shown).abs() < 1e-9, "{value}");
        }
    }
}
