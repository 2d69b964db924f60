//! What a world knows of a service that has ended, for the comparison with what that says of itself.

use std::sync::atomic::Ordering;

use server::status::DriveStatus;

use super::World;
use crate::plan::Belief;
use crate::status::{Facts, Truth};

impl World {
    /// A service that has ended says of itself what happened.
    pub fn assert_agrees(&mut self, told: &DriveStatus) {
        let late = [self.streams.listen(0), self.films.listen(0)];
        // A power cut ends commands, a leg of a mirror fails its own, and checksums are read below the engine.
        let is_known = self.counts.cuts == 0 && !self.setting.mirrored && !self.setting.checksums;
        // Caches and streams have buffers of their own.
        let is_plain = self.setting.cache.is_none() && !self.setting.streams;
        // A client that takes no replies has not seen all that was done for it.
        let is_seen =
            self.posted.is_empty() && self.clients.iter().all(|client| client.under_way() == 0);
        let is_seen = is_seen && self.setting.in_sectors;
        let served = is_plain.then(|| self.served.among(is_seen));
        self.counts.compared += u64::from(served.is_some_and(|served| served.are_all));
        let facts = Facts {
            failed: is_known.then(|| {
                let failures = self.failures.load(Ordering::Relaxed);
                (failures - self.failures_before) as u64
            }),
            is_punctual: self.is_punctual(),
            served,
            drive: match self.setting.belief {
                Belief::Wrong => Truth::Other,
                // It has strayed, and was followed again.
                Belief::True if self.straying.is_some() => Truth::AsBelieved,
                // A drive that is never lucky is not where it is believed to be.
                Belief::True if self.is_punctual() && !self.setting.is_unlucky => Truth::AsBelieved,
                Belief::True | Belief::None => Truth::Unknown,
            },
        };
        assert!(!facts.is_punctual || late == [None; 2], "late at the end");
        self.seen.assert_agrees(told, &facts);
    }

    /// Whether the drive and its host have kept their own times so far.
    pub(super) fn is_punctual(&self) -> bool {
        let is_quick = self.setting.host_us == 5 && self.setting.belief == Belief::True;
        let is_quick = is_quick && self.setting.straggler_us.is_none();
        is_quick && self.stalled_until == 0 && self.hung_until == 0 && self.counts.cuts == 0
    }
}
