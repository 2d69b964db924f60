//! The delays that a host adds on the way to an emulated drive, in real time.
//!
//! ```text
//!   headtime serve, an emulated drive --NBD | FUSE, loop device--> reads of one block, one at a time
//!
//!   again     a block that the drive's buffer has: what the read took, less the drive's own time
//!   outcomes  blocks all over the disk: the end, less the angle at which the drive ends such a read
//! ```
//!
//! The drive's angle is known up to the start of its clock. The earliest end of all has no delay by definition, and
//! *outcomes* lacks the least delay. A delay beyond a revolution counts as one shorter by a revolution.

use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use block::{Action, Command, CommandId, Durability, Duration, Extent, Instant, Lba, Status};
use drive::{Profile, VirtualDrive};
use profiler::prober::Prober;
use profiler::{Findings, Profiler};
use serde::Serialize;
use server::cpu_latency::CpuLatency;

use super::adopt::{ServedTruth, Via};
use super::loop_device::LOSETUP;
use super::rig;
use crate::adoption::OpenPath;
use crate::{Failure, named};

/// The settings of the benchmark.
#[derive(Clone, Debug)]
pub struct JitterBench {
    /// The emulated drive: a name from `headtime drives`, or a profile file.
    pub drive: String,
    /// The paths.
    pub vias: Vec<Via>,
    /// Reads of each kind.
    pub reads: u32,
    /// Whether the CPUs may sleep while a read is on its way. An adoption keeps them awake, if it may.
    pub cpus_sleep: bool,
}

/// The delays of one path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JitterFigures {
    /// The path.
    pub via: Via,
    /// The drive.
    pub drive: String,
    /// Reads of each kind.
    pub reads: u32,
    /// Whether the CPUs were kept awake.
    pub cpus_awake: bool,
    /// Both ways together, beyond the drive's own time.
    pub again_us: Vec<DelayQuantile>,
    /// From the drive's end to the program, beyond the least.
    pub outcomes_us: Vec<DelayQuantile>,
}

/// A quantile of delays.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DelayQuantile {
    /// The share of delays that are not longer, in percent.
    pub percent: f64,
    /// The delay in microseconds.
    pub us: f64,
}

/// The shares of the quantiles, in percent.
pub const SHARES: [f64; 13] = [
    0.0, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 100.0,
];

/// Places that are read in turn. A choice: more than segments of the buffers of known drives but the Maxtor's.
const PLACES: u64 = 64;

/// The longest gap among delays that are no stalls, in nanoseconds. A choice: a twentieth of the shortest revolution.
const GAP: u64 = 150_000;

/// The longest time for a read, on average: the slowest drives need half of it.
const LONGEST_READ: Duration = Duration::from_millis(60);

/// The ends of reads, and the times of reads from the buffer.
#[derive(Clone, Debug, Default)]
struct Reads {
    /// How long each read of a buffered block took.
    again: Vec<u64>,
    /// The place of each other read, and its end.
    ends: Vec<(u64, u64)>,
}

impl JitterBench {
    /// Measures all paths.
    ///
    /// # Errors
    /// If a program is missing or does not run, or a read fails.
    pub fn run(&self) -> Result<Vec<JitterFigures>, Failure> {
        if self.vias.contains(&Via::FuseLoop) {
            rig::need(&[LOSETUP])?;
        }
        self.vias.iter().map(|via| self.one(*via)).collect()
    }

    fn one(&self, via: Via) -> Result<JitterFigures, Failure> {
        let truth = Arc::new(named::drive(&self.drive)?);
        let folder = tempfile::tempdir().map_err(Failure::failed)?;
        let profile = folder.path().join("drive.toml");
        fs::write(&profile, named::drive_text(&self.drive)?).map_err(Failure::failed)?;
        let drive = (profile.as_path(), truth.block_bytes);
        let served = ServedTruth::start(0.0, drive, via, folder.path())?;
        let awake = match self.cpus_sleep {
            true => None,
            false => CpuLatency::at_most(0).ok(),
        };
        let reads = self.read(&served.path)?;
        let truth = truth.switched(ON, OFF);
        Ok(JitterFigures {
            cpus_awake: awake.is_some(),
            ..figures(via, &truth, self.reads, &reads)
        })
    }

