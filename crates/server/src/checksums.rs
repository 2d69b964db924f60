//! Checksums of a volume, kept beside it and verified by a scrub.
//!
//! ```text
//!   write --> keeper: intent first ---> back end --> keeper: checksums of its pages --> region
//!   flush ------------------------------------------> keeper: the changes are durable -----'
//!   scrub's read --> keeper: checksums of its pages --> region: sound, damaged or adopted
//! ```
//!
//! | file | purpose |
//! |---|---|
//! | `record` | the checksum of a chunk of 64 KiB in 12 bytes |
//! | `cover` | checksums of pages from pieces of any length |
//! | `region` | the file with the records and the intents |
//! | `intent` | the pages of a chunk that an intent names |
//! | `orders` | what the keeper asks of the region, and its answers |
//! | `keeper` | changes in flight, and when they become records |
//! | `pass` | the chunks that a scrub has verified, and what it found |
//! | `probing` | the search for blocks that cannot be read |
//! | `report` | the result of a scrub, and the history of all |
//! | `schedule` | when which part of a volume is scrubbed next |
//!
//! Decision 0096 has the reasons and the rules after a crash.

pub mod cover;
pub mod intent;
pub mod keeper;
pub mod orders;
pub mod pass;
pub mod probing;
pub mod record;
pub mod region;
pub mod report;
pub mod schedule;

/// Bytes of a chunk, which has one record.
pub const CHUNK: u64 = 65_536;

/// Bytes of a page, which has one checksum in its chunk's record.
pub const PAGE: u64 = 4096;

/// Pages of a chunk.
pub const PAGES: usize = (CHUNK / PAGE) as usize;

/// All pages of a chunk.
pub const ALL_PAGES: u16 = u16::MAX;

const _: () = assert!(PAGES == 16, "masks of pages have 16 bits");
