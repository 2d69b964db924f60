//! Concurrent procedures on one head: each read evicts what the others have left in the buffer.
//!
//! ```text
//!   region 1   read           hit          read            a hit waits until enough reads of the
//!   region 2        read                         read      medium have evicted it
//!   region 3             read     far read
//!                                 ^ only if no procedure has anything better to do
//! ```
//!
//! Without cache control a block is read from the medium again only after other reads have taken
//! its segment. A procedure alone has to make those reads for nothing.

use std::future::{Future, poll_fn};
use std::ops::Range;
use std::pin::Pin;
use std::task::Poll;

use block::{Duration, Extent, Lba};

use super::Prober;
use super::turn_queue::TurnGrant;
use crate::clock::ReferenceSightings;

/// Procedures at a time that explore: so many at most, or more up to the second number where the spindle is fast. A choice: each
/// has to begin, which takes some hundred sightings behind a host.
pub(crate) const MOST_AT_ONCE: (u64, u64) = (32, 48);

/// Revolutions that a procedure takes to begin, and the time for all of them. A choice: two hundred sightings, and a fifteenth of
/// ten minutes.
const BEGINNING: (f64, Duration) = (200.0, Duration::from_secs(40));

/// Blocks of a stream that evicts others, before it begins again. A choice: more than buffers have segments, and
/// so few that they are in one zone or two of a large drive.
const STREAMED: u64 = 8_192;

/// Exclusive use of the drive until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    prober: &'a Prober,
    id: u64,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.prober.desk().turns.leave(self.id);
    }
}

impl Prober {
    /// Waits for exclusive use of the drive, and for `after` reads of the medium
    /// ([`evicted`](Self::evicted)). Reads elsewhere make up for those that are missing.
    pub(crate) async fn turn(&self, after: u64) -> Turn<'_> {
        let turn = Turn {
            prober: self,
            id: self.desk().turns.enter(after),
        };
        while self.granted(turn.id).await == TurnGrant::Displace {
            self.evict().await;
            self.desk().turns.give_back(turn.id);
        }
        turn
    }

    async fn granted(&self, id: u64) -> TurnGrant {
        poll_fn(|_| {
            let mut desk = self.desk();
            let reads = desk.medium_reads;
            match desk.turns.ask(id, reads) {
                TurnGrant::Wait => Poll::Pending,
                granted => Poll::Ready(granted),
            }
        })
        .await
    }

    /// How many concurrent procedures evict each other's blocks.
    pub(crate) fn evicting_procedures(&self) -> u64 {
        let reads = self.desk().evicting;
        reads + reads / 4 + 1
    }

    /// How many procedures explore at a time at most.
    pub(crate) fn most_at_once(&self) -> u64 {
        let period = self.findings(|findings| findings.clock.map(|clock| clock.period()));
        let (least, most) = MOST_AT_ONCE;
        let (turns, time) = BEGINNING;
        let begun = period.map(|period| time.as_nanos() as f64 / (turns * period));
        begun.map_or(least, |begun| (begun as u64).clamp(least, most))
    }

    /// Whether the most procedures at a time evict each other's blocks.
    pub(crate) fn rounds_evict(&self) -> bool {
        self.evicting_procedures() <= self.most_at_once()
    }

    /// The number of reads of the medium until now.
    pub(crate) fn reads(&self) -> u64 {
        self.desk().medium_reads
    }

    /// The number of reads of the medium after which the buffer holds no block that it holds now.
    pub(crate) fn evicted(&self) -> u64 {
        let desk = self.desk();
        desk.medium_reads + desk.evicting
    }

    /// The number of reads of the medium after which the buffer holds nothing of the reads of `blocks`.
    pub(crate) fn fresh_after(&self, blocks: Range<u64>) -> u64 {
        let desk = self.desk();
        let near = desk.recent.iter().filter(|read| blocks.contains(&read.1));
        near.map(|read| read.0).max().unwrap_or(0)
    }

    /// Runs procedures concurrently; each has the drive for a turn at a time. All reads of such a
    /// procedure have to be made in a turn. Answers their results, in their order.
    pub(crate) async fn rounds<F: Future>(&self, work: Vec<F>) -> Vec<F::Output> {
        let mut results: Vec<Option<F::Output>> = work.iter().map(|_| None).collect();
        let mut work: Vec<(usize, Pin<Box<F>>)> =
            work.into_iter().map(Box::pin).enumerate().collect();
        poll_fn(|context| {
            while !work.is_empty() {
                let before = self.desk().turns.changes;
                work.retain_mut(|(place, one)| match one.as_mut().poll(context) {
                    Poll::Pending => true,
                    Poll::Ready(result) => {
                        results[*place] = Some(result);
                        false
                    }
                });
                if !work.is_empty() && self.desk().turns.changes == before {
                    return Poll::Pending;
                }
            }
            Poll::Ready(())
        })
        .await;
        results.into_iter().flatten().collect()
    }

    /// Runs work in turns until `enough` holds and no turn is under way. It pauses then, if it is not
    /// polled, and goes on with another call. `None` if it has not ended.
    pub(crate) async fn part<F: Future>(
        &self,
        enough: impl Fn(&Prober) -> bool,
        mut work: Pin<&mut F>,
    ) -> Option<F::Output> {
        self.desk().turns.unpark();
        poll_fn(|context| {
            if enough(self) && self.desk().turns.park() {
                return Poll::Ready(None);
            }
            match work.as_mut().poll(context) {
                Poll::Ready(result) => Poll::Ready(Some(result)),
                // The end of this turn may have been what was awaited.
                Poll::Pending if enough(self) && self.desk().turns.park() => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Forgets the reference block and its sightings: the clock is started anew, and no procedure runs.
    pub(crate) fn forget_time(&self) {
        self.desk().sightings = ReferenceSightings::default();
    }

    /// Makes the buffer discard a block, by a read of another one: as fast as a stream of blocks that are
    /// [`evicting_stride`](super::ProbeQueue::evicting_stride) apart allows.
    pub(crate) async fn evict(&self) {
        let blocks = self.device().blocks;
        let next = {
            let mut desk = self.desk();
            let stride = desk.evicting_stride;
            desk.streamed += 1;
            (stride > 0).then(|| desk.streamed * stride % blocks.min(STREAMED * stride))
        };
        match next {
            Some(lba) => {
                self.read(Extent::block(Lba(lba))).await;
            }
            None => self.read_far().await,
        }
    }

    /// Reads a block far from the last ones, so that the buffer discards another one.
    pub(crate) async fn read_far(&self) {
        let blocks = self.device().blocks;
        let step = {
            let mut desk = self.desk();
            desk.displaced += 1;
            desk.displaced
        };
        // The golden section spreads them over the disk.
        let far = step.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let far = ((u128::from(far) * u128::from(blocks)) >> 64) as u64;
        self.read(Extent::block(Lba(far))).await;
    }
}
