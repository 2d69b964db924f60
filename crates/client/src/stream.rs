//! A stream that was granted, and what is asked for.

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::client::{Error, Line};
use crate::places::locate;
use crate::wire::{Attach, Change, Close, Event, Granted, Mode, Places, Position, Refresh};

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// What it is called in lists, and by rules about names.
    pub name: String,
    /// What it is for.
    pub mode: Mode,
    /// Bytes in a second.
    pub rate: u64,
    /// How far beyond its playout point the application reads or writes, in bytes.
    pub buffer: u64,
    /// Memory that it may take in the service, in bytes; if not said, as much as it takes.
    pub memory: Option<u64>,
    /// The first byte that is wanted.
    pub start: u64,
    /// The best-effort priority of the file, from 0, the highest, to 6.
    pub priority: Option<u8>,
    /// The export whose volume the file system is on, where the kernel does not know it.
    pub export: Option<String>,
}

impl Terms {
    /// To play at so many bytes in a second, reading at most so many beyond the playout point.
    pub fn play(rate: u64, buffer: u64) -> Self {
        Terms {
            rate,
            buffer,
            ..Terms::default()
        }
    }

    /// To record at so many bytes in a second, so many at once.
    pub fn record(rate: u64, buffer: u64) -> Self {
        Terms {
            mode: Mode::Record,
            ..Terms::play(rate, buffer)
        }
    }

    /// A priority from 0, the highest, to 6 for all that anybody reads and writes of the file, and no
    /// guarantee.
    pub fn prefer(priority: u8) -> Self {
        Terms {
            priority: Some(priority),
            ..Terms::default()
        }
    }

    pub(crate) fn attach(&self, export: &str, places: Places) -> Attach {
        Attach {
            name: self.name.clone(),
            export: export.to_owned(),
            mode: self.mode,
            rate: self.rate,
            buffer: self.buffer,
            memory: self.memory,
            priority: self.priority,
            start: self.start,
            places,
        }
    }
}

/// A stream. It ends when this is dropped, when it is closed, or when the process ends.
#[derive(Debug)]
pub struct Stream {
    line: Arc<Line>,
    granted: Granted,
    terms: Terms,
    /// What the service knows of the file.
    known: Mutex<Places>,
}

impl Stream {
    pub(crate) fn new(line: Arc<Line>, granted: Granted, terms: Terms, known: Places) -> Self {
        Stream {
            line,
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
        self.line
            .tell("position", &Position { stream, offset }, stream)
    }

    /// The file may have grown, shrunk or moved: the service is told where it is, if it is elsewhere
    /// than it knows.
    ///
    /// # Errors
    /// If the file has no usable places any more, or the service has no such stream.
    pub fn refresh(&self, file: &File) -> Result<Change, Error> {
        let located = locate(file, self.terms.mode, self.terms.export.as_deref())?;
        self.refresh_places(located.places)
    }

    /// The same for a file whose places the caller knows.
    ///
    /// # Errors
    /// If the service has no such stream, or the places are not in the volume.
    pub fn refresh_places(&self, places: Places) -> Result<Change, Error> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if *known == places {
            return Ok(Change::Same);
        }
        let stream = self.granted.stream;
        let refresh = Refresh { stream, places };
        let change = self.line.ask("refresh", &refresh)?;
        *known = refresh.places;
        Ok(change)
    }

    /// The next thing that it was told; none if there is nothing new.
    pub fn next_event(&self) -> Option<Event> {
        self.line.next_event(self.granted.stream)
    }

    /// The next thing that it is told, waited for.
    pub fn wait_event(&self, at_most: Duration) -> Option<Event> {
        self.line.wait_event(self.granted.stream, at_most)
    }

    /// Ends it. What a recording has in the service's memory is still written.
    ///
    /// # Errors
    /// If the service has no such stream any more.
    pub fn close(self) -> Result<(), Error> {
        let stream = self.granted.stream;
        let closed = self.line.ask::<bool>("close", &Close { stream });
        // Dropping it would close it again.
        self.line.forget(stream);
        closed.map(|_| ())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let stream = self.granted.stream;
        if self.line.knows(stream) {
            // A service that has gone has ended it.
            let _ = self.line.tell("close", &Close { stream }, stream);
            self.line.forget(stream);
        }
    }
}
