//! Replays of a trace of numbered blocks under one policy at one size: miss ratios, without a cache that lives in
//! time.
//!
//! Blocks have the numbers 0, 1, .. in order of their first demands ([`Numbers`](crate::Numbers)), and every read is
//! complete at once. So the state of a block is an element of an array, and nothing is hashed; blocks that are
//! demanded often lie together. Orders are logs: a block that moves is written once more.
//!
//! A policy with a `NumberedPolicy` of its own evicts the same blocks as its [`Replacement`](crate::Replacement).
//! The others run in a [`Cache`].

use std::hint::black_box;

use crate::cache::Cache;
use crate::replacement::{self, BadReplacement, FirstTouch};
use crate::settings::{self, AlgorithmSettings};

mod arc;
mod fifo;
mod lirs;
mod log;
mod lru;
mod s3_fifo;
mod sieve;

/// A policy whose blocks are numbered. The same demands give the same hits on every machine.
trait NumberedPolicy: Send {
    /// Blocks below this number may be demanded; more than before.
    fn know(&mut self, blocks: u32);

    /// Demands the blocks, and returns the hits.
    fn demand(&mut self, blocks: &[u32]) -> u64;
}

/// The largest cache that a [`NumberedPolicy`] has: 64 GiB. Logs number their entries with 29 bits. LIRS may remember
/// ten times its frames, and a log needs twice the numbers of its blocks.
const MAX_NUMBERED: u32 = 1 << 24;

/// Demands whose states are read before the first is served, so that the processor waits for their memory at once.
/// A choice.
const AHEAD: usize = 64;

/// Reads the states of the blocks, to warm the processor's cache.
#[inline]
fn warm(states: &[u32], blocks: &[u32]) {
    let read = blocks.iter().map(|&block| states[block as usize]);
    black_box(read.fold(0, |all, state| all ^ state));
}

/// A constructor for a number of frames.
type MakeNumbered = fn(u32, &AlgorithmSettings) -> Box<dyn NumberedPolicy>;

/// The policies of [`replacement::ALL`] with a [`NumberedPolicy`].
const NUMBERED: &[(&str, MakeNumbered)] = &[
    ("lru", |capacity, _| Box::new(lru::Lru::new(capacity))),
    ("fifo", |capacity, _| Box::new(fifo::Fifo::new(capacity))),
    ("arc", |capacity, _| Box::new(arc::Arc::new(capacity))),
    ("lirs", |capacity, settings| {
        Box::new(lirs::Lirs::new(capacity, settings))
    }),
    ("s3-fifo", |capacity, settings| {
        Box::new(s3_fifo::S3Fifo::new(capacity, settings))
    }),
    ("sieve", |capacity, _| Box::new(sieve::Sieve::new(capacity))),
];

/// A replay in progress.
pub struct Replay {
    mode: Mode,
    known: u32,
}

enum Mode {
    Numbered(Box<dyn NumberedPolicy>),
    Cache {
        cache: Cache,
        /// The demands as the cache has them.
        blocks: Vec<u64>,
    },
}

impl Replay {
    /// An empty cache of `capacity` blocks under the policy that a user names.
    ///
    /// # Errors
    /// If the policy or a parameter is unknown, or no cache has that size.
    pub fn named(policy: &str, capacity: u64) -> Result<Self, BadReplacement> {
        Ok(Self {
            mode: match numbered(policy, capacity)? {
                Some(policy) => Mode::Numbered(policy),
                None => Mode::Cache {
                    cache: Cache::named(policy, capacity, FirstTouch::default())?,
                    blocks: Vec::new(),
                },
            },
            known: 0,
        })
    }

    /// Demands the blocks, all of them below `known`, and returns the hits.
    ///
    /// # Panics
    /// If a block is not below `known`.
    pub fn demand(&mut self, blocks: &[u32], known: u32) -> u64 {
        match &mut self.mode {
            Mode::Numbered(policy) => {
                if known > self.known {
                    policy.know(known);
                    self.known = known;
                }
                policy.demand(blocks)
            }
            Mode::Cache {
                cache,
                blocks: wide,
            } => {
                wide.clear();
                wide.extend(blocks.iter().map(|&block| u64::from(block)));
                let replayed = cache.replay(wide);
                replayed.expect("a number of 32 bits, and no other reads")
            }
        }
    }
}

/// The policy that a user names, if it has a [`NumberedPolicy`] of this size.
fn numbered(text: &str, capacity: u64) -> Result<Option<Box<dyn NumberedPolicy>>, BadReplacement> {
    let (entry, settings) = settings::find("replacement", text, replacement::ALL)?;
    let frames = replacement::frames(capacity)?;
    let named = NUMBERED.iter().find(|(name, _)| *name == entry.name);
    let make = named.filter(|_| frames <= MAX_NUMBERED);
    Ok(make.map(|(_, make)| make(frames, &settings)))
}

#[cfg(test)]
mod tests;
