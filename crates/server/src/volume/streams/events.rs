//! Events of streams for a client.

use headtime_client::wire::{StreamNotice, StreamUpdate};
use tokio::sync::mpsc::{self, Receiver, Sender};

/// The sender of a client's stream events. It never blocks.
#[derive(Clone, Debug)]
pub struct StreamEvents(Sender<StreamNotice>);

/// Events that a client may leave unread. Later ones are dropped. A choice: a minute of a stream that lapses
/// in every round.
const UNREAD: usize = 256;

impl StreamEvents {
    /// A sender and its receiver.
    pub fn new() -> (StreamEvents, Receiver<StreamNotice>) {
        let (sender, receiver) = mpsc::channel(UNREAD);
        (StreamEvents(sender), receiver)
    }

    /// Sends an event of a stream, unless the client does not read.
    pub fn send(&self, stream: u64, event: StreamUpdate) {
        if let Err(error) = self.0.try_send(StreamNotice { stream, event }) {
            tracing::debug!(stream, %error, "a client does not read the events of its stream");
        }
    }
}
