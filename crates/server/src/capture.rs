//! Captures: a file with every input of a live engine, its time and the engine's answers; and the replay of
//! a file through a new engine in virtual time.
//!
//! ```text
//!   event loop --> LiveEngine [ engine ] --event--> Recorder --chunks--> a thread --> file
//!   file --> Reader --event--> replay [ a fresh engine ]: the same answers, byte for byte?
//! ```
//!
//! [`LiveEngine`] owns the engine of an event loop, and has a method for each of its inputs. So every input is
//! captured.
//!
//! A file is a line `headtime capture 3` and frames: length (32 bits) and checksum (64 bits,
//! FNV-1a) of the payload, little-endian, then the payload. The payload of the first frame is the
//! [`EngineSetting`], those of all others are [`Event`]s; no event lies in two frames. Both are in postcard's
//! format. A file of another version is refused with its number.

pub mod event;
mod live;
mod reader;
mod recorder;
mod replay;
mod setting;

pub use event::Event;
pub use live::LiveEngine;
pub use reader::{CaptureReader, Damaged};
pub use recorder::Recorder;
pub use replay::{Difference, ReplayError, Replayed, replay};
pub use setting::{Belief, EngineSetting, Tasks, Tracking, UnfitSetting};

/// The first line of each file, with the version of the format.
pub const FIRST: &[u8] = b"headtime capture 3\n";

/// The length and the checksum of a frame, in bytes.
const FRAME: usize = 12;

/// The checksum of a frame: Fowler, Noll and Vo's FNV-1a of 64 bits.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// A frame around a payload.
pub fn frame(payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(FRAME + payload.len());
    frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    frame.extend_from_slice(&checksum(payload).to_le_bytes());
    frame.extend_from_slice(payload);
    frame
}
