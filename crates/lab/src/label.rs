//! The label of a result: the relation between its scheduler's belief and its drive's truth.

use std::fmt;
use std::path::Path;

use serde::Serialize;

/// The relation between the belief of a result's scheduler and the truth of its drive. Results of different
/// labels are never mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Label {
    /// Belief and truth are equal: the bound for a scheduler inside the drive.
    InFirmware,
    /// Belief and truth differ by noise only, which no belief contains; the belief was not profiled.
    Noisy,
    /// The belief comes from a file that no profiler wrote.
    Assumed,
    /// The profiler found the belief.
    External,
}

impl Label {
    /// The label of an emulated drive whose seeks have this noise. A belief from a file counts as profiled.
    pub(crate) fn of_emulation(belief: Option<&Path>, seek_noise_us: f64) -> Label {
        match (belief, seek_noise_us > 0.0) {
            (Some(_), _) => Label::External,
            (None, true) => Label::Noisy,
            (None, false) => Label::InFirmware,
        }
    }

    /// The word for reports.
    pub fn name(self) -> &'static str {
        match self {
            Label::InFirmware => "in-firmware",
            Label::Noisy => "noisy",
            Label::Assumed => "assumed",
            Label::External => "external",
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
