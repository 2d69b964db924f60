//! The label of a result: the relation between its scheduler's belief and its drive's truth.

use std::fmt;
use std::path::Path;

use drive::profile::Provenance;
use serde::Serialize;

use crate::named;

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
    /// The label of a belief with this provenance, or of the truth as belief (`None`).
    pub fn of(belief: Option<Provenance>) -> Label {
        match belief {
            Some(Provenance::Profiled) => Label::External,
            Some(_) => Label::Assumed,
            None => Label::InFirmware,
        }
    }

    /// The label of the same belief beside a truth with noise.
    #[must_use]
    pub fn with_noise(self) -> Label {
        match self {
            Label::InFirmware => Label::Noisy,
            label => label,
        }
    }

    /// The label of an emulated drive whose seeks have this noise. A belief from a file that cannot be read
    /// counts as assumed.
    pub(crate) fn of_emulation(belief: Option<&Path>, seek_noise_us: f64) -> Label {
        let Some(file) = belief else {
            let known = Label::of(None);
            return match seek_noise_us > 0.0 {
                true => known.with_noise(),
                false => known,
            };
        };
        let profile = named::drive(&file.display().to_string());
        profile.map_or(Label::Assumed, |found| Label::of(Some(found.provenance)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_belief_is_external_only_if_a_profiler_found_it() {
        let of = |provenance| Label::of(Some(provenance));
        assert_eq!(of(Provenance::Profiled), Label::External);
        assert_eq!(of(Provenance::Profiled).with_noise(), Label::External);
        assert_eq!(of(Provenance::Measured), Label::Assumed);
        assert_eq!(of(Provenance::Measured).with_noise(), Label::Assumed);
        assert_eq!(Label::of(None), Label::InFirmware);
        assert_eq!(Label::of(None).with_noise(), Label::Noisy);
        let shipped = Path::new("quantum-atlas-10k");
        assert_eq!(Label::of_emulation(Some(shipped), 60.0), Label::Assumed);
        let missing = Path::new("/nowhere.toml");
        assert_eq!(Label::of_emulation(Some(missing), 0.0), Label::Assumed);
        assert_eq!(Label::of_emulation(None, 60.0), Label::Noisy);
    }
}
