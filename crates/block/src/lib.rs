//! The vocabulary of Headtime: addresses, extents, requests, commands, time. No clock, no I/O.
//!
//! One word has one meaning in the whole workspace:
//!
//! | word | meaning |
//! |---|---|
//! | request, [`Request`] | an operation that a client submits |
//! | command, [`Command`] | an operation that the drive receives |
//! | head time | the time for which one command holds the head |
//! | extent, [`Extent`] | consecutive logical blocks of the drive, at least one |
//! | interval, [`Interval`] | the blocks `first..=last` of a cache, or none; a cache numbers its own blocks of 4 KiB |
//! | LBN, [`Lba`] | the number of a logical block of the drive |
//! | owner, [`Owner`] | the program, connection or part of the service that waits for a request; a hint for policies |
//! | class, [`Class`] | real-time, best-effort 0..6, background |
//! | outcome, [`Outcome`] | the end of a command |
//! | terms, [`Terms`] | a stream's rate, buffer, mode and priority, as its client requests them |
//! | account, [`Account`] | the time of a command, divided into phases |

pub mod account;
pub mod address;
pub mod command;
pub mod interval;
pub mod operation;
pub mod owner;
pub mod request;
pub mod terms;
pub mod time;

pub use account::{Account, BufferHit};
pub use address::{Extent, ExtentError, Lba, Sectors};
pub use command::{Action, Command, CommandId, Durability, Outcome, Status, Switch, Urgency};
pub use interval::Interval;
pub use owner::Owner;
pub use request::{Class, Direction, Finished, Refused, Request, RequestId};
pub use terms::{StreamMode, Terms};
pub use time::{Duration, Instant};
