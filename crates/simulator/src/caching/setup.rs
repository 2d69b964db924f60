//! What a system is built from.

use std::sync::Arc;

use block::{Class, Duration};
use cache::replacement::BadReplacement;
use cache::settings::BadSettings;
use drive::{Imperfections, Profile};
use engine::Rules;
use scheduler::freeblock::{Caution, Ranges, SameTrack};
use scheduler::policy::UnknownPolicy;

/// A cache, by the names that users write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSpec {
    /// Frames of 4 KiB.
    pub frames: u64,
    /// Which replacement, as `lru`.
    pub replacement: String,
    /// Which prefetcher, as `ra(p=4)`.
    pub prefetcher: String,
}

/// A level below the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerLevel {
    /// The cache.
    pub level: CacheSpec,
    /// Which coordinator stands in front of it, as `pfc`.
    pub coordinator: String,
    /// How its replies travel upwards.
    pub link: Link,
}

/// What a reply costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// For each reply.
    pub start: Duration,
    /// For each page of it.
    pub page: Duration,
}

/// A whole system.
#[derive(Clone, Debug)]
pub struct CachingSetup {
    /// The first level: a cache for each client.
    pub clients: Vec<CacheSpec>,
    /// The levels that they share, from the upper one downwards; none: the clients' caches stand
    /// before the disk.
    pub lower: Vec<LowerLevel>,
    /// The disk.
    pub drive: Arc<Profile>,
    /// What stands before it.
    pub scheduler: Scheduler,
}

/// What the drive is given its commands by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scheduler {
    /// A one-way elevator that merges neighbours, one command at a time: the paper's.
    #[default]
    Elevator,
    /// Our engine.
    Engine(EngineScheduling),
}

/// How the engine serves the lowest level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineScheduling {
    /// Which policy, as `sptf`.
    pub policy: String,
    /// How background reads are fitted in; none: there are none.
    pub background: Option<Rules>,
    /// The class of prefetches that come by themselves; demands have the default one.
    pub prefetches: Class,
    /// What becomes of what the lowest level's coordinator reads more.
    pub readmore: Readmore,
    /// If the engine stands outside the drive: its results are *external*. Without, it believes of the drive
    /// what is true, and its results are *in-firmware*.
    pub outside: Option<Arc<ExternalBelief>>,
}

/// What an engine outside its drive believes of it, and what it cannot know.
#[derive(Clone, Debug)]
pub struct ExternalBelief {
    /// What the profiler found from timings; the engine follows the drive from there.
    pub belief: Arc<Profile>,
    /// What the drive is besides its profile.
    pub imperfections: Imperfections,
    /// The seed of the drive's dice: another one than while it was profiled.
    pub seed: u64,
}

impl PartialEq for ExternalBelief {
    /// The same finding, of a drive that does the same.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.belief, &other.belief)
            && self.imperfections == other.imperfections
            && self.seed == other.seed
    }
}

impl Eq for ExternalBelief {}

/// What becomes of what a coordinator reads more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Readmore {
    /// It is fetched with the request.
    #[default]
    Fetched,
    /// It is wished, and read in the background.
    Wished,
    /// It is wished as long as most wishes come true before somebody asks for the blocks, and else fetched.
    WishedWhileGranted,
}

