//! Where a run's requests come from: traces and synthetic loads, open and closed.
//!
//! ```text
//!                 arrivals that depend on nothing            arrivals that an end gives rise to
//!   open load, trace:  next_arrival, next_arrival, ...
//!   closed load:       one next_arrival per user, then None      on_finished, on_finished, ...
//!   replay of a trace with think times: one next_arrival         on_finished, on_finished, ...
//! ```
//!
//! The loop asks for one arrival ahead, never more: a load may be read from a file of any length.

use std::error::Error;
use std::fmt;

use block::{Class, Direction, Extent, Finished, Instant};

/// Which part of a load that has several a request belongs to, by its place among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoadPart(pub u16);

impl LoadPart {
    /// All requests of a load that is alone.
    pub const ONLY: LoadPart = LoadPart(0);
}

/// What a client wants; the loop gives it a number and makes it a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Which way the bytes go.
    pub direction: Direction,
    /// Which blocks.
    pub extent: Extent,
    /// How urgent.
    pub class: Class,
    /// Of which part of the load.
    pub part: LoadPart,
}

/// A demand and when it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When the client asks.
    pub at: Instant,
    /// For what.
    pub demand: Demand,
}

/// A source of requests. The same calls give the same arrivals on every machine.
pub trait Load {
    /// The next arrival that depends on no other request's end, at the same time as the one
    /// before or later. Once it is `None` the loop does not ask again.
    ///
    /// # Errors
    /// If the source cannot be read or is not what it claims to be; the run stops.
    fn next_arrival(&mut self) -> Result<Option<Arrival>, LoadError>;

    /// A request of this part of the load has ended at `now`; answers the arrival that this gives rise to, at
    /// `now` or later. Such arrivals may come in any order among each other.
    ///
    /// # Errors
    /// As for [`Load::next_arrival`].
    fn on_finished(
        &mut self,
        now: Instant,
        part: LoadPart,
        finished: &Finished,
    ) -> Result<Option<Arrival>, LoadError> {
        let _ = (now, part, finished);
        Ok(None)
    }

    /// An arrival was left out at `now`, because its blocks are not on the drive and the user
    /// chose to go on; answers the arrival that takes its place. A load whose arrivals depend on
    /// ends must answer, or this client of it falls silent.
    ///
    /// # Errors
    /// As for [`Load::next_arrival`].
    fn on_skipped(
        &mut self,
        now: Instant,
        arrival: &Arrival,
    ) -> Result<Option<Arrival>, LoadError> {
        let _ = (now, arrival);
        Ok(None)
    }

    /// Where the arrival that was handed out last stands in its source, such as `FILE:LINE`, for
    /// error messages.
    fn place(&self) -> Option<String> {
        None
    }

    /// The names of its parts, if it has several.
    fn parts(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Why a load cannot go on: the error of its source, which names the file and the line.
#[derive(Debug)]
pub struct LoadError(Box<dyn Error + Send + Sync>);

impl LoadError {
    /// Wraps the error of a source.
    pub fn new(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        LoadError(source.into())
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for LoadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

impl<L: Load + ?Sized> Load for Box<L> {
    fn next_arrival(&mut self) -> Result<Option<Arrival>, LoadError> {
        (**self).next_arrival()
    }

    fn on_finished(
        &mut self,
        now: Instant,
        part: LoadPart,
        finished: &Finished,
    ) -> Result<Option<Arrival>, LoadError> {
        (**self).on_finished(now, part, finished)
    }

    fn on_skipped(
        &mut self,
        now: Instant,
        arrival: &Arrival,
    ) -> Result<Option<Arrival>, LoadError> {
        (**self).on_skipped(now, arrival)
    }

    fn place(&self) -> Option<String> {
        (**self).place()
    }

    fn parts(&self) -> Vec<String> {
        (**self).parts()
    }
}
