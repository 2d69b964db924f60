//! What the clients of a loop may take up together.

use crate::volume::LONGEST;

/// The bounds of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of all requests together. There is room for one of the longest in any case.
    pub memory: usize,
    /// Connections at once: who comes beyond is refused.
    pub connections: usize,
    /// Requests of one connection at once: beyond it nothing is read from it.
    pub requests: usize,
    /// Bytes of the longest read or write.
    pub longest: usize,
}

impl Bounds {
    /// The bytes of requests and replies that one connection may hold: an eighth of all, so that
    /// it takes many to keep everybody else waiting, but one of the longest requests.
    pub(super) fn share(&self) -> usize {
        (self.memory / 8).max(self.longest)
    }

    /// The bytes that are there for each connection, whatever the others hold.
    pub(super) fn own(&self) -> usize {
        self.memory / 2 / self.connections.max(1)
    }

    /// The bytes for which all compete.
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
