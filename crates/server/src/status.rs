//! What the service says of itself: one picture at one moment.
//!
//! The control socket and the HTTP interface send it as JSON, the page draws it, and the metrics are
//! made of it. Names end with their units. What is a total has grown since the service began and
//! never shrinks; rates and percentiles are of the last second or as it says.

use serde::{Deserialize, Serialize};

mod cache;

pub use cache::{Cache, Standing};

/// The service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The version of the program.
    pub version: String,
    /// How long it has served.
    pub uptime_s: f64,
    /// What it is doing.
    pub state: State,
    /// Drives in the order of the configuration.
    pub drives: Vec<Drive>,
    /// Who is connected, in the order of coming.
    pub connections: Vec<Connection>,
    /// Connections that were ever accepted.
    pub connections_total: u64,
    /// Connections that were closed because they broke the protocol or a limit.
    pub connections_refused_total: u64,
    /// Configurations that were taken over while serving.
    pub reloads_total: u64,
}

/// What the service is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Not yet listening.
    #[default]
    Starting,
    /// Serving.
    Serving,
    /// Ending what was begun; nobody new is let in.
    Draining,
    /// Going down.
    Stopping,
}

/// One drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Drive {
    /// Its name in the configuration.
    pub name: String,
    /// The kind of back end, as the configuration names it.
    pub back_end: String,
    /// Which disk is emulated or believed, if one is.
    pub model: Option<String>,
    /// How many times slower than the disk it is, if it is emulated.
    pub time_scale: Option<f64>,
    /// Bytes.
    pub capacity_bytes: u64,
    /// The policy.
    pub policy: String,
    /// What waits.
    pub queue: Queue,
    /// Traffic by class, those that were ever used; from the most urgent.
    pub traffic: Vec<Traffic>,
    /// Where the head is, if that is known.
    pub head: Option<Head>,
    /// What the head's time went to.
    pub head_time: HeadTime,
    /// Whether positions are used.
    pub mode: Mode,
    /// The share of commands that went as believed, 0 to 1, if that is followed.
    pub confidence: Option<f64>,
    /// What background tasks cost the foreground.
    pub impact: Impact,
    /// Background tasks, in the order of their beginning.
    pub tasks: Vec<Task>,
    /// Background tasks that have no end.
    #[serde(default)]
    pub standing: Vec<Standing>,
    /// Guaranteed streams.
    #[serde(default)]
    pub streams: Streams,
    /// How late completions were against the model, if it is emulated.
    pub lateness: Option<Lateness>,
    /// Commands that failed.
    pub errors: Errors,
    /// The caches before its volumes, if it has some.
    #[serde(default)]
    pub caches: Vec<Cache>,
}

/// What waits at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Requests that were accepted and not given to the drive.
    pub waiting: u64,
    /// Commands at the drive.
    pub at_drive: u64,
}

/// How urgent requests are, as they are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Under a guarantee.
    RealTime,
    /// `foreground` of exports.
    #[default]
    Foreground,
    /// `best-effort` 1 to 6, together.
    BestEffort,
    /// `background` of exports.
    Background,
}

impl Class {
    /// The word of JSON and of metrics.
    pub fn name(self) -> &'static str {
        match self {
            Class::RealTime => "real-time",
            Class::Foreground => "foreground",
            Class::BestEffort => "best-effort",
            Class::Background => "background",
        }
    }
}

/// The traffic of one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Which class.
    pub class: Class,
    /// What is read.
    pub read: Flow,
    /// What is written.
    pub write: Flow,
    /// How long requests of the last ten seconds took, reads and writes, if there were any.
    pub latency: Option<Latency>,
}

/// Requests of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// In the last second.
    pub mb_per_s: f64,
    /// In the last second.
    pub requests_per_s: f64,
    /// Requests that ended well, a total.
    pub requests_total: u64,
    /// Their bytes, a total.
    pub bytes_total: u64,
}

