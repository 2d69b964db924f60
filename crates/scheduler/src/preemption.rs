//! Large transfers that step aside: how a request is given to the drive in parts, and when, so that
//! something more urgent waits for no more than one of them (Dimitrijevic, Rangaswami, Chang: Virtual
//! IO, 2002).
//!
//! ```text
//!   one command    |------ seek ------|--- rotation ---|============ transfer ============|
//!
//!   here           ' held back, or    |------ seek ----|==|==|==|==|==|==|==|==|==|==|==|==|
//!                  ' used otherwise   ^                ^  ^  ^  between any two of them
//!                    at any moment    '------------------'--'-- something urgent may go first
//! ```
//!
//! - *Chunking*: a request becomes commands of one chunk each; the drive's look-ahead, or its
//!   buffer, hides that they come one by one.
//! - *Just-in-time seek*: the first command of a request is given when its seek lands just before
//!   its sector. The slack before it is free for others.
//! - *Splitting*: a long seek becomes several shorter ones.
//! - *Stepping aside*: between two commands something more urgent goes first, if what it gains is
//!   worth the way back.
//! - *Filling*: the slack before a command goes on with the transfer that stepped aside, or reads
//!   ahead of the one before (free prefetch).
//!
//! Each can be switched by itself. Whether a switched-on one is used for a request is weighed by
//! [`Worth`], or always done.

use block::{Duration, Sectors, Switch};
use drive::Profile;
use drive::firmware::WriteBack;

pub mod worth;

pub use worth::Worth;

/// What of it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Preemption {
    /// The size of a command of a larger request; none: requests are single commands.
    pub chunk: Option<Sectors>,
    /// How long before its sector a just-in-time seek lands; none: commands are given at once.
    pub just_in_time: Option<Landing>,
    /// Which seeks are split; none: no seek is.
    pub split: Option<Split>,
    /// Whether slack that nobody else wants reads on behind the request before.
    pub free_prefetch: Switch,
    /// Which chunks of a write are forced to the medium.
    pub last_chunk: LastChunk,
    /// When a transfer steps aside; none: never.
    pub aside: Option<Aside>,
    /// Whether each of these is always used, or where it is worth it.
    pub when: When,
}

/// How long before its sector a seek lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Landing {
    /// So long.
    Fixed(Duration),
    /// As long as seeks are found to need.
    Learned,
}

/// Which seeks are split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Split {
    /// The most cylinders that one seek crosses.
    pub longest: u32,
    /// Whether it may cost head time.
    pub cost: SplitCost,
}

/// Whether splitting a seek may cost head time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum SplitCost {
    /// Only where the slack before the sector hides it.
    Hidden,
    /// Also where it costs a revolution.
    Revolution,
}

/// Which chunks of a write, whose buffering would delay whatever comes next, are forced to the medium
/// (FUA).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum LastChunk {
    /// None but those of durable writes.
    #[default]
    Buffered,
    /// The last one of each write.
    Forced,
    /// Every so many, and the last one.
    Every(u32),
}

/// When a transfer that is under way steps aside for something more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Aside {
    /// Whether it goes on while what is urgent waits for its sector anyway.
    pub fill: Switch,
    /// The most head time that ways back may take, in thousandths of all.
    pub most_permille: u16,
}

/// Whether what is switched on is always used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum When {
    /// For every request.
    Always,
    /// Where it wins more than it costs, by expectation.
    Worth,
}

impl Preemption {
    /// The rules of the paper: chunks of 50 blocks, seeks that land 1.5 ms early, seeks over half of
    /// the cylinders in two, the last chunk of a write forced, and stepping aside whatever it costs.
    pub fn as_in_paper(belief: &Profile) -> Preemption {
        Preemption {
            chunk: Some(PAPER_CHUNK),
            just_in_time: Some(Landing::Fixed(PAPER_LANDING)),
            split: Some(Split {
                longest: (belief.geometry.cylinders() / 2).max(1),
                cost: SplitCost::Revolution,
            }),
            free_prefetch: Switch::Off,
            last_chunk: LastChunk::Forced,
            aside: Some(Aside {
                fill: Switch::Off,
                most_permille: 1000,
            }),
            when: When::Always,
        }
    }

    /// What suits a drive: all but free prefetch, where it is worth it. Of a drive with a write cache
    /// every chunk of a write is forced, two at a time: what is in a cache delays whatever comes next.
    pub fn suited_to(belief: &Profile) -> Preemption {
        let last_chunk = match belief.buffer.write_back {
            WriteBack::None => LastChunk::Buffered,
            WriteBack::Append | WriteBack::All => LastChunk::Every(1),
        };
        Preemption {
            chunk: Some(chunk(belief)),
            just_in_time: Some(Landing::Learned),
            split: Some(Split {
                longest: (belief.geometry.cylinders() / 4).max(1),
                cost: SplitCost::Hidden,
            }),
            free_prefetch: Switch::Off,
            last_chunk,
            aside: Some(Aside {
                fill: Switch::On,
                most_permille: MOST_PERMILLE,
            }),
            when: When::Worth,
        }
    }

