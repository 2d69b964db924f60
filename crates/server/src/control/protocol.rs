//! JSON lines: one request, one answer.
//!
//! ```text
//!   {"version":1,"ask":"status"}
//!   {"version":1,"ok":{"state":"serving",...}}
//!   {"version":1,"ask":"steer","task":3,"action":{"promote":{"priority":0}}}
//!   {"version":1,"error":"no task 3 is under way"}
//! ```

use headtime_client::wire;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Scan;
use crate::tasks::Steer;
use crate::why::Query;

/// The version of what is said. It grows when a client of the version before would misunderstand.
pub const VERSION: u32 = wire::VERSION;

/// The longest line that is read. A choice: the places of a file in [`wire::PIECES`] pieces fit, and
/// a hundred clients that send no line end cost little memory.
pub const LONGEST_LINE: usize = 1 << 20;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Ask {
    /// How it is: a [`crate::status::Status`].
    Status,
    /// The background tasks: a list of [`crate::status::Task`] by drive.
    Tasks,
    /// To read a volume: `{"task":ID}`.
    Scan(Scan),
    /// To do something to a task.
    Steer {
        /// Its number.
        task: u64,
        /// What.
        action: Steer,
    },
    /// To let background tasks on a drive lengthen foreground requests by so much, from now on.
    Impact {
        /// The drive's name.
        drive: String,
        /// By how much, in parts per million, up to a million.
        impact_ppm: u32,
    },
    /// Where the time of slow requests went: a list of [`crate::why::Slow`].
    Why(Query),
    /// A stream: [`wire::Granted`]. It lasts as long as the connection.
    Attach(wire::Attach),
    /// To know where its application is.
    Position(wire::Position),
    /// To know where its file is: [`wire::Change`].
    Refresh(wire::Refresh),
    /// To end it.
    Close(wire::Close),
    /// All streams: a list of [`wire::Listed`].
    Streams,
    /// To read the configuration again: [`super::Changes`].
    Reload,
    /// To end what was begun, and stop.
    Drain,
    /// To stop.
    Stop,
}

impl Ask {
    /// Whether it only looks.
    pub fn only_looks(&self) -> bool {
        matches!(self, Ask::Status | Ask::Tasks | Ask::Why(_) | Ask::Streams)
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// [`VERSION`].
    pub version: u32,
    /// What was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<Value>,
    /// Or why not, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Of a stream that was refused, also what would be granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<wire::Refused>,
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

    /// A stream is refused.
    pub fn refused(refused: wire::Refused) -> Answer {
        Answer {
            refused: Some(refused.clone()),
            ..Answer::refusal(refused.reason)
        }
    }

    /// What was asked for.
    pub fn done(outcome: Value) -> Answer {
        Answer {
            version: VERSION,
            ok: Some(outcome),
            error: None,
            refused: None,
        }
    }

    /// As a line.
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

/// What a line asks.
///
/// # Errors
/// What is wrong with it, and what was expected.
pub fn parse(line: &[u8]) -> Result<Ask, String> {
    let example = "expected a line such as {\"version\":1,\"ask\":\"status\"}";
    if line.len() > LONGEST_LINE {
        return Err(format!(
            "more than {LONGEST_LINE} bytes: expected a shorter line"
        ));
    }
    let value: Value =
        serde_json::from_slice(line).map_err(|error| format!("not JSON: {error}: {example}"))?;
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

/// Something that a stream is told, as a line.
pub fn told(told: &wire::Told) -> String {
    serde_json::json!({ "version": VERSION, "told": told }).to_string() + "\n"
}

/// The tasks of one drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriveTasks {
    /// The drive's name.
    pub drive: String,
    /// Its tasks, in the order of their beginning.
    pub tasks: Vec<crate::status::Task>,
}
