//! Suites that others wrote, and clients that nobody would want, against a running `headtime
//! emulate`: the whole binary, its sockets and a small drive.
//!
//! Where a program is missing, its test is skipped, which is said and counted; in CI (`CI=true`) it
//! fails. What these print is recorded in `docs/results/service.md`.

mod hostile;
mod information;
mod loads;
mod patterns;
mod round_trips;
mod served;
mod wire;
