//! The client's side of the control socket: one request, one answer.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use headtime_client::private;
use serde_json::Value;

use super::protocol::{Answer, Ask, VERSION, request};

/// The error of a request.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No service listens at the socket.
    #[error("{}: {error}: expected the control socket of a running service", path.display())]
    Unreachable {
        /// The path of the socket.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The answer is not of a service of this version.
    #[error("{}: {problem}", path.display())]
    Misunderstood {
        /// The path of the socket.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// The service refused the request.
    #[error("{0}")]
    Refused(String),
}

/// The longest time of an answer. A choice: a reload opens images and reads profiles.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to a running service. Tasks that were begun with [`TaskLifetime::Connection`] end with it.
///
/// [`TaskLifetime::Connection`]: super::TaskLifetime::Connection
#[derive(Debug)]
pub struct Conversation {
    path: PathBuf,
    stream: BufReader<UnixStream>,
}

/// Sends one request to a running service.
///
/// # Errors
/// If no service answers at that socket, it is one that [`private::connect`] does not trust, or it refuses.
pub fn ask(path: &Path, ask: &Ask) -> Result<Value, AskError> {
    Conversation::begin(path)?.ask(ask)
}

impl Conversation {
    /// Connects to the service at a socket.
    ///
    /// # Errors
    /// If no service listens there, or it is one that [`private::connect`] does not trust.
    pub fn begin(path: &Path) -> Result<Self, AskError> {
        let connect = || {
            let stream = private::connect(path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(BufReader::new(stream))
        };
        let stream = connect().map_err(|error| AskError::Unreachable {
            path: path.to_owned(),
            error,
        })?;
        Ok(Conversation {
            path: path.to_owned(),
            stream,
        })
    }

    /// Sends a request, and returns its answer.
    ///
    /// # Errors
    /// If the service does not answer, or refuses.
    pub fn ask(&mut self, ask: &Ask) -> Result<Value, AskError> {
        let line = (self.exchange(&request(ask))).map_err(|error| AskError::Unreachable {
            path: self.path.clone(),
            error,
        })?;
        let misunderstood = |problem: String| AskError::Misunderstood {
            path: self.path.clone(),
            problem,
        };
        let answer: Answer = serde_json::from_str(&line)
            .map_err(|error| misunderstood(format!("not an answer: {error}")))?;
        match answer {
            Answer { version, .. } if version != VERSION => Err(misunderstood(format!(
                "version {version}: expected a service of version {VERSION}"
            ))),
            Answer {
                ok: Some(outcome), ..
            } => Ok(outcome),
            Answer {
                error: Some(error), ..
            } => Err(AskError::Refused(error)),
            Answer { .. } => Err(misunderstood(String::from("an empty answer"))),
        }
    }

    fn exchange(&mut self, request: &str) -> io::Result<String> {
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        match self.stream.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line),
        }
    }
}
