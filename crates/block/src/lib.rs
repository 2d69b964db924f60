//! The words of Headtime: addresses, extents, requests, commands, time. No clock, no I/O.
//!
//! One word has one meaning in the whole workspace:
//!
//! | word | meaning |
//! |---|---|
//! | request | what a client asks for |
//! | command | what the drive is told to do |
//! | head time | the time for which one command holds the head |
//! | extent, [`Extent`] | a non-empty run of logical blocks of the drive |
//! | interval, [`Interval`] | the blocks `first..=last` of a cache, or none; a cache numbers its own blocks of 4 KiB |
//! | LBN, [`Lba`] | the number of a logical block of the drive |
//! | class | real-time, best-effort 0..6, background |
//! | outcome | how a command ended |
//! | terms, [`Terms`] | what a stream's client asked for: rate, buffer, mode, priority |
//! | account | where the time of a command went |

pub mod account;
pub mod address;
pub mod command;
pub mod interval;
pub mod operation;
pub mod request;
pub mod terms;
pub mod time;

pub use account::{Account, BufferHit};
pub use address::{Extent, ExtentError, Lba, Sectors};
pub use command::{Action, Command, CommandId, Durability, Outcome, Status, Switch, Urgency};
pub use interval::Interval;
pub use request::{Class, Direction, Finished, Refused, Request, RequestId};
pub use terms::{StreamMode, Terms};
pub use time::{Duration, Instant};
