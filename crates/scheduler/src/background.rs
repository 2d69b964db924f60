//! Background tasks: work over a set of blocks that is done in gaps, in idle time, and in a share
//! of head time that the user grants.
//!
//! One read serves every task that wants its blocks, suspended ones too. Which task's blocks are
//! looked for first is a matter of priority, then of deadline.
//!
//! ```text
//!   begin ---> active <--- suspend, resume ---> suspended
//!                |  \                              |
//!     nothing left   `---- abort ------------------+---> aborted
//!                v
//!            finished
//! ```
//!
//! A *standing* task has no end: blocks that somebody would like to have are wanted and no longer wanted
//! as long as it is there ([`BackgroundTasks::want`], [`BackgroundTasks::unwant`]). Head time is never paid for them.

pub mod account;
pub mod tasks;

pub use account::{Account, Means, Moved};
pub use tasks::{
    BackgroundTasks, MOST_STANDING, MOST_TASKS, NotWanted, Order, ReadAttribution, TaskId,
    TaskPhase, TaskProgress, TaskRefused, UnknownTask,
};
