//! Applications that play files at a rate, in virtual time: the system model in which ABISS was judged.
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
//! `shared/specs/streams.md`; van den Brink, Almesberger: Active Block I/O Scheduling System (2004), 4.
//! Nothing here has a clock or opens a file: [`play`] goes from event to event, and answers with a report.
//!
//! What the paper does not say is a choice, made before anything was measured: the applications read
//! without read-ahead where nobody guarantees them anything (theirs read no faster than they play),
//! they begin evenly within one period, and the processor copies for them, page by page, before it
//! copies for the background reader (Linux 2.6 puts processes first that mostly sleep).

mod buffer;
mod copier;
mod file;
mod guaranteed;
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
    GreedyLoad, Guarantee, OtherClients, PacedBuffer, PlayerService, Players, PlayingError,
    PlayingSetup,
};
pub use stream::Rate;
pub use system::play;

/// Bytes of a page (ABISS, 4: 4 kB).
pub const PAGE: u64 = 4096;

/// Bytes of one command at most: 256 sectors of 512 bytes, as many as a 28-bit ATA command names.
pub const COMMAND: u64 = 128 * 1024;
