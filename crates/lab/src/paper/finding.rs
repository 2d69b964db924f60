//! Our figures beside a paper's claim, and the verdict.

use crate::claims::{Claim, Theirs};

use crate::{Failure, Label};

/// The finding of a measurement on one claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The identifier of the claim.
    pub id: &'static str,
    /// The label, if a scheduler's belief was involved.
    pub mode: Option<Label>,
    /// The figures, by the names in the claim.
    pub ours: Vec<MeasuredFigure>,
    /// The result of the shape's check, if the claim has a shape.
    pub shape: Option<ShapeVerdict>,
    /// The circumstances.
    pub note: String,
}

/// One figure of ours.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredFigure {
    /// The name; the only figure of a claim has none.
    pub name: Option<String>,
    /// The value.
    pub value: f64,
}

/// The result of a shape's check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeVerdict {
    /// The shape holds.
    Holds,
    /// The shape does not hold.
    Fails,
}

/// A finding with its claim and the verdict.
#[derive(Clone, Debug)]
pub struct JudgedFinding {
    /// The paper's claim.
    pub claim: Claim,
    /// Our finding.
    pub finding: Finding,
    /// Whether claim and finding agree.
    pub holds: bool,
}

impl ShapeVerdict {
    /// Holds if all checks do.
    pub fn of(checks: &[bool]) -> ShapeVerdict {
        match checks.iter().all(|&good| good) {
            true => ShapeVerdict::Holds,
            false => ShapeVerdict::Fails,
        }
    }
}

impl Finding {
    /// The finding on a claim with one figure.
    pub fn one(id: &'static str, mode: Label, value: f64, note: String) -> Finding {
        Finding {
            id,
            mode: Some(mode),
            ours: vec![MeasuredFigure { name: None, value }],
            shape: None,
            note,
        }
    }

    /// The finding on a claim with several figures.
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

    /// The finding on a claim whose shape was checked.
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

    /// Whether all figures of the claim agree with ours of the same names.
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

/// Rounds to four digits, more than any published figure has. Rounded values are both shown and
/// judged.
pub fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let step = 10f64.powf(3.0 - value.abs().log10().floor());
    (value * step).round() / step
}

/// The published value as text.
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
