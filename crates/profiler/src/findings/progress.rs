//! How far the whole procedure has come.

/// A part of the whole procedure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Nothing was asked yet.
    #[default]
    Begin,
    /// The period and the phase.
    Spindle,
    /// Where tracks begin and end.
    Map,
    /// Which surfaces and cylinders they are on.
    Layout,
    /// How long the arm takes.
    Arm,
    /// What the electronics do and cost.
    Firmware,
    /// Nothing is left to ask.
    Done,
}

impl Step {
    /// What it looks for, for people.
    pub fn name(self) -> &'static str {
        match self {
            Step::Begin => "nothing yet",
            Step::Spindle => "the spindle",
            Step::Map => "the tracks",
            Step::Layout => "surfaces and cylinders",
            Step::Arm => "the arm",
            Step::Firmware => "the electronics",
            Step::Done => "done",
        }
    }
}

/// How far the whole procedure has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// What it is at.
    pub step: Step,
    /// What could not be found, and why.
    pub failed: Vec<(Step, String)>,
}
