//! The client's side: another server as a back end, and load.
//!
//! ```text
//!   ClientNegotiation --Session--> Requests
//!                            submit -> header (and payload) to the server
//!                            receive <- replies: contents, holes, states, ends
//! ```
//!
//! Servers may be hostile, too. Nothing is allocated by a length that one names, replies have to
//! belong to requests, and a read ends well only if every byte of it came exactly once.

mod coverage;
mod events;
mod negotiation;
mod replies;

pub use events::{Event, NotSent, ReplyError};
pub use negotiation::{
    ANSWER, ClientError, ClientNegotiation, ClientOptions, ClientPhase, ClientSecurity, REPLIES,
    Session,
};
pub use replies::{BUFFER, Requests, place};
