//! Checkpoints: moments of a volume that stay readable while clients change it.
//!
//! ```text
//!   before the moment     writes end; new ones wait
//!   the moment            no write of the volume is in flight
//!   after it              write of a chunk --> its old bytes go to the store --> write
//!   read of the moment    the volume's bytes, and over them those of the store
//! ```
//!
//! | file | purpose |
//! |---|---|
//! | `store` | the old bytes of changed chunks, with a bound |
//! | `bits` | a set of chunks |
//! | `bitmap` | the file of a dirty bitmap |
//! | `marks` | a dirty bitmap in service |
//! | `thread` | the thread of a bitmap's file |
//! | `moment` | one checkpoint: its stage, and the chunks that a change waits for |
//!
//! Decision 0099 has the reasons.

use std::ops::Range;

pub mod bitmap;
pub mod bits;
pub mod marks;
pub mod moment;
pub mod store;
pub mod thread;

/// Bytes of a chunk: the unit of copies before writes, and of dirty bitmaps. A choice, as in QEMU: 20 TB have
/// 305 million chunks, whose bitmap has 38 MB.
pub const CHUNK: u64 = 65_536;

/// The chunks of a volume that begins at `offset` of its drive with some of these bytes of the drive.
pub fn chunks_of(bytes: &Range<u64>, offset: u64, length: u64) -> Range<u64> {
    let start = bytes.start.max(offset) - offset;
    let end = bytes.end.min(offset + length).saturating_sub(offset);
    match start < end {
        true => start / CHUNK..end.div_ceil(CHUNK),
        false => 0..0,
    }
}

/// The bytes of a chunk within a volume of `length` bytes.
pub fn bytes_of(chunk: u64, length: u64) -> Range<u64> {
    let start = chunk * CHUNK;
    start..(start + CHUNK).min(length)
}

/// The progress of a long change: the chunks from its first one on that need no second look.
///
/// A trim of a whole volume has millions of chunks, and is asked for again and again.
#[derive(Debug, Default)]
struct Frontier {
    start: u64,
    next: u64,
}

impl Frontier {
    /// The chunks of a change from the first one on that is not ready. What is ready stays so.
    fn left(&mut self, chunks: &Range<u64>, is_ready: impl Fn(u64) -> bool) -> Range<u64> {
        let from = match self.start == chunks.start {
            true => self.next.clamp(chunks.start, chunks.end),
            false => chunks.start,
        };
        let next = (from..chunks.end).find(|chunk| !is_ready(*chunk));
        *self = Frontier {
            start: chunks.start,
            next: next.unwrap_or(chunks.end),
        };
        self.next..chunks.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_change_is_looked_at_once() {
        let mut frontier = Frontier::default();
        let looks = std::cell::Cell::new(0);
        let until = |ready: u64| {
            let looks = &looks;
            move |chunk: u64| {
                looks.set(looks.get() + 1);
                chunk < ready
            }
        };
        for ready in 0..=1000 {
            assert_eq!(frontier.left(&(0..1000), until(ready)), ready..1000);
        }
        assert!(looks.get() <= 2001, "{looks:?}");
        assert_eq!(
            frontier.left(&(0..10), until(1000)),
            10..10,
            "a shorter one"
        );
        assert_eq!(frontier.left(&(5..10), until(7)), 7..10, "another one");
    }

    #[test]
    fn the_chunks_of_bytes_are_those_that_have_one_of_them() {
        let (offset, length) = (1000, 3 * CHUNK + 100);
        for (bytes, expected) in [
            (0..1000, 0..0),
            (0..1001, 0..1),
            (1000 + CHUNK..1001 + CHUNK, 1..2),
            (999 + CHUNK..1001 + CHUNK, 0..2),
            (1000..u64::MAX, 0..4),
            (1000 + length..u64::MAX, 0..0),
        ] {
            assert_eq!(chunks_of(&bytes, offset, length), expected, "{bytes:?}");
        }
        assert_eq!(bytes_of(3, length), 3 * CHUNK..length);
    }
}
