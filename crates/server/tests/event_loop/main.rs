//! A drive in service, in this process: clients over real sockets against naive models.

mod bytes;
mod cached;
mod capture;
mod client;
mod fickle;
mod hostile;
mod ledger;
mod model;
mod power;
mod priorities;
mod random;
mod slowest;
mod station;
mod streams;
