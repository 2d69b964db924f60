//! The share of one actuator: the blocks that it serves, and its profile as a drive of its own.

use std::sync::Arc;

use block::{Extent, Lba, Sectors};

use super::Profile;

impl Profile {
    /// The actuator that serves a block. Actuators have equal shares of the blocks, unless the profile
    /// describes each separately.
    pub fn actuator_of(&self, lba: Lba) -> usize {
        if let Some(arms) = &self.arms {
            return usize::from(lba.0 >= arms[0].geometry.sectors().0);
        }
        match u64::from(self.actuators) {
            0 | 1 => 0,
            arms => {
                let capacity = self.geometry.sectors().0;
                let arm = u128::from(lba.0) * u128::from(arms) / u128::from(capacity);
                (arm as usize).min(arms as usize - 1)
            }
        }
    }

    /// The block after the last one of an actuator's share.
    pub fn share_end(&self, actuator: usize) -> u64 {
        let capacity = self.geometry.sectors().0;
        if let (Some(arms), 0) = (&self.arms, actuator) {
            return arms[0].geometry.sectors().0;
        }
        match u64::from(self.actuators) {
            0 | 1 => capacity,
            arms => {
                let end = (actuator as u128 + 1) * u128::from(capacity);
                (end.div_ceil(u128::from(arms)) as u64).min(capacity)
            }
        }
    }

    /// The blocks of an actuator.
    ///
    /// # Panics
    /// If the drive has no such actuator, or fewer blocks than actuators.
    pub fn share_of(&self, actuator: usize) -> Extent {
        let first = match actuator {
            0 => 0,
            next => self.share_end(next - 1),
        };
        let blocks = self.share_end(actuator).saturating_sub(first);
        Extent::new(Lba(first), Sectors(blocks)).expect("an actuator has blocks")
    }

    /// An actuator as a drive of its own: its blocks are numbered from 0, and cylinders, surfaces and
    /// angles stay.
    ///
    /// # Panics
    /// As [`Profile::share_of`].
    pub fn of_actuator(&self, actuator: usize) -> Profile {
        match &self.arms {
            Some(arms) => arms[actuator].clone(),
            None => self.of_share(self.share_of(actuator)),
        }
    }

    fn of_share(&self, share: Extent) -> Profile {
        let confidence = self.confidence.clone();
        let unfitted = self.unfitted.as_ref();
        Profile {
            actuators: 1,
            geometry: Arc::new(self.geometry.share(share)),
            confidence: confidence.map(|confidence| confidence.of_share(share)),
            unfitted: unfitted.map(|drive| Arc::new(drive.of_share(share))),
            arms: None,
            ..self.clone()
        }
    }
}
