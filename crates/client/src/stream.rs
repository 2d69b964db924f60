//! A granted stream.

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use block::Terms;

use crate::connection::{Error, ServiceConnection};
use crate::places::locate;
use crate::wire::{Close, FileChange, Granted, Places, Position, Refresh, StreamUpdate};

/// A stream. It ends when it is dropped or closed, and when the process ends.
#[derive(Debug)]
pub struct Stream {
    connection: Arc<ServiceConnection>,
    granted: Granted,
    terms: Terms,
    /// The location of the file, as last reported to the service.
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

    /// The terms of the grant.
    pub fn granted(&self) -> Granted {
        self.granted
    }

    /// Reports the playout point: `offset` in the file. The call does not wait; if the stream has
    /// ended, that is an event.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn position(&self, offset: u64) -> Result<(), Error> {
        let stream = self.granted.stream;
        self.connection
            .tell("position", &Position { stream, offset }, stream)
    }

    /// Locates the file again, and reports a changed location to the service.
    ///
    /// # Errors
    /// If the file has no usable location any more, or the stream has ended.
    pub fn refresh(&self, file: &File) -> Result<FileChange, Error> {
        let located = locate(file, self.terms.mode, self.terms.export.as_deref())?;
        self.refresh_places(located.places)
    }

    /// Reports the location of a file that the caller has located.
    ///
    /// # Errors
    /// If the stream has ended, or the places are not in the volume.
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

    /// The next event, if there is one.
    pub fn next_event(&self) -> Option<StreamUpdate> {
        self.connection.next_event(self.granted.stream)
    }

    /// The next event; waits for it up to `at_most`.
    pub fn wait_event(&self, at_most: Duration) -> Option<StreamUpdate> {
        self.connection.wait_event(self.granted.stream, at_most)
    }

    /// Closes the stream. The service still writes recorded data that it holds.
    ///
    /// # Errors
    /// If the stream has ended already.
    pub fn close(self) -> Result<(), Error> {
        let stream = self.granted.stream;
        let closed = self.connection.ask::<bool>("close", &Close { stream });
        // Otherwise the drop would close the stream again.
        self.connection.forget(stream);
        closed.map(|_| ())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let stream = self.granted.stream;
        if self.connection.knows(stream) {
            // A lost connection has closed the stream already.
            let _ = self.connection.tell("close", &Close { stream }, stream);
            self.connection.forget(stream);
        }
    }
}
