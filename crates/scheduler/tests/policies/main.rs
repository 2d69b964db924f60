//! All policies: what every one of them promises, and what those promise that decide by more than the
//! requests.

mod oracle;
mod owners;
mod stateful;
