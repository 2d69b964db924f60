//! Several commands at the drive at once, in virtual time: one of each host thread.
//!
//! ```text
//!   thread --submit--> at the drive --wait: fewer than `hosts` are there--> .
//!                                   --the last one: advance the clock-----> ends, all are woken
//! ```

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use block::{CommandId, Status};

use super::{Answer, MachineState};

/// The state, and the bell of ends.
#[derive(Debug)]
pub struct SharedState {
    pub state: Mutex<MachineState>,
    ended: Condvar,
}

/// The beginning of a command.
pub enum Begun {
    /// It has ended already.
    Answered(Vec<u8>),
    /// It is at the drive.
    UnderWay(CommandId, After),
}

/// What follows the end of a command at the drive.
pub enum After {
    Nothing,
    /// Bytes of these blocks are sent.
    Send {
        first: u64,
        blocks: u64,
    },
    /// The first bytes of blocks are kept.
    Store {
        first: u64,
        firsts: Vec<u8>,
    },
}

/// The commands at the drive.
#[derive(Debug)]
pub struct CommandQueue {
    next: u64,
    at_drive: usize,
    ended: BTreeMap<u64, Status>,
    /// Threads that send commands: the clock goes on when each has one at the drive.
    pub hosts: usize,
    /// The most commands that were at the drive at once.
    pub most: usize,
}

impl Default for CommandQueue {
    fn default() -> Self {
        CommandQueue {
            next: 0,
            at_drive: 0,
            ended: BTreeMap::new(),
            hosts: 1,
            most: 0,
        }
    }
}

impl CommandQueue {
    pub fn next_id(&self) -> CommandId {
        CommandId(self.next)
    }

    /// The next command is at the drive.
    pub fn given(&mut self) {
        self.next += 1;
        self.at_drive += 1;
        self.most = self.most.max(self.at_drive);
    }
}

impl MachineState {
    /// The status of a command that has ended.
    pub fn status_of(&mut self, id: CommandId) -> Option<Status> {
        while let Some(outcome) = self.drive.poll(self.now) {
            self.queue.at_drive -= 1;
            self.queue.ended.insert(outcome.id.0, outcome.status);
        }
        self.queue.ended.remove(&id.0)
    }

    /// Moves the clock to the next event of the drive.
    pub fn advance(&mut self) {
        self.now = self.drive.next_wakeup().expect("a command is under way");
    }
}

impl SharedState {
    pub fn new(state: MachineState) -> Self {
        SharedState {
            state: Mutex::new(state),
            ended: Condvar::new(),
        }
    }

    /// Waits for the end of a command.
    pub fn end<'a>(
        &'a self,
        mut state: MutexGuard<'a, MachineState>,
        id: CommandId,
        after: After,
    ) -> Answer {
        loop {
            if let Some(status) = state.status_of(id) {
                // Others may have ended, too.
                self.ended.notify_all();
                return state.finished(status, after);
            }
            match state.queue.at_drive >= state.queue.hosts {
                true => state.advance(),
                false => {
                    // The end of another thread's command may have just been seen.
                    self.ended.notify_all();
                    let woken = self.ended.wait(state);
                    state = woken.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Wakes the threads that wait for ends.
    pub fn wake(&self) {
        self.ended.notify_all();
    }

    /// A host thread has ended.
    pub fn leave(&self) {
        let state = self.state.lock();
        state.unwrap_or_else(PoisonError::into_inner).queue.hosts -= 1;
        self.ended.notify_all();
    }
}
