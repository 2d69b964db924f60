//! Received bytes that were not parsed.
//!
//! ```text
//!   [ consumed   | not yet | free ]
//!              from        to
//! ```

use crate::arena::Memory;

/// Received bytes that were not parsed.
pub(super) struct Inbox {
    bytes: Box<[u8]>,
    from: usize,
    to: usize,
}

/// Bytes of an inbox: some two thousand requests without payload. A choice.
const INBOX: usize = 64 << 10;

impl Inbox {
    /// An inbox with these bytes.
    pub(super) fn with(received: &[u8]) -> Self {
        let mut bytes: Box<[u8]> = vec![0; INBOX.max(received.len())].into();
        bytes[..received.len()].copy_from_slice(received);
        Inbox {
            bytes,
            from: 0,
            to: received.len(),
        }
    }

    /// The kernel has received `count` bytes into [`Inbox::space`].
    pub(super) fn received(&mut self, count: usize) {
        self.to += count;
    }

    /// Removes `count` parsed bytes.
    pub(super) fn consume(&mut self, count: usize) {
        self.from += count;
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.from..self.to]
    }

    /// Skips at most `most` bytes. The answer is their number.
    pub(super) fn take(&mut self, most: u64) -> u64 {
        let there = (self.to - self.from) as u64;
        let taken = there.min(most);
        self.from += taken as usize;
        taken
    }

    /// Copies as many bytes as there are and fit. The answer is their number.
    pub(super) fn copy(&mut self, to: &mut [u8]) -> usize {
        let taken = (self.to - self.from).min(to.len());
        to[..taken].copy_from_slice(&self.bytes[self.from..self.from + taken]);
        self.from += taken;
        taken
    }

    /// The free space, after the bytes have moved to the front.
    pub(super) fn space(&mut self) -> Memory {
        let free = self.free();
        Memory {
            at: free.as_mut_ptr(),
            length: free.len(),
        }
    }

    /// The free space as bytes. It is never empty if the next request needs more bytes.
    pub(super) fn free(&mut self) -> &mut [u8] {
        if self.from > 0 {
            self.bytes.copy_within(self.from..self.to, 0);
            self.to -= self.from;
            self.from = 0;
        }
        &mut self.bytes[self.to..]
    }
}
