//! The site of measurements: fresh tracks, and times at which a block passes.

use block::{Action, Direction, Durability, Duration, Extent, Instant, Lba, Sectors, Status};
use drive::Geometry;
use drive::geometry::Track;

use crate::clock::PlatterClock;
use crate::device::{DriveIdentity, Offers};
use crate::prober::{Prober, Timing};

/// A part of the disk that supplies unused tracks to every measurement.
pub(super) struct TestSite {
    pub(super) prober: Prober,
    pub(super) geometry: Geometry,
    period: f64,
    /// The next fresh block.
    next: u64,
    /// The range of fresh blocks.
    area: (u64, u64),
    /// State of random numbers, for irregular times.
    drawn: u64,
    /// The time of a one-block hit of a read after a read.
    pub(super) hit: Option<f64>,
}

/// Parts of the disk besides the usual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiskArea {
    /// Long tracks of equal length.
    Outer,
    /// Short tracks of equal length.
    Inner,
}

/// The previous part of the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Back {
    next: u64,
    area: (u64, u64),
}

/// Distance of fresh tracks in blocks, besides four to twelve tracks. Look-ahead on one must not
/// reach the next, and drives of the 1990s have segments of up to 600 blocks.
const APART: u64 = 600;

/// Maximum deviation of a hit from the usual time, in nanoseconds: a choice, six times the known
/// noise of electronics.
const CLOSE: f64 = 120e3;

impl TestSite {
    pub(super) fn new(prober: Prober, geometry: Geometry, clock: PlatterClock) -> Self {
        let blocks = geometry.sectors().0;
        TestSite {
            prober,
            geometry,
            period: clock.period(),
            next: blocks / 8,
            area: (blocks / 8, blocks * 3 / 8),
            drawn: 1,
            hit: None,
        }
    }

    /// One revolution, in nanoseconds.
    pub(super) fn period(&self) -> f64 {
        self.period
    }

    pub(super) fn device(&self) -> DriveIdentity {
        self.prober.device()
    }

    /// Sets one of the drive's switches, if it has them.
    pub(super) async fn switch(&self, action: Action) {
        if self.device().offers == Offers::CacheControl {
            self.prober.ask(action).await;
        }
    }

    /// A random number below one.
    pub(super) fn draw(&mut self) -> f64 {
        self.drawn = self.drawn.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.drawn ^ (self.drawn >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Switches to another part of the disk. Returns the previous one.
    pub(super) fn go_to(&mut self, part: DiskArea) -> Back {
        let back = Back {
            next: self.next,
            area: self.area,
        };
        let blocks = self.geometry.sectors().0;
        self.area = match part {
            DiskArea::Outer => (blocks / 64, blocks / 32),
            DiskArea::Inner => (blocks * 15 / 16, blocks * 61 / 64),
        };
        self.next = self.area.0;
        back
    }

    pub(super) fn come_back(&mut self, back: Back) {
        self.next = back.next.max(back.area.0);
        self.area = back.area;
    }

    /// An unused track on which all sectors hold blocks in order. The area is reused from its
    /// beginning.
    pub(super) fn fresh(&mut self) -> Track {
        let (begin, end) = self.area;
        for _ in 0..1000 {
            if self.next > end {
                // Not the same tracks again.
                self.next = begin + self.next % 4096;
            }
            let Some(track) = self.geometry.track_of(Lba(self.next)) else {
                self.next = begin;
                continue;
            };
            // Some tracks more, so that steps do not fall in with cylinders.
            let tracks = 4.0 + 8.0 * self.draw();
            let step = (tracks * f64::from(track.sectors)) as u64;
            self.next = track.last.0.max(self.next) + step + APART;
            if self.is_whole(&track) {
                return track;
            }
        }
        let begin = Lba(begin);
        self.geometry.track_of(begin).expect("a drive has tracks")
    }

    /// Reserves the next blocks for the caller.
    pub(super) fn skip(&mut self, blocks: u64) {
        self.next += blocks;
    }

    /// Whether the blocks of a track are in order and without gaps.
    pub(super) fn is_whole(&self, track: &Track) -> bool {
        let blocks = track.last.0 + 1 - track.first.0;
        let Ok(extent) = Extent::new(track.first, Sectors(blocks)) else {
            return false;
        };
        let run = self.geometry.runs(extent).next();
        run.is_some_and(|run| {
            u64::from(run.blocks) == blocks
                && run.sweep.raw() - track.width.times(blocks).raw() < track.width.raw() / 2
        }) && blocks * 5 >= u64::from(track.sectors) * 4
    }

    /// The next track in block order.
    pub(super) fn after(&self, track: &Track) -> Option<Track> {
        self.geometry.track_of(Lba(track.last.0 + 1))
    }

    /// The time of one sector of a track, in nanoseconds.
    pub(super) fn sector(&self, track: &Track) -> f64 {
        self.period / f64::from(track.sectors)
    }

    pub(super) async fn pause(&self, length: f64) {
        self.prober
            .pause(Duration::from_nanos(length.max(0.0) as u64))
            .await;
    }

    /// Reads blocks like any other client.
    pub(super) async fn read(&self, lba: Lba, blocks: u64) -> Timing {
        self.prober.read(self.prober.extent(lba, blocks)).await
    }

    /// A command that accesses the medium, if the drive supports that.
    pub(super) fn to_medium(&self, direction: Direction, lba: Lba, blocks: u64) -> Action {
        let extent = self.prober.extent(lba, blocks);
        match direction {
            Direction::Read => self.prober.from_medium(extent),
            Direction::Write => Action::Write {
                extent,
                durability: Durability::Durable,
            },
        }
    }

    /// Executes such a command.
    pub(super) async fn ask(&self, direction: Direction, lba: Lba, blocks: u64) -> Timing {
        self.prober
            .ask(self.to_medium(direction, lba, blocks))
            .await
    }

    /// A write that may end early.
    pub(super) async fn write(&self, lba: Lba, blocks: u64) -> Timing {
        let extent = self.prober.extent(lba, blocks);
        let durability = Durability::Volatile;
        self.prober.ask(Action::Write { extent, durability }).await
    }

    /// Reads one block, and returns whether it was in the buffer.
    pub(super) async fn hits(&self, lba: Lba) -> bool {
        let timing = self.read(lba, 1).await;
        let usual = self.hit.unwrap_or(0.0);
        if self.device().offers == Offers::Nothing {
            // The host delays answers.
            let fast = self.prober.findings(|findings| findings.fast);
            return timing.status == Status::Good && took(&timing) <= fast.as_nanos() as f64;
        }
        timing.status == Status::Good && (took(&timing) - usual).abs() < CLOSE
    }
}

/// The result of two of at most three tests that agree, since a disturbance may have spoilt one.
macro_rules! agreed {
    ($answer:expr) => {{
        let (mut yes, mut no) = (0, 0);
        while yes < 2 && no < 2 {
            if $answer {
                yes += 1;
            } else {
                no += 1;
            }
        }
        yes == 2
    }};
}
pub(super) use agreed;

/// The time of a command at the drive, in nanoseconds.
pub(super) fn took(timing: &Timing) -> f64 {
    timing.ended.since(timing.submitted).as_nanos() as f64
}

/// A time in nanoseconds.
pub(super) fn moment(at: Instant) -> f64 {
    at.as_nanos() as f64
}

/// The median; `None` without values.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
