//! The profile files of random drives.

use super::RandomDrive;

impl RandomDrive {
    /// Its profile file, called `random-` and its number; none if its zones do not hold what it says they do. The faults of
    /// the drive are not in it: no profile has them.
    pub fn text(&self, number: u64) -> Option<String> {
        let mut profile = self.profile()?.as_ref().clone();
        profile.name = format!("random-{number}");
        profile.model = format!("Random drive {number}");
        let origin = "drawn at random by the example `random_drive`; no drive is like it";
        Some(profile.text(&self.description()?, origin))
    }
}
