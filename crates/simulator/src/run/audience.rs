//! Clients that are served beside a load: applications with streams.

use block::Instant;
use engine::Engine;
use engine::streams::{StreamEvent, StreamTransfer};

/// Clients beside a load that act on their own. The same calls must give the same answers on every
/// machine.
pub trait Audience {
    /// The clients act at `now`.
    fn act(&mut self, now: Instant, engine: &mut Engine);

    /// The engine reports an event of a stream.
    fn stream_event(&mut self, now: Instant, event: StreamEvent);

    /// A command of a stream has ended. It could occupy the head from `began` on.
    fn transfer_ended(&mut self, transfer: StreamTransfer, began: Instant, ended: Instant);

    /// The time of the next action, if there is one.
    fn next_event(&self, engine: &Engine) -> Option<Instant>;

    /// Whether all clients have left.
    fn is_over(&self) -> bool;
}
