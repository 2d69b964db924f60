//! Our figures beside a paper's claim, and the verdict.

use crate::claims::{Claim, Theirs};

pub use super::figure::{MeasuredFigure, ShapeVerdict, rounded};
use super::grounds::{ClaimVerdict, Grounds, OtherSetup, agrees};
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
    /// The grounds of the verdict.
    pub grounds: Grounds,
}

/// A finding with its claim and the verdict.
#[derive(Clone, Debug)]
pub struct JudgedFinding {
    /// The paper's claim.
    pub claim: Claim,
    /// Our finding.
    pub finding: Finding,
    /// The verdict.
    pub verdict: ClaimVerdict,
    /// The reading of the claim, with its rule.
    pub reading: String,
    /// The reason, unless the claim holds.
    pub reason: Option<String>,
    /// The verdicts on the other setups, in their order.
    pub setups: Vec<ClaimVerdict>,
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
            grounds: Grounds::default(),
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
            grounds: Grounds::default(),
        }
    }

    /// The finding on a claim whose shape was checked.
    pub fn shaped(self, shape: ShapeVerdict) -> Finding {
        Finding {
            shape: Some(shape),
            ..self
        }
    }

    /// The finding with a reading of its claim.
    pub fn read_as(mut self, reading: impl Into<String>) -> Finding {
        self.grounds.reading = reading.into();
        self
    }

    /// The finding with the bound that excludes the published figure. It is printed if the figures differ.
    pub fn bounded(mut self, bound: String) -> Finding {
        self.grounds.bound = Some(bound);
        self
    }

    /// The finding with the same figures in other setups.
    pub fn beside(mut self, setups: impl IntoIterator<Item = OtherSetup>) -> Finding {
        self.grounds.setups.extend(setups);
        self
    }

    /// Compares it with its claim.
    ///
    /// # Errors
    /// If it is not about what the claim is about: a figure is missing, too many, or there is no
    /// shape where one is claimed.
    pub fn judge(self, claim: &Claim) -> Result<JudgedFinding, Failure> {
        let of = |ours: &[MeasuredFigure], shape| {
            let is_so = agrees(claim, ours, shape).ok_or_else(|| self.astray())?;
            Ok::<_, Failure>(match is_so {
                true => ClaimVerdict::Holds,
                false => ClaimVerdict::Differs,
            })
        };
        let setups = self.grounds.setups.iter();
        let setups = setups.map(|setup| of(&setup.ours, setup.shape));
        let setups = setups.collect::<Result<Vec<_>, _>>()?;
        let (verdict, reason) = match (of(&self.ours, self.shape)?, self.grounds.incomparable) {
            (_, Some(why)) => (ClaimVerdict::NotComparable, Some(why.to_owned())),
            (ClaimVerdict::Differs, None) => {
                let reason = self.grounds.reason(claim, &self.ours);
                (ClaimVerdict::Differs, Some(reason))
            }
            (verdict, None) => (verdict, None),
        };
        Ok(JudgedFinding {
            claim: claim.clone(),
            reading: self.grounds.read(claim),
            finding: self,
            verdict,
            reason,
            setups,
        })
    }

    fn astray(&self) -> Failure {
        let id = self.id;
        Failure::failed(format!(
            "{id}: measured something else than what is claimed"
        ))
    }
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
    use crate::paper::grounds::MOST_FIGURES;

    const CLAIMS: &str = "paper = \"p\"\ntitle = \"t\"\nauthors = \"a\"\nvenue = \"v\"\norigin = \"o\"\n\
        [[claim]]\nid = \"p.one\"\nwhere = \"1\"\ntext = \"x\"\n\
        figures = [{ value = 10, unit = \"%\" }]\n\
        [[claim]]\nid = \"p.two\"\nwhere = \"1\"\ntext = \"x\"\n\
        figures = [{ name = \"a\", at_least = 3, unit = \"x\" }, { name = \"b\", at_most = 2, unit = \"%\" }]\n\
        [[claim]]\nid = \"p.shape\"\nwhere = \"1\"\ntext = \"x\"\nshape = \"upwards\"\n";

    fn judged(finding: Finding) -> Option<JudgedFinding> {
        let paper = Paper::parse("p.toml", CLAIMS).expect("good claims");
        let claim = paper.claim(finding.id).expect("one of them");
        finding.judge(claim).ok()
    }

    fn holds(finding: Finding) -> Option<bool> {
        judged(finding).map(|judged| judged.verdict == ClaimVerdict::Holds)
    }

    fn reason(finding: Finding) -> Option<String> {
        judged(finding).expect("its figures").reason
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
    fn a_difference_is_explained_by_setups_that_agree_and_by_no_other() {
        let setups = || [("far", 20.0), ("near", 10.5)].map(|(name, of)| OtherSetup::one(name, of));
        let differs = one(12.0).beside(setups()).read_as("whole disk");
        let verdicts = judged(differs).expect("its figure");
        assert_eq!(verdicts.verdict, ClaimVerdict::Differs);
        assert_eq!(
            verdicts.setups,
            [ClaimVerdict::Differs, ClaimVerdict::Holds]
        );
        assert_eq!(verdicts.reading, "whole disk; within 15 % of theirs");
        assert_eq!(verdicts.reason.as_deref(), Some("holds with: near"));
        assert_eq!(reason(one(10.0).beside(setups())), None);
        let none = one(12.0).beside(setups().into_iter().take(1));
        assert_eq!(
            reason(none).as_deref(),
            Some("holds in none of the 1 other setups")
        );
        assert!(reason(one(12.0)).is_some_and(|why| why.starts_with("not shown")));
        let mut bounded = one(12.0);
        bounded.grounds.bound = Some("at most 11 fit".to_owned());
        assert_eq!(reason(bounded).as_deref(), Some("at most 11 fit"));
        let astray = one(12.0).beside([OtherSetup::several("two", &[("a", 1.0)])]);
        assert!(judged(astray).is_none(), "other figures");
    }

    #[test]
    fn figures_are_explained_one_by_one() {
        let setup = OtherSetup::several("s", &[("a", 3.5), ("b", 2.5)]);
        let off = two(&[("a", 2.0), ("b", 3.0)]).beside([setup]);
        assert_eq!(
            reason(off).as_deref(),
            Some("a agrees with: s; b agrees in no setup")
        );
    }

    #[test]
    fn of_a_table_only_the_cells_that_differ_are_explained() {
        let names: Vec<String> = (0..20).map(|number| format!("cell{number}")).collect();
        let figures: Vec<String> = names
            .iter()
            .map(|name| format!("{{ name = \"{name}\", value = 1, unit = \"s\" }}"))
            .collect();
        let text = CLAIMS.to_owned()
            + &format!(
                "[[claim]]\nid = \"p.table\"\nwhere = \"s\"\ntext = \"t\"\nfigures = [{}]\n",
                figures.join(", ")
            );
        let paper = Paper::parse("p.toml", &text).expect("good");
        let reason = |off: usize| {
            let of = |far| {
                let value = |number| if number < off { far } else { 1.0 };
                let all = names.iter().enumerate();
                all.map(|(number, name)| (name.as_str(), value(number)))
                    .collect::<Vec<_>>()
            };
            let finding = Finding::several("p.table", Label::External, &of(2.0), String::new());
            let mut near = of(1.1);
            near[19].1 = 9.0;
            near[6].1 = 9.0;
            let finding = finding.beside([OtherSetup::several("near", &near)]);
            let claim = paper.claim("p.table").expect("it is there");
            finding.judge(claim).expect("its figures").reason
        };
        assert_eq!(
            reason(2).as_deref(),
            Some("cell0 agrees with: near; cell1 agrees with: near")
        );
        let many = reason(MOST_FIGURES + 1);
        let counted = "13 of 20 figures agree, and 18 with: near; of the others 6 agree in some setup, \
                       and 1 in none: cell6";
        let expected = format!("holds in none of the 1 other setups; {counted}");
        assert_eq!(many.as_deref(), Some(expected.as_str()));
    }

    #[test]
    fn what_cannot_be_compared_does_not_hold() {
        let mut finding = one(10.0);
        finding.grounds.incomparable = Some("another machine");
        let judged = judged(finding).expect("its figure");
        assert_eq!(judged.verdict, ClaimVerdict::NotComparable);
        assert_eq!(judged.reason.as_deref(), Some("another machine"));
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
