//! The cache of a volume: what it keeps in memory, what it prefetches, and how its pages are divided.

use cache::settings::BadSettings;
use cache::{coordinator, prefetch, replacement, residency, settings};

/// Bytes of a page of a cache.
pub const PAGE: u64 = 4096;

/// A cache before a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSetting {
    /// Bytes of the pages, a multiple of [`PAGE`].
    pub bytes: u64,
    /// The replacement, such as `arc` or `s3-fifo(small=200)`.
    pub replacement: String,
    /// The prefetcher, such as `linux-6` or `ra(p=8)`.
    pub prefetch: String,
    /// The coordinator with the caches of clients, such as `adaptive`.
    pub coordinator: String,
    /// The source of the blocks that the coordinator reads more.
    pub readmore: Readmore,
    /// The time at which a write is acknowledged.
    pub writes: Writes,
    /// The class of prefetches and of pages that are written in time.
    pub ahead: block::Class,
}

/// The source of the blocks that a coordinator reads more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Readmore {
    /// They are fetched with the request.
    #[default]
    Ordinary,
    /// They are free blocks: the drive reads them at no cost in head time, or not at all.
    Free,
}

impl Readmore {
    /// The names in the configuration file.
    pub const NAMES: [(&'static str, Readmore); 2] =
        [("ordinary", Readmore::Ordinary), ("free", Readmore::Free)];

    /// The name in the configuration file.
    pub fn name(self) -> &'static str {
        let [ordinary, free] = Self::NAMES;
        match self {
            Readmore::Ordinary => ordinary.0,
            Readmore::Free => free.0,
        }
    }
}

/// The time at which a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// When the volume has the bytes.
    Through,
    /// When the cache has the bytes. The volume has them before the next flush is acknowledged.
    Back,
}

/// An invalid setting, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCache {
    /// `size`.
    #[error("{0} bytes: expected {1} bytes at least and 2 TiB at most")]
    Size(u64, u64),
    /// `replacement`.
    #[error(transparent)]
    Replacement(BadSettings),
    /// `prefetch`.
    #[error(transparent)]
    Prefetch(BadSettings),
    /// `coordinator`.
    #[error(transparent)]
    Coordinator(BadSettings),
    /// `coordinator`: the replacement ignores its marks.
    #[error(
        "coordinator du with replacement {0}: expected replacement du, which looks at its marks"
    )]
    Unmarked(String),
    /// `readmore`: the coordinator reads no more than was requested.
    #[error("readmore free with coordinator {0}: expected one that reads more, pfc or adaptive")]
    NothingMore(&'static str),
}

impl CacheSetting {
    /// Checks the setting.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn check(&self) -> Result<(), BadCache> {
        let least = match self.writes {
            Writes::Through => PAGE,
            Writes::Back => 2 * PAGE,
        };
        let frames = Shares::of(self).frames;
        if self.bytes < least || frames > u64::from(residency::MAX_CAPACITY) {
            return Err(BadCache::Size(self.bytes, least));
        }
        let replacement = settings::find("replacement", &self.replacement, replacement::ALL)
            .map_err(BadCache::Replacement)?;
        settings::find("prefetcher", &self.prefetch, prefetch::ALL).map_err(BadCache::Prefetch)?;
        let coordinator = settings::find("coordinator", &self.coordinator, coordinator::ALL)
            .map_err(BadCache::Coordinator)?;
        match (coordinator.0.name, replacement.0.name) {
            ("du", other) if other != "du" => Err(BadCache::Unmarked(other.to_owned())),
            (name @ ("none" | "du"), _) if self.readmore == Readmore::Free => {
                Err(BadCache::NothingMore(name))
            }
            _ => Ok(()),
        }
    }
}

/// The pages of a cache by their use.
pub(crate) struct Shares {
    /// Pages of the level's blocks.
    pub(crate) frames: u64,
    /// The most unwritten pages of a write-back cache, and the pages for blocks that left the level unwritten.
    pub(crate) unwritten: u64,
}

impl Shares {
    pub(crate) fn of(setting: &CacheSetting) -> Self {
        let all = setting.bytes / PAGE;
        let unwritten = match setting.writes {
            Writes::Through => 0,
            Writes::Back => (all / UNWRITTEN).max(1),
        };
        let frames = all.saturating_sub(unwritten);
        Shares { frames, unwritten }
    }
}

/// The reciprocal of the share of pages that may be newer than the volume. A choice, between the share at which Linux begins
/// to write (dirty_background_ratio, 10 %) and that at which writers wait (dirty_ratio, 20 %).
const UNWRITTEN: u64 = 8;
