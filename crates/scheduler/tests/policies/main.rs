//! All policies: what every one of them promises, and what those promise that decide by more than the
//! requests.

// The engine and the simulator include the same file.
#[path = "../drives/invented.rs"]
mod invented;
mod oracle;
mod stateful;
