//! Events on their way to a file, past the event loop.
//!
//! ```text
//!   event --> [ chunk ] --full--> [ at most CHUNKS of them ] --> a thread --> file
//! ```
//!
//! The event loop never waits for the file: if that cannot keep up, the capture ends there, and
//! says so.

use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, JoinHandle};

use block::Instant;
use engine::{Input, Reply};
use serde::Serialize;
use tracing::{error, warn};

use super::event::{Ending, Event};
use super::setting::Setting;
use super::{FIRST, frame};

/// Writes the events of one engine to one file. When it is dropped the file is whole.
pub struct Recorder {
    chunk: Vec<u8>,
    /// When the last input came.
    last: Instant,
    sender: Option<SyncSender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
    ending: Ending,
}

/// A chunk goes to the file when it has so many bytes: some ten thousand events. A choice.
const CHUNK: usize = 64 << 10;

/// So many chunks may wait for the file: 16 MiB, minutes of a busy drive. A choice.
const CHUNKS: usize = 256;

impl Recorder {
    /// Begins a file with what the engine is made of.
    ///
    /// # Errors
    /// If it cannot be written, or there is no thread.
    pub fn begin(mut file: impl Write + Send + 'static, setting: &Setting) -> io::Result<Self> {
        file.write_all(FIRST)?;
        file.write_all(&frame(&appended(Vec::new(), setting)))?;
        let (sender, chunks) = sync_channel::<Vec<u8>>(CHUNKS);
        let writer = Builder::new().name("capture".into()).spawn(move || {
            let mut written = Ok(());
            for chunk in chunks {
                written = written.and_then(|()| file.write_all(&frame(&chunk)));
            }
            if let Err(error) = written.and_then(|()| file.flush()) {
                error!(%error, "the capture is not whole");
            }
        })?;
        Ok(Recorder {
            chunk: Vec::new(),
            last: Instant::ZERO,
            sender: Some(sender),
            writer: Some(writer),
            ending: Ending::Whole,
        })
    }

    /// An input came at `now`.
    pub(super) fn record_input(&mut self, now: Instant, input: Input, reply: Reply) {
        self.record(&Event::Input(now.since(self.last), input, reply));
        self.last = now;
    }

    /// The next event.
    pub(super) fn record(&mut self, event: &Event) {
        if self.ending == Ending::Behind {
            return;
        }
        self.chunk = appended(std::mem::take(&mut self.chunk), event);
        if self.chunk.len() >= CHUNK {
            self.send();
        }
    }

    fn send(&mut self) {
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK + CHUNK / 8));
        let sent = self.sender.as_ref().map(|sender| sender.try_send(chunk));
        if let Some(Err(TrySendError::Full(_))) = sent {
            warn!("the capture's file is too slow: the capture ends here");
            self.ending = Ending::Behind;
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let chunk = std::mem::take(&mut self.chunk);
        let chunk = appended(chunk, &Event::End(self.ending));
        if let Some(sender) = self.sender.take() {
            // The event loop is over: now the file may be waited for.
            let _ = sender.send(chunk);
        }
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// `bytes`, and behind them a value in postcard's format.
fn appended(bytes: Vec<u8>, value: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(value, bytes).expect("memory takes every value of ours")
}
