//! The JSON lines between stream clients and the service, at the control socket.
//!
//! ```text
//!   client   {"version":1,"ask":"attach","export":"disk","rate":1000000,...}
//!   service  {"version":1,"ok":{"stream":3,"memory":2564096,"batch":1024000,"round_us":1024000}}
//!   service  {"version":1,"told":{"stream":3,"event":"serving"}}
//!   client   {"version":1,"ask":"position","stream":3,"offset":65536}
//!   service  {"version":1,"ok":true}
//! ```
//!
//! Every request has one answer, in the order of the requests. Notices about streams come between
//! answers. The connection is the lease: streams end with it.

pub use block::{StreamMode, Terms};
use serde::{Deserialize, Serialize};

/// The version of the protocol of the control socket.
pub const VERSION: u32 = 1;

/// The largest number of pieces in one request. A choice: a piece of three 20-digit numbers takes
/// 65 bytes of a line, and a line has at most 1 MiB.
pub const PIECES: usize = 16_000;

/// A range of a file that is contiguous on the volume. Its JSON form is a list of the three
/// numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePiece(
    /// The offset in the file, in bytes.
    pub u64,
    /// The offset on the volume, in bytes.
    pub u64,
    /// The length in bytes.
    pub u64,
);

/// A request to attach a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attach {
    /// The terms. Their fields stand beside `places` in the JSON object.
    #[serde(flatten)]
    pub terms: Terms,
    /// The location of the file's bytes.
    pub places: Places,
}

impl Attach {
    /// The name of the export; empty if the client sent none.
    pub fn export(&self) -> &str {
        self.terms.export.as_deref().unwrap_or_default()
    }
}

/// The location of a file's bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Places {
    /// The length of the file in bytes.
    pub length: u64,
    /// The pieces in the order of the file. The gaps between them are holes.
    pub pieces: Vec<FilePiece>,
}

/// The grant of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Granted {
    /// The stream's number, which is never reused.
    pub stream: u64,
    /// The memory that the service reserved, in bytes.
    pub memory: u64,
    /// The stream's share of a round, in bytes.
    pub batch: u64,
    /// The current length of a round, in microseconds of the drive's time.
    pub round_us: u64,
}

/// The refusal of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(deny_unknown_fields)]
#[error("{reason}")]
pub struct StreamRefused {
    /// The reason in words, with the terms that would be granted.
    pub reason: String,
    /// The largest rate that would be granted with the same memory, in bytes a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_rate: Option<u64>,
    /// The least memory with which the rate would be granted, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_memory: Option<u64>,
}

/// A report of a stream's playout point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// The stream's number.
    pub stream: u64,
    /// The playout point, in bytes of the file.
    pub offset: u64,
}

/// A report of a file that has grown or moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refresh {
    /// The stream's number.
    pub stream: u64,
    /// The new location of the file's bytes.
    pub places: Places,
}

/// A request to close a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Close {
    /// The stream's number.
    pub stream: u64,
}

/// The difference between a file's new and known locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileChange {
    /// The locations are equal.
    Same,
    /// The file is longer.
    Grown,
    /// The file is shorter.
    Shrunk,
    /// The first byte that has moved.
    Moved(u64),
    /// The first byte that is now in a hole.
    Punched(u64),
}

/// A notice of the service about a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamNotice {
    /// The stream's number.
    pub stream: u64,
    /// The event.
    pub event: StreamUpdate,
}

/// An event of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamUpdate {
    /// The guarantee holds from now on.
    Serving,
    /// The guarantee lapsed: the application left the buffer, or the file changed. The buffer fills
    /// again at best effort.
    Lapsed,
    /// A writer exceeded its rate. Its writes wait for room, and the buffer drains at the rate.
    Behind,
    /// A batch was late. If that is more than it was held up, the disk broke the guarantee.
    Late {
        /// The lateness in microseconds.
        us: u64,
        /// For how long earlier requests over the same blocks came before it, in microseconds. The
        /// guarantee does not cover that time. Older services do not send it.
        #[serde(default)]
        held_up_us: u64,
    },
    /// Recorded bytes are not on the medium.
    WriteFailed {
        /// The first such byte of the file.
        from: u64,
        /// The byte after the last one.
        to: u64,
    },
    /// The file has moved, and the new location cannot be guaranteed. The stream continues at best
    /// effort.
    Unguaranteed(StreamRefused),
    /// A read or write was served at best effort, without the guarantee.
    Aside {
        /// The reason in words.
        reason: String,
    },
    /// The stream has ended.
    Ended {
        /// The reason in words.
        reason: String,
    },
}

