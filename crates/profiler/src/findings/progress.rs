//! How far the whole procedure has come.

/// A part of the whole procedure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProfilingStage {
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

impl ProfilingStage {
    /// What it looks for, for people.
    pub fn name(self) -> &'static str {
        match self {
            ProfilingStage::Begin => "nothing yet",
            ProfilingStage::Spindle => "the spindle",
            ProfilingStage::Map => "the tracks",
            ProfilingStage::Layout => "surfaces and cylinders",
            ProfilingStage::Arm => "the arm",
            ProfilingStage::Firmware => "the electronics",
            ProfilingStage::Done => "done",
        }
    }
}

/// How far the whole procedure has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfilingProgress {
    /// What it is at.
    pub step: ProfilingStage,
    /// What could not be found, and why.
    pub failed: Vec<(ProfilingStage, String)>,
}
