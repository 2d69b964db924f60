//! The results of a run.

use block::Duration;

/// One read of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerRead {
    /// Time of the call, from the moment at which all players started.
    pub at: Duration,
    /// Time from the call until all data were in memory.
    pub waited: Duration,
    /// Time from the call until all data were copied.
    pub took: Duration,
    /// Delay of the call behind its due time, caused by earlier reads.
    pub behind: Duration,
}

/// The results of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlayingReport {
    /// The reads of each player in order.
    pub players: Vec<Vec<PlayerRead>>,
    /// Bytes that the background reader received while all players played.
    pub background: u64,
    /// The time for which all players played.
    pub span: Duration,
    /// The response time of each request of a greedy task, shortest first.
    pub tasks: Vec<Duration>,
    /// Bytes per batch of each stream; 0 without batches.
    pub batch: u64,
    /// Number of late batches, as counted by the engine.
    pub late: u64,
}

impl PlayingReport {
    /// The rate of the background reader in MB/s.
    pub fn background_rate(&self) -> f64 {
        self.background as f64 / 1e6 / self.span.as_secs_f64()
    }

    /// The reads of all players.
    pub fn reads(&self) -> impl Iterator<Item = &PlayerRead> {
        self.players.iter().flatten()
    }

    /// Number of reads.
    pub fn count(&self) -> usize {
        self.players.iter().map(Vec::len).sum()
    }

    /// Number of reads that waited for the disk.
    pub fn waited(&self) -> usize {
        self.reads().filter(|read| !read.waited.is_zero()).count()
    }

    /// The longest time of a read, from the call to the copied data.
    pub fn longest(&self) -> Duration {
        self.reads().map(|read| read.took).max().unwrap_or_default()
    }

    /// The longest wait of a read for the disk.
    pub fn longest_wait(&self) -> Duration {
        let waits = self.reads().map(|read| read.waited);
        waits.max().unwrap_or_default()
    }

    /// The largest delay of a player behind its rate.
    pub fn behind(&self) -> Duration {
        let behind = self.reads().map(|read| read.behind);
        behind.max().unwrap_or_default()
    }

    /// The response time that `permille` thousandths of the tasks' requests do not exceed; `None`
    /// without tasks.
    pub fn tasks_permille(&self, permille: usize) -> Option<Duration> {
        let last = self.tasks.len().checked_sub(1)?;
        self.tasks.get(last * permille / 1000).copied()
    }
}
