//! A drive that does not exist: a model says when each command ends, a sparse image has its bytes.
//!
//! ```text
//!   command --> model: ends at T ------------------.
//!          '--> image: the bytes move at once ------+--> ended at T, or when the bytes have moved
//! ```
//!
//! What was written is in the image when its command ends, even if the drive's buffer would still
//! have it: a service that is killed loses nothing. The image is as safe as the page cache of the
//! machine that it is on.

#![allow(
    unsafe_code,
    reason = "passes on memory by address to the image, as its caller promised it"
)]

use block::{Action, Command, CommandId, Instant, Outcome, Status};
use drive::VirtualDrive;
use hdrhistogram::Histogram;
use tracing::warn;

use super::file::Image;
use super::{BackEnd, Ended, Punch, Run, Shape, Span};
use crate::arena::Memory;
use crate::operation::Failed;
use crate::ring::Ring;

/// The drive.
pub struct Emulated {
    drive: VirtualDrive,
    image: Image,
    /// Under way, in the order in which they were given.
    under_way: Vec<UnderWay>,
    /// How much later than the model says commands ended, in nanoseconds of the drive's time.
    late: Histogram<u64>,
}

/// A command under way.
struct UnderWay {
    id: CommandId,
    /// How the bytes got on; `None` while they move.
    moved: Option<Result<(), Failed>>,
    /// How the model says that it ended; `None` before that.
    outcome: Option<Outcome>,
}

impl Emulated {
    /// A drive whose bytes are in `image`, which has as many blocks as the drive.
    ///
    /// # Panics
    /// If it has not.
    pub fn new(drive: VirtualDrive, image: Image) -> Self {
        let shape = image.shape();
        let truth = drive.truth();
        assert_eq!(shape.blocks, truth.geometry.sectors().0, "another image");
        assert_eq!(shape.block_bytes, truth.block_bytes, "another block size");
        Emulated {
            drive,
            image,
            under_way: Vec::new(),
            // Two digits, up to a minute.
            late: Histogram::new_with_bounds(1, 60_000_000_000, 2).expect("bounds"),
        }
    }

    fn is_over(under_way: &UnderWay) -> bool {
        under_way.moved.is_some() && under_way.outcome.is_some()
    }

    fn entry(&mut self, id: CommandId) -> &mut UnderWay {
        let mut entries = self.under_way.iter_mut();
        let entry = entries.find(|entry| entry.id == id);
        entry.expect("ends of commands that are under way only")
    }
}

impl BackEnd for Emulated {
    fn shape(&self) -> Shape {
        Shape {
            zeroes_fast: false,
            rotational: true,
            ..self.image.shape()
        }
    }

    unsafe fn start(
        &mut self,
        now: Instant,
        command: &Command,
        memory: &[Memory],
        ring: &mut Ring,
    ) {
        let moves = matches!(command.action, Action::Read { .. } | Action::Write { .. });
        let mut entry = UnderWay {
            id: command.id,
            moved: (!moves).then_some(Ok(())),
            outcome: None,
        };
        if let Err(refused) = self.drive.submit(now, *command) {
            warn!(%refused, "the emulated drive refuses a command");
            entry.outcome = Some(Outcome {
                id: command.id,
                at: now,
                status: Status::TimedOut,
                account: None,
            });
        }
        self.under_way.push(entry);
        if moves {
            // SAFETY: the caller's promise, passed on.
            unsafe { self.image.start(now, command, memory, ring) };
        }
    }

    fn ring_ended(&mut self, now: Instant, key: u32, result: i32, ring: &mut Ring) {
        self.image.ring_ended(now, key, result, ring);
        while let Some(ended) = self.image.poll(now) {
            self.entry(ended.id).moved = Some(ended.result);
        }
    }

    fn poll(&mut self, now: Instant) -> Option<Ended> {
        while let Some(outcome) = self.drive.poll(now) {
            self.entry(outcome.id).outcome = Some(outcome);
        }
        let place = self.under_way.iter().position(Self::is_over)?;
        let UnderWay { id, moved, outcome } = self.under_way.remove(place);
        let (moved, outcome) = (moved?, outcome?);
        self.late
            .saturating_record(now.since(outcome.at).as_nanos());
        let modelled = match outcome.status {
            Status::Good => Ok(()),
            _ => Err(Failed::Io),
        };
        Some(Ended {
            id,
            result: modelled.and(moved),
            account: outcome.account,
        })
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.drive.next_wakeup()
    }

    fn punch(&mut self, key: u32, what: Punch, span: Span, ring: &mut Ring) {
        self.image.punch(key, what, span, ring);
    }

    fn poll_punched(&mut self) -> Option<(u32, Result<(), Failed>)> {
        self.image.poll_punched()
    }

    fn lateness(&self) -> Option<&Histogram<u64>> {
        Some(&self.late)
    }

    fn runs(&mut self, span: Span) -> Vec<Run> {
        self.image.runs(span)
    }
}
