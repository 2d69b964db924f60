//! A map that is made while somebody else uses the drive: sightings need nothing but the moment at
//! which they end.

use std::sync::Arc;

use block::{Action, Command, CommandId, Durability, Duration, Extent, Instant, Lba};
use drive::VirtualDrive;
use profiler::{
    DriveIdentity, Findings, NextProbe, Offers, Profiler, WritePermission, map, spindle,
};

use crate::harness::{noisy, shipped};

/// From here on, names of commands are the foreground's.
const FOREGROUND: u64 = 1 << 60;

/// A drive with the profiler's commands, and a random read of the foreground every 15 ms.
struct Shared {
    drive: VirtualDrive,
    profiler: Profiler,
    now: Instant,
    next: Instant,
    given: u64,
}

impl Shared {
    /// Until the profiler has finished; answers how many reads the foreground had.
    fn run(&mut self) -> u64 {
        loop {
            let wakeup = match self.profiler.next_probe(self.now) {
                NextProbe::Probe(command) => {
                    self.drive
                        .submit(self.now, command)
                        .expect("room for one more");
                    continue;
                }
                NextProbe::Finished => return self.given,
                NextProbe::Wait => None,
                NextProbe::WaitUntil(at) => Some(at),
            };
            if self.next <= self.now {
                self.foreground();
            }
            let times = [wakeup, self.drive.next_wakeup(), Some(self.next)];
            let then = times
                .into_iter()
                .flatten()
                .min()
                .expect("the foreground's next");
            self.now = then.max(self.now);
            assert!(
                self.now < Instant::from_nanos(300_000_000_000),
                "five minutes"
            );
            while let Some(outcome) = self.drive.poll(self.now) {
                if outcome.id.0 < FOREGROUND {
                    self.profiler.observe(self.now, outcome);
                }
            }
        }
    }

    fn foreground(&mut self) {
        let blocks = self.drive.truth().geometry.sectors().0;
        let lba = Lba(self.given.wrapping_mul(0x9E37_79B9_7F4A_7C15) % blocks);
        let action = Action::Read {
            extent: Extent::block(lba),
            durability: Durability::Volatile,
        };
        let command = Command::new(CommandId(FOREGROUND + self.given), action);
        if self.drive.submit(self.now, command).is_ok() {
            self.profiler.interrupted();
            self.given += 1;
        }
        self.next = self.now + Duration::from_millis(15);
    }
}

#[test]
fn a_map_is_exact_behind_a_load() {
    let truth = Arc::new(shipped("seagate-cheetah-18lp"));
    let drive = VirtualDrive::imperfect(Arc::clone(&truth), noisy(), 3);
    let device = DriveIdentity::of(&drive, Offers::CacheControl, WritePermission::Forbidden);
    let profiler = Profiler::new(device, Findings::default(), move |prober| async move {
        let found = spindle::find(&prober, Lba(device.blocks / 3)).await;
        found.expect("a period");
        map::explore(&prober, Lba(0), Lba(device.blocks)).await;
    });
    let mut shared = Shared {
        drive,
        profiler,
        now: Instant::ZERO,
        next: Instant::ZERO,
        given: 0,
    };
    assert!(shared.run() > 1_000, "a load");
    let map = shared.profiler.findings().map;
    assert!(
        map.known() * 1000 > device.blocks * 999,
        "{} known",
        map.known()
    );
    for n in 1..=5_000u64 {
        let lba = Lba(n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % device.blocks);
        let Some(found) = map.track_of(lba) else {
            continue;
        };
        let track = truth.geometry.track_of(lba).expect("a block");
        assert_eq!(
            (found.first, found.sectors),
            (track.first, track.sectors),
            "{lba:?}"
        );
    }
}
