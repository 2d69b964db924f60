//! The protocol of the control socket: JSON lines, one request and one answer.
//!
//! ```text
//!   {"version":1,"ask":"status"}
//!   {"version":1,"ok":{"state":"serving",...}}
//!   {"version":1,"ask":"steer","task":3,"action":{"promote":{"priority":0}}}
//!   {"version":1,"error":"no task 3 is under way"}
//! ```

use block::Class;
use headtime_client::wire;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::unique_keys::UniqueKeys;
use super::{Learn, Scan};
use crate::checkpoint::marks::BitmapStatus;
use crate::checkpoint::moment::CheckpointStatus;
use crate::checkpoint::store::StoreOrder;
use crate::tasks::Steer;
use crate::volume::Release;
use crate::why::Query;

/// The version of the protocol. It grows with every incompatible change.
pub const VERSION: u32 = wire::VERSION;

/// The longest line, in bytes. A choice: the places of a file in [`wire::PIECES`] pieces fit, and a hundred
/// clients without line ends cost little memory.
pub const LONGEST_LINE: usize = 1 << 20;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Ask {
    /// The status: a [`crate::status::Status`].
    Status,
    /// The background tasks: a list of [`crate::status::Task`] by drive.
    Tasks,
    /// The exports: a list of [`ListedExport`].
    Exports,
    /// Begins to read a volume. The answer is `{"task":ID}`.
    Scan(Scan),
    /// Begins to verify a volume's checksums.
    Scrub(ScrubOrder),
    /// The scrubs since the service began: a list of [`super::ScrubReport`].
    Scrubs,
    /// Makes a checkpoint of a volume: [`BegunCheckpoint`].
    BeginCheckpoint(BeginCheckpoint),
    /// Ends the checkpoint of a volume.
    ReleaseCheckpoint {
        /// The name of the volume.
        volume: String,
        /// Whether a backup has its bytes.
        release: Release,
    },
    /// The checkpoints: a list of [`CheckpointStatus`].
    Checkpoints,
    /// Adds or removes a dirty bitmap.
    ChangeBitmap {
        /// The name of the volume.
        volume: String,
        /// The name of the bitmap.
        name: String,
        /// The change.
        change: BitmapChange,
    },
    /// The dirty bitmaps: a list of [`BitmapStatus`].
    Bitmaps,
    /// Steers a task.
    Steer {
        /// The number of the task.
        task: u64,
        /// The command.
        action: Steer,
    },
    /// Sets the impact budget of a drive.
    Impact {
        /// The name of the drive.
        drive: String,
        /// The budget in parts per million, up to a million.
        impact_ppm: u32,
    },
    /// Begins to profile a drive behind its load.
    Learn(Learn),
    /// The findings about such a drive: a [`super::LearningReport`].
    Learned {
        /// The name of the drive.
        drive: String,
    },
    /// Ends the profiling of a drive.
    StopLearning {
        /// The name of the drive.
        drive: String,
    },
    /// Follows what was found about a drive, from now on.
    Follow {
        /// The name of the drive.
        drive: String,
    },
    /// The account of slow requests: a list of [`crate::why::Slow`].
    Why(Query),
    /// Attaches a stream, which lasts as long as the connection: [`wire::Granted`].
    Attach(wire::Attach),
    /// Moves the playout point of a stream.
    Position(wire::Position),
    /// Replaces the places of a stream's file: [`wire::FileChange`].
    Refresh(wire::Refresh),
    /// Closes a stream.
    Close(wire::Close),
    /// All streams: a list of [`wire::Listed`].
    Streams,
    /// Reads the configuration again: [`super::Changes`].
    Reload,
    /// Finishes pending operations and stops.
    Drain,
    /// Stops.
    Stop,
}

impl Ask {
    /// Whether the request changes nothing.
    pub fn only_looks(&self) -> bool {
        matches!(
            self,
            Ask::Status
                | Ask::Tasks
                | Ask::Exports
                | Ask::Scrubs
                | Ask::Checkpoints
                | Ask::Bitmaps
                | Ask::Why(_)
                | Ask::Streams
                | Ask::Learned { .. }
        )
    }
}

/// An order to verify a volume's checksums.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScrubOrder {
    /// The name of the volume.
    pub volume: String,
    /// The priority among tasks; 0 is the highest.
    #[serde(default)]
    pub priority: u8,
    /// The deadline, in seconds from now.
    #[serde(default)]
    pub deadline_s: Option<u64>,
    /// The blocks to verify.
    #[serde(default)]
    pub blocks: ScrubBlocks,
}

/// The blocks that a scrub verifies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScrubBlocks {
    /// All of the volume.
    #[default]
    All,
    /// Those that the volume's file system uses.
    Used,
}

