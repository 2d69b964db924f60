//! The events of a capture: inputs of the engine with its replies, and the ends that it reports.

use std::fmt;

use block::{Duration, Finished};
use engine::{Flushed, Input, Reply};
use serde::{Deserialize, Serialize};

/// One event of a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// An input, its time since the input before it, and the reply of the engine.
    Input(Duration, Input, Reply),
    /// The engine reported the end of a request.
    Finished(Finished),
    /// The engine reported the end of a flush.
    Flushed(Flushed),
    /// The end of the capture.
    End(CaptureEnd),
}

/// The reason for which a capture ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CaptureEnd {
    /// The engine has ended.
    Whole,
    /// The file was slower than the engine, and the buffer was full. Later events are lost.
    Behind,
}

/// The event in messages for users.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Input(_, _, Reply::Command(None)) => f.write_str("gives the drive nothing"),
            Event::Input(_, _, Reply::Command(Some(command))) => {
                write!(f, "gives command {}: {:?}", command.id.0, command.action)
            }
            Event::Input(_, input, reply) => write!(f, "{input:?}: {reply:?}"),
            Event::Finished(finished) => write!(
                f,
                "tells the end of request {} ({:?}) of {} ns, submitted at {} ns, waited {} ns",
                finished.request.id.0,
                finished.status,
                finished.at.as_nanos(),
                finished.submitted.as_nanos(),
                finished.waited.as_nanos()
            ),
            Event::Flushed(flushed) => write!(
                f,
                "tells the end of flush {} ({:?}) of {} ns",
                flushed.id.0,
                flushed.status,
                flushed.at.as_nanos()
            ),
            Event::End(ending) => write!(f, "{ending:?}"),
        }
    }
}
