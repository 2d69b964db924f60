//! `cache = {}` of a volume in the configuration file.

use document::{DocumentError, Field, Section};
use scheduler::policy::NamedPolicy;

use super::fields::{class_of, size};
use super::foreseen::is_foreseen;
use super::{Belief, ExportClass};
use crate::cache_setting::{BadCache, CacheSetting, Readmore, Writes};

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
pub(super) fn cache(volume: &Section<'_>) -> Result<Option<CacheSetting>, DocumentError> {
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
    let setting = CacheSetting {
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

/// Checks that a drive with streams has a volume without a cache.
///
/// A block in a cache and in a stream's buffer would have to change in both, so no volume has both.
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

/// Checks that the drive has free blocks for caches that need them: it needs a belief and a policy that orders
/// commands by position.
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

/// The error at the key of the invalid value.
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
const AHEAD: ExportClass = ExportClass::BestEffort(6);