/// From a request's acceptance to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// How many requests this is of.
    pub requests: u64,
    /// Half of them took no longer.
    pub p50_us: f64,
    /// 95 %.
    pub p95_us: f64,
    /// 99 %.
    pub p99_us: f64,
    /// 99.9 %.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
}

/// Where the head is believed to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// From 0, the outermost.
    pub cylinder: u32,
    /// How many there are.
    pub cylinders: u32,
}

/// What the head does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadKind {
    /// Best-effort requests.
    Foreground,
    /// Requests with a deadline.
    RealTime,
    /// Background blocks in gaps that were there anyway.
    Free,
    /// Background blocks while nobody else wanted anything, and granted ones.
    Idle,
    /// Reads that tell where the platter is.
    Calibration,
    /// Revolutions that a wrong prediction cost.
    Lost,
    /// Nothing.
    #[default]
    Unused,
}

impl HeadKind {
    /// All of them, in the order of the page.
    pub const ALL: [HeadKind; 7] = [
        HeadKind::Foreground,
        HeadKind::RealTime,
        HeadKind::Free,
        HeadKind::Idle,
        HeadKind::Calibration,
        HeadKind::Lost,
        HeadKind::Unused,
    ];

    /// The word of JSON and of metrics.
    pub fn name(self) -> &'static str {
        match self {
            HeadKind::Foreground => "foreground",
            HeadKind::RealTime => "real-time",
            HeadKind::Free => "free",
            HeadKind::Idle => "idle",
            HeadKind::Calibration => "calibration",
            HeadKind::Lost => "lost",
            HeadKind::Unused => "unused",
        }
    }
}

/// What the head's time went to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeadTime {
    /// The last second, or the part of it that there was, oldest first: about 200 slices, each with
    /// what most of it was.
    pub timeline: Vec<HeadKind>,
    /// How long a slice is.
    pub slice_us: u64,
    /// The last second by kind.
    pub second_us: ByKind,
    /// Since the service began.
    pub total_us: ByKind,
}

/// Microseconds by what the head did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ByKind {
    /// [`HeadKind::Foreground`].
    pub foreground: u64,
    /// [`HeadKind::RealTime`].
    pub real_time: u64,
    /// [`HeadKind::Free`].
    pub free: u64,
    /// [`HeadKind::Idle`].
    pub idle: u64,
    /// [`HeadKind::Calibration`].
    pub calibration: u64,
    /// [`HeadKind::Lost`].
    pub lost: u64,
    /// [`HeadKind::Unused`].
    pub unused: u64,
}

impl ByKind {
    /// The time of one kind.
    pub fn of(&self, kind: HeadKind) -> u64 {
        match kind {
            HeadKind::Foreground => self.foreground,
            HeadKind::RealTime => self.real_time,
            HeadKind::Free => self.free,
            HeadKind::Idle => self.idle,
            HeadKind::Calibration => self.calibration,
            HeadKind::Lost => self.lost,
            HeadKind::Unused => self.unused,
        }
    }

    /// Adds to the time of one kind.
    pub fn add(&mut self, kind: HeadKind, us: u64) {
        let sum = match kind {
            HeadKind::Foreground => &mut self.foreground,
            HeadKind::RealTime => &mut self.real_time,
            HeadKind::Free => &mut self.free,
            HeadKind::Idle => &mut self.idle,
            HeadKind::Calibration => &mut self.calibration,
            HeadKind::Lost => &mut self.lost,
            HeadKind::Unused => &mut self.unused,
        };
        *sum += us;
    }
}

/// Whether positions are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// They are.
    Positioning,
    /// They come true too seldom: by block number, and no free blocks.
    Safe,
    /// Nothing is believed of the drive.
    #[default]
    Blind,
}

/// What background tasks cost the foreground.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Impact {
    /// By how much foreground requests took longer, if that was measured.
    pub measured_percent: Option<f64>,
    /// By how much they may.
    pub budget_percent: f64,
}