/// An entry of the list of streams.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The stream's number.
    pub stream: u64,
    /// The name of the drive that serves the stream.
    pub drive: String,
    /// The user id of the client.
    pub user: u32,
    /// The terms, with the reserved memory. Their fields stand in the same JSON object.
    #[serde(flatten)]
    pub terms: Terms,
    /// The state of the guarantee.
    pub standing: StreamStatus,
    /// The first byte of the file in the stream's buffer.
    pub from: u64,
    /// The byte after the last one that was requested from the disk.
    pub to: u64,
    /// Reads and writes that the buffer served at once, since the attachment.
    pub from_memory_total: u64,
    /// Reads and writes that waited for the disk, since the attachment.
    pub waited_total: u64,
    /// Late batches since the attachment.
    pub late_total: u64,
    /// Lapses of the guarantee since the attachment.
    pub lapsed_total: u64,
}

/// The state of a stream's guarantee.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamStatus {
    /// The buffer fills at best effort. The guarantee does not hold yet, or no longer.
    #[default]
    Filling,
    /// The guarantee holds.
    Serving,
    /// A writer exceeded its rate.
    Behind,
    /// The stream has a priority and no guarantee.
    BestEffort,
}

impl StreamStatus {
    /// The state's name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            StreamStatus::Filling => "filling",
            StreamStatus::Serving => "serving",
            StreamStatus::Behind => "behind",
            StreamStatus::BestEffort => "best-effort",
        }
    }
}

/// A request to read a declared set of a volume's bytes in gaps and idle time. The service answers with the
/// number of the task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOrder {
    /// The name of the volume.
    pub volume: String,
    /// The pieces.
    pub set: TaskPieces,
    /// The priority; 0 is the highest.
    pub priority: u8,
    /// The deadline, in seconds from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_s: Option<u64>,
    /// The most bytes a second that the task takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace_bytes_s: Option<u64>,
    /// The receiver of the blocks.
    pub sink: TaskSink,
}

/// Pieces of a volume, in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPieces {
    /// The first byte of each piece and its length, in multiples of the drive's blocks; at most [`PIECES`].
    pub pieces: Vec<(u64, u64)>,
    /// Any so many of the pieces will do; all are needed without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub any: Option<u64>,
}

/// The receiver of a task's blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskSink {
    /// A checksum of the blocks.
    #[default]
    Checksum,
    /// A program and its arguments, which the service runs. For each portion its standard input has a line
    /// with the first byte in the volume and the length, and then the bytes.
    Command(Vec<String>),
    /// A file by its whole path, which the service writes: the pieces one behind the other, in the order of the request; up
    /// to 7 bytes up to a multiple of 8; and a bit for each block that has come, the least significant one first. A block
    /// is there before its bit. A file in memory (`/dev/shm`) is a buffer that its reader maps.
    Buffer(std::path::PathBuf),
}

/// A task of the service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ListedTask {
    /// The number.
    pub id: u64,
    /// The state: `active`, `suspended`, `finished` or `aborted`.
    pub state: String,
    /// Bytes of the set, rounded up to slices of the drive's bookkeeping.
    pub asked_bytes: u64,
    /// Bytes that were read.
    pub done_bytes: u64,
    /// Bytes of those that were read in gaps of the foreground.
    #[serde(default)]
    pub free_bytes: u64,
    /// Bytes of those that were read in idle time.
    #[serde(default)]
    pub idle_bytes: u64,
    /// Bytes of those that were read in granted time.
    #[serde(default)]
    pub paid_bytes: u64,
    /// Bytes that could not be read.
    pub failed_bytes: u64,
    /// The pieces that are needed.
    #[serde(default)]
    pub pieces_needed: u64,
    /// The pieces of which all blocks were read.
    #[serde(default)]
    pub pieces_done: u64,
    /// The time until the end at the present rate, if it is known.
    pub eta_s: Option<f64>,
    /// The result, once task and sink have ended.
    pub outcome: Option<String>,
    /// The error of the sink.
    pub problem: Option<String>,
}

/// A change of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskSteer {
    /// The drive reads no blocks for the task until it is resumed.
    Suspend,
    /// The drive reads blocks for the task again.
    Resume,
    /// The task ends unfinished.
    Abort,
    /// The priority changes.
    Promote {
        /// The new priority; 0 is the highest.
        priority: u8,
    },
    /// A client waits for the task: its reads take turns with the commands of the foreground.
    Hasten,
}

/// A line of the service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceLine {
    version: u32,
    #[serde(default)]
    ok: Option<serde_json::Value>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    refused: Option<StreamRefused>,
    #[serde(default)]
    told: Option<StreamNotice>,
}

/// A message of the service.
#[derive(Clone, Debug, PartialEq)]
pub enum ServiceMessage {
    /// The result of a request.
    Done(serde_json::Value),
    /// The refusal of a request.
    Refused(StreamRefused),
    /// An event of a stream.
    Notice(StreamNotice),
}

