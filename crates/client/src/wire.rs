//! What clients of streams and the service say to each other at the control socket: JSON lines.
//!
//! ```text
//!   client   {"version":1,"ask":"attach","export":"disk","rate":1000000,...}
//!   service  {"version":1,"ok":{"stream":3,"memory":2564096,"batch":1024000,"round_us":1024000}}
//!   service  {"version":1,"told":{"stream":3,"event":"serving"}}
//!   client   {"version":1,"ask":"position","stream":3,"offset":65536}
//!   service  {"version":1,"ok":true}
//! ```
//!
//! Each request has one answer, and answers are in the order of the requests; what a stream is told
//! comes between them. The connection is the lease: when it ends, its streams do.

pub use block::{StreamMode, Terms};
use serde::{Deserialize, Serialize};

/// The version of what is said; that of the control socket.
pub const VERSION: u32 = 1;

/// Pieces of a file at most in one request. A choice: with twenty digits in each of its numbers a
/// piece takes 65 bytes of a line, and a line has 1 MiB.
pub const PIECES: usize = 16_000;

/// A range of a file that lies in one piece on the volume; in JSON a list of the three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePiece(
    /// The first byte in the file.
    pub u64,
    /// Where that is, in bytes of the volume.
    pub u64,
    /// How many bytes.
    pub u64,
);

/// Request for a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attach {
    /// The terms, whose fields stand beside `places` in the JSON object.
    #[serde(flatten)]
    pub terms: Terms,
    /// Where the file's bytes are.
    pub places: Places,
}

impl Attach {
    /// The export's name; empty if the client did not send one.
    pub fn export(&self) -> &str {
        self.terms.export.as_deref().unwrap_or_default()
    }
}

/// Where a file's bytes are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Places {
    /// Bytes of the file.
    pub length: u64,
    /// In the order of the file; what lies between them are holes.
    pub pieces: Vec<FilePiece>,
}

/// A stream was granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Granted {
    /// Its number; never used twice.
    pub stream: u64,
    /// The memory that was set, in bytes.
    pub memory: u64,
    /// What it is due in a round, in bytes.
    pub batch: u64,
    /// How long a round is now, in microseconds of the drive's time.
    pub round_us: u64,
}

/// A stream was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(deny_unknown_fields)]
#[error("{reason}")]
pub struct StreamRefused {
    /// Why, for people; with what would be granted.
    pub reason: String,
    /// The largest rate that would be granted now with the same memory, in bytes in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_rate: Option<u64>,
    /// The least memory with which the rate would be granted now, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_memory: Option<u64>,
}

/// A stream's playout point has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Its number.
    pub stream: u64,
    /// Where it is, in bytes of the file.
    pub offset: u64,
}

/// A stream's file has grown, or lies elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refresh {
    /// Its number.
    pub stream: u64,
    /// Where its bytes are now.
    pub places: Places,
}

/// A stream is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Close {
    /// Its number.
    pub stream: u64,
}

/// How a file differs from what was known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileChange {
    /// Not at all.
    Same,
    /// There is more at the end.
    Grown,
    /// There is less at the end.
    Shrunk,
    /// The first byte that lies elsewhere now.
    Moved(u64),
    /// The first byte that is in a hole now.
    Punched(u64),
}

/// What a stream is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamNotice {
    /// Its number.
    pub stream: u64,
    /// What happened.
    pub event: StreamUpdate,
}

/// What happened to a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamUpdate {
    /// The guarantee holds from now on, for the first time or again.
    Serving,
    /// The application has left the buffer, or the file was changed under it: the buffer fills again
    /// at best effort, and nothing is promised meanwhile.
    Lapsed,
    /// A writer was faster than its rate: it waits for room, and is drained at its rate.
    Behind,
    /// A batch came too late: the disk did not keep what was promised.
    Late {
        /// By how much, in microseconds of the drive's time.
        us: u64,
    },
    /// What was written here is not on the media.
    WriteFailed {
        /// The first byte of the file.
        from: u64,
        /// The byte after the last.
        to: u64,
    },
    /// The file lies elsewhere, and there it would not have been granted: it goes on at best effort.
    Unguaranteed(StreamRefused),
    /// A read or a write was served as any other, without the guarantee.
    Aside {
        /// Why.
        reason: String,
    },
    /// There is no such stream any more.
    Ended {
        /// Why.
        reason: String,
    },
}

/// Entry of a list of streams.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Number of the stream.
    pub stream: u64,
    /// Drive that serves it.
    pub drive: String,
    /// Uid of its client.
    pub user: u32,
    /// Its terms, with the memory that it has. Their fields stand in the same JSON object.
    #[serde(flatten)]
    pub terms: Terms,
    /// State of its guarantee.
    pub standing: StreamStatus,
    /// First byte of the file that is in memory.
    pub from: u64,
    /// Byte after the last that the disk was asked for.
    pub to: u64,
    /// Reads and writes that memory served at once, a total.
    pub from_memory_total: u64,
    /// Reads and writes that waited for the disk, a total.
    pub waited_total: u64,
    /// Batches that came too late, a total.
    pub late_total: u64,
    /// Lapses of the guarantee, a total.
    pub lapsed_total: u64,
}

/// How a stream stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamStatus {
    /// Its buffer fills at best effort: nothing is promised yet, or any more.
    #[default]
    Filling,
    /// The guarantee holds.
    Serving,
    /// A writer that was faster than its rate.
    Behind,
    /// It has a priority, and no guarantee.
    BestEffort,
}

impl StreamStatus {
    /// The word of JSON.
    pub fn name(self) -> &'static str {
        match self {
            StreamStatus::Filling => "filling",
            StreamStatus::Serving => "serving",
            StreamStatus::Behind => "behind",
            StreamStatus::BestEffort => "best-effort",
        }
    }
}

/// What the service says, as a line.
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

/// What the service says.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// What was asked for.
    Done(serde_json::Value),
    /// Why not.
    Refused(StreamRefused),
    /// Something happened to a stream.
    Notice(StreamNotice),
}

/// What a line of the service says.
///
/// # Errors
/// What is wrong with it, and what was expected.
pub fn parse(line: &[u8]) -> Result<Said, String> {
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
        } => Ok(Said::Notice(told)),
        ServiceLine {
            ok: Some(outcome),
            error: None,
            refused: None,
            told: None,
            ..
        } => Ok(Said::Done(outcome)),
        ServiceLine {
            error: Some(reason),
            refused,
            ok: None,
            told: None,
            ..
        } => Ok(Said::Refused(refused.unwrap_or_else(|| StreamRefused {
            reason,
            ..StreamRefused::default()
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
        let Ok(Said::Done(outcome)) = parse(granted) else {
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
        assert_eq!(parse(refused), Ok(Said::Refused(expected)));
        let told = br#"{"version":1,"told":{"stream":3,"event":{"late":{"us":12}}}}"#;
        let expected = StreamNotice {
            stream: 3,
            event: StreamUpdate::Late { us: 12 },
        };
        assert_eq!(parse(told), Ok(Said::Notice(expected)));
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
