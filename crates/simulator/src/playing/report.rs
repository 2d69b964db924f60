//! What a run came to.

use block::Duration;

/// One read of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerRead {
    /// When it was called, counted from when everybody played.
    pub at: Duration,
    /// How long it waited for the disk.
    pub waited: Duration,
    /// From the call to the data: the wait, and the copy.
    pub took: Duration,
    /// How long after it was due it was called, because those before took so long.
    pub behind: Duration,
}

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlayingReport {
    /// The reads of each player, in their order.
    pub players: Vec<Vec<PlayerRead>>,
    /// Bytes that the background reader was given while everybody played.
    pub background: u64,
    /// How long everybody played.
    pub span: Duration,
    /// How long each request of a greedy task took, shortest first.
    pub tasks: Vec<Duration>,
    /// Bytes of a batch of each stream; none where nothing is batched.
    pub batch: u64,
    /// Batches that the engine says were too late.
    pub late: u64,
}

impl PlayingReport {
    /// The rate that was left to the background reader, in MB/s.
    pub fn background_rate(&self) -> f64 {
        self.background as f64 / 1e6 / self.span.as_secs_f64()
    }

    /// All reads of all players.
    pub fn reads(&self) -> impl Iterator<Item = &PlayerRead> {
        self.players.iter().flatten()
    }

    /// How many reads there were.
    pub fn count(&self) -> usize {
        self.players.iter().map(Vec::len).sum()
    }

    /// How many of them waited for the disk.
    pub fn waited(&self) -> usize {
        self.reads().filter(|read| !read.waited.is_zero()).count()
    }

    /// The longest that a read took, from the call to the data.
    pub fn longest(&self) -> Duration {
        self.reads().map(|read| read.took).max().unwrap_or_default()
    }

    /// The longest that a read waited for the disk.
    pub fn longest_wait(&self) -> Duration {
        let waits = self.reads().map(|read| read.waited);
        waits.max().unwrap_or_default()
    }

    /// How far a player fell behind its rate at most.
    pub fn behind(&self) -> Duration {
        let behind = self.reads().map(|read| read.behind);
        behind.max().unwrap_or_default()
    }

    /// The response time that so many thousandths of the tasks' requests do not exceed; none without
    /// tasks.
    pub fn tasks_permille(&self, permille: usize) -> Option<Duration> {
        let last = self.tasks.len().checked_sub(1)?;
        self.tasks.get(last * permille / 1000).copied()
    }
}
