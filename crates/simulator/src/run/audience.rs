//! Clients that are served beside a load: applications with streams.

use block::Instant;
use engine::Engine;
use engine::streams::{StreamEvent, StreamTransfer};

/// Clients beside a load that act on their own. The same calls give the same answers on every
/// machine.
pub trait Audience {
    /// The audience acts at `now`.
    fn act(&mut self, now: Instant, engine: &mut Engine);

    /// The engine has an event of a stream.
    fn stream_event(&mut self, now: Instant, event: StreamEvent);

    /// A command of a stream has ended; it could have had the head since `began`.
    fn transfer_ended(&mut self, transfer: StreamTransfer, began: Instant, ended: Instant);

    /// When the audience acts next, if it does.
    fn next_event(&self, engine: &Engine) -> Option<Instant>;

    /// Whether the audience has left.
    fn is_over(&self) -> bool;
}

/// No audience.
impl Audience for () {
    fn act(&mut self, _: Instant, _: &mut Engine) {}

    fn stream_event(&mut self, _: Instant, _: StreamEvent) {}

    fn transfer_ended(&mut self, _: StreamTransfer, _: Instant, _: Instant) {}

    fn next_event(&self, _: &Engine) -> Option<Instant> {
        None
    }

    fn is_over(&self) -> bool {
        true
    }
}
