//! Runs engines in real time.
//!
//! ```text
//!   NBD, FUSE, ublk --operation--> event loop --request--> engine --command--> back end
//!                   <---reply----             <-finished--        <-outcome---
//! ```
//!
//! Each drive has one event loop, on one thread, over one io_uring. What else there is (accepting
//! connections, the control socket, the status page) runs on other threads and talks to the loop
//! through its mailbox.

pub mod accounts;
pub mod arena;
pub mod cache_setting;
pub mod capture;
pub mod checkpoint;
pub mod checksums;
pub mod classify;
pub mod clients;
pub mod clock;
pub mod config;
pub mod control;
pub mod cpu_latency;
pub mod diagnosis;
pub mod disk;
pub mod event_loop;
pub mod exclusive;
pub mod featureless;
pub mod file_systems;
pub mod front_end;
pub mod listener;
pub mod mirror;
mod outbox;
mod peer;
pub mod ring;
pub mod service;
pub mod station;
pub mod status;
pub mod tasks;
pub mod tls;
mod unix_socket;
pub mod volume;
pub mod why;
