//! The parameters of a system.

use std::sync::Arc;

use block::{Class, Duration};
use cache::replacement::BadReplacement;
use cache::settings::BadSettings;
use drive::{Imperfections, Profile};
use engine::Rules;
use scheduler::freeblock::{Caution, Ranges, SameTrack};
use scheduler::policy::UnknownPolicy;

/// A cache, by the names of its algorithms in configuration files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSpec {
    /// Number of frames of 4 KiB.
    pub frames: u64,
    /// The replacement policy, such as `lru`.
    pub replacement: String,
    /// The prefetcher, such as `ra(p=4)`.
    pub prefetcher: String,
}

/// A level below the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerLevel {
    /// The cache.
    pub level: CacheSpec,
    /// The coordinator in front of it, such as `pfc`.
    pub coordinator: String,
    /// The link of its replies to the level above.
    pub link: Link,
}

/// The cost of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Time per reply.
    pub start: Duration,
    /// Time per page.
    pub page: Duration,
}

/// A whole system.
#[derive(Clone, Debug)]
pub struct CachingSetup {
    /// The first level: one cache per client.
    pub clients: Vec<CacheSpec>,
    /// The shared levels in order, upper level first; empty: the disk serves the clients' caches.
    pub lower: Vec<LowerLevel>,
    /// The profile of the disk.
    pub drive: Arc<Profile>,
    /// The scheduler of the disk.
    pub scheduler: Scheduler,
    /// The levels that know where files end.
    pub file_ends: FileEnds,
    /// The treatment of writes.
    pub writes: Writes,
}

/// The treatment of writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writes {
    /// As reads of their blocks, as in earlier simulators (`shared/specs/cache-and-pfc.md`, 9).
    #[default]
    AsReads,
    /// Every level keeps the blocks and passes them on; the request ends when the disk has them. Prefetchers and
    /// coordinators do not see it. Blocks are written whole, so that none is read before.
    Through,
}

/// The levels that know where files end, and do not prefetch beyond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileEnds {
    /// All of them.
    #[default]
    AllLevels,
    /// The first one: the messages to the others name blocks, as those of a block protocol do.
    FirstLevel,
}

/// The scheduler of the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scheduler {
    /// The paper's scheduler: a one-way elevator with merging, one command at a time.
    #[default]
    Elevator,
    /// The engine.
    Engine(EngineScheduling),
}

/// The engine's parameters below the lowest level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineScheduling {
    /// The policy, such as `sptf`.
    pub policy: String,
    /// The rules for background reads; `None`: no background reads.
    pub background: Option<Rules>,
    /// The class of independent prefetches; demands have the default class.
    pub prefetches: Class,
    /// Treatment of the readmore of the lowest level's coordinator.
    pub readmore: Readmore,
    /// The belief of an engine outside of the drive: its results are *external*. Without it the
    /// engine knows the truth, and its results are *in-firmware*.
    pub outside: Option<Arc<ExternalBelief>>,
}

/// The belief of an engine outside of its drive, and the deviations that it does not know.
#[derive(Clone, Debug)]
pub struct ExternalBelief {
    /// The profile that the profiler found; the engine tracks the drive from there.
    pub belief: Arc<Profile>,
    /// Deviations of the drive from its profile.
    pub imperfections: Imperfections,
    /// The seed of the drive's random numbers; different from the seed during profiling.
    pub seed: u64,
}

impl PartialEq for ExternalBelief {
    /// Equal beliefs about drives with the same behaviour.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.belief, &other.belief)
            && self.imperfections == other.imperfections
            && self.seed == other.seed
    }
}

impl Eq for ExternalBelief {}

/// Treatment of the blocks that a coordinator adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Readmore {
    /// The level fetches them with the request.
    #[default]
    Fetched,
    /// The level wishes them, and they are read in the background.
    Wished,
    /// The level wishes them while most wishes are granted before the blocks are requested, and
    /// fetches them otherwise.
    WishedWhileGranted,
}