/// Parses a line of the service.
///
/// # Errors
/// The mistake in the line, and what was expected.
pub fn parse(line: &[u8]) -> Result<ServiceMessage, String> {
    let line: ServiceLine = serde_json::from_slice(line)
        .map_err(|error| format!("{error}: expected an answer of a control socket"))?;
    if line.version != VERSION {
        let version = line.version;
        return Err(format!("version {version}: expected {VERSION}"));
    }
    match line {
        ServiceLine {
            told: Some(told),
            ok: None,
            error: None,
            refused: None,
            ..
        } => Ok(ServiceMessage::Notice(told)),
        ServiceLine {
            ok: Some(outcome),
            error: None,
            refused: None,
            told: None,
            ..
        } => Ok(ServiceMessage::Done(outcome)),
        ServiceLine {
            error: Some(reason),
            refused,
            ok: None,
            told: None,
            ..
        } => Ok(ServiceMessage::Refused(refused.unwrap_or_else(|| {
            StreamRefused {
                reason,
                ..StreamRefused::default()
            }
        }))),
        _ => Err(String::from("expected one of ok, error and told")),
    }
}

/// A request as a line.
pub fn request(ask: &str, fields: &impl Serialize) -> String {
    let mut value = serde_json::to_value(fields).unwrap_or_default();
    if value.is_null() {
        value = serde_json::json!({});
    }
    if let serde_json::Value::Object(map) = &mut value {
        map.insert(String::from("version"), VERSION.into());
        map.insert(String::from("ask"), ask.into());
    }
    value.to_string() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_of_the_service_are_told_apart() {
        let granted = br#"{"version":1,"ok":{"stream":3,"memory":1,"batch":2,"round_us":4}}"#;
        let Ok(ServiceMessage::Done(outcome)) = parse(granted) else {
            panic!("an answer");
        };
        let granted: Granted = serde_json::from_value(outcome).expect("it fits");
        assert_eq!((granted.stream, granted.round_us), (3, 4));
        let refused = br#"{"version":1,"error":"no","refused":{"reason":"no","largest_rate":7}}"#;
        let expected = StreamRefused {
            reason: "no".to_owned(),
            largest_rate: Some(7),
            least_memory: None,
        };
        assert_eq!(parse(refused), Ok(ServiceMessage::Refused(expected)));
        let told = br#"{"version":1,"told":{"stream":3,"event":{"late":{"us":12}}}}"#;
        let expected = StreamNotice {
            stream: 3,
            event: StreamUpdate::Late {
                us: 12,
                held_up_us: 0,
            },
        };
        assert_eq!(parse(told), Ok(ServiceMessage::Notice(expected)));
        for bad in [
            &br#"{"version":2,"ok":true}"#[..],
            br#"{"version":1}"#,
            br#"{"version":1,"ok":true,"error":"both"}"#,
            br#"{"version":1,"ok":true,"more":1}"#,
        ] {
            assert!(parse(bad).is_err(), "{}", String::from_utf8_lossy(bad));
        }
    }

    #[test]
    fn a_request_is_one_line_that_says_its_version() {
        let line = request(
            "attach",
            &Attach {
                terms: Terms {
                    export: Some("a\nb".to_owned()),
                    ..Terms::default()
                },
                places: Places {
                    length: 8192,
                    pieces: vec![FilePiece(0, 4096, 8192)],
                },
            },
        );
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        for part in [r#""version":1"#, r#""ask":"attach""#, "[[0,4096,8192]]"] {
            assert!(line.contains(part), "{line}");
        }
    }

    #[test]
    fn terms_stand_beside_places_and_unknown_fields_are_refused() {
        let line = r#"{"export":"disk","mode":"record","rate":5,"buffer":7,"places":{"length":0,"pieces":[]}}"#;
        let attach: Attach = serde_json::from_str(line).expect("a request");
        let expected = Terms {
            export: Some("disk".to_owned()),
            ..Terms::record(5, 7)
        };
        assert_eq!(attach.terms, expected);
        let more = line.replace("\"rate\"", "\"speed\":1,\"rate\"");
        let refused = serde_json::from_str::<Attach>(&more).map_err(|error| error.to_string());
        assert!(refused.is_err_and(|error| error.contains("unknown field `speed`")));
    }

    proptest! {
        #[test]
        fn no_line_is_a_panic(line in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&line);
        }

        #[test]
        fn the_longest_request_fits_a_line(seed in any::<u64>()) {
            let piece = FilePiece(u64::MAX, u64::MAX - seed % 8, u64::MAX);
            let places = Places { length: u64::MAX, pieces: vec![piece; PIECES] };
            let line = request("refresh", &Refresh { stream: u64::MAX, places });
            prop_assert!(line.len() <= 1 << 20, "{} bytes", line.len());
        }
    }
}
