//! Guarantees: the streams of a disk, and what may be given to the drive without breaking a promise.
//!
//! ```text
//!   rounds freeze --> transfers of streams --> pieces among those of requests --> drive --> answers
//!                          |
//!                          '--> safe set: is there room for a command of others?
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use block::{CommandId, Duration, Extent, Instant, Lba};
use stream::HeadTimes;
use stream::head_times::NoPoints;
use stream::streams::Streams;

use crate::belief::DriveBelief;
use crate::command::SentCommand;
use crate::context::StageContext;

mod attached;
mod head_times;
mod orders;
mod safe_set;
pub mod streams;

pub use attached::StreamInput;
pub use head_times::*;
use orders::OrderedTransfers;
pub(crate) use safe_set::{PartsInProgress, Restriction};
use streams::{Promise, StreamEvent};

/// The streams of an engine, and the promises to them. Without a promise no stream is granted, and
/// everything may be given to the drive.
pub struct Guarantees {
    promised: Option<Box<Promised>>,
    /// What streams ordered, and has not ended.
    transfers: OrderedTransfers,
    /// The transfers that have ended, and are not reported.
    moved: VecDeque<StreamEvent>,
    /// When a command last ended, whatever it was.
    ended: Instant,
    overruns: Overruns,
    /// Batches that were given since a command of others was.
    passed: u32,
    /// The next freezing as it was when the stages were last asked.
    coming: Option<Instant>,
    /// When the stages are asked again, whatever the policy waits for: batches wait.
    look_again: Option<Instant>,
    /// What the drive's buffer held before the first stream came.
    leftover: Leftover,
    /// When that was last on the medium: commands before then have no worst case.
    emptied: Instant,
    /// The cylinder on which the last command ends, whatever the policy knows of the head.
    arm: u32,
}

/// What is promised to streams.
struct Promised {
    streams: Streams<BelievedTracks>,
    times: HeadTimes,
    promise: Promise,
    place: Extent,
}

/// Commands that took longer than their worst case. The drive is slower than its profile, the host was late, or
/// the worst case is wrong: guarantees may not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overruns {
    /// How many, while there were streams.
    pub count: u64,
    /// The longest time beyond the worst case.
    pub longest: Duration,
}

/// Whether the drive's buffer may hold blocks that are still to be written, from when no stream was
/// guaranteed: while one is, every write goes to the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leftover {
    Maybe,
    /// This command flushes it.
    Flushing(CommandId),
    None,
}

impl Guarantees {
    /// Nothing is promised.
    pub(crate) fn none() -> Self {
        Guarantees {
            promised: None,
            transfers: OrderedTransfers::default(),
            moved: VecDeque::new(),
            ended: Instant::ZERO,
            overruns: Overruns::default(),
            passed: 0,
            coming: None,
            look_again: None,
            leftover: Leftover::Maybe,
            emptied: Instant::ZERO,
            arm: 0,
        }
    }

    /// Streams are promised that their batches are in time.
    ///
    /// # Errors
    /// If the belief has no seek curve.
    pub(crate) fn by(
        promise: Promise,
        belief: &DriveBelief,
        now: Instant,
    ) -> Result<Self, NoPoints> {
        let whole = Extent::new(Lba(0), belief.capacity());
        let place = promise
            .place
            .or(whole.ok())
            .unwrap_or(Extent::block(Lba(0)));
        let times = head_times(belief.profile(), promise.beyond)?;
        let streams = Streams::new(
            times.clone(),
            promise.rules,
            promise.quotas.clone(),
            promise.settings,
            BelievedTracks(Arc::clone(belief.profile())),
        );
        let promised = Promised {
            streams,
            times,
            promise,
            place,
        };
        Ok(Guarantees {
            promised: Some(Box::new(promised)),
            ended: now,
            ..Guarantees::none()
        })
    }

    /// Whether anything is promised.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.promised.is_some()
    }

    /// Transfers that were ordered and have not ended.
    #[inline]
    pub(crate) fn transfers(&self) -> usize {
        self.transfers.len()
    }

    /// Whether a request is a stream's transfer.
    pub(crate) fn is_of_stream(&self, slot: u32) -> bool {
        self.transfers.of_slot(slot).is_some()
    }

    /// Whether there is a stream, or a transfer of one.
    pub(crate) fn serves_streams(&self) -> bool {
        let promised = self.promised.as_deref();
        promised.is_some_and(|promised| {
            promised.streams.admission().streams() > 0 || self.transfers() > 0
        })
    }

    /// When the stages are asked next for the sake of streams.
    #[inline]
    pub(crate) fn next_wakeup(&self) -> Option<Instant> {
        let rounds = self.promised.as_ref()?.streams.next_wakeup();
        [rounds, self.look_again].into_iter().flatten().min()
    }

    /// A command has ended. The answer is whether it flushed what the drive's buffer held before the first stream.
    pub(crate) fn note_end(&mut self, cx: &StageContext<'_>, sent: &SentCommand) -> bool {
        let now = cx.now;
        // Those before it may end after it, but the drive serves them first.
        let before = cx.dispatch.commands().filter(|other| other.id < sent.id);
        let latest = before.chain([sent]).fold(self.ended, after_one_more);
        let is_counted = self.leftover == Leftover::None && sent.given >= self.emptied;
        if now > latest && is_counted && !sent.worst.is_zero() && self.serves_streams() {
            self.overruns.count += 1;
            self.overruns.longest = self.overruns.longest.max(now.since(latest));
        }
        self.ended = now;
        let is_of_leftover = self.leftover == Leftover::Flushing(sent.id);
        if is_of_leftover {
            self.leftover = Leftover::None;
            self.emptied = now;
        }
        is_of_leftover
    }
}

/// When a drive that is free at `free` has served one more, at worst.
fn after_one_more(free: Instant, sent: &SentCommand) -> Instant {
    free.max(sent.given) + sent.worst
}

#[cfg(test)]
mod tests;