/// An error in the parameters of a system or in a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSetup {
    /// The replacement policy does not exist, or does not fit the cache.
    #[error("{level}: {source}")]
    Replacement {
        /// The level, counted from 1.
        level: String,
        /// The reason.
        source: BadReplacement,
    },
    /// The prefetcher or coordinator does not exist.
    #[error("{level}: {source}")]
    Settings {
        /// The level, counted from 1.
        level: String,
        /// The reason.
        source: BadSettings,
    },
    /// A coordinator that marks sent blocks needs a replacement policy with marks.
    #[error("{level}: coordinator du with replacement {replacement}: expected replacement du")]
    Unmarked {
        /// The level, counted from 1.
        level: String,
        /// The replacement policy.
        replacement: String,
    },
    /// The system has no clients.
    #[error("a system without clients: expected at least one")]
    NoClients,
    /// The sector size of the drive does not divide a block.
    #[error("a drive of {0} bytes a sector: expected a part of 4096")]
    SectorSize(u64),
    /// The request extends past the end of the disk.
    #[error("blocks {first} to {last}: expected at most {most}, the last one of the disk")]
    PastEnd {
        /// The first block.
        first: u64,
        /// The last block.
        last: u64,
        /// The last block of the disk.
        most: u64,
    },
    /// The policy does not exist.
    #[error(transparent)]
    Policy(#[from] UnknownPolicy),
    /// The class is not permitted for prefetches.
    #[error("prefetches of class {0:?}: expected best effort 0 to 6, or background")]
    Class(Class),
    /// Wishes without background reads are never granted.
    #[error("readmore that is wished, without background reads: expected rules for these")]
    NeverGranted,
    /// Background reads need a drive that accepts two commands.
    #[error(
        "background reads of a drive that takes one command at a time: expected one that takes two, since \
         they are given while the command before them is in service"
    )]
    OneCommand,
    /// The belief has another number of sectors than the drive.
    #[error("a belief of {believed} sectors: expected {sectors}, those of the drive")]
    Belief {
        /// Sectors of the belief.
        believed: u64,
        /// Sectors of the drive.
        sectors: u64,
    },
    /// The trace touches more blocks than the disk has.
    #[error("{blocks} distinct blocks: expected at most {disk}, those of the disk")]
    TooLarge {
        /// Number of blocks that the trace touches.
        blocks: u64,
        /// Number of blocks of the disk.
        disk: u64,
    },
    /// The system has no such client.
    #[error("client {0}: expected less than {1}")]
    NoSuchClient(u32, usize),
    /// The length of the request is outside of the permitted range.
    #[error("a request of {0} blocks: expected 1 to {most}", most = cache::coordinator::LONGEST_REQUEST)]
    Length(u64),
}

impl Link {
    /// Zhang et al., 4.1: 6 ms and 0.03 ms for each page.
    pub const LAN: Link = Link {
        start: Duration::from_millis(6),
        page: Duration::from_micros(30),
    };

    /// The time of a reply of `pages` pages.
    pub fn reply(&self, pages: u64) -> Duration {
        self.start + self.page * pages
    }
}

impl EngineScheduling {
    /// The engine with this policy, one class for all requests, and no background reads.
    pub fn by(policy: &str) -> Self {
        EngineScheduling {
            policy: policy.to_owned(),
            background: None,
            prefetches: Class::default(),
            readmore: Readmore::Fetched,
            outside: None,
        }
    }

    /// SPTF with background reads without a safety margin, as in the firmware: the scheduler knows
    /// the drive exactly.
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

    /// SPTF outside of a drive with look-ahead of its own. Background reads keep the engine's
    /// default margins and stay off the tracks of requests.
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
    /// A cache with these algorithms.
    pub fn new(frames: u64, replacement: &str, prefetcher: &str) -> Self {
        CacheSpec {
            frames,
            replacement: replacement.to_owned(),
            prefetcher: prefetcher.to_owned(),
        }
    }
}
