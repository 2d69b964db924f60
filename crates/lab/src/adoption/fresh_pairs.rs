//! The check of a found profile: pairs of blocks that it has not seen, whose second end it predicts.
//!
//! ```text
//!   read A -> end of A: the head is there
//!   read B -> end of B: seek, rotation and transfer as the profile says, or not
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use block::{
    Action, Command, CommandId, Durability, Duration, Extent, Instant, Lba, Status, Switch,
};
use drive::{Profile, VirtualDrive};
use profiler::belief;
use profiler::prober::{Prober, Timing};
use serde::Serialize;

/// Predictions of fresh pairs, and how many came true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PairCheck {
    /// Pairs whose second read came from the medium.
    pub pairs: u32,
    /// Those whose end was predicted to 3 % of a revolution.
    pub as_predicted: u32,
    /// Those that were late by whole revolutions: the seek takes longer than believed, or the host delayed.
    pub late: u32,
    /// Those that were early by whole revolutions: the seek takes less time than believed.
    pub early: u32,
    /// Those that ended at another angle: the blocks are not where they are believed to be.
    pub elsewhere: u32,
    /// Second reads that the buffer answered.
    pub buffered: u32,
}

impl PairCheck {
    /// The share of pairs that ended as predicted; 0 without pairs.
    pub fn share(&self) -> f64 {
        f64::from(self.as_predicted) / f64::from(self.pairs.max(1))
    }
}

/// Pairs of a check. A choice: the share is exact to 4 %.
const PAIRS: u64 = 150;

/// The greatest distance of an end from its prediction, in revolutions: that of the tracker in service.
const NEAR: f64 = 0.03;

/// The time before the second read at which the predicting drive reads the first block: any seek and
/// revolution are over then.
const BEFORE: Duration = Duration::from_millis(500);

/// Checks a profile on pairs of its known blocks, until there are enough.
pub async fn check(prober: Prober, found: Profile, check: Arc<Mutex<PairCheck>>) {
    let Ok(clock) = belief::phase::find(&prober, &found).await else {
        return;
    };
    let plain = found.switched(Switch::Off, Switch::Off);
    let live = Arc::new(belief::live(&plain, &clock));
    let fast = prober.findings(|findings| findings.fast);
    for number in 0..PAIRS {
        let [first, second] = [2 * number, 2 * number + 1].map(|number| fresh(&found, number));
        let before = prober.read(Extent::block(first)).await;
        let timing = prober.read(Extent::block(second)).await;
        if before.status != Status::Good || timing.status != Status::Good {
            continue;
        }
        let predicted = predict(&live, first, second, timing.submitted);
        let period = live.spindle.period_ps() as f64 / 1e3;
        let mut check = check.lock().unwrap_or_else(PoisonError::into_inner);
        check.count(&timing, predicted, period, fast);
    }
}

impl PairCheck {
    fn count(&mut self, timing: &Timing, predicted: Instant, period: f64, fast: Duration) {
        let took = timing.ended.since(timing.submitted);
        let turns = (timing.ended.as_nanos() as f64 - predicted.as_nanos() as f64) / period;
        let whole = turns.round();
        if took <= fast {
            self.buffered += 1;
            return;
        }
        self.pairs += 1;
        match ((turns - whole).abs() <= NEAR, whole) {
            (true, 0.0) => self.as_predicted += 1,
            (true, whole) if whole > 0.0 => self.late += 1,
            (true, _) => self.early += 1,
            (false, _) => self.elsewhere += 1,
        }
    }
}

/// When the second read ends by the profile, if it is submitted at `at` behind the first block.
fn predict(live: &Arc<Profile>, first: Lba, second: Lba, at: Instant) -> Instant {
    let begin = Instant::from_nanos(at.as_nanos().saturating_sub(BEFORE.as_nanos()));
    let mut drive = VirtualDrive::new(Arc::clone(live));
    ends(&mut drive, begin, first);
    ends(&mut drive, at, second)
}

/// The end of a read.
fn ends(drive: &mut VirtualDrive, at: Instant, lba: Lba) -> Instant {
    let action = Action::Read {
        extent: Extent::block(lba),
        durability: Durability::Volatile,
    };
    let mut now = at;
    if drive.submit(at, Command::new(CommandId(0), action)).is_ok() {
        while let Some(next) = drive.next_wakeup() {
            now = next.max(now);
            if let Some(outcome) = drive.poll(now) {
                return outcome.at;
            }
        }
    }
    now
}

/// A block of the known ones that depends on the number only. The profiler's own probes follow other
/// sequences, so that these were not used.
fn fresh(found: &Profile, number: u64) -> Lba {
    let known = found
        .confidence
        .as_ref()
        .map_or(&[][..], |found| found.known());
    let total: u64 = known.iter().map(|extent| extent.length().0).sum();
    // Fractions of the square root of 2: another sequence than the profiler's golden section.
    let share = u128::from((number + 1).wrapping_mul(0x6A09_E667_F3BC_C909));
    let within = |over: u64| ((share * u128::from(over)) >> 64) as u64;
    let mut left = within(total);
    for extent in known {
        let length = extent.length().0;
        if left < length {
            return Lba(extent.start().0 + left);
        }
        left -= length;
    }
    Lba(within(found.geometry.sectors().0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use drive::{Imperfections, catalog};
    use profiler::rehearsal::rehearse;
    use profiler::{DriveIdentity, Findings, Offers, Profiler, WritePermission};

    fn checked(truth: &str, believed: &Profile) -> PairCheck {
        let truth = Arc::new(
            catalog::find(truth)
                .expect("a drive")
                .profile()
                .expect("one"),
        );
        let noise = Imperfections {
            seek_noise: Duration::from_micros(60),
            overhead_noise: Duration::from_micros(20),
            ..Imperfections::default()
        };
        let mut drive = VirtualDrive::imperfect(truth, noise, 3);
        let device = DriveIdentity::of(&drive, Offers::Nothing, WritePermission::Forbidden);
        let result = Arc::new(Mutex::new(PairCheck::default()));
        let (theirs, found) = (Arc::clone(&result), believed.clone());
        // As measured by the profiler before the check.
        let findings = Findings {
            fast: Duration::from_micros(1500),
            ..Findings::default()
        };
        let mut profiler = Profiler::new(device, findings, |prober| check(prober, found, theirs));
        let budget = Duration::from_secs(120);
        rehearse(&mut profiler, &mut drive, Instant::ZERO, budget);
        let result = result.lock().expect("nobody panics");
        *result
    }

    #[test]
    fn a_true_profile_passes_and_another_drives_fails() {
        let name = "quantum-atlas-10k";
        let own = catalog::find(name)
            .expect("a drive")
            .profile()
            .expect("one");
        let passed = checked(name, &own);
        assert!(passed.pairs > 100 && passed.share() > 0.9, "{passed:?}");
        // The same layout, and an arm that is believed to be another one.
        let mut slower = own.clone();
        slower.seek = catalog::find("hp-c2247a")
            .expect("a drive")
            .profile()
            .expect("one")
            .seek;
        let failed = checked(name, &slower);
        assert!(failed.share() < 0.7, "{failed:?}");
        // Another speed: the blocks are not where they are believed to be.
        let mut faster = own;
        faster.spindle = drive::Spindle::from_period_ps(5_900_000_000);
        let failed = checked(name, &faster);
        assert!(failed.share() < 0.3, "{failed:?}");
    }
}
