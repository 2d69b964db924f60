//! A drive in service, in this process: clients over real sockets against naive models.

mod amid;
mod bytes;
mod cached;
mod capture;
mod checked;
mod checkpointed;
mod client;
mod drives;
mod fickle;
mod gate;
mod hostile;
mod ledger;
#[allow(dead_code, reason = "shared with the swarm")]
mod model;
mod offered;
mod parts;
mod power;
mod priorities;
mod promised;
mod random;
mod room;
mod shuffled;
mod slowest;
mod station;
mod streams;
mod taken_up;
mod trims;
mod whole;
