//! Preemption of large transfers. A request is dispatched in parts, so that an urgent request waits
//! for one part at most (Dimitrijevic, Rangaswami, Chang: Virtual IO, 2002).
//!
//! ```text
//!   one command    |------ seek ------|--- rotation ---|============ transfer ============|
//!
//!   here           ' held back, or    |------ seek ----|==|==|==|==|==|==|==|==|==|==|==|==|
//!                  ' used otherwise   ^                ^  ^  ^  between any two of them
//!                    at any moment    '------------------'--'-- an urgent request may go first
//! ```
//!
//! | Means | Effect |
//! |---|---|
//! | chunking | A request becomes commands of one chunk each. Look-ahead or the buffer hides the gaps. |
//! | just-in-time seek | The first command is dispatched so that its seek lands just before its sector. The slack before it is free. |
//! | splitting | A long seek becomes several shorter ones. |
//! | stepping aside | Between two commands an urgent request goes first, if its gain exceeds the cost of the way back. |
//! | filling | The slack before a command continues the preempted transfer, or reads ahead of the last one (free prefetch). |
//!
//! Each means has its own switch. A switched-on one is used always, or if [`Worth`] expects a gain.

use block::{Duration, Sectors, Switch};
use drive::Profile;
use drive::firmware::WriteBack;

pub mod worth;

pub use worth::Worth;

/// The switches and parameters of preemption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Preemption {
    /// The size of a command of a larger request. `None`: a request is one command.
    pub chunk: Option<Sectors>,
    /// The margin of a just-in-time seek before its sector. `None`: commands are dispatched at
    /// once.
    pub just_in_time: Option<Landing>,
    /// The seeks that are split. `None`: no seek is.
    pub split: Option<Split>,
    /// Whether unused slack reads on behind the last request.
    pub free_prefetch: Switch,
    /// The chunks of a write that are forced to the medium.
    pub last_chunk: LastChunk,
    /// When a transfer steps aside. `None`: never.
    pub aside: Option<Aside>,
    /// Whether the means are used always, or if they gain.
    pub when: When,
}

/// The margin of a just-in-time seek before its sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Landing {
    /// A fixed margin.
    Fixed(Duration),
    /// The margin that the observed seeks need.
    Learned,
}

/// The seeks that are split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Split {
    /// The most cylinders that one seek crosses.
    pub longest: u32,
    /// Whether splitting may cost head time.
    pub cost: SplitCost,
}

/// The head time that splitting a seek may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum SplitCost {
    /// None: the slack before the sector hides the split.
    Hidden,
    /// A revolution.
    Revolution,
}

/// The chunks of a write that are forced to the medium (FUA). Buffered chunks would delay the next
/// command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum LastChunk {
    /// Only the chunks of durable writes.
    #[default]
    Buffered,
    /// The last chunk of each write.
    Forced,
    /// Every n-th chunk, and the last one.
    Every(u32),
}

/// The conditions under which a transfer steps aside for a more urgent request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Aside {
    /// Whether the transfer continues during the urgent request's rotational latency.
    pub fill: Switch,
    /// The largest share of head time for ways back, in thousandths.
    pub most_permille: u16,
}

/// When the switched-on means are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum When {
    /// For every request.
    Always,
    /// For requests with an expected gain.
    Worth,
}

impl Preemption {
    /// The rules of the paper. Chunks have 50 blocks, and seeks land 1.5 ms early. Seeks over half
    /// of the cylinders are split in two. The last chunk of a write is forced, and transfers step
    /// aside at any cost.
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

    /// The rules that suit a drive: all means but free prefetch, if they gain. On a drive with a
    /// write cache every chunk of a write is forced, two at a time, because dirty data delays the
    /// next command.
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

    /// Whether a chunk of a write is forced to the medium. `chunk` is its number in the write, from
    /// 0.
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

/// The position of a chunk in its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkRole {
    /// Other chunks follow.
    Inner,
    /// The chunk is the last.
    Last,
}

/// The chunk that suits a drive: the smallest at which sequential reads keep the full rate, as
/// measured or as computed from the profile.
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

/// The smallest chunk at which look-ahead hides the gaps between commands. The medium reads a chunk
/// while the bus transfers the last one and the host requests the next.
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

/// The host's time from a completion to the next command. A choice: some system calls.
const HOST: Duration = Duration::from_micros(20);

/// The least size of a chunk. A choice: smaller chunks end before the next one is requested, and
/// each costs the host some microseconds.
const LEAST_BYTES: u64 = 16 << 10;

/// The largest size of a chunk. A choice: a millisecond of a current drive.
const MOST_BYTES: u64 = 256 << 10;

/// The share of head time for ways back. A choice: 20 urgent requests a second beside large
/// transfers need a quarter if every one of them preempts.
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