    fn read(&self, path: &str) -> Result<Reads, Failure> {
        let mut path = OpenPath::open(path)?;
        let reads = Arc::new(Mutex::new(Reads::default()));
        let (theirs, count) = (Arc::clone(&reads), self.reads);
        let mut profiler = Profiler::new(path.device(), Findings::default(), move |prober| {
            take(prober, count, theirs)
        });
        path.carry_out(&mut profiler, LONGEST_READ * u64::from(2 * count))?;
        let reads = reads.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match reads.again.len() + reads.ends.len() {
            taken if taken == 2 * count as usize => Ok(reads),
            taken => Err(Failure::failed(format!("only {taken} reads ended in time"))),
        }
    }
}

/// The switches of the served drive ([`ServedTruth`]).
const ON: block::Switch = block::Switch::On;
const OFF: block::Switch = block::Switch::Off;

/// Reads one block over and over, and then the places in turn.
async fn take(prober: Prober, count: u32, reads: Arc<Mutex<Reads>>) {
    let blocks = prober.device().blocks;
    let keep = |change: &dyn Fn(&mut Reads)| {
        change(&mut reads.lock().unwrap_or_else(PoisonError::into_inner));
    };
    let again = Extent::block(place(blocks, PLACES));
    prober.read(again).await;
    for _ in 0..count {
        let timing = prober.read(again).await;
        if timing.status == Status::Good {
            let took = timing.ended.since(timing.submitted).as_nanos();
            keep(&|reads| reads.again.push(took));
        }
    }
    for number in 0..u64::from(count) {
        let number = number % PLACES;
        let timing = prober.read(Extent::block(place(blocks, number))).await;
        if timing.status == Status::Good {
            keep(&|reads| reads.ends.push((number, timing.ended.as_nanos())));
        }
    }
}

/// One of the places, neighbours of which are far from each other: multiples of the golden ratio.
fn place(blocks: u64, number: u64) -> Lba {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let share = (number + 1).wrapping_mul(GOLDEN);
    Lba(((u128::from(share) * u128::from(blocks)) >> 64) as u64)
}

fn figures(via: Via, truth: &Profile, count: u32, reads: &Reads) -> JitterFigures {
    let blocks = truth.geometry.sectors().0;
    let own = own_time(truth, place(blocks, PLACES)).as_nanos();
    let again = reads.again.iter().map(|took| took.saturating_sub(own));
    let period = truth.spindle.period_ps() / 1000;
    let angles: Vec<u64> = (0..PLACES)
        .map(|number| fresh_end(truth, place(blocks, number)) % period)
        .collect();
    let late = reads.ends.iter().map(|(number, end)| {
        let angle = angles[*number as usize];
        (end % period + period - angle) % period
    });
    JitterFigures {
        via,
        drive: truth.name.clone(),
        reads: count,
        cpus_awake: false,
        again_us: quantiles(again.collect()),
        outcomes_us: quantiles(from_earliest(late.collect(), period)),
    }
}

/// The times after the earliest on a circle: the one that ends an empty stretch before the most frequent ones.
fn from_earliest(mut late: Vec<u64>, period: u64) -> Vec<u64> {
    late.sort_unstable();
    let count = late.len();
    if count == 0 {
        return late;
    }
    // The shortest stretch that has half of them.
    let half = count.div_ceil(2);
    let reach = |first: usize| {
        let last = first + half - 1;
        late[last % count] + period * (last / count) as u64 - late[first]
    };
    let mut first = (0..count).min_by_key(|first| reach(*first)).unwrap_or(0);
    for _ in 0..count {
        let before = (first + count - 1) % count;
        if (late[first] + period - late[before]) % period > GAP {
            break;
        }
        first = before;
    }
    let earliest = late[first];
    let after = late.iter().map(|late| (late + period - earliest) % period);
    after.collect()
}

fn quantiles(mut delays: Vec<u64>) -> Vec<DelayQuantile> {
    delays.sort_unstable();
    let last = delays.len().saturating_sub(1);
    let at = |percent: f64| delays.get((percent / 100.0 * last as f64).round() as usize);
    SHARES
        .iter()
        .filter_map(|&percent| {
            let us = *at(percent)? as f64 / 1e3;
            Some(DelayQuantile { percent, us })
        })
        .collect()
}

