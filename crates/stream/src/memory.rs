//! The memory of streams whose clients name none, out of one pool.
//!
//! ```text
//!   client's limit ------------------------------.
//!   usual: buffer + two batches + two latencies --+--> attach --refused, enough would be m--> attach with m
//! ```

use block::{Duration, Terms};

use crate::rate::SECOND;

/// The rule for a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRule {
    /// Bytes of all buffers together.
    pub total: u64,
    /// The duration of a batch, if the client does not limit its memory.
    pub batch: Duration,
    /// The unit of buffers, in bytes.
    pub page: u64,
    /// The latency of the host.
    pub latency: Duration,
}

/// The reason that a stream has no memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoMemory<E> {
    /// The pool has less.
    #[error("{memory} bytes of memory, and {left} of {total} for streams are left")]
    Used {
        /// The memory that the stream needs.
        memory: u64,
        /// What is left.
        left: u64,
        /// The whole pool.
        total: u64,
    },
    /// The stream would be granted with more than the pool has left.
    #[error(
        "{least} bytes of memory would be enough, and {left} of {total} for all streams are left"
    )]
    Exhausted {
        /// The memory with which it would be granted.
        least: u64,
        /// What is left.
        left: u64,
        /// The whole pool.
        total: u64,
        /// The refusal with what is left.
        refusal: E,
    },
    /// The stream is refused with the memory that it may have.
    #[error(transparent)]
    Refused(E),
}

impl MemoryRule {
    /// Attaches a stream with the client's limit of memory, or with the least memory that suffices. `least` reads
    /// from a refusal the memory with which the stream would be granted. Returns the memory, too.
    ///
    /// # Errors
    /// If the stream is refused, or `left` is too little.
    pub fn attach<T, E>(
        &self,
        terms: &Terms,
        left: u64,
        least: impl Fn(&E) -> Option<u64>,
        mut attach: impl FnMut(u64) -> Result<T, E>,
    ) -> Result<(u64, T), NoMemory<E>> {
        let mut memory = terms.memory.unwrap_or(self.usual(terms).min(left));
        let mut tries = TRIES;
        loop {
            if memory > left {
                let total = self.total;
                return Err(NoMemory::Used {
                    memory,
                    left,
                    total,
                });
            }
            let refusal = match attach(memory) {
                Ok(attached) => return Ok((memory, attached)),
                Err(refusal) => refusal,
            };
            tries -= 1;
            match (terms.memory, least(&refusal)) {
                (None, Some(least)) if least > memory && least <= left && tries > 0 => {
                    memory = least;
                }
                (None, Some(least)) if least > left => {
                    return Err(NoMemory::Exhausted {
                        least,
                        left,
                        total: self.total,
                        refusal,
                    });
                }
                _ => return Err(NoMemory::Refused(refusal)),
            }
        }
    }

    fn usual(&self, terms: &Terms) -> u64 {
        let lasts = self.batch * 2 + self.latency * 2;
        let beyond = u128::from(terms.rate) * u128::from(lasts.as_nanos()) / u128::from(SECOND);
        let beyond = u64::try_from(beyond).unwrap_or(u64::MAX);
        let parts = [terms.buffer, beyond, self.page.saturating_mul(4)];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// The number of tries with the memory that a refusal has named. The second always succeeds in one thread.
const TRIES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: MemoryRule = MemoryRule {
        total: 10_000_000,
        batch: Duration::from_secs(1),
        page: 4096,
        latency: Duration::from_millis(10),
    };

    /// Grants `enough` bytes, and says so otherwise.
    fn granted(terms: &Terms, left: u64, enough: u64) -> Result<u64, NoMemory<u64>> {
        let attach = |memory| match memory >= enough {
            true => Ok(()),
            false => Err(enough),
        };
        let attached = RULE.attach(terms, left, |enough| Some(*enough), attach);
        attached.map(|(memory, ())| memory)
    }

    #[test]
    fn a_stream_gets_two_batches_or_what_it_needs() {
        let terms = Terms::play(1_000_000, 64_000);
        assert_eq!(granted(&terms, 10_000_000, 1), Ok(2_100_384));
        assert_eq!(granted(&terms, 10_000_000, 3_000_000), Ok(3_000_000));
        assert_eq!(granted(&terms, 1_000_000, 900_000), Ok(1_000_000));
        let exhausted = granted(&terms, 1_000_000, 1_000_001);
        assert_eq!(
            exhausted.map_err(|error| error.to_string()),
            Err(
                "1000001 bytes of memory would be enough, and 1000000 of 10000000 for all streams are left"
                    .to_owned()
            )
        );
    }

    #[test]
    fn a_client_s_limit_is_a_limit() {
        let terms = Terms {
            memory: Some(500_000),
            ..Terms::play(1_000_000, 64_000)
        };
        assert_eq!(granted(&terms, 10_000_000, 1), Ok(500_000));
        assert_eq!(
            granted(&terms, 10_000_000, 500_001),
            Err(NoMemory::Refused(500_001))
        );
        let used = granted(&terms, 400_000, 1);
        assert_eq!(
            used.map_err(|error| error.to_string()),
            Err("500000 bytes of memory, and 400000 of 10000000 for streams are left".to_owned())
        );
    }
}
