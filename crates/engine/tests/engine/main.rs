//! The engine as its driver sees it: requests, tasks and streams in, commands and completions out.

mod background;
mod calibration;
mod contents;
mod contract;
mod explanation;
mod flush;
mod forecast;
mod guarantees;
mod hostile;
mod impact;
mod made;
mod order;
mod parts;
mod patience;
mod policy_alone;
mod slow_bus;
mod streaming;
mod tracking;
mod two_arms;
mod untrusted;
mod zones;