/// Why a system cannot be built, or is asked for what it has not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSetup {
    /// A replacement or a cache that there is not.
    #[error("{level}: {source}")]
    Replacement {
        /// Which level, counted from 1.
        level: String,
        /// Why.
        source: BadReplacement,
    },
    /// A prefetcher or coordinator that there is not.
    #[error("{level}: {source}")]
    Settings {
        /// Which level, counted from 1.
        level: String,
        /// Why.
        source: BadSettings,
    },
    /// A coordinator that marks what was sent, above a replacement that has no marks.
    #[error("{level}: coordinator du with replacement {replacement}: expected replacement du")]
    Unmarked {
        /// Which level.
        level: String,
        /// What stands there.
        replacement: String,
    },
    /// Nobody asks.
    #[error("a system without clients: expected at least one")]
    NoClients,
    /// The drive has blocks of another size.
    #[error("a drive of {0} bytes a sector: expected a part of 4096")]
    SectorSize(u64),
    /// A request past the end of the disk.
    #[error("blocks {first} to {last}: expected at most {most}, the last one of the disk")]
    PastEnd {
        /// The first block.
        first: u64,
        /// The last block.
        last: u64,
        /// The last block that the disk has.
        most: u64,
    },
    /// A policy that there is not.
    #[error(transparent)]
    Policy(#[from] UnknownPolicy),
    /// A class that requests of caches cannot have.
    #[error("prefetches of class {0:?}: expected best effort 0 to 6, or background")]
    Class(Class),
    /// Wishes that nobody could grant.
    #[error("readmore that is wished, without background reads: expected rules for these")]
    NeverGranted,
    /// Background reads on a drive that takes one command at a time.
    #[error(
        "background reads of a drive that takes one command at a time: expected one that takes two, since \
         they are given while the command before them is in service"
    )]
    OneCommand,
    /// What is believed is another drive's.
    #[error("a belief of {believed} sectors: expected {sectors}, those of the drive")]
    Belief {
        /// Of the belief.
        believed: u64,
        /// Of the drive.
        sectors: u64,
    },
    /// A trace that touches more than the disk has.
    #[error("{blocks} distinct blocks: expected at most {disk}, those of the disk")]
    TooLarge {
        /// Blocks that the trace touches.
        blocks: u64,
        /// Blocks of the disk.
        disk: u64,
    },
    /// A request of a client that the system has not.
    #[error("client {0}: expected less than {1}")]
    NoSuchClient(u32, usize),
    /// Requests of no blocks, or of more than a request may have.
    #[error("a request of {0} blocks: expected 1 to {most}", most = cache::coordinator::LONGEST_REQUEST)]
    Length(u64),
}

impl Link {
    /// Zhang et al., 4.1: 6 ms and 0.03 ms for each page.
    pub const LAN: Link = Link {
        start: Duration::from_millis(6),
        page: Duration::from_micros(30),
    };

    /// How long a reply of so many pages takes.
    pub fn reply(&self, pages: u64) -> Duration {
        self.start + self.page * pages
    }
}

impl EngineScheduling {
    /// Under this policy, everything of one class, without background reads.
    pub fn by(policy: &str) -> Self {
        EngineScheduling {
            policy: policy.to_owned(),
            background: None,
            prefetches: Class::default(),
            readmore: Readmore::Fetched,
            outside: None,
        }
    }

    /// Under SPTF, with background reads that keep no distance, as a scheduler in the firmware can: it
    /// knows the drive as it is.
    pub fn exact(readmore: Readmore) -> Self {
        let rules = Rules {
            caution: Caution::Fixed {
                guard: Duration::ZERO,
                near_miss: Duration::ZERO,
            },
            same_track: SameTrack::Allowed,
            ranges: Ranges::Two,
            ..Rules::default()
        };
        EngineScheduling {
            background: Some(rules),
            readmore,
            ..EngineScheduling::by("sptf")
        }
    }

    /// Under SPTF, with background reads as carefully as the engine keeps to its budget by itself, outside a
    /// drive that reads ahead where it likes: no reads of their own on the tracks of requests.
    pub fn external(outside: Arc<ExternalBelief>, readmore: Readmore) -> Self {
        EngineScheduling {
            background: Some(Rules::default()),
            readmore,
            outside: Some(outside),
            ..EngineScheduling::by("sptf")
        }
    }
}

impl CacheSpec {
    /// From names.
    pub fn new(frames: u64, replacement: &str, prefetcher: &str) -> Self {
        CacheSpec {
            frames,
            replacement: replacement.to_owned(),
            prefetcher: prefetcher.to_owned(),
        }
    }
}
