//! What is written down of an engine: its inputs with its replies, and what it tells.

use std::fmt;

use block::{Duration, Finished};
use engine::{Flushed, Input, Reply};
use serde::{Deserialize, Serialize};

/// One event of a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// An input came so long after the one before it, and the engine replied.
    Input(Duration, Input, Reply),
    /// The engine told the end of a request.
    Finished(Finished),
    /// The engine told the end of a flush.
    Flushed(Flushed),
    /// The capture is over.
    End(Ending),
}

/// Why a capture is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// The engine is gone.
    Whole,
    /// The file was slower than the engine for longer than the buffer lasts: what came since is
    /// not in it.
    Behind,
}

/// What people read in explanations.
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
