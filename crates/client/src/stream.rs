//! A stream that was granted.

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use block::Terms;

use crate::connection::{Error, ServiceConnection};
use crate::places::locate;
use crate::wire::{Close, FileChange, Granted, Places, Position, Refresh, StreamUpdate};

/// A stream. It ends when this is dropped, when it is closed, or when the process ends.
#[derive(Debug)]
pub struct Stream {
    connection: Arc<ServiceConnection>,
    granted: Granted,
    terms: Terms,
    /// What the service knows of the file.
    known: Mutex<Places>,
}

impl Stream {
    pub(crate) fn new(
        connection: Arc<ServiceConnection>,
        granted: Granted,
        terms: Terms,
        known: Places,
    ) -> Self {
        Stream {
            connection,
            granted,
            terms,
            known: Mutex::new(known),
        }
    }

    /// What was granted.
    pub fn granted(&self) -> Granted {
        self.granted
    }

    /// The playout point is at `offset` of the file now. This waits for nobody: if the service has
    /// no such stream any more, that is an event.
    ///
    /// # Errors
    /// If the service has gone.
    pub fn position(&self, offset: u64) -> Result<(), Error> {
        let stream = self.granted.stream;
        self.connection
            .tell("position", &Position { stream, offset }, stream)
    }

    /// The file may have grown, shrunk or moved: the service is told where it is, if it is elsewhere
    /// than it knows.
    ///
    /// # Errors
    /// If the file has no usable places any more, or the service has no such stream.
    pub fn refresh(&self, file: &File) -> Result<FileChange, Error> {
        let located = locate(file, self.terms.mode, self.terms.export.as_deref())?;
        self.refresh_places(located.places)
    }

    /// The same for a file whose places the caller knows.
    ///
    /// # Errors
    /// If the service has no such stream, or the places are not in the volume.
    pub fn refresh_places(&self, places: Places) -> Result<FileChange, Error> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if *known == places {
            return Ok(FileChange::Same);
        }
        let stream = self.granted.stream;
        let refresh = Refresh { stream, places };
        let change = self.connection.ask("refresh", &refresh)?;
        *known = refresh.places;
        Ok(change)
    }

    /// The next thing that it was told; none if there is nothing new.
    pub fn next_event(&self) -> Option<StreamUpdate> {
        self.connection.next_event(self.granted.stream)
    }

    /// The next thing that it is told, waited for.
    pub fn wait_event(&self, at_most: Duration) -> Option<StreamUpdate> {
        self.connection.wait_event(self.granted.stream, at_most)
    }

    /// Ends it. What a recording has in the service's memory is still written.
    ///
    /// # Errors
    /// If the service has no such stream any more.
    pub fn close(self) -> Result<(), Error> {
        let stream = self.granted.stream;
        let closed = self.connection.ask::<bool>("close", &Close { stream });
        // Dropping it would close it again.
        self.connection.forget(stream);
        closed.map(|_| ())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let stream = self.granted.stream;
        if self.connection.knows(stream) {
            // A service that has gone has ended it.
            let _ = self.connection.tell("close", &Close { stream }, stream);
            self.connection.forget(stream);
        }
    }
}
