//! Suites that others wrote, and clients that nobody would want, against a running `headtime
//! emulate` or `headtime serve`: the whole binary, its sockets and a small drive.
//!
//! Where a program is missing, its test is skipped, which is said and counted; in CI (`CI=true`) it
//! fails. What these print is recorded in `docs/results/service.md`.

#[path = "../service/begun.rs"]
mod begun;
mod exports;
mod failing;
mod hostile;
mod information;
mod kernel;
mod loads;
mod moments;
mod patterns;
mod round_trips;
mod served;
mod service;
mod wire;