/// The drive's own time for a block that it has just read.
fn own_time(truth: &Profile, lba: Lba) -> Duration {
    let mut drive = VirtualDrive::new(Arc::new(truth.clone()));
    let read = served(&mut drive, Instant::ZERO, lba);
    // The look-ahead is over by then.
    let again = read + Duration::from_secs(1);
    served(&mut drive, again, lba).since(again)
}

/// When a drive that begins at 0 with this read ends it, in nanoseconds.
fn fresh_end(truth: &Profile, lba: Lba) -> u64 {
    let mut drive = VirtualDrive::new(Arc::new(truth.clone()));
    served(&mut drive, Instant::ZERO, lba).as_nanos()
}

/// The end of a read on a drive that has nothing else to do.
fn served(drive: &mut VirtualDrive, now: Instant, lba: Lba) -> Instant {
    let read = Action::Read {
        extent: Extent::block(lba),
        durability: Durability::Volatile,
    };
    let given = drive.submit(now, Command::new(CommandId(0), read));
    let mut at = given.ok().and_then(|()| drive.next_wakeup());
    while let Some(wakeup) = at {
        if let Some(outcome) = drive.poll(wakeup) {
            return outcome.at;
        }
        at = drive.next_wakeup();
    }
    now
}

#[cfg(test)]
mod tests {
    use drive::{HostJitter, Imperfections};
    use profiler::rehearsal::rehearse;
    use profiler::{DriveIdentity, Offers, WritePermission};

    use super::*;

    /// The reads of a drive in virtual time, behind a host, from any moment on.
    fn rehearsed(host: HostJitter, from: Duration) -> JitterFigures {
        let truth = Arc::new(named::drive("quantum-atlas-10k").expect("a drive"));
        let truth = Arc::new(truth.switched(ON, OFF));
        let imperfections = Imperfections {
            host,
            ..Imperfections::default()
        };
        let mut drive = VirtualDrive::imperfect(Arc::clone(&truth), imperfections, 3);
        let device = DriveIdentity::of(&drive, Offers::Nothing, WritePermission::Forbidden);
        let reads = Arc::new(Mutex::new(Reads::default()));
        let (theirs, count) = (Arc::clone(&reads), 2_000);
        let mut profiler = Profiler::new(device, Findings::default(), move |prober| {
            take(prober, count, theirs)
        });
        rehearse(
            &mut profiler,
            &mut drive,
            Instant::ZERO + from,
            Duration::from_secs(600),
        );
        let reads = reads.lock().expect("nobody panics").clone();
        figures(Via::Nbd, &truth, count, &reads)
    }

    #[test]
    fn a_host_without_delays_has_none() {
        let figures = rehearsed(HostJitter::default(), Duration::ZERO);
        let all = figures.again_us.iter().chain(&figures.outcomes_us);
        // The prober's clock has whole microseconds at most.
        assert!(
            all.clone().count() == 26 && all.clone().all(|delay| delay.us < 2.0),
            "{figures:?}"
        );
    }

    /// The oracle: the quantiles of an exponential distribution, and of the sum of two.
    #[test]
    fn delays_that_a_simulated_host_draws_are_found() {
        let host = HostJitter {
            floor: Duration::from_micros(70),
            mean: Duration::from_micros(40),
            ..HostJitter::default()
        };
        let figures = rehearsed(host, Duration::from_micros(12_345_678));
        let at = |quantiles: &[DelayQuantile], percent: f64| {
            let found = quantiles.iter().find(|found| found.percent == percent);
            found.expect("it is there").us
        };
        for percent in [25.0, 50.0, 75.0, 90.0] {
            let expected = -40.0 * (1.0_f64 - percent / 100.0).ln();
            let found = at(&figures.outcomes_us, percent);
            assert!(
                (found - expected).abs() < 6.0,
                "{percent}: {found}, {expected}"
            );
        }
        // Half of the sums of two are at most 1.678 means.
        let found = at(&figures.again_us, 50.0);
        assert!((found - 140.0 - 40.0 * 1.678).abs() < 6.0, "{found}");
    }
}
