//! Guaranteed streams and background tasks of a running Headtime service.
//!
//! A program that plays or records a file requests a rate and a buffer. After the grant it reads or
//! writes the file as usual, and reports its position from time to time:
//!
//! ```no_run
//! use std::os::unix::fs::FileExt;
//! use headtime_client::{Client, Terms};
//!
//! let client = Client::connect(&headtime_client::default_socket())?;
//! let file = std::fs::File::open("/mnt/film.ts")?;
//! let stream = client.attach_file(&file, &Terms::play(1_000_000, 128 << 10))?;
//! let mut bytes = vec![0; 64 << 10];
//! let mut at = 0;
//! loop {
//!     let read = file.read_at(&mut bytes, at)?;
//!     if read == 0 {
//!         break;
//!     }
//!     at += read as u64;
//!     stream.position(at)?;
//! }
//! stream.close()?;
//! # Ok::<(), headtime_client::Error>(())
//! ```
//!
//! If the playout point moves at the rate or slower, the service's memory serves reads up to the
//! buffer beyond it. The connection is the lease: all streams end when the program ends. Reads
//! should bypass the page cache (`O_DIRECT`), because the service does not see reads that the
//! kernel's cache serves.

mod client;
mod connection;
mod fiemap;
pub mod places;
pub mod private;
mod stream;
pub mod wire;

pub use block::{StreamMode, Terms};
pub use client::{Client, default_socket};
pub use connection::Error;
pub use places::{Located, NotLocated};
pub use stream::Stream;
pub use wire::{
    FileChange, FilePiece, Granted, Listed, ListedTask, Places, StreamRefused, StreamStatus,
    StreamUpdate, TaskOrder, TaskPieces, TaskSink, TaskSteer,
};
