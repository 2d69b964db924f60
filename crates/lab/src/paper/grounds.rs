//! The grounds of a verdict: the reading of a claim, the same figures in other setups, and the reason of a difference.
//!
//! A reason is computed. An other setup explains a difference only if the claim's own rule agrees with its figures.

use crate::claims::{Claim, LEEWAY, TOLERANCE, Theirs};

use super::figure::{MeasuredFigure, ShapeVerdict, rounded};

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// Our figures agree with the claim by its rule.
    Holds,
    /// They do not.
    Differs,
    /// The claim's figures depend on something that we do not have.
    NotComparable,
}

/// The grounds of a finding's verdict. By default the rule of the claim alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grounds {
    /// The reading of the claim: unit, part, policy, seeds. Empty: the claim has one meaning.
    pub reading: String,
    /// The same figures in other setups.
    pub setups: Vec<OtherSetup>,
    /// A bound that excludes the published figure, with its numbers.
    pub bound: Option<String>,
    /// The reason why the figures cannot be compared.
    pub incomparable: Option<&'static str>,
}

/// The figures of a finding in another setup.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherSetup {
    /// The difference from the judged setup.
    pub name: String,
    /// The figures, by the names in the claim.
    pub ours: Vec<MeasuredFigure>,
    /// The result of the shape's check, if the claim has a shape.
    pub shape: Option<ShapeVerdict>,
}

impl ClaimVerdict {
    /// The word in tables.
    pub const fn name(self) -> &'static str {
        match self {
            ClaimVerdict::Holds => "holds",
            ClaimVerdict::Differs => "differs",
            ClaimVerdict::NotComparable => "not comparable",
        }
    }
}

impl OtherSetup {
    /// The setup of a claim with one figure.
    pub fn one(name: impl Into<String>, value: f64) -> OtherSetup {
        OtherSetup {
            name: name.into(),
            ours: vec![MeasuredFigure { name: None, value }],
            shape: None,
        }
    }

    /// The setup of a claim with several figures.
    pub fn several(name: impl Into<String>, ours: &[(&str, f64)]) -> OtherSetup {
        let figure = |&(name, value): &(&str, f64)| MeasuredFigure {
            name: Some(name.to_owned()),
            value,
        };
        OtherSetup {
            name: name.into(),
            ours: ours.iter().map(figure).collect(),
            shape: None,
        }
    }

    /// The setup of a claim whose shape was checked.
    pub fn shaped(self, shape: ShapeVerdict) -> OtherSetup {
        OtherSetup {
            shape: Some(shape),
            ..self
        }
    }
}

/// Whether figures agree with a claim, all by their names; `None` if a figure or the shape is missing or too many.
pub(super) fn agrees(
    claim: &Claim,
    ours: &[MeasuredFigure],
    shape: Option<ShapeVerdict>,
) -> Option<bool> {
    match (shape, &claim.shape) {
        (Some(shape), Some(_)) => return Some(shape == ShapeVerdict::Holds),
        (None, None) => {}
        (Some(_), None) | (None, Some(_)) => return None,
    }
    if ours.len() != claim.figures.len() {
        return None;
    }
    let mut all = true;
    for figure in ours {
        all &= figure_agrees(claim, figure)?;
    }
    Some(all)
}

fn figure_agrees(claim: &Claim, ours: &MeasuredFigure) -> Option<bool> {
    let figure = claim.figure(ours.name.as_deref())?;
    Some(figure.theirs.agrees(rounded(ours.value)))
}

impl Grounds {
    /// The reading with the rule of the claim.
    pub(super) fn read(&self, claim: &Claim) -> String {
        let rule = rule(claim);
        match self.reading.is_empty() {
            true => rule,
            false => format!("{}; {rule}", self.reading),
        }
    }

