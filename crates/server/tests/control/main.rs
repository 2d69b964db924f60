//! The control plane over a fake service: its socket, HTTP, metrics and the status page.

mod activation;
mod configuration;
mod ending;
mod fake;
mod metrics;
mod page;
mod plane;
mod socket;
mod verbs;
