//! A host that is too busy at first: the procedure by reads alone goes on until its time ends.

use std::collections::VecDeque;
use std::sync::Arc;

use block::{Command, Duration, Instant, Outcome, Refused};
use drive::VirtualDrive;
use profiler::findings::ProfilingStage;
use profiler::procedure::complete;
use profiler::rehearsal::{RehearsalDrive, rehearse};
use profiler::{DriveIdentity, Findings, Offers, Profiler, WritePermission};

use crate::harness::{noisy, shipped};

/// A drive whose outcomes are late by anything up to 6 ms in a part of the time.
struct BusyAtTimes {
    drive: VirtualDrive,
    /// The part.
    from: Instant,
    to: Instant,
    late: VecDeque<Outcome>,
    count: u64,
}

impl RehearsalDrive for BusyAtTimes {
    fn submit(&mut self, now: Instant, command: Command) -> Result<(), Refused> {
        self.drive.submit(now, command)
    }

    fn poll(&mut self, now: Instant) -> Option<Outcome> {
        while let Some(outcome) = self.drive.poll(now) {
            let mut at = outcome.at;
            if (self.from..self.to).contains(&at) {
                self.count += 1;
                let random = self.count.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
                at += Duration::from_nanos((random * 6_000_000) >> 32);
            }
            self.late.push_back(Outcome { at, ..outcome });
        }
        self.late.front().filter(|outcome| outcome.at <= now)?;
        self.late.pop_front()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let late = self.late.front().map(|outcome| outcome.at);
        [late, self.drive.next_wakeup()].into_iter().flatten().min()
    }
}

/// What is found in ten minutes, in the first part of which the host is busy.
fn found(from: u64, to: u64, until: u64) -> (Findings, f64) {
    let truth = Arc::new(shipped("quantum-atlas-10k"));
    let drive = VirtualDrive::imperfect(Arc::clone(&truth), noisy(), 5);
    let device = DriveIdentity::of(&drive, Offers::Nothing, WritePermission::Forbidden);
    let budget = Duration::from_secs(600);
    let mut profiler = Profiler::new(device, Findings::default(), move |prober| {
        complete(prober, budget)
    });
    let second = |second| Instant::ZERO + Duration::from_secs(second);
    let mut drive = BusyAtTimes {
        drive,
        from: second(from),
        to: second(to),
        late: VecDeque::new(),
        count: 0,
    };
    rehearse(
        &mut profiler,
        &mut drive,
        Instant::ZERO,
        Duration::from_secs(until),
    );
    let period = truth.spindle.period_ps() as f64;
    let findings = profiler.findings();
    let ppm = (findings.spindle.period_ps as f64 / period - 1.0) * 1e6;
    (findings, ppm)
}

/// It gave up after two blocks without a period, and nine of ten minutes were left.
#[test]
fn a_spindle_that_is_not_found_at_first_is_looked_for_again() {
    let (early, _) = found(0, 60, 50);
    assert!(early.clock.is_none(), "{:?}", early.spindle);
    let failed = early.progress.failed;
    assert!(
        matches!(failed[..], [(ProfilingStage::Spindle, _)]),
        "{failed:?}"
    );
    let (later, ppm) = found(0, 60, 150);
    assert!(ppm.abs() < 5.0, "{ppm} ppm");
    assert!(later.spindle.confidence.ppm() > 800_000);
    assert!(later.map.known() > 0, "tracks");
    assert_eq!(later.progress.failed, []);
}

/// A map of which no track is found is begun again, with a clock that is started anew if it has lost the platter.
#[test]
fn a_map_without_a_track_is_begun_again() {
    let (before, _) = found(24, 200, 26);
    assert!(before.clock.is_some(), "the spindle is found by then");
    let (early, _) = found(24, 200, 190);
    assert_eq!(early.map.known(), 0);
    let (later, ppm) = found(24, 200, 420);
    assert!(ppm.abs() < 5.0, "{ppm} ppm");
    let known = later.map.known() * 10;
    assert!(
        known > shipped("quantum-atlas-10k").geometry.sectors().0,
        "{known}"
    );
}
