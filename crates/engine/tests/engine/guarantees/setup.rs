//! What a run with streams is, and what comes of it.

use block::{Direction, Duration};
use drive::Imperfections;
use engine::guarantees::Beyond;

/// In which order the foreground, and what joins it, is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The shortest positioning time first.
    Sptf,
    /// The longest seek first: as bad as can be.
    Farthest,
    /// First come, first served; batches only when they must.
    Fcfs,
}

/// What streams do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// As many readers as are granted.
    Readers,
    /// As many recorders.
    Recorders,
    /// 64 recorders and 8 readers.
    Cameras,
}

impl Mix {
    pub fn direction(self, index: usize) -> Direction {
        match self {
            Mix::Readers => Direction::Read,
            Mix::Recorders => Direction::Write,
            Mix::Cameras if index < 64 => Direction::Write,
            Mix::Cameras => Direction::Read,
        }
    }

    pub fn most(self) -> usize {
        match self {
            Mix::Readers | Mix::Recorders => 1_000,
            Mix::Cameras => 72,
        }
    }
}

/// A run.
#[derive(Clone, Debug)]
pub struct Setup {
    pub policy: Policy,
    /// Bytes of memory of each stream.
    pub memory: u64,
    pub mix: Mix,
    pub foreground_permille: u32,
    pub beyond: Beyond,
    pub imperfections: Imperfections,
    /// How many thousandths of the streams that are granted there are.
    pub streams_permille: usize,
    /// How much further than it said an application reads: that much of its buffer is missing.
    pub further: u64,
    /// How long it lasts once all are served.
    pub lasts: Duration,
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Result {
    pub streams: usize,
    /// Reads and writes of applications, and those that did not find their memory.
    pub accesses: u64,
    pub waited: u64,
    /// Batches, and those after their deadline.
    pub batches: u64,
    pub late: u64,
    pub foreground: u64,
    /// The time in which the head did something for streams, and all time.
    pub head: Duration,
    pub time: Duration,
}

/// Seek noise of 6 us: its 99.9th percentile, 3.09 of them, is within what a skew has to spare.
const NOISE: Duration = Duration::from_micros(6);

fn quiet() -> (Beyond, Imperfections) {
    let beyond = Beyond {
        seek: Duration::from_micros(19),
        ..Beyond::default()
    };
    let imperfections = Imperfections {
        seek_noise: NOISE,
        ..Imperfections::default()
    };
    (beyond, imperfections)
}

pub fn setup(memory: u64) -> Setup {
    let (beyond, imperfections) = quiet();
    Setup {
        policy: Policy::Sptf,
        memory,
        mix: Mix::Readers,
        foreground_permille: 0,
        beyond,
        imperfections,
        streams_permille: 1_000,
        further: 0,
        lasts: Duration::from_secs(40),
        seed: 1,
    }
}
