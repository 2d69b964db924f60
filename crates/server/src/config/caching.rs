//! `cache = {}` of a volume: what of it is kept in memory, and what is fetched ahead.

use cache::settings::BadSettings;
use cache::{coordinator, prefetch, replacement, residency, settings};
use document::{DocumentError, Field, Section};
use scheduler::policy::NamedPolicy;

use super::fields::{class_of, size};
use super::foreseen::is_foreseen;
use super::{Belief, Class};

/// Bytes of a block of a cache.
pub const PAGE: u64 = 4096;

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
    pub ahead: block::Class,
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

/// How a cache's bytes are divided.
pub(crate) struct Shares {
    /// Blocks of the level.
    pub(crate) frames: u64,
    /// Of write-back caches, how many may be unwritten, and the pages beyond the frames for those that
    /// left before they were written.
    pub(crate) unwritten: u64,
}

impl Shares {
    pub(crate) fn of(setting: &Setting) -> Self {
        let all = setting.bytes / PAGE;
        let unwritten = match setting.writes {
            Writes::Through => 0,
            Writes::Back => (all / UNWRITTEN).max(1),
        };
        let frames = all.saturating_sub(unwritten);
        Shares { frames, unwritten }
    }
}

/// One page in so many may be newer than the volume. A choice, between the share at which Linux begins
/// to write (dirty_background_ratio, 10 %) and that at which writers wait (dirty_ratio, 20 %).
const UNWRITTEN: u64 = 8;

const KEYS: [&str; 7] = [
    "size",
    "replacement",
    "prefetch",
    "coordinator",
    "readmore",
    "write",
    "ahead_class",
];

/// The cache of a volume, if it has one.
pub(super) fn cache(volume: &Section<'_>) -> Result<Option<Setting>, DocumentError> {
    let Some(table) = volume.section("cache", &KEYS)? else {
        return Ok(None);
    };
    let text = |key: &str, default: &str, expected: &str| match table.get(key) {
        Some(value) => value.text(expected).map(str::to_owned),
        None => Ok(default.to_owned()),
    };
    let writes = table.get("write");
    let writes = writes.map(|value| value.choice(&WRITES));
    let readmore = table.get("readmore");
    let readmore = readmore.map(|value| value.choice(&Readmore::NAMES));
    let ahead = table.get("ahead_class").map(|value| class_of(&value));
    let size_field = table.need("size", "how many bytes it keeps")?;
    let setting = Setting {
        bytes: size(&size_field)?,
        replacement: text("replacement", REPLACEMENT, "a replacement such as \"arc\"")?,
        prefetch: text("prefetch", PREFETCH, "a prefetcher such as \"linux-6\"")?,
        coordinator: text(
            "coordinator",
            COORDINATOR,
            "a coordinator such as \"adaptive\"",
        )?,
        readmore: readmore.transpose()?.unwrap_or_default(),
        writes: writes.transpose()?.unwrap_or(Writes::Through),
        ahead: ahead.transpose()?.unwrap_or(AHEAD).of_requests(),
    };
    match setting.check() {
        Ok(()) => Ok(Some(setting)),
        Err(bad) => Err(complaint(&table, &size_field, &bad)),
    }
}

/// Whether streams can be on some volume of a drive that promises something to them. A cache and the
/// buffers of streams would be two places in memory for one block, and each would have to hear of every
/// change: so they are on different volumes.
pub(super) fn beside_streams(
    drive: &Section<'_>,
    volumes: &[Section<'_>],
) -> Result<(), DocumentError> {
    if drive.get("streams").is_none() {
        return Ok(());
    }
    let mut caches = volumes.iter().map(|volume| volume.get("cache"));
    let last = caches.try_fold(None, |_, cache| cache.map(Some));
    match last.flatten() {
        Some(cache) => {
            let problem = "each volume of a drive with streams has a cache: expected one without, \
                           which streams can be on";
            Err(cache.error(problem))
        }
        None => Ok(()),
    }
}

/// Whether what is to come from free blocks can: they are found by whoever knows the drive and orders its
/// commands.
pub(super) fn on_free_blocks(
    volumes: &[Section<'_>],
    belief: &Belief,
    policy: NamedPolicy,
) -> Result<(), DocumentError> {
    for volume in volumes {
        let Some(setting) = cache(volume)? else {
            continue;
        };
        if setting.readmore == Readmore::Free
            && let Some(table) = volume.section("cache", &KEYS)?
        {
            is_foreseen(&table, belief, policy, "which blocks are free")?;
        }
    }
    Ok(())
}

/// What is wrong, at the key that says so.
fn complaint(table: &Section<'_>, size: &Field<'_>, bad: &BadCache) -> DocumentError {
    let key = match bad {
        BadCache::Size(..) => return size.error(bad.to_string()),
        BadCache::Replacement(_) => "replacement",
        BadCache::Prefetch(_) => "prefetch",
        BadCache::Coordinator(_) | BadCache::Unmarked(_) => "coordinator",
        BadCache::NothingMore(_) => "readmore",
    };
    match table.get(key) {
        Some(value) => value.error(bad.to_string()),
        None => table.error(bad.to_string()),
    }
}

const WRITES: [(&str, Writes); 2] = [("through", Writes::Through), ("back", Writes::Back)];

/// A choice: it has no parameters, and keeps what is used again beside what is read once.
const REPLACEMENT: &str = "arc";
/// A choice: what the clients' own kernels do.
const PREFETCH: &str = "linux-6";
/// Clients without a cache of their own have nothing to be coordinated with.
const COORDINATOR: &str = "none";
/// Nobody waits for it.
const AHEAD: Class = Class::BestEffort(6);
