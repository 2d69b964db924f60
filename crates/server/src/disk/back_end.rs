//! What carries commands out: memory, a file, an emulated drive, a real one.
//!
//! ```text
//!   start(command, memory) ---> under way ---ring's ends---> poll: Ended
//! ```
//!
//! The mirror image of the engine: the event loop starts what the engine gives, tells of the ring's
//! ends, polls until `None`, and sleeps until [`BackEnd::next_wakeup`] at the longest.

use block::{Account, Command, CommandId, Instant};
use drive::Lost;
use hdrhistogram::Histogram;

use crate::arena::Memory;
use crate::ring::Ring;
use block::operation::{Failed, Pace};

pub mod disk;
pub mod emulated;
pub mod file;
pub mod memory;
pub mod nbd;
pub mod scsi;

/// What there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes in a block: nothing is addressed by less.
    pub block_bytes: u32,
    /// How many blocks.
    pub blocks: u64,
    /// Whether unused space can be given back.
    pub trims: bool,
    /// Whether zeroes can be written without writing them.
    pub zeroes_fast: bool,
    /// Whether it turns.
    pub rotational: bool,
}

impl Shape {
    /// How many bytes.
    pub fn bytes(&self) -> u64 {
        self.blocks * u64::from(self.block_bytes)
    }
}

/// Some bytes of the whole device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first byte's place.
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
}

/// How a command ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Which.
    pub id: CommandId,
    /// How.
    pub result: Result<(), Failed>,
    /// Where its time went, if the back end is an emulated drive: for reports only.
    pub account: Option<Account>,
}

/// What is done to space without head time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Punch {
    /// It is of no use any more.
    Trim,
    /// It becomes zeroes, and may be given back.
    Free(Pace),
    /// It becomes zeroes, and stays reserved.
    Zero(Pace),
}

/// A run of a device's bytes of which it is known whether they take space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// How many bytes.
    pub length: u64,
    /// What is there.
    pub holds: Holds,
}

/// What a run holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Bytes that were written.
    Bytes,
    /// Nothing: it reads as zeroes and takes no space.
    Hole,
}

/// What carries commands out.
pub trait BackEnd {
    /// What there is.
    fn shape(&self) -> Shape;

    /// Begins a command. Its blocks lie in the pieces of `memory`, one after the other.
    ///
    /// # Safety
    /// The memory must be there, and nobody else's (of a write: as it is), until the command has
    /// ended.
    #[allow(
        unsafe_code,
        reason = "a back end is given memory by address, and its caller keeps it alive"
    )]
    unsafe fn start(&mut self, now: Instant, command: &Command, memory: &[Memory], ring: &mut Ring);

    /// An operation of the ring has ended that this back end submitted under `key`.
    fn ring_ended(&mut self, now: Instant, key: u32, result: i32, ring: &mut Ring);

    /// The next command that has ended.
    fn poll(&mut self, now: Instant) -> Option<Ended>;

    /// When to poll next, if no operation ends before.
    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    /// Begins to do something to space; the end comes by [`BackEnd::poll_punched`] under `key`.
    fn punch(&mut self, key: u32, what: Punch, span: Span, ring: &mut Ring);

    /// The next end of those.
    fn poll_punched(&mut self) -> Option<(u32, Result<(), Failed>)>;

    /// What the bytes from the beginning of `span` on hold: as many runs as are found without
    /// long work, at least one.
    fn runs(&mut self, span: Span) -> Vec<Run> {
        vec![Run {
            length: span.length,
            holds: Holds::Bytes,
        }]
    }

    /// Begins to find out the same where it has to be asked of somebody else: the answer comes by
    /// [`BackEnd::poll_runs`] under `key`. Otherwise it is here at once.
    fn ask_runs(&mut self, _key: u32, span: Span, _ring: &mut Ring) -> Option<Vec<Run>> {
        Some(self.runs(span))
    }

    /// The next answer to those.
    fn poll_runs(&mut self) -> Option<(u32, Vec<Run>)> {
        None
    }

    /// How much later than a model says commands ended, in nanoseconds of the drive's time, if the
    /// back end is an emulated drive.
    fn lateness(&self) -> Option<&Histogram<u64>> {
        None
    }

    /// Cuts the power and switches it on again, if that can be done by asking; what was lost. Who
    /// waits for a command under way is told that it failed.
    fn power_cut(&mut self, _now: Instant, _ring: &mut Ring) -> Option<Lost> {
        None
    }

    /// The bytes of the device in memory, where they are: reads are then sent from there.
    fn mapped(&self) -> Option<Memory> {
        None
    }
}
