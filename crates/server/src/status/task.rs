//! Background tasks in the status: progress, result, and cost for the foreground.

use serde::{Deserialize, Serialize};

/// A background task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The number of the task over all drives, which is never used twice.
    pub id: u64,
    /// The name: `scan VOLUME`, or `N pieces of VOLUME`.
    pub name: String,
    /// The state.
    pub state: TaskState,
    /// The priority; 0 is the highest.
    pub priority: u8,
    /// Bytes that the task was asked to read.
    pub asked_bytes: u64,
    /// Bytes that were read.
    pub done_bytes: u64,
    /// Bytes of those that were read in gaps.
    pub free_bytes: u64,
    /// Bytes of those that were read in idle time.
    pub idle_bytes: u64,
    /// Bytes of those that were read in granted time.
    pub paid_bytes: u64,
    /// Bytes that could not be read.
    pub failed_bytes: u64,
    /// The result once task and sink have ended: a checksum, or the exit status of the program.
    pub outcome: Option<String>,
    /// The error of the sink.
    pub problem: Option<String>,
    /// Bytes of `done_bytes` that were read before the task was resumed here.
    pub resumed_bytes: u64,
    /// The time since the task began here, in the drive's time.
    pub elapsed_s: f64,
    /// The cost for the foreground.
    pub impact: TaskImpact,
    /// The recent rate.
    pub mb_per_s: f64,
    /// The time until the end at this rate, if there is one.
    pub eta_s: Option<f64>,
    /// Whether a client waits for the task, whose reads take turns with the foreground.
    #[serde(default)]
    pub hastened: bool,
    /// The pieces of its set.
    #[serde(default)]
    pub pieces: u64,
    /// The pieces that are needed.
    #[serde(default)]
    pub pieces_needed: u64,
    /// The pieces of which all blocks were read.
    #[serde(default)]
    pub pieces_done: u64,
}

/// The foreground beside a task: all requests but those of background exports. Times are the drive's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskImpact {
    /// The share of the response times caused by background reads of all tasks, as measured by the engine.
    pub measured_percent: Option<f64>,
    /// Requests of the last five to ten minutes without a task before it began, if there were any. The load
    /// may have been different.
    pub alone: Option<Foreground>,
    /// Requests while the task was active, if there were any.
    pub beside: Option<Foreground>,
}

/// Response times of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Foreground {
    /// The number of requests.
    pub requests: u64,
    /// The mean.
    pub mean_us: f64,
    /// The median.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    /// The drive reads its blocks.
    #[default]
    Active,
    /// The drive reads no blocks for the task. It gets blocks that were read for other tasks.
    Suspended,
    /// All blocks were read.
    Finished,
    /// The task was aborted.
    Aborted,
}

impl TaskState {
    /// The name in JSON and `headtime ctl`.
    pub fn name(self) -> &'static str {
        match self {
            TaskState::Active => "active",
            TaskState::Suspended => "suspended",
            TaskState::Finished => "finished",
            TaskState::Aborted => "aborted",
        }
    }
}
