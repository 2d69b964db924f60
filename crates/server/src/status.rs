//! The status of the service at one moment.
//!
//! The control socket and the HTTP interface send it as JSON. The status page draws it, and the metrics
//! come from it. Names end with their units. Totals grow since the start and never shrink. Rates and
//! percentiles are of the last second, or as stated.

use serde::{Deserialize, Serialize};

mod cache;
mod classified;
mod gap_requests;
mod learning;
mod mirror;
pub(crate) mod scrub;
mod slow_head;
mod task;

pub use cache::{Cache, Standing};
pub use classified::Classified;
pub use gap_requests::GapRequests;
pub use learning::LearningReport;
pub use mirror::{Leg, Mirror, Rebuild, RebuildMeans};
pub use scrub::ScrubStatus;
pub use slow_head::{HeadComparison, SlowHead};
pub use task::{Foreground, Task, TaskImpact, TaskState};

/// The status of the service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The version of the program.
    pub version: String,
    /// The time since the start.
    pub uptime_s: f64,
    /// The phase of the service.
    pub state: ServiceState,
    /// The drives in the order of the configuration.
    pub drives: Vec<DriveStatus>,
    /// The connections in the order of their arrival.
    pub connections: Vec<Connection>,
    /// Connections that were accepted.
    pub connections_total: u64,
    /// Connections that were closed because they violated the protocol or a limit.
    pub connections_refused_total: u64,
    /// Reloads of the configuration.
    pub reloads_total: u64,
    /// The scrubs of volumes with checksums.
    #[serde(default)]
    pub scrubs: Vec<ScrubStatus>,
}

/// The phase of the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceState {
    /// It does not listen yet.
    #[default]
    Starting,
    /// It serves clients.
    Serving,
    /// It finishes pending operations, and refuses new clients.
    Draining,
    /// It is stopping.
    Stopping,
}

/// The status of a drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriveStatus {
    /// The name in the configuration.
    pub name: String,
    /// The kind of back end in the configuration.
    pub back_end: String,
    /// The model of the emulated or believed disk.
    pub model: Option<String>,
    /// The time scale of an emulated disk.
    pub time_scale: Option<f64>,
    /// The capacity in bytes.
    pub capacity_bytes: u64,
    /// The scheduling policy.
    pub policy: String,
    /// Waiting requests and outstanding commands.
    pub queue: Queue,
    /// Traffic by class, the most urgent first. Classes without requests so far are left out.
    pub traffic: Vec<Traffic>,
    /// The position of the head, if it is known.
    pub head: Option<Head>,
    /// The use of head time.
    pub head_time: HeadTime,
    /// The use of the belief.
    pub mode: Mode,
    /// The reason for the mode, for people.
    #[serde(default)]
    pub mode_reason: String,
    /// The share of commands that ended as predicted, 0 to 1, if the engine tracks it.
    pub confidence: Option<f64>,
    /// The comparison of its heads, if the engine follows the drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heads: Option<HeadComparison>,
    /// The cost of background tasks for the foreground.
    pub impact: Impact,
    /// Background requests that went in gaps.
    #[serde(default)]
    pub gap_requests: GapRequests,
    /// Background tasks, the oldest first.
    pub tasks: Vec<Task>,
    /// Background tasks without an end.
    #[serde(default)]
    pub standing: Vec<Standing>,
    /// Guaranteed streams.
    #[serde(default)]
    pub streams: StreamTotals,
    /// The lateness of an emulated drive's commands.
    pub lateness: Option<Lateness>,
    /// Failed commands.
    pub errors: Errors,
    /// The caches of the drive's volumes.
    #[serde(default)]
    pub caches: Vec<Cache>,
    /// The exports whose requests are classified by I/O priority.
    #[serde(default)]
    pub classified: Vec<Classified>,
    /// The legs, if the drive is a mirror.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror: Option<Mirror>,
}

/// Waiting requests and outstanding commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Requests that were accepted and not dispatched.
    pub waiting: u64,
    /// Commands at the drive.
    pub at_drive: u64,
}

/// The urgency of requests, in groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrafficClass {
    /// Requests under a guarantee.
    RealTime,
    /// Exports with class `foreground`.
    #[default]
    Foreground,
    /// Exports with class `best-effort` 1 to 6, together.
    BestEffort,
    /// Exports with class `background`.
    Background,
}

impl TrafficClass {
    /// The name in JSON and metrics.
    pub fn name(self) -> &'static str {
        match self {
            TrafficClass::RealTime => "real-time",
            TrafficClass::Foreground => "foreground",
            TrafficClass::BestEffort => "best-effort",
            TrafficClass::Background => "background",
        }
    }
}

/// The traffic of one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// The class.
    pub class: TrafficClass,
    /// Reads.
    pub read: Flow,
    /// Writes.
    pub write: Flow,
    /// Response times of the last ten seconds, reads and writes together, if there were any.
    pub latency: Option<Latency>,
    /// Response times since the start, reads and writes together.
    #[serde(default)]
    pub responses: Responses,
}

/// Response times since the start: how many were in each bucket of a histogram.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Responses {
    /// Requests by the bounds of [`RESPONSE_BOUNDS_US`]; the last have a longer response time than the last bound.
    /// Empty without requests.
    pub counts: Vec<u64>,
    /// The sum of the response times.
    pub sum_us: f64,
}

