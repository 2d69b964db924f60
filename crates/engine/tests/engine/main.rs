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
mod order;
mod parts;
mod patience;
mod slow_bus;
mod streaming;
mod untrusted;
mod zones;
