//! Applications that play files at a rate, in virtual time: the system model of the ABISS paper.
//!
//! ```text
//!   players, 64 KiB when due        a background reader, greedy       tasks, greedy
//!        |            ^                  |            ^                    |
//!        |            '----- copier -----'            |                    |
//!        |              (so many MB/s in all,         |                    |
//!        |               players first)               |                    |
//!   plain reads | ABISS's buffers |               read-ahead               |
//!   the engine's streams                              |                    |
//!        '--------------------------- engine ---------'--------------------'
//!                                       |
//!                                 a virtual drive
//! ```
//!
//! `shared/specs/streams.md`; van den Brink, Almesberger: Active Block I/O Scheduling System
//! (2004), 4. Nothing here reads a clock or opens a file: [`play`] advances from event to event and
//! returns a report.
//!
//! Where the paper is silent, the model makes these choices, fixed before any measurement.
//! Applications without a guarantee read without read-ahead, since theirs read no faster than they
//! play. They start evenly within one period. The processor copies page by page, for the players
//! before the background reader (Linux 2.6 favours processes that mostly sleep).

mod buffer;
mod copier;
mod file;
mod flusher;
mod guaranteed;
mod outstanding;
mod player;
mod reader;
mod report;
mod served;
mod setup;
mod system;
mod tasks;
#[cfg(test)]
mod tests;

pub use file::PlayedFile;
pub use report::{PlayerRead, PlayingReport};
pub use setup::{
    DirtyPages, GreedyLoad, Guarantee, OtherClients, PacedBuffer, PlayerService, Players,
    PlayingError, PlayingSetup,
};
pub use stream::Rate;
pub use system::play;

/// Bytes per page (ABISS, 4: 4 kB).
pub const PAGE: u64 = 4096;

/// Maximum bytes of a command: 256 sectors of 512 bytes, the limit of a 28-bit ATA command.
pub const COMMAND: u64 = 128 * 1024;
