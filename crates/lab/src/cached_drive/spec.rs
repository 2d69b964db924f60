//! A cache in one text: `SIZE,REPLACEMENT,PREFETCHER,COORDINATOR`, all but the size with defaults.

use cache::level::{Composition, Level};
use simulator::caching::CacheSpec;

use super::BLOCK_BYTES;
use crate::amount::amount;

/// A cache, and the coordinator in front of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SpecifiedCache {
    pub cache: CacheSpec,
    pub coordinator: String,
}

/// What is expected.
const FORM: &str =
    "expected SIZE,REPLACEMENT,PREFETCHER,COORDINATOR such as \"256 MiB,lru,ra(p=8),pfc\"";

impl SpecifiedCache {
    /// Parses the cache of a level, counted from zero.
    ///
    /// # Errors
    /// What was expected.
    pub(super) fn parse(level: usize, text: &str) -> Result<Self, String> {
        let words = words(text);
        let (size, names) = match words.split_first() {
            Some((size, names)) if names.len() <= 3 => (size, names),
            _ => return Err(FORM.to_owned()),
        };
        let word = |place: usize, default: &str| match names.get(place) {
            Some(name) if !name.is_empty() => (*name).to_owned(),
            _ => default.to_owned(),
        };
        let frames = bytes(size)? / BLOCK_BYTES;
        let (replacement, prefetcher) = (word(0, "lru"), word(1, "none"));
        let coordinator = word(2, "none");
        if level == 0 && coordinator != "none" {
            return Err(format!(
                "coordinator {coordinator} of the first cache: expected none, it coordinates a cache with the one above"
            ));
        }
        // The caches are made again by the system; an error here names the cache.
        let composition = Composition {
            capacity: frames.min(1),
            replacement: &replacement,
            prefetch: &prefetcher,
            coordinator: &coordinator,
            requests: 1,
        };
        Level::new(&composition).map_err(|error| error.to_string())?;
        Ok(SpecifiedCache {
            cache: CacheSpec::new(frames, &replacement, &prefetcher),
            coordinator,
        })
    }

    /// The algorithms and the size.
    pub(super) fn name(&self) -> String {
        let CacheSpec {
            frames,
            replacement,
            prefetcher,
        } = &self.cache;
        let mib = (frames * BLOCK_BYTES) as f64 / f64::from(1 << 20);
        format!("{mib} MiB,{replacement},{prefetcher},{}", self.coordinator)
    }
}

/// The words between commas, but those in parentheses.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut from, mut depth) = (0, 0u32);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                words.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    words.push(text[from..].trim());
    words
}

/// An amount of bytes, at least a block.
fn bytes(text: &str) -> Result<u64, String> {
    let amount = amount(text).ok();
    amount
        .filter(|&amount| amount >= BLOCK_BYTES)
        .ok_or_else(|| {
            format!("size \"{text}\": expected at least 4 KiB, such as \"64 MiB\" or \"1 GiB\"")
        })
}
