//! What a cache is made of, as its user writes it.

use block::Class;
use cache::settings::BadSettings;
use cache::{coordinator, prefetch, replacement, residency, settings};

use super::{PAGE, Shares};

/// A cache before a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Bytes of its pages, a multiple of [`PAGE`].
    pub bytes: u64,
    /// As `arc`, or `s3-fifo(small=200)`.
    pub replacement: String,
    /// As `linux-6`, or `ra(p=8)`.
    pub prefetch: String,
    /// As `adaptive`; what stands between the caches of clients and this one.
    pub coordinator: String,
    /// What becomes of what the coordinator reads more.
    pub readmore: Readmore,
    /// When a write is acknowledged.
    pub writes: Writes,
    /// How urgent is what nobody waits for.
    pub ahead: Class,
}

/// What becomes of what the coordinator reads more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Readmore {
    /// It is fetched with the request.
    #[default]
    Ordinary,
    /// It comes from free blocks: it is read where that costs the drive nothing, or not at all.
    Free,
}

impl Readmore {
    /// As users write it.
    pub const NAMES: [(&'static str, Readmore); 2] =
        [("ordinary", Readmore::Ordinary), ("free", Readmore::Free)];

    /// What users call it.
    pub fn name(self) -> &'static str {
        let [ordinary, free] = Self::NAMES;
        match self {
            Readmore::Ordinary => ordinary.0,
            Readmore::Free => free.0,
        }
    }
}

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// When the volume has it.
    Through,
    /// When the cache has it; the volume has it before the next flush is acknowledged.
    Back,
}

/// Which part of a setting is wrong, and what was expected.
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
    /// `coordinator`: what it marks, the replacement does not look at.
    #[error(
        "coordinator du with replacement {0}: expected replacement du, which looks at its marks"
    )]
    Unmarked(String),
    /// `readmore`: there is nobody who reads more.
    #[error("readmore free with coordinator {0}: expected one that reads more, pfc or adaptive")]
    NothingMore(&'static str),
}

impl Setting {
    /// Whether there is such a cache.
    ///
    /// # Errors
    /// What is wrong first.
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
