//! The client's side: for a server as a back end, and for load generators.
//!
//! ```text
//!   ClientNegotiation --Session--> Requests
//!                                  submit -> header (and payload) to the server
//!                                  receive <- replies: contents, holes, states, ends
//! ```
//!
//! A server may be hostile. The client allocates nothing by a length that the server names. A reply has to
//! belong to a request, and a read succeeds only if each of its bytes came exactly once.

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
