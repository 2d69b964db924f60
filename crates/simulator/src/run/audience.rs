//! Who is served beside a load: applications with streams.

use block::Instant;
use engine::Engine;
use engine::streams::{StreamEvent, StreamTransfer};

/// Whoever does something of its own beside a load. The same calls give the same answers on every
/// machine.
pub trait Audience {
    /// Whatever it does by `now`.
    fn act(&mut self, now: Instant, engine: &mut Engine);

    /// It is told something.
    fn hear(&mut self, now: Instant, event: StreamEvent);

    /// A command of a stream has ended, that could have had the head since `began`.
    fn moved(&mut self, transfer: StreamTransfer, began: Instant, ended: Instant);

    /// When it acts next, if it does.
    fn next(&self, engine: &Engine) -> Option<Instant>;

    /// Whether it has left.
    fn is_over(&self) -> bool;
}

/// Nobody is there.
impl Audience for () {
    fn act(&mut self, _: Instant, _: &mut Engine) {}

    fn hear(&mut self, _: Instant, _: StreamEvent) {}

    fn moved(&mut self, _: StreamTransfer, _: Instant, _: Instant) {}

    fn next(&self, _: &Engine) -> Option<Instant> {
        None
    }

    fn is_over(&self) -> bool {
        true
    }
}
