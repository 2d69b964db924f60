//! The cost of the control group: the same rules without it. Plans that are withheld tell what plans cost, and bring
//! nothing.

use block::Switch;

use super::{FreeblockBeyond, NOISE, learned};
use crate::Failure;
use crate::paper::grounds::OtherSetup;
use crate::paper::scene::Noise;
use crate::paper::trial::ScanTrial;

/// The name of that setup.
pub(super) const ALL_PLANNED: &str = "no control group";

/// The learned guard where no plan is withheld.
pub(super) fn all_planned(policy: &'static str, noise: Noise) -> ScanTrial {
    ScanTrial {
        control_group: Switch::Off,
        ..learned(policy, noise)
    }
}

impl FreeblockBeyond<'_> {
    fn all_planned_share(&self, policy: &'static str, noise: Noise) -> Result<f64, Failure> {
        Ok(self.shares(self.of(all_planned(policy, noise))?, policy)?[1])
    }

    /// The share of the firmware's free bandwidth.
    pub(super) fn share_of_all_planned(&self, policy: &'static str) -> Result<OtherSetup, Failure> {
        let share = self.all_planned_share(policy, NOISE)?;
        Ok(OtherSetup::one(ALL_PLANNED, share))
    }

    /// The same with late seeks, of both policies.
    pub(super) fn tail_of_all_planned(&self) -> Result<OtherSetup, Failure> {
        self.of_tails(ALL_PLANNED, |policy, noise| {
            self.all_planned_share(policy, noise)
        })
    }
}
