//! Scripts in a guest, for the tests of this crate and of the program.

use guest::{Failed, Guest, Output};

/// Runs the script and answers with what it printed. None if something is not installed, which is
/// said, and is a failure in CI.
#[allow(clippy::print_stdout, reason = "what was skipped is said in the log")]
pub fn run(guest: Result<Guest, Failed>, script: &str) -> Option<String> {
    match guest.and_then(|guest| guest.run(script)) {
        Ok(Output {
            status: 0, text, ..
        }) => Some(text),
        Ok(Output {
            status,
            text,
            kernel,
        }) => panic!("the script ended with {status}:\n{text}\nits kernel:\n{kernel}"),
        Err(missing @ Failed::Missing { .. }) => {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{missing}");
            println!("skipped: {missing}");
            None
        }
        Err(other) => panic!("{other}"),
    }
}
