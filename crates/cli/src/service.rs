//! A running service's answers to the commands that ask it.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;
use server::control::protocol::Ask;
use server::control::{self, AskError};
use tracing::debug;

use crate::output::Exit;

/// A service's answer.
///
/// # Errors
/// If no service listens on the socket, or it refuses.
pub fn asked(socket: &Path, ask: &Ask) -> Result<Value, Exit> {
    debug!(socket = %socket.display(), ?ask, "asks the service");
    let answer = control::ask(socket, ask).map_err(failure);
    debug!(?answer, "the answer");
    answer
}

/// A refusal is an error of the input; all others are failures.
pub fn failure(error: AskError) -> Exit {
    match error {
        AskError::Refused(_) => Exit::input(error),
        _ => Exit::failed(error),
    }
}

/// What an answer says.
///
/// # Errors
/// If it is not of this form: the service is of another version.
pub fn understood<T: DeserializeOwned>(socket: &Path, answer: Value) -> Result<T, Exit> {
    serde_json::from_value(answer).map_err(|error| {
        let socket = socket.display();
        Exit::failed(format!(
            "{socket}: {error}: expected a service of this version"
        ))
    })
}