/// A background task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Names it, for all drives together; never used twice.
    pub id: u64,
    /// What it is: `scan VOLUME`.
    pub name: String,
    /// Where it stands.
    pub state: TaskState,
    /// 0 is looked for first.
    pub priority: u8,
    /// What it wants to have read.
    pub asked_bytes: u64,
    /// What was read.
    pub done_bytes: u64,
    /// Of that, in free time.
    pub free_bytes: u64,
    /// Of that, in idle time.
    pub idle_bytes: u64,
    /// Of that, in granted time.
    pub paid_bytes: u64,
    /// What could not be read.
    pub failed_bytes: u64,
    /// What came of it when it and whoever took its blocks have ended: a checksum, or how the
    /// program ended.
    pub outcome: Option<String>,
    /// What went wrong with whoever took its blocks.
    pub problem: Option<String>,
    /// What was read before it was gone on with here, of `done_bytes`.
    pub resumed_bytes: u64,
    /// How long it has been under way here, in the drive's time.
    pub elapsed_s: f64,
    /// What it was to the foreground.
    pub impact: TaskImpact,
    /// Lately.
    pub mb_per_s: f64,
    /// When it will have ended at this rate, if it has one.
    pub eta_s: Option<f64>,
}

/// The foreground beside a task: all requests but those of background exports. Times are the drive's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskImpact {
    /// The share of the response times that the engine measured to be owed to background reads, those
    /// of other tasks, too, if there were requests.
    pub measured_percent: Option<f64>,
    /// Requests of the last five to ten minutes without a task before it began, if there were any.
    /// The load may have been another one.
    pub alone: Option<Foreground>,
    /// Requests while it was under way, if there were any.
    pub beside: Option<Foreground>,
}

/// How long requests took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Foreground {
    /// How many.
    pub requests: u64,
    /// From their acceptance to their end, on average.
    pub mean_us: f64,
    /// Half of them took no longer.
    pub p50_us: f64,
    /// 99 %.
    pub p99_us: f64,
}

/// Where a task stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    /// Its blocks are looked for.
    #[default]
    Active,
    /// They are not looked for; what others read is taken along.
    Suspended,
    /// All blocks were read.
    Finished,
    /// Given up.
    Aborted,
}

impl TaskState {
    /// The word of JSON and of `headtime ctl`.
    pub fn name(self) -> &'static str {
        match self {
            TaskState::Active => "active",
            TaskState::Suspended => "suspended",
            TaskState::Finished => "finished",
            TaskState::Aborted => "aborted",
        }
    }
}

/// Guaranteed streams of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streams {
    /// Those that are there.
    pub now: u64,
    /// Bytes of their buffers.
    pub memory_bytes: u64,
    /// Those that were granted, a total.
    pub granted_total: u64,
    /// Those that were refused, a total.
    pub refused_total: u64,
    /// Batches that came too late, a total.
    pub late_total: u64,
    /// Guarantees that lapsed, a total.
    pub lapsed_total: u64,
    /// Whether the drive was found to take longer than when the present ones were granted: they go
    /// on as they did, and no others are granted.
    #[serde(default)]
    pub strained: bool,
}

/// How late an emulator's completions were against the model, in its last ten seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Half of the commands were no later.
    pub p50_us: f64,
    /// 99 %.
    pub p99_us: f64,
    /// The latest.
    pub max_us: f64,
}

/// Commands that failed, totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// Reads.
    pub reads_total: u64,
    /// Writes, zeroes and trims.
    pub writes_total: u64,
    /// Flushes.
    pub flushes_total: u64,
}

/// Who is connected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// Names it; never used twice.
    pub id: u64,
    /// `nbd`, `fuse`, `ublk`.
    pub front: String,
    /// Where from.
    pub peer: String,
    /// Which export.
    pub export: String,
    /// Its class.
    pub class: Class,
    /// Whether with TLS.
    pub tls: bool,
    /// Since when.
    pub connected_s: f64,
    /// Requests that have not ended.
    pub in_flight: u64,
    /// Requests that ended well, a total.
    pub requests_total: u64,
    /// Their bytes, a total.
    pub bytes_total: u64,
}