/// The largest response time of each bucket, in microseconds. From a hit in a cache to a drive that retries: the steps
/// are close where a revolution (4 to 11 ms) and a short queue are. A choice.
pub const RESPONSE_BOUNDS_US: [u64; 22] = [
    100, 500, 1_000, 2_500, 5_000, 7_500, 10_000, 15_000, 20_000, 30_000, 40_000, 50_000, 75_000,
    100_000, 150_000, 200_000, 300_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 30_000_000,
];

/// Requests of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Throughput of the last second.
    pub mb_per_s: f64,
    /// Request rate of the last second.
    pub requests_per_s: f64,
    /// Total of successful requests.
    pub requests_total: u64,
    /// Total of their bytes.
    pub bytes_total: u64,
}

/// Response times: from the acceptance of a request to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The number of requests.
    pub requests: u64,
    /// The median.
    pub p50_us: f64,
    /// The 95th percentile.
    pub p95_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The 99.9th percentile.
    pub p999_us: f64,
    /// The maximum.
    pub max_us: f64,
}

/// The believed position of the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The cylinder; 0 is the outermost.
    pub cylinder: u32,
    /// The number of cylinders.
    pub cylinders: u32,
}

/// A use of head time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadKind {
    /// Best-effort requests.
    Foreground,
    /// Requests with a deadline.
    RealTime,
    /// Background blocks in the gaps before requests.
    Free,
    /// Background blocks while no request waited, and granted ones.
    Idle,
    /// Reads that locate the platter.
    Calibration,
    /// Revolutions lost to a wrong prediction.
    Lost,
    /// No use.
    #[default]
    Unused,
}

impl HeadKind {
    /// All kinds, in the order of the page.
    pub const ALL: [HeadKind; 7] = [
        HeadKind::Foreground,
        HeadKind::RealTime,
        HeadKind::Free,
        HeadKind::Idle,
        HeadKind::Calibration,
        HeadKind::Lost,
        HeadKind::Unused,
    ];

    /// The name in JSON and metrics.
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

/// The use of head time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeadTime {
    /// The last second or less, oldest first: about 200 slices, each with its main use.
    pub timeline: Vec<HeadKind>,
    /// The duration of a slice.
    pub slice_us: u64,
    /// The last second by kind.
    pub second_us: ByKind,
    /// The time since the start by kind.
    pub total_us: ByKind,
}

/// Microseconds by use of head time.
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

/// The use of the belief by the scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The first commands of a service show where the platter is: little is planned before. Or the drive is
    /// being profiled.
    Learning,
    /// The drive does what the belief predicts: the scheduler uses positions.
    Following,
    /// Predictions fail too often: the scheduler orders by block number, without free blocks.
    Safe,
    /// There is no belief of the drive.
    #[default]
    Plain,
}

impl Mode {
    /// All modes, in the order of the metrics.
    pub const ALL: [Mode; 4] = [Mode::Learning, Mode::Following, Mode::Safe, Mode::Plain];

    /// The name in JSON and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Learning => "learning",
            Mode::Following => "following",
            Mode::Safe => "safe",
            Mode::Plain => "plain",
        }
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            Mode::Safe => "safe mode",
            other => other.name(),
        }
    }
}

/// The cost of background tasks for the foreground.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Impact {
    /// The measured increase of response times, if there is one.
    pub measured_percent: Option<f64>,
    /// The impact budget.
    pub budget_percent: f64,
}

impl Impact {
    /// Whether the foreground has waited for as much as is granted.
    pub fn is_used_up(&self) -> bool {
        self.measured_percent
            .is_some_and(|measured| measured >= self.budget_percent)
    }
}

/// The totals of the guaranteed streams of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamTotals {
    /// Open streams.
    pub now: u64,
    /// Bytes of their buffers.
    pub memory_bytes: u64,
    /// Total of granted streams.
    pub granted_total: u64,
    /// Total of refused streams.
    pub refused_total: u64,
    /// Total of late batches.
    pub late_total: u64,
    /// Total of lapsed guarantees.
    pub lapsed_total: u64,
    /// Total of commands that took longer than their worst case, while there were streams. The drive is slower
    /// than its profile then, or this host is late.
    #[serde(default)]
    pub overruns_total: u64,
    /// The longest such time beyond a worst case, in microseconds.
    #[serde(default)]
    pub longest_overrun_us: u64,
    /// Whether the drive has become slower than at the grants. Open streams continue, and new ones are
    /// refused.
    #[serde(default)]
    pub strained: bool,
    /// The share of head time that open streams take at worst, in millionths.
    #[serde(default)]
    pub head_ppm: u64,
    /// The share of head time that is left for more streams, in millionths: it is promised neither to open streams nor to
    /// other requests.
    #[serde(default)]
    pub left_ppm: u64,
}

/// The lateness of an emulator's completions against the model, in its last ten seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// The median.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The maximum.
    pub max_us: f64,
}

/// Totals of failed commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// Reads.
    pub reads_total: u64,
    /// Writes, zeroes and trims.
    pub writes_total: u64,
    /// Flushes.
    pub flushes_total: u64,
}

/// A connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Connection {
    /// The number of the connection, which is never used twice.
    pub id: u64,
    /// The front end: `nbd`, `fuse` or `ublk`.
    pub front: String,
    /// The address of the client.
    pub peer: String,
    /// The export.
    pub export: String,
    /// The class of the export.
    pub class: TrafficClass,
    /// Whether the client uses TLS.
    pub tls: bool,
    /// The time since the connection was accepted.
    pub connected_s: f64,
    /// Pending requests.
    pub in_flight: u64,
    /// Total of successful requests.
    pub requests_total: u64,
    /// Total of their bytes.
    pub bytes_total: u64,
}
