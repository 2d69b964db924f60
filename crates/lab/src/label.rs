//! The label of a result: how the belief of its scheduler relates to the truth of its drive.

use serde::Serialize;

/// How the belief of a result's scheduler relates to the truth of its drive. Results of different labels are
/// never mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Label {
    /// Belief and truth are the same: the bound for a scheduler inside of the drive.
    InFirmware,
    /// They are the same but for noise, which no belief has; the belief was not profiled.
    Noisy,
    /// The belief is that of a file that no profiler wrote.
    Assumed,
    /// The belief was profiled.
    External,
}

impl Label {
    /// The word of reports.
    pub fn name(self) -> &'static str {
        match self {
            Label::InFirmware => "in-firmware",
            Label::Noisy => "noisy",
            Label::Assumed => "assumed",
            Label::External => "external",
        }
    }
}