    /// Whether so many chunks of a write after the first end with one that is forced.
    pub fn is_forced(&self, chunk: u32, part: ChunkRole) -> bool {
        match self.last_chunk {
            LastChunk::Buffered => false,
            LastChunk::Forced => part == ChunkRole::Last,
            LastChunk::Every(every) => {
                part == ChunkRole::Last || (chunk + 1).is_multiple_of(every.max(1))
            }
        }
    }
}

/// Where a chunk stands in its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkRole {
    /// Others follow.
    Inner,
    /// None follows.
    Last,
}

/// The chunk that suits a drive: the smallest with which sequential reads keep the full rate, as measured,
/// or worked out of what else is known of the drive.
fn chunk(belief: &Profile) -> Sectors {
    let least = match belief.chunks {
        Some(chunks) => chunks.least,
        None => least_chunk(belief),
    };
    let bytes = u64::from(belief.block_bytes);
    Sectors(
        least
            .0
            .clamp(LEAST_BYTES / bytes, MOST_BYTES / bytes)
            .max(1),
    )
}

/// The smallest chunk at which the drive's look-ahead hides that chunks are asked for one by one: while it
/// is on its way over the bus, and the next one is asked for, the medium reads another.
fn least_chunk(belief: &Profile) -> Sectors {
    let tracks = belief.geometry.track_at(0, 0);
    let sector = tracks.map_or(Duration::ZERO, |track| belief.spindle.time_of(track.width));
    let overheads = &belief.overheads;
    let between = overheads.read_hit.read.max(overheads.write_hit.write)
        + overheads.read_completion.max(overheads.write_completion)
        + overheads.read_reselect.max(overheads.write_reselect)
        + HOST;
    let block = belief.bus.read_block.max(belief.bus.write_block);
    let won = sector.saturating_sub(block).as_nanos();
    let least = match won {
        0 => 0,
        won => between.as_nanos().div_ceil(won),
    };
    Sectors(least)
}

/// Virtual IO, 4: 25 kB, in blocks of 512 bytes.
const PAPER_CHUNK: Sectors = Sectors(50);

/// Virtual IO, 4.
const PAPER_LANDING: Duration = Duration::from_micros(1_500);

/// How long a host takes from one completion to the next command. A choice: some system calls.
const HOST: Duration = Duration::from_micros(20);

/// Chunks have at least so many bytes. A choice: smaller ones are gone before the next is asked for, and
/// each costs the host some microseconds.
const LEAST_BYTES: u64 = 16 << 10;

/// And at most so many. A choice: a millisecond of a drive of today.
const MOST_BYTES: u64 = 256 << 10;

/// Ways back may take a quarter of the head time. A choice: 20 urgent requests a second beside large
/// transfers take that much if every one of them is let in.
const MOST_PERMILLE: u16 = 250;

#[cfg(test)]
mod tests {
    use super::*;
    use drive::catalog;
    use drive::profile::Chunks;

    #[test]
    fn a_suitable_chunk_takes_longer_on_the_medium_than_between_two_commands() {
        for entry in catalog::ALL {
            let belief = entry.profile().expect("a shipped drive");
            let chunk = chunk(&belief).0 * u64::from(belief.block_bytes);
            assert!(
                (LEAST_BYTES..=MOST_BYTES).contains(&chunk),
                "{}: {chunk}",
                entry.name
            );
        }
    }

    #[test]
    fn a_measured_chunk_goes_before_one_that_is_worked_out() {
        let mut belief = catalog::ALL[0].profile().expect("a shipped drive");
        let bytes = u64::from(belief.block_bytes);
        for (measured, expected) in [
            (1, LEAST_BYTES),
            (3 * LEAST_BYTES / bytes, 3 * LEAST_BYTES),
            (MOST_BYTES, MOST_BYTES),
        ] {
            belief.chunks = Some(Chunks {
                least: Sectors(measured),
                most: None,
            });
            let suited = Preemption::suited_to(&belief).chunk;
            assert_eq!(suited, Some(Sectors(expected / bytes)), "{measured}");
        }
    }

    #[test]
    fn the_last_chunk_is_forced_or_every_so_many_or_none() {
        let belief = catalog::ALL[0].profile().expect("a shipped drive");
        let forced = |last_chunk, chunk, place| {
            let rules = Preemption {
                last_chunk,
                ..Preemption::suited_to(&belief)
            };
            rules.is_forced(chunk, place)
        };
        assert!(!forced(LastChunk::Buffered, 3, ChunkRole::Last));
        assert!(forced(LastChunk::Forced, 3, ChunkRole::Last));
        assert!(!forced(LastChunk::Forced, 3, ChunkRole::Inner));
        let every = [0, 1, 2, 3].map(|n| forced(LastChunk::Every(2), n, ChunkRole::Inner));
        assert_eq!(every, [false, true, false, true]);
        assert!(forced(LastChunk::Every(4), 0, ChunkRole::Last));
    }
}
