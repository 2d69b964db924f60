//! The recorder of an engine's events, on a thread of its own.
//!
//! ```text
//!   event --> [ chunk ] --full--> [ at most CHUNKS of them ] --> a thread --> file
//! ```
//!
//! The event loop never waits for the file. If the file is too slow, the capture ends there and records
//! why.

use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, JoinHandle};

use block::Instant;
use engine::{Input, Reply};
use serde::Serialize;
use tracing::{error, warn};

use super::event::{CaptureEnd, Event};
use super::setting::EngineSetting;
use super::{FIRST, frame};

/// The writer of an engine's events to a file. The file is complete when the recorder is dropped.
pub struct Recorder {
    chunk: Vec<u8>,
    /// The time of the last input.
    last: Instant,
    sender: Option<SyncSender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
    ending: CaptureEnd,
}

/// The bytes of a full chunk: some ten thousand events. A choice.
const CHUNK: usize = 64 << 10;

/// The largest number of chunks that wait for the file: 16 MiB, minutes of a busy drive. A choice.
const CHUNKS: usize = 256;

impl Recorder {
    /// Begins a file with the setting of the engine.
    ///
    /// # Errors
    /// If the file cannot be written, or there is no thread.
    pub fn begin(
        mut file: impl Write + Send + 'static,
        setting: &EngineSetting,
    ) -> io::Result<Self> {
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
            ending: CaptureEnd::Whole,
        })
    }

    /// Records an input at `now`.
    pub(super) fn record_input(&mut self, now: Instant, input: Input, reply: Reply) {
        self.record(&Event::Input(now.since(self.last), input, reply));
        self.last = now;
    }

    /// Records the next event.
    pub(super) fn record(&mut self, event: &Event) {
        if self.ending == CaptureEnd::Behind {
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
            self.ending = CaptureEnd::Behind;
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

/// Appends a value in postcard's format to `bytes`.
fn appended(bytes: Vec<u8>, value: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(value, bytes).expect("memory takes every value of ours")
}
