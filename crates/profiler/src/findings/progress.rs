//! The progress of the whole procedure.

/// A stage of the whole procedure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProfilingStage {
    /// Not started.
    #[default]
    Begin,
    /// The period and the phase.
    Spindle,
    /// The boundaries of tracks.
    Map,
    /// The surfaces and cylinders of tracks.
    Layout,
    /// The timing of the arm.
    Arm,
    /// The behaviour and timing of the electronics.
    Firmware,
    /// Complete.
    Done,
}

impl ProfilingStage {
    /// A description of the stage, for users.
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

/// The progress of the whole procedure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfilingProgress {
    /// The current stage.
    pub step: ProfilingStage,
    /// The failed stages, each with its reason.
    pub failed: Vec<(ProfilingStage, String)>,
}
