//! Back ends execute commands: memory, a file, an emulated drive, a server, a real drive.
//!
//! ```text
//!   start(command, memory) ---> under way ---ring's ends---> poll: Ended
//! ```
//!
//! A back end mirrors the engine. The event loop starts the engine's commands, passes on completions of the
//! ring, polls until `None`, and sleeps until [`BackEnd::next_wakeup`] at the latest.

use block::{Account, Command, CommandId, Instant};
use drive::Lost;
use hdrhistogram::Histogram;

use crate::arena::Memory;
use crate::ring::Ring;
use block::operation::{OperationError, ZeroingPace};

pub mod checked;
pub mod disk;
pub mod emulated;
pub mod file;
pub mod memory;
pub mod mirror;
pub mod nbd;
mod pieces;
pub mod scsi;

/// The properties of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of a block, the smallest addressable unit.
    pub block_bytes: u32,
    /// The number of blocks.
    pub blocks: u64,
    /// Whether unused space can be trimmed.
    pub trims: bool,
    /// Whether the back end can zero blocks without writing them.
    pub zeroes_fast: bool,
    /// Whether the device is a disk with a rotating platter.
    pub rotational: bool,
}

impl Shape {
    /// The number of bytes.
    pub fn bytes(&self) -> u64 {
        self.blocks * u64::from(self.block_bytes)
    }
}

/// A range of bytes of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
}

/// The end of a command.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// The command.
    pub id: CommandId,
    /// The result.
    pub result: Result<(), OperationError>,
    /// The account of the command's time, if the back end is an emulated drive. It is for reports only.
    pub account: Option<Account>,
}

/// A change of space without head time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Punch {
    /// The content is discarded.
    Trim,
    /// The space reads as zeroes, and may be freed.
    Free(ZeroingPace),
    /// The space reads as zeroes, and stays allocated.
    Zero(ZeroingPace),
}

/// A run of bytes that is entirely data or entirely a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The number of bytes.
    pub length: u64,
    /// The content of the run.
    pub holds: Holds,
}

/// The content of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Bytes that were written.
    Bytes,
    /// A hole: it reads as zeroes and takes no space.
    Hole,
}

/// A device that executes commands.
pub trait BackEnd {
    /// The properties of the device.
    fn shape(&self) -> Shape;

    /// Starts a command. Its blocks lie in the pieces of `memory`, in their order.
    ///
    /// # Safety
    /// The memory must exist, unused by any other party, until the command has ended. That of a write must
    /// not change.
    #[allow(
        unsafe_code,
        reason = "a back end is given memory by address, and its caller keeps it alive"
    )]
    unsafe fn start(&mut self, now: Instant, command: &Command, memory: &[Memory], ring: &mut Ring);

    /// An operation of the ring, submitted under `key`, has completed.
    fn ring_ended(&mut self, now: Instant, key: u32, result: i32, ring: &mut Ring);

    /// As [`BackEnd::ring_ended`], for an operation of a mirror's second leg.
    fn second_ring_ended(&mut self, _now: Instant, _key: u32, _result: i32, _ring: &mut Ring) {}

    /// Goes on with the device's own work. It is called before each [`BackEnd::poll`].
    fn advance(&mut self, _now: Instant, _ring: &mut Ring) {}

    /// Whether the device has work of its own that has to end before the service does.
    fn is_busy(&self) -> bool {
        false
    }

    /// The next command that has ended.
    fn poll(&mut self, now: Instant) -> Option<Ended>;

    /// The commands that the device takes at a time. The default is SATA's queue.
    fn depth(&self) -> u32 {
        32
    }

    /// The time of the next poll, if no operation completes before.
    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    /// Starts a change of space. The result comes by [`BackEnd::poll_punched`] under `key`.
    fn punch(&mut self, key: u32, what: Punch, span: Span, ring: &mut Ring);

    /// The next result of a change of space.
    fn poll_punched(&mut self) -> Option<(u32, Result<(), OperationError>)>;

    /// Holes and data from the begin of `span` on: as many runs as are found quickly, at least one.
    fn runs(&mut self, span: Span) -> Vec<Run> {
        vec![Run {
            length: span.length,
            holds: Holds::Bytes,
        }]
    }

    /// Asks for holes and data where a remote server has the answer. It comes by [`BackEnd::poll_runs`]
    /// under `key`, or at once.
    fn ask_runs(&mut self, _key: u32, span: Span, _ring: &mut Ring) -> Option<Vec<Run>> {
        Some(self.runs(span))
    }

    /// The next answer about holes and data.
    fn poll_runs(&mut self) -> Option<(u32, Vec<Run>)> {
        None
    }

    /// The lateness of commands against the model of an emulated drive, in nanoseconds of the drive's time.
    fn lateness(&self) -> Option<&Histogram<u64>> {
        None
    }

    /// Cuts the power of an emulated drive and switches it on again. The answer is what was lost. Commands
    /// in flight fail.
    fn power_cut(&mut self, _now: Instant, _ring: &mut Ring) -> Option<Lost> {
        None
    }

    /// The volumes with checksums.
    fn checks(&mut self) -> Option<&mut checked::Checks> {
        None
    }

    /// The two legs, if the device is a mirror.
    fn mirror(&mut self) -> Option<&mut mirror::Mirror> {
        None
    }

    /// The condition of the legs, if the device is a mirror.
    fn condition(&self) -> Option<crate::status::Mirror> {
        None
    }

    /// The bytes of the device in memory, if the back end has them. Replies are sent from there.
    fn mapped(&self) -> Option<Memory> {
        None
    }
}
