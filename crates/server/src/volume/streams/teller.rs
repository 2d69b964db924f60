//! What a client is told of its streams.

use headtime_client::wire::{Event, Told};
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Tells a client what happens to its streams. It waits for nobody.
#[derive(Clone, Debug)]
pub struct Teller(Sender<Told>);

/// What a client may leave unread. Beyond it nothing more is told: who does not read does not hear. A
/// choice: a minute of a stream that lapses in every round.
const UNREAD: usize = 256;

impl Teller {
    /// A teller, and where it is heard.
    pub fn new() -> (Teller, Receiver<Told>) {
        let (teller, told) = mpsc::channel(UNREAD);
        (Teller(teller), told)
    }

    /// Tells it.
    pub fn tell(&self, stream: u64, event: Event) {
        if let Err(error) = self.0.try_send(Told { stream, event }) {
            tracing::debug!(stream, %error, "a client does not hear what happens to its stream");
        }
    }
}
