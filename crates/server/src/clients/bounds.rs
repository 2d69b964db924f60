//! Limits of a loop's clients.

use std::time::Duration;

use crate::volume::LONGEST;

/// The limits of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of all requests together. One of the longest requests fits in any case.
    pub memory: usize,
    /// The largest number of connections. Later ones are refused.
    pub connections: usize,
    /// The largest number of requests of one connection. At the limit the loop stops receiving from it.
    pub requests: usize,
    /// Bytes of the longest read or write.
    pub longest: usize,
    /// The longest pause amid a request header, in real time. Then the client loses its seat.
    pub pause: Duration,
}

impl Bounds {
    /// Bytes of requests and replies that one connection may hold: an eighth of all, or one of the longest
    /// requests. So a few clients cannot hold up all others.
    pub(super) fn share(&self) -> usize {
        (self.memory / 8).max(self.longest)
    }

    /// Bytes reserved for each connection.
    pub(super) fn own(&self) -> usize {
        self.memory / 2 / self.connections.max(1)
    }

    /// Bytes that all connections share.
    pub(crate) fn common(&self) -> usize {
        (self.memory / 2).max(self.longest)
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            // Choice: eight of the longest requests that NBD clients make.
            memory: 256 << 20,
            // Choices: more than a machine has clients of one disk; twice the depth of a deep queue.
            connections: 256,
            requests: 256,
            longest: LONGEST as usize,
            // Choice: `handshake_s` of the default configuration.
            pause: Duration::from_secs(10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_memory_is_divided_and_one_of_the_longest_requests_fits_in_any_case() {
        let bounds = Bounds {
            memory: 1 << 20,
            connections: 4,
            requests: 8,
            longest: 64 << 10,
            ..Bounds::default()
        };
        assert_eq!(bounds.own(), 128 << 10, "a fourth of one half");
        assert_eq!(bounds.common(), 512 << 10, "the other half");
        assert_eq!(bounds.share(), 128 << 10, "an eighth of all");
        let small = Bounds {
            memory: 4096,
            connections: 0,
            ..bounds
        };
        assert_eq!(small.common(), 64 << 10);
        assert_eq!(small.share(), 64 << 10);
        assert_eq!(small.own(), 2048, "no connection is as good as one");
    }
}
