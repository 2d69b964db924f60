//! Background tasks: work over a set of blocks in gaps, in idle time, and in a share of head time
//! that the user grants.
//!
//! One read serves every task that wants its blocks, suspended tasks included. Priority, then
//! deadline, decides which task's blocks the planner searches first.
//!
//! ```text
//!   begin ---> active <--- suspend, resume ---> suspended
//!                |  \                              |
//!     nothing left   `---- abort ------------------+---> aborted
//!                v
//!            finished  (or enough of it was read: finish)
//! ```
//!
//! A *hastened* task waits for no gap: its reads alternate with the commands of the foreground.
//!
//! A *standing* task has no end. Its owner adds and removes wanted blocks while it is active
//! ([`BackgroundTasks::want`], [`BackgroundTasks::unwant`]). Granted head time is never spent on
//! it.

pub mod account;
pub mod declared;
pub mod tasks;

pub use account::{Account, Means, Moved};
pub use declared::{DeclaredSet, MOST_PIECES, SetProgress, SetRefused};
pub use tasks::{
    BackgroundTasks, MOST_STANDING, MOST_TASKS, NotWanted, Order, ReadAttribution, TaskId,
    TaskPhase, TaskProgress, TaskRefused, UnknownTask,
};
