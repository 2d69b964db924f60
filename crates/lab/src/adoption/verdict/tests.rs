//! Judgements of virtual drives, and of delays that are none.

use std::sync::{Arc, Mutex};

use block::{Duration, Instant};
use drive::{HostJitter, Imperfections, VirtualDrive, catalog};
use profiler::rehearsal::{RehearsalDrive, rehearse};
use profiler::{DriveIdentity, Findings, Offers, Profiler, WritePermission};

use super::super::sampling::{PathSamples, sample};
use super::*;

/// The samples of a drive in virtual time.
fn sampled(device: DriveIdentity, drive: &mut impl RehearsalDrive) -> PathSamples {
    let samples = Arc::new(Mutex::new(PathSamples::default()));
    let theirs = Arc::clone(&samples);
    let mut profiler = Profiler::new(device, Findings::default(), |prober| sample(prober, theirs));
    let ended = rehearse(
        &mut profiler,
        drive,
        Instant::ZERO,
        Duration::from_secs(120),
    );
    // The answer comes within a minute.
    assert!(
        ended.at() < Instant::ZERO + Duration::from_secs(60),
        "{ended:?}"
    );
    drop(profiler);
    let samples = samples.lock().expect("nobody panics");
    samples.clone()
}

fn path(name: &str, jitter: HostJitter) -> (DriveIdentity, VirtualDrive, f64) {
    let truth = catalog::find(name).expect("a drive").profile();
    let truth = Arc::new(truth.expect("a profile"));
    let noise = Imperfections {
        seek_noise: Duration::from_micros(60),
        host: jitter,
        ..Imperfections::default()
    };
    let period = truth.spindle.period_ps() as f64 / 1e9;
    let drive = VirtualDrive::imperfect(truth, noise, 7);
    let device = DriveIdentity::of(&drive, Offers::Nothing, WritePermission::Forbidden);
    (device, drive, period)
}

/// The delays measured behind FUSE and a loop device on two shared cores are about so.
const BUSY: HostJitter = HostJitter {
    floor: Duration::from_micros(50),
    mean: Duration::from_micros(60),
    stalls_ppm: 5_000,
    longest_stall: Duration::from_millis(4),
    measured: None,
    shifts: drive::host::DelayShifts {
        most: Duration::ZERO,
        every: Duration::ZERO,
    },
};

#[test]
fn hard_disks_are_told_as_such_with_their_period() {
    for name in [
        "quantum-atlas-10k",
        "seagate-cheetah-15k5",
        "modern-20tb",
        "hp-c2247a",
    ] {
        for jitter in [HostJitter::default(), BUSY] {
            let (device, mut drive, period) = path(name, jitter);
            let verdict = judge(&sampled(device, &mut drive));
            assert_eq!(verdict.no_disk, None, "{name}: {verdict:?}");
            if let Some(comb) = verdict.comb_ms {
                assert!((comb / period - 1.0).abs() < 1e-3, "{name}: {verdict:?}");
            }
        }
    }
}

#[test]
fn delays_of_the_host_are_stated() {
    let (device, mut drive, _) = path("quantum-atlas-10k", BUSY);
    let verdict = judge(&sampled(device, &mut drive));
    let jitter = verdict.jitter_us.expect("the buffer answers");
    assert!((100.0..5_000.0).contains(&jitter), "{verdict:?}");
    assert!(verdict.comb_ms.is_some(), "{verdict:?}");
}

/// The path's time is that of 4 KiB: electronics, and eight blocks on the bus.
#[test]
fn the_time_of_the_path_is_that_of_eight_blocks_from_the_buffer() {
    let truth = catalog::find("quantum-atlas-10k")
        .expect("a drive")
        .profile();
    let truth = truth.expect("a profile");
    let overheads = truth.overheads;
    let hit = overheads.read_hit.read + overheads.read_completion + truth.bus.read_block * 8;
    let (device, mut drive, _) = path("quantum-atlas-10k", HostJitter::default());
    let verdict = judge(&sampled(device, &mut drive));
    let least = verdict.path_us.expect("the buffer answers");
    assert!(
        (least - hit.as_nanos() as f64 / 1e3).abs() < 1.0,
        "{verdict:?}"
    );
}

