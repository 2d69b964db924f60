//! The requests in the engine: why each was submitted, and who waits for it.

use block::{Owner, RequestId};

/// The cause of a request, and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestCause {
    /// A plain read of a player.
    Player(usize),
    /// A read into a player's buffer that starts at this byte.
    Buffer(usize, u64),
    /// A read of the background reader that starts at this byte.
    Reader(u64),
    /// A request of the greedy task with this number.
    Task(usize),
    /// A write of dirty pages.
    Flush,
}

/// The causes of the requests in the engine, indexed by request id.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    all: Vec<RequestCause>,
    free: Vec<usize>,
}

impl RequestCause {
    /// The process that waits for the request beside this number of players: each player, the background reader and each
    /// greedy task is one. Dirty pages are written by the kernel.
    pub(super) fn owner(self, players: usize) -> Owner {
        let number = match self {
            RequestCause::Player(player) | RequestCause::Buffer(player, _) => player,
            RequestCause::Reader(_) => players,
            RequestCause::Task(task) => players + 1 + task,
            RequestCause::Flush => return Owner::service(0),
        };
        Owner::process(number as u32 + 1)
    }
}

impl Outstanding {
    /// Adds a request, and returns its id.
    pub(super) fn insert(&mut self, whose: RequestCause) -> RequestId {
        let place = match self.free.pop() {
            Some(place) => {
                self.all[place] = whose;
                place
            }
            None => {
                self.all.push(whose);
                self.all.len() - 1
            }
        };
        RequestId(place as u64)
    }

    /// Removes a request that has ended.
    pub(super) fn remove(&mut self, id: RequestId) -> RequestCause {
        let place = id.0 as usize;
        self.free.push(place);
        self.all[place]
    }
}
