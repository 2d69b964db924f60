//! The sources of a run's requests: traces and synthetic loads, open and closed.
//!
//! ```text
//!                 arrivals that depend on nothing            arrivals that an end gives rise to
//!   open load, trace:  next_arrival, next_arrival, ...
//!   closed load:       one next_arrival per user, then None      on_finished, on_finished, ...
//!   replay of a trace with think times: one next_arrival         on_finished, on_finished, ...
//! ```
//!
//! The run reads one independent arrival ahead, never more, so a load may be a file of any length.

use std::error::Error;
use std::fmt;

use block::{Class, Direction, Extent, Finished, Instant, Owner};

/// The part of a mixed load to which a request belongs: an index into [`Load::parts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoadPart(pub u16);

impl LoadPart {
    /// The only part of a load that is not mixed.
    pub const ONLY: LoadPart = LoadPart(0);
}

/// The parameters of a request; the run adds an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Read or write.
    pub direction: Direction,
    /// The blocks.
    pub extent: Extent,
    /// The priority class.
    pub class: Class,
    /// The part of the load.
    pub part: LoadPart,
    /// The program that waits for it.
    pub owner: Owner,
}

/// A demand and its time of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The time of arrival.
    pub at: Instant,
    /// The parameters of the request.
    pub demand: Demand,
}

/// A source of requests. The same calls give the same arrivals on every machine.
pub trait Load {
    /// The next independent arrival, in order of time. After the first `None` the run does not call
    /// again.
    ///
    /// # Errors
    /// If the source cannot be read or is malformed; the run stops.
    fn next_arrival(&mut self) -> Result<Option<Arrival>, LoadError>;

    /// A request of this part of the load has ended at `now`. Returns the arrival that the end
    /// causes, at `now` or later. Dependent arrivals may come in any order.
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

    /// The run skipped an arrival at `now`, because its blocks are not on the drive. Returns its
    /// replacement. A load with dependent arrivals must return one, or this client of the load
    /// stops.
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

    /// The source position of the last arrival, such as `FILE:LINE`, for error messages.
    fn place(&self) -> Option<String> {
        None
    }

    /// The names of the parts of a mixed load; empty for other loads.
    fn parts(&self) -> Vec<String> {
        Vec::new()
    }
}

/// An error of a load's source, which names the file and the line.
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