    /// The reason of a difference, from the setups in which the claim's rule agrees.
    pub(super) fn reason(&self, claim: &Claim, ours: &[MeasuredFigure]) -> String {
        let mut said: Vec<String> = self.bound.iter().cloned().collect();
        let is_off = |figure: &&MeasuredFigure| figure_agrees(claim, figure) == Some(false);
        let off = ours.iter().filter(is_off).count();
        let holds = |setup: &&OtherSetup| agrees(claim, &setup.ours, setup.shape) == Some(true);
        let whole: Vec<&str> = self.setups.iter().filter(holds).map(named).collect();
        if !whole.is_empty() {
            said.push(format!("holds with: {}", whole.join("; ")));
        } else if claim.shape.is_none() && claim.figures.len() > 1 && off <= MOST_FIGURES {
            said.extend(self.by_figure(claim, ours));
        } else if !self.setups.is_empty() {
            said.push(format!(
                "holds in none of the {} other setups",
                self.setups.len()
            ));
        }
        if whole.is_empty() && claim.shape.is_none() && off > MOST_FIGURES {
            said.extend(self.counted(claim, ours));
        }
        match said.is_empty() {
            true => NOT_SHOWN.to_owned(),
            false => said.join("; "),
        }
    }

    /// The number of figures of a table that agree, the setup in which most do, the number of those that differ
    /// here and agree in some setup, and the names of the rest.
    fn counted(&self, claim: &Claim, ours: &[MeasuredFigure]) -> Option<String> {
        let agreeing = |ours: &[MeasuredFigure]| {
            let agrees = |figure: &&MeasuredFigure| figure_agrees(claim, figure) == Some(true);
            ours.iter().filter(agrees).count()
        };
        let best = self
            .setups
            .iter()
            .max_by_key(|setup| agreeing(&setup.ours))?;
        let agrees_somewhere = |figure: &&MeasuredFigure| {
            let others = self.setups.iter().flat_map(|setup| &setup.ours);
            let mut same = others.filter(|other| other.name == figure.name);
            same.any(|other| figure_agrees(claim, other) == Some(true))
        };
        let off = ours
            .iter()
            .filter(|figure| figure_agrees(claim, figure) == Some(false));
        let (somewhere, nowhere): (Vec<_>, Vec<_>) = off.partition(agrees_somewhere);
        let names = nowhere.iter().filter_map(|figure| figure.name.as_deref());
        let nowhere = match nowhere.is_empty() {
            true => String::new(),
            false => format!(
                ", and {} in none: {}",
                nowhere.len(),
                names.collect::<Vec<_>>().join(", ")
            ),
        };
        Some(format!(
            "{} of {} figures agree, and {} with: {}; of the others {} agree in some setup{nowhere}",
            agreeing(ours),
            ours.len(),
            agreeing(&best.ours),
            best.name,
            somewhere.len(),
        ))
    }

    /// The setups in which single figures agree.
    fn by_figure(&self, claim: &Claim, ours: &[MeasuredFigure]) -> Vec<String> {
        let off = ours
            .iter()
            .filter(|figure| figure_agrees(claim, figure) == Some(false));
        let lines = off.map(|figure| {
            let agrees = |setup: &&OtherSetup| {
                let same = setup.ours.iter().find(|other| other.name == figure.name);
                same.and_then(|same| figure_agrees(claim, same)) == Some(true)
            };
            let with: Vec<&str> = self.setups.iter().filter(agrees).map(named).collect();
            let name = figure.name.as_deref().unwrap_or_default();
            match with.is_empty() {
                true => format!("{name} agrees in no setup"),
                false => format!("{name} agrees with: {}", with.join("; ")),
            }
        });
        lines.collect()
    }
}

fn named(setup: &OtherSetup) -> &str {
    &setup.name
}

/// The rule of a claim in words.
fn rule(claim: &Claim) -> String {
    if let Some(check) = &claim.shape {
        return format!("holds if {check}");
    }
    let mut rules: Vec<String> = Vec::new();
    for figure in &claim.figures {
        let percent = |share: f64| (share * 100.0).round();
        let rule = match figure.theirs {
            Theirs::Exact(_) => format!("within {} % of theirs", percent(TOLERANCE)),
            Theirs::Within(_, off) => format!("within {off} {} of theirs", figure.unit),
            Theirs::Range(..) => format!("in their range or {} % beside it", percent(TOLERANCE)),
            Theirs::AtLeast(_) => "at least theirs".to_owned(),
            Theirs::AtMost(_) => "at most theirs".to_owned(),
            Theirs::Lower(_) | Theirs::Higher(_) => {
                format!("better than theirs or {} % worse", percent(LEEWAY))
            }
        };
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules.join(", ")
}

/// The reason of a difference that no command explains.
const NOT_SHOWN: &str = "not shown: no command of ours explains the difference";

/// Most figures whose differences are explained one by one. A choice: tables have dozens.
pub(super) const MOST_FIGURES: usize = 6;
