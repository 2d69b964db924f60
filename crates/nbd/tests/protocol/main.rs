//! The NBD protocol against its document: golden bytes of every message, every refusal, and both
//! sides against each other over streams that are cut anywhere.

mod client_handshake;
mod client_lies;
mod client_replies;
mod garbage;
mod handshake;
mod offered;
mod options;
mod refused_requests;
mod replies;
mod requests;
mod sessions;
