//! `cache = {}` of a volume: what of it is kept in memory, and what is fetched ahead.

use super::Class;
use super::reader::{ConfigError, Table, Value};
use super::storage::{class_of, size};
use crate::cached::{BadCache, Setting, Writes};

const KEYS: [&str; 6] = [
    "size",
    "replacement",
    "prefetch",
    "coordinator",
    "write",
    "ahead_class",
];

/// The cache of a volume, if it has one.
pub(super) fn cache(volume: &Table<'_>) -> Result<Option<Setting>, ConfigError> {
    let Some(table) = volume.table("cache", &KEYS)? else {
        return Ok(None);
    };
    let text = |key: &str, default: &str, expected: &str| match table.get(key) {
        Some(value) => value.text(expected).map(str::to_owned),
        None => Ok(default.to_owned()),
    };
    let writes = table.get("write");
    let writes = writes.map(|value| value.choice(&WRITES));
    let ahead = table.get("ahead_class").map(|value| class_of(&value));
    let size_field = table.need("size", "how many bytes it keeps")?;
    let setting = Setting {
        bytes: size(&size_field)?,
        replacement: text("replacement", REPLACEMENT, "a replacement such as \"arc\"")?,
        prefetch: text("prefetch", PREFETCH, "a prefetcher such as \"linux-6\"")?,
        coordinator: text("coordinator", COORDINATOR, "a coordinator such as \"ours\"")?,
        writes: writes.transpose()?.unwrap_or(Writes::Through),
        ahead: ahead.transpose()?.unwrap_or(AHEAD).of_requests(),
    };
    match setting.check() {
        Ok(()) => Ok(Some(setting)),
        Err(bad) => Err(complaint(&table, &size_field, &bad)),
    }
}

/// What is wrong, at the key that says so.
fn complaint(table: &Table<'_>, size: &Value<'_>, bad: &BadCache) -> ConfigError {
    let key = match bad {
        BadCache::Size(..) => return size.error(bad.to_string()),
        BadCache::Replacement(_) => "replacement",
        BadCache::Prefetch(_) => "prefetch",
        BadCache::Coordinator(_) | BadCache::Unmarked(_) => "coordinator",
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