/// An order for a checkpoint of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BeginCheckpoint {
    /// The name of the volume.
    pub volume: String,
    /// The dirty bitmap that begins anew at the moment.
    #[serde(default)]
    pub bitmap: Option<String>,
    /// The class of reads of the moment.
    #[serde(default)]
    pub class: ReadClass,
    /// The place of the old bytes of changed chunks.
    #[serde(default)]
    pub store: StoreOrder,
}

/// The class of reads of a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadClass {
    /// Behind all other requests, for as long as the engine lets anything wait: a backup ends beside any load.
    #[default]
    Last,
    /// As requests of other clients.
    Foreground,
}

impl ReadClass {
    /// The class of the engine.
    pub fn of_requests(self) -> Class {
        match self {
            ReadClass::Last => Class::BestEffort(6),
            ReadClass::Foreground => Class::default(),
        }
    }
}

/// What is to end before the service does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BegunDrain {
    /// Loop devices with file systems over files of the service: `/dev/loop0 (mounted on /srv)`.
    pub waits_for: Vec<String>,
}

/// A checkpoint whose moment has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BegunCheckpoint {
    /// The checkpoint.
    pub checkpoint: CheckpointStatus,
    /// The address of its export for this machine, if the service has a unix socket for clients without TLS.
    pub uri: Option<String>,
    /// The dirty bitmap. Its base is that of the changes before the moment.
    pub bitmap: Option<BitmapStatus>,
}

/// An export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedExport {
    /// Its name.
    pub name: String,
    /// The name of its volume.
    pub volume: String,
    /// The class of its requests, as in the configuration: `background`, for one.
    pub class: String,
    /// Whether clients may not write.
    pub is_read_only: bool,
    /// Its address for this machine, if the service has a unix socket for clients without TLS.
    pub uri: Option<String>,
}

/// A change of a dirty bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BitmapChange {
    /// It begins, and is empty.
    Add,
    /// It ends, and its file goes.
    Remove,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The [`VERSION`].
    pub version: u32,
    /// The result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<Value>,
    /// The error, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The terms that would be granted instead of a refused stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<wire::StreamRefused>,
}

impl Answer {
    /// A refusal.
    pub fn refusal(problem: impl Into<String>) -> Answer {
        let problem: String = problem.into();
        Answer {
            version: VERSION,
            ok: None,
            error: Some(problem.replace(|letter: char| letter.is_control(), " ")),
            refused: None,
        }
    }

    /// The refusal of a stream.
    pub fn refused(refused: wire::StreamRefused) -> Answer {
        Answer {
            refused: Some(refused.clone()),
            ..Answer::refusal(refused.reason)
        }
    }

    /// A result.
    pub fn done(outcome: Value) -> Answer {
        Answer {
            version: VERSION,
            ok: Some(outcome),
            error: None,
            refused: None,
        }
    }

    /// The answer as a line.
    pub fn line(&self) -> String {
        // A tree of JSON values is always JSON: no map in it has keys that are no texts.
        let text = serde_json::to_string(self).unwrap_or_default();
        text + "\n"
    }
}

/// A request as a line, for clients.
pub fn request(ask: &Ask) -> String {
    let mut value = serde_json::to_value(ask).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        fields.insert(String::from("version"), Value::from(VERSION));
    }
    value.to_string() + "\n"
}

/// Parses the request of a line.
///
/// # Errors
/// The problem, and what was expected.
pub fn parse(line: &[u8]) -> Result<Ask, String> {
    let example = "expected a line such as {\"version\":1,\"ask\":\"status\"}";
    if line.len() > LONGEST_LINE {
        return Err(format!(
            "more than {LONGEST_LINE} bytes: expected a shorter line"
        ));
    }
    let not_json = |error| format!("not JSON: {error}: {example}");
    let value: Value = serde_json::from_slice(line).map_err(not_json)?;
    let UniqueKeys = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let Value::Object(mut fields) = value else {
        return Err(format!("not an object: {example}"));
    };
    match fields.remove("version") {
        Some(version) if version == VERSION => {}
        Some(version) => return Err(format!("version {version}: expected {VERSION}")),
        None => return Err(format!("no version: {example}")),
    }
    serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())
}

/// An event of a stream as a line.
pub fn told(told: &wire::StreamNotice) -> String {
    serde_json::json!({ "version": VERSION, "told": told }).to_string() + "\n"
}

/// The tasks of one drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriveTasks {
    /// The name of the drive.
    pub drive: String,
    /// The tasks, the oldest first.
    pub tasks: Vec<crate::status::Task>,
}