/// Answers every read after a time of its own.
struct Delays<F: FnMut(u64, u64) -> u64> {
    time_of: F,
    free: Instant,
    ends: std::collections::VecDeque<block::Outcome>,
    count: u64,
}

impl<F: FnMut(u64, u64) -> u64> Delays<F> {
    fn new(time_of: F) -> Self {
        Delays {
            time_of,
            free: Instant::ZERO,
            ends: std::collections::VecDeque::new(),
            count: 0,
        }
    }
}

impl<F: FnMut(u64, u64) -> u64> RehearsalDrive for Delays<F> {
    fn submit(&mut self, now: Instant, command: block::Command) -> Result<(), block::Refused> {
        let block::Action::Read { extent, .. } = command.action else {
            panic!("it is only read");
        };
        self.count += 1;
        let took = (self.time_of)(extent.start().0, self.count);
        self.free = self.free.max(now) + Duration::from_nanos(took);
        self.ends.push_back(block::Outcome {
            id: command.id,
            at: self.free,
            status: block::Status::Good,
            account: None,
        });
        Ok(())
    }

    fn poll(&mut self, now: Instant) -> Option<block::Outcome> {
        self.ends.front().filter(|end| end.at <= now)?;
        self.ends.pop_front()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.ends.front().map(|end| end.at)
    }
}

fn device() -> DriveIdentity {
    DriveIdentity {
        blocks: 100_000_000,
        block_bytes: 512,
        physical_block_bytes: 512,
        depth: 32,
        offers: Offers::Nothing,
        writes: WritePermission::Forbidden,
    }
}

/// A number that looks random.
fn mixed(number: u64, over: u64) -> u64 {
    (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) % over
}

#[test]
fn what_is_no_disk_is_told_why() {
    let verdict = |time_of: &mut dyn FnMut(u64, u64) -> u64| {
        judge(&sampled(device(), &mut Delays::new(time_of)))
    };
    let memory = verdict(&mut |_, count| 4_000 + mixed(count, 3_000));
    let flash = verdict(&mut |_, count| 90_000 + mixed(count, 40_000));
    for fast in [memory, flash] {
        let why = fast.no_disk.expect("no disk");
        assert!(why.contains("memory, flash, or a cache"), "{why}");
    }
    // Every third region is in a cache of the host, or a hole.
    let cached = verdict(&mut |block, count| match mixed(block / 4096, 3) {
        0 => 20_000,
        _ => 8_000_000 + mixed(count, 4_000_000),
    });
    let why = cached.no_disk.expect("no disk");
    assert!(why.contains("a cache of the host, or holes"), "{why}");
    // A server far away: milliseconds, and no arm.
    let network = verdict(&mut |_, count| 5_000_000 + mixed(count, 2_000_000));
    let why = network.no_disk.expect("no disk");
    assert!(why.contains("as long as near ones"), "{why}");
}

/// Far reads take longer, but no platter turns.
#[test]
fn ends_without_a_comb_are_no_single_disk() {
    let mut before = 0;
    let several = judge(&sampled(
        device(),
        &mut Delays::new(move |block: u64, count| {
            let distance = block.abs_diff(std::mem::replace(&mut before, block));
            4_000_000 + distance / 20 + mixed(count * 77, 6_000_000)
        }),
    ));
    let why = several.no_disk.clone().expect("no single disk");
    assert!(why.contains("no comb of one period"), "{several:?}");
}

#[test]
fn unreadable_blocks_are_no_disk() {
    let verdict = judge(&PathSamples {
        failed: 8,
        ..PathSamples::default()
    });
    let why = verdict.no_disk.expect("no disk");
    assert!(why.contains("can be read"), "{why}");
}

#[test]
fn angles_are_together_across_the_beginning_of_a_revolution() {
    let most = |angles: &[f64]| most_together(&mut angles.to_vec());
    assert_eq!(most(&[0.99, 0.5, 0.005, 0.01, 0.55]), 3);
    assert_eq!(most(&[0.1, 0.3, 0.5]), 1);
    assert_eq!(most(&[0.2, 0.2, 0.21]), 3);
    assert_eq!(most(&[]), 0);
}
